"""Watermarks and terms as dicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pagefile.ports import Behind, SinceRequest, TermStore, TurnTerms, Watermarks
from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.inmemory.room import Room


class InMemoryWatermarks(Watermarks):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def known(self, scope: Scope, tier: str) -> Mapping[str, int]:
        names = [rules.conversation_of(found.scope) for found in self._room.seen(scope)]
        marks = {name: self._room.watermarks.get((scope.tenant, name, tier)) for name in sorted(names)}
        return {name: seq for name, seq in marks.items() if seq is not None}

    async def advance(self, scope: Scope, tier: str, seq: int, *, epoch: int | None) -> None:
        self._room.check_epoch(epoch, scope)
        key = scope.tenant, rules.conversation_of(scope), tier
        if key[:2] in self._room.conversations:
            self._room.watermarks[key] = max(seq, self._room.watermarks.get(key, 0))

    async def behind(self, tier: str, *, limit: int = 100, tenant: str | None = None) -> list[Behind]:
        self._room.check_open()
        found = [
            Behind(conversation.scope, self._room.watermarks.get((*key, tier), 0), len(conversation.ended))
            for key, conversation in sorted(self._room.conversations.items())
            if tenant in (None, key[0])
        ]
        return [one for one in found if one.seq < one.last_seq][: max(0, limit)]

    async def tiers(self) -> list[str]:
        self._room.check_open()
        return sorted({tier for _, _, tier in self._room.watermarks})

    async def drop(self, tier: str) -> int:
        self._room.check_open()
        gone = [key for key in self._room.watermarks if key[2] == tier]
        for key in gone:
            del self._room.watermarks[key]
        return len(gone)


class InMemoryTerms(TermStore):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def since(self, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
        seen = {rules.conversation_of(found.scope): found for found in self._room.seen(request.scope)}
        turns = [
            (name, turn) for name in sorted(seen) for turn in seen[name].done(request.known.get(name, 0))
        ]
        found: list[TurnTerms] = []
        for name, turn in turns[: max(0, request.limit)]:
            made_by, said, answered = self._room.terms.get(
                (request.scope.tenant, name, turn.seq or 0), ("", "", "")
            )
            kept = (said, answered) if made_by == analyzer else (None, None)
            found.append(TurnTerms(name, turn.seq or 0, turn.id, turn.at, *kept))
        return found

    async def write(
        self, scope: Scope, terms: Sequence[TurnTerms], analyzer: str, *, epoch: int | None = None
    ) -> None:
        self._room.check_epoch(
            epoch, scope, *(replace(scope, conversation=one.conversation) for one in terms)
        )
        for one in terms:
            conversation = self._room.conversations.get((scope.tenant, one.conversation))
            if conversation is not None and 0 < one.seq <= len(conversation.ended):
                key = scope.tenant, one.conversation, one.seq
                self._room.terms[key] = analyzer, one.said or "", one.answered or ""
