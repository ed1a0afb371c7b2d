"""Erases one turn or one page from the lists."""

from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import TypeVar

from pagefile.ports import Part
from pagefile.records import Checkpoint, Page, Reset, Scope, Turn, WindowRecord
from pagefile.stores import erasure, rules, session
from pagefile.stores.encoding import from_json, own_json
from pagefile.stores.inmemory.tables import Conversation, Tables

K = TypeVar("K")
T = TypeVar("T")
#: A session's version comes from its conversation's time, so that must increase even if the clock does not.
_NEXT = timedelta(microseconds=1)


def erase_part(tables: Tables, scope: Scope, part: Part) -> tuple[dict[str, int], erasure.Places]:
    """How many rows were erased, table by table, and the position of the turn."""
    hashes, spans = tables.hashes(), tables.spans()
    if scope.conversation is not None:
        tables.found(scope)
    one = _One(tables, scope, part)
    places = one.turn(part.turn_id) if part.turn_id is not None else one.page(part.page or "")
    if not one.found and erasure.part_key(scope, part) not in tables.epochs:
        raise erasure.no_part(part)
    left = tables.hashes()
    drop(tables.blobs, lambda key: key not in left)
    one.counts |= {"blobs": len(hashes - left), "archive_passage": spans - tables.spans()}
    names = one.touched
    noted = erasure.part_keys(scope, part, one.owner) if one.found else []
    tables.epochs |= dict.fromkeys([*erasure.raised_keys(scope.tenant, names), *noted], tables.epoch + 1)
    drop(
        tables.watermarks,
        lambda key: (
            key[0] == scope.tenant and key[1] in names and any(f":{name}:" in key[2] for name in part.places)
        ),
    )
    return one.counts, places


