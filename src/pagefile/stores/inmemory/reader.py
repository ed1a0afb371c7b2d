"""Reads the lists."""

from collections.abc import Sequence
from typing import TypeVar, cast

from pagefile.ports import (
    EntryQuery,
    HeadQuery,
    LogReader,
    LogView,
    Neighbourhood,
    SinceRequest,
    TurnRef,
    TurnSource,
    ViewRequest,
)
from pagefile.records import (
    Checkpoint,
    Entry,
    Head,
    JsonObject,
    Scope,
    Turn,
)
from pagefile.stores import rules
from pagefile.stores.encoding import plain
from pagefile.stores.inmemory.room import Room, behind

T = TypeVar("T")


class InMemoryReader(LogReader, TurnSource):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def epoch(self, scope: Scope | None = None) -> int:
        return self._room.epoch if scope is None else self._room.newest_epoch(scope)

    async def view(self, request: ViewRequest) -> LogView:
        conversation = self._room.found(request.scope)
        open_turn: Turn | None = None
        if request.open_turn is not None:
            turns = conversation.open if conversation else []
            open_turn = next((turn for turn in turns if turn.id == request.open_turn), None)
            if open_turn is None:
                raise rules.no_turn(request.open_turn)
        if conversation is None:
            return LogView(rules.no_head(request.scope, self._room.epoch), None, ())
        taken: list[Turn] = []
        for turn in reversed(conversation.live()):
            total = sum(earlier.tokens for earlier in taken) + turn.tokens
            if len(taken) >= request.min_turns and total > request.budget_tokens:
                break
            taken.append(turn)
        return LogView(
            head=conversation.head(self._room.epoch),
            checkpoint=conversation.checkpoint(),
            turns=tuple(reversed(taken)),
            open_turn=open_turn,
            profile=self._profile(request.scope),
        )

    def _profile(self, scope: Scope) -> JsonObject | None:
        value = self._room.sessions.get((scope.tenant, rules.conversation_of(scope)))
        return None if value is None else plain(cast("JsonObject", value).get("user_snapshot"))

    async def owner(self, scope: Scope) -> Scope | None:
        self._room.check_open()
        found = self._room.conversations.get((scope.tenant, rules.conversation_of(scope)))
        return None if found is None else found.scope

    async def entries(self, query: EntryQuery) -> list[Entry]:
        conversation = self._room.found(query.scope)
        chosen = [
            entry
            for entry in (conversation.entries() if conversation else [])
            if (entry.seq is None or entry.seq > query.after_seq) and _asked_for(entry, query)
        ]
        return chosen[max(0, len(chosen) - query.limit) :] if query.newest else chosen[: query.limit]

    async def heads(self, query: HeadQuery) -> list[Head]:
        seen = [conversation.head(self._room.epoch) for conversation in self._room.seen(query.scope)]
        seen.sort(key=lambda head: head.scope.conversation or "")
        seen.sort(key=lambda head: head.updated, reverse=True)
        return behind(seen, lambda head: head.scope.conversation, query.after)[: query.limit]

    async def since(self, request: SinceRequest) -> list[Turn]:
        seen = {rules.conversation_of(found.scope): found for found in self._room.seen(request.scope)}
        turns = [turn for name in sorted(seen) for turn in seen[name].done(request.known.get(name, 0))]
        return turns[: request.limit]

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        seen = {rules.conversation_of(found.scope): found for found in self._room.seen(scope)}
        found: list[Neighbourhood] = []
        for ref in refs:
            turns = seen[ref.conversation].done() if ref.conversation in seen else []
            place = next((i for i, turn in enumerate(turns) if turn.seq == ref.seq), None)
            if place is not None:
                before = turns[place - 1] if place > 0 else None
                after = turns[place + 1] if place + 1 < len(turns) else None
                found.append(Neighbourhood(turns[place], before, after))
        return found


def _asked_for(entry: Entry, query: EntryQuery) -> bool:
    if isinstance(entry, Turn):
        return "turn" in query.kinds and entry.status in query.statuses
    return ("checkpoint" if isinstance(entry, Checkpoint) else "reset") in query.kinds
