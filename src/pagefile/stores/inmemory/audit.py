"""The tables as they are stored. Most counters that could be wrong in a database are recomputed here on each call."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pagefile.ports import audit
from pagefile.records import Entry, Scope, Turn
from pagefile.stores import rules
from pagefile.stores.encoding import packed
from pagefile.stores.inmemory.tables import Conversation, Port


class InMemoryAuditor(Port, audit.Auditor):
    async def errors(self, *, full: bool) -> list[str]:
        return []

    async def size(self, tenant: str | None) -> int:
        chats = [found for key, found in self._tables.conversations.items() if tenant in (None, key[0])]
        pages = [key for key in self._tables.pages if tenant in (None, key[0])]
        return sum(len(chat.entries()) for chat in chats) + len(pages)

    async def conversations(self, after: audit.After) -> list[audit.KeptConversation]:
        return [self._kept(key) for key in _behind(self._tables.conversations, after)]

    async def conversation(self, scope: Scope) -> audit.KeptConversation | None:
        key = scope.tenant, rules.conversation_of(scope)
        return self._kept(key) if key in self._tables.conversations else None

    async def lost(self, tenant: str | None) -> list[Scope]:
        return []

    async def entries(self, scope: Scope, *, after_seq: int, limit: int) -> list[audit.KeptEntry]:
        found = self._tables.conversations.get((scope.tenant, rules.conversation_of(scope)))
        if found is None:
            return []
        ended = [entry for entry in found.ended if (entry.seq or 0) > after_seq][:limit]
        return [_entry(entry) for entry in (*ended, *(() if len(ended) >= limit else found.open))]

    async def entry(self, scope: Scope, entry_id: str) -> audit.KeptEntry | None:
        found = self._tables.conversations.get((scope.tenant, rules.conversation_of(scope)))
        entry = None if found is None else found.find(entry_id)
        return None if entry is None else _entry(entry)

    async def pages(self, after: audit.After) -> list[audit.KeptPage]:
        found: list[audit.KeptPage] = []
        for key in _behind(self._tables.pages, after):
            shelved = self._tables.pages[key]
            blob = None if shelved.text is None else packed(shelved.text)
            size = None if blob is None else len(blob.data)
            found.append(audit.KeptPage(*key, shelved.page, None, blob and blob.hash, size))
        return found

    async def lengths(self, tenant: str, uuids: Sequence[str]) -> dict[str, audit.Lengths]:
        pages = {uuid: self._tables.pages.get((tenant, uuid)) for uuid in uuids}
        return {uuid: audit.Lengths(one.page.length, one.page.purged) for uuid, one in pages.items() if one}

    async def users(self, after: audit.After) -> list[Scope]:
        owners = {(fact.scope.tenant, fact.scope.user or "") for fact in self._tables.facts.values()}
        return [Scope(*key) for key in _behind(owners, after)]

    async def altered_facts(self, owner: Scope) -> list[str]:
        return []

    async def orphans(self, tenant: str | None, *, limit: int) -> list[audit.Orphan]:
        chats = self._tables.conversations
        terms = [
            audit.Orphan("terms", key[0], key[1], key[2])
            for key in self._tables.terms
            if tenant in (None, key[0]) and not _is_done(chats.get(key[:2]), key[2])
        ]
        marks = [
            audit.Orphan("watermark", key[0], key[1], None, key[2])
            for key in self._tables.watermarks
            if tenant in (None, key[0]) and key[:2] not in chats
        ]
        return terms[:limit] + marks[:limit]

    async def recount(self, recount: audit.Recount) -> bool:
        return False

    async def set_mark(self, scope: Scope, tier: str, seq: int) -> None:
        self._tables.watermarks[scope.tenant, rules.conversation_of(scope), tier] = seq

    async def set_spans(self, tenant: str, uuid: str, spans: Sequence[tuple[int, int]]) -> None:
        shelved = self._tables.pages.get((tenant, uuid))
        if shelved is not None and shelved.text is not None:
            self._tables.pages[tenant, uuid] = replace(shelved, spans=tuple(spans), terms=None)

    async def set_bytes(self, tenant: str, uuid: str) -> None:
        shelved = self._tables.pages.get((tenant, uuid))
        if shelved is not None and shelved.text is not None:
            page = replace(shelved.page, stored_bytes=len(packed(shelved.text).data))
            self._tables.pages[tenant, uuid] = replace(shelved, page=page)

    async def drop(self, orphans: Sequence[audit.Orphan]) -> int:
        gone = 0
        for orphan in filter(lambda one: one.derived, orphans):
            place = orphan.tenant or "", orphan.conversation or ""
            if orphan.kind == "terms":
                gone += self._tables.terms.pop((*place, orphan.seq or 0), None) is not None
            else:
                gone += self._tables.watermarks.pop((*place, orphan.name), None) is not None
        return gone

    def _kept(self, key: tuple[str, str]) -> audit.KeptConversation:
        found = self._tables.conversations[key]
        head, checkpoint = found.head(), found.checkpoint()
        counters = audit.Counters(
            last_seq=head.last_seq,
            reset_seq=head.reset_seq,
            covered_through_seq=head.covered_through_seq,
            turns=head.turns,
            live_turns=head.live_turns,
            live_tokens=head.live_tokens,
            checkpoint_id=None if checkpoint is None else checkpoint.id,
            checkpoint_version=found.versions(),
            last_created=found.ended[-1].created if found.ended else None,
        )
        marks = {tier: seq for (*place, tier), seq in self._tables.watermarks.items() if tuple(place) == key}
        return audit.KeptConversation(found.scope, counters, marks, checkpoint)


def _behind(keys: Iterable[tuple[str, str]], after: audit.After) -> list[tuple[str, str]]:
    wanted = (key for key in keys if key > (after.tenant, after.name) and after.only in (None, key[0]))
    return sorted(wanted)[: after.limit]


def _is_done(found: Conversation | None, seq: int) -> bool:
    entries = [] if found is None else [entry for entry in found.ended if entry.seq == seq]
    return any(isinstance(entry, Turn) and entry.status == "done" for entry in entries)


def _entry(entry: Entry) -> audit.KeptEntry:
    return audit.KeptEntry(entry.id, entry.seq, type(entry).__name__.lower(), entry, writer=_writer(entry))


def _writer(entry: Entry) -> str | None:
    return entry.scope.user if isinstance(entry, Turn) else None