class _One:
    def __init__(self, tables: Tables, scope: Scope, part: Part) -> None:
        self._tables, self._scope, self._part = tables, scope, part
        self.counts = dict.fromkeys(erasure.TABLES, 0)
        #: Conversations in which something changed.
        self.touched = set[str | None]()
        #: Whether there is such a turn or page, and whose it is.
        self.found, self.owner = False, scope.user

    # -- a turn -------------------------------------------------------------------------------------------------------

    def turn(self, turn_id: str) -> erasure.Places:
        home = self._tables.found(self._scope)
        named = None if home is None else home.find(turn_id)
        if not isinstance(named, Turn):
            return ()
        self.found = True
        copies = [copy for copy in self._turns() if erasure.is_copy(named, copy)]
        self.touched = {copy.scope.conversation for copy in copies}
        if not named.erased:
            gone = [mark for copy in copies for mark in self._bury(copy)]
            facts = self._facts(turn_id, named.scope.user)
            self._calls(
                erasure.names_in_windows(turn_id, gone, facts),
                erasure.words_of(*copies),
                {turn_id},
                named.scope.user,
            )
            self._pages(self._own_pages(copies), named.scope.user)
        return erasure.places_of(copies)

    def _turns(self) -> list[Turn]:
        tenant = [one for (name, _), one in self._tables.conversations.items() if name == self._scope.tenant]
        return [entry for one in tenant for entry in one.entries() if isinstance(entry, Turn)]

    def _bury(self, turn: Turn) -> list[str]:
        """The checkpoints that were erased with it."""
        conversation = self._conversation(turn.scope)
        conversation.updated += _NEXT
        key = turn.scope.tenant, turn.scope.conversation or ""
        counted = turn.status == "done" and (turn.seq or 0) > conversation.reset_seq()
        if turn.seq is None:
            conversation.open = [one for one in conversation.open if one.id != turn.id]
            stale: list[Checkpoint] = []
        else:
            stale = erasure.covering(conversation.ended, turn.seq)
            for entry in (turn, *stale):
                conversation.ended[(entry.seq or 0) - 1] = erasure.tombstone(entry)
        self.counts["ai_message"] += 1 + len(stale)
        self.counts["conversation_summaries"] += bool(stale)
        self.counts["attachments"] += drop(
            self._tables.attachments, lambda place: place[:3] == (*key, turn.id)
        )
        self.counts["turn_terms"] += drop(self._tables.terms, lambda place: place == (*key, turn.seq))
        for collection in self._tables.vectors.values():
            gone = self.counts.get("conversation_episodes", 0) + drop(
                collection, lambda at: at == (*key, turn.seq)
            )
            self.counts |= erasure.counted_vectors(gone)
        self._session(conversation, turn, counted=counted, stale=bool(stale))
        return [mark.id for mark in stale]

    def _session(self, conversation: Conversation, turn: Turn, *, counted: bool, stale: bool) -> None:
        value = self._tables.sessions.get((turn.scope.tenant, turn.scope.conversation or ""))
        if value is None:
            return
        answers = [one.assistant for one in conversation.done() if one.assistant]
        session.put_erased(value, turn, answers[-1] if answers else None, counted=counted)
        if stale:
            session.put_in_force(value, conversation.checkpoint())

    def _facts(self, turn_id: str, owner: str | None) -> set[str]:
        def learned(key: tuple[str, str]) -> bool:
            fact = self._tables.facts[key]
            here = fact.scope.conversation in self.touched or (
                fact.scope.conversation is None and fact.scope.user == owner
            )
            return key[0] == self._scope.tenant and fact.source_turn == turn_id and here

        gone = {key[1] for key in self._tables.facts if learned(key)}
        self.counts["facts"] += drop(self._tables.facts, lambda key: key[1] in gone and learned(key))
        before = len(self._tables.fact_revisions)
        self._tables.fact_revisions = [
            (scope, row)
            for scope, row in self._tables.fact_revisions
            if scope.tenant != self._scope.tenant or from_json(row[4])["id"] not in gone
        ]
        self.counts["fact_revisions"] += before - len(self._tables.fact_revisions)
        return gone

    def _own_pages(self, copies: Iterable[Turn]) -> set[str]:
        """Those that no other turn made too."""
        made = {uuid for copy in copies for uuid in erasure.made_pages(copy, self._part)}
        return made - {uuid for turn in self._turns() for uuid in erasure.made_pages(turn, self._part)}

    # -- pages --------------------------------------------------------------------------------------------------------

    def page(self, uuid: str) -> erasure.Places:
        shelved = self._tables.pages.get((self._scope.tenant, uuid))
        if shelved is None or not rules.reaches_page(self._scope, shelved.page.scope):
            return ()
        self.found, self.owner = True, shelved.page.scope.user
        self._pages(self._with_copies(shelved.page), shelved.page.scope.user)
        return tuple((name, 0) for name in sorted(filter(None, self.touched)))

    def _with_copies(self, page: Page) -> set[str]:
        tenant = [one.page for (name, _), one in self._tables.pages.items() if name == self._scope.tenant]
        return {one.uuid for one in tenant if erasure.is_page_copy(page, one)}

    def _pages(self, uuids: Collection[str], owner: str | None) -> None:
        if not uuids:
            return
        tenant = self._scope.tenant
        gone = [shelved.page for key, shelved in self._tables.pages.items() if key[0] == tenant]
        self.touched |= {page.scope.conversation for page in gone if page.uuid in uuids} - {None}
        for (name, _), conversation in self._tables.conversations.items():
            if name == tenant:
                self._unpage(conversation, uuids)
        self.counts["tool_result_archive"] += drop(
            self._tables.pages, lambda key: key[0] == tenant and key[1] in uuids
        )
        self._calls(uuids, (), (), owner)

    def _unpage(self, conversation: Conversation, uuids: Collection[str]) -> None:
        for entries in (conversation.ended, conversation.open):
            for number, entry in enumerate(entries):
                if isinstance(entry, Reset):
                    continue
                changed = (
                    erasure.without_pages(entry, uuids, self._part)
                    if isinstance(entry, Turn)
                    else erasure.without_refs(entry, uuids)
                )
                if changed != entry:
                    entries[number] = changed  # pyright: ignore[reportArgumentType, reportCallIssue] - of the kind it was
                    self.counts["ai_message"] += isinstance(entry, Turn)
                    conversation.updated += _NEXT
                    self.touched.add(conversation.scope.conversation)

    # -- windows ------------------------------------------------------------------------------------------------------

    def _calls(
        self, names: Collection[str], words: Collection[str], turns: Collection[str], owner: str | None
    ) -> None:
        texts = [*names, *erasure.telling(words)]

        def shows(key: tuple[str, str]) -> bool:
            call = self._tables.calls[key]
            here = call.scope.conversation in self.touched
            if key[0] != self._scope.tenant or not (here or (owner and call.scope.user == owner)):
                return False
            return (here and (call.turn_id in turns or call.query in words)) or _names(call, texts)

        self.counts["context_calls"] += drop(self._tables.calls, shows)

    def _conversation(self, scope: Scope) -> Conversation:
        return self._tables.conversations[scope.tenant, scope.conversation or ""]


def _names(call: WindowRecord, texts: Iterable[str]) -> bool:
    told = own_json(call.options) + own_json(call.receipt)
    return any(text in told for text in texts)


def drop(table: dict[K, T], goes: Callable[[K], bool]) -> int:
    keys = [key for key in table if goes(key)]
    for key in keys:
        del table[key]
    return len(keys)
