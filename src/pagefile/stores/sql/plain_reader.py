"""Reads views, entries and the neighbours of a turn, each in several plain statements of one snapshot."""

from collections.abc import Sequence
from dataclasses import replace

from pagefile.ports import EntryQuery, LogView, Neighbourhood, TurnRef, ViewRequest
from pagefile.records import Entry, Head, Scope, Turn
from pagefile.stores import rules
from pagefile.stores.sql.epochs import epoch_now
from pagefile.stores.sql.plays import Play, each, row, rows
from pagefile.stores.sql.reader import SqlReader, entry_values, owner_of
from pagefile.stores.sql.rows import (
    CHECKPOINT_COLUMNS,
    ENTRY_COLUMNS,
    HEAD_COLUMNS,
    checkpoint_of,
    entry_of,
    head_of,
    keys,
    turn_of,
)
from pagefile.stores.sql.sessions import profile


class PlainReader(SqlReader):
    """The log as windows, lists and indexes want it, for a database in which a statement costs no round trip."""

    async def view(self, request: ViewRequest) -> LogView:
        rules.conversation_of(request.scope)
        return await self._player.read(lambda: view(request))

    async def entries(self, query: EntryQuery) -> list[Entry]:
        rules.conversation_of(query.scope)
        return await self._player.read(lambda: _entries(query))

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        return await self._player.read(lambda: _around(scope, refs))


def view(request: ViewRequest) -> Play[LogView]:
    """The head, the checkpoint in force, the open turn and the profile, and as many turns as are wanted."""
    scope = request.scope
    found = yield from row("view", {**keys(scope), "open_turn": request.open_turn})
    if found is not None:
        rules.check_owner(scope, found[0])
    of_turn = HEAD_COLUMNS + CHECKPOINT_COLUMNS
    has_open_turn = found is not None and found[of_turn] is not None
    if request.open_turn is not None and not has_open_turn:
        raise rules.no_turn(request.open_turn)
    if found is None:
        return LogView(rules.no_head(scope, (yield from epoch_now())), None, ())
    head = head_of(found[:HEAD_COLUMNS], scope)
    checkpoint, open_turn = found[HEAD_COLUMNS:of_turn], found[of_turn : of_turn + ENTRY_COLUMNS]
    return LogView(
        head=head,
        checkpoint=None if checkpoint[0] is None else checkpoint_of(checkpoint, head.scope),
        turns=(yield from _live_turns(head, request)) if head.live_turns else (),
        open_turn=turn_of(open_turn, head.scope) if has_open_turn else None,
        profile=profile(found[of_turn + ENTRY_COLUMNS :], head.scope),
    )


def _live_turns(head: Head, request: ViewRequest) -> Play[tuple[Turn, ...]]:
    # As many at once as fit if they are of the usual length, and one that does not.
    expected = request.budget_tokens * head.live_turns // max(1, head.live_tokens)
    limit = 1 + max(request.min_turns, min(expected, head.live_turns))
    values = {
        **keys(head.scope),
        "after_seq": max(head.reset_seq, head.covered_through_seq),
        "before_seq": head.last_seq + 1,
        "limit": limit,
    }
    taken: list[Turn] = []
    tokens = 0
    while True:
        found = yield from rows("turns_back", values)
        for one in found:
            turn = turn_of(one, head.scope)
            tokens += turn.tokens
            if tokens > request.budget_tokens and len(taken) >= request.min_turns:
                return tuple(reversed(taken))
            taken.append(turn)
        if len(found) < values["limit"]:
            return tuple(reversed(taken))
        # They are shorter than usual: the average tells nothing of how many more there are.
        values["before_seq"], values["limit"] = found[-1][2], 2 * values["limit"]


def _entries(query: EntryQuery) -> Play[list[Entry]]:
    scope = yield from owner_of(query.scope)
    if scope is None:
        return []
    rules.check_owner(query.scope, scope.user)
    values, limit = entry_values(query), max(0, query.limit)
    # Open turns come last, so the newest entries begin with them.
    order = ("entries_open_back", "entries_ended_back") if query.newest else ("entries_ended", "entries_open")
    found: list[Entry] = []
    for statement in order:
        values["limit"] = limit - len(found)
        found += yield from each(statement, values, lambda one: entry_of(one, scope))
    return found[::-1] if query.newest else found


def _around(scope: Scope, refs: Sequence[TurnRef]) -> Play[list[Neighbourhood]]:
    # Most of what is found together was said in a few conversations.
    homes: dict[str, Scope | None] = {}
    near: list[Neighbourhood] = []
    for ref in refs:
        if ref.conversation not in homes:
            homes[ref.conversation] = yield from _home(scope, ref.conversation)
        found = yield from _around_one(homes[ref.conversation], ref)
        near += [] if found is None else [found]
    return near


def _home(scope: Scope, name: str) -> Play[Scope | None]:
    """A conversation with its owner; None where the scope does not see it."""
    if scope.conversation not in {None, name}:
        return None
    home = yield from owner_of(replace(scope, conversation=name))
    return None if home is None or not rules.sees(scope, home.user) else home


def _around_one(home: Scope | None, ref: TurnRef) -> Play[Neighbourhood | None]:
    if home is None:
        return None
    values = {**keys(home), "seq": ref.seq, "after_seq": ref.seq, "limit": 1}
    near = yield from each("turns_up_to", values, lambda one: turn_of(one, home))
    if not near or near[0].seq != ref.seq:
        return None
    after = yield from each("turns_after", values, lambda one: turn_of(one, home))
    return Neighbourhood(near[0], near[1] if len(near) > 1 else None, after[0] if after else None)
