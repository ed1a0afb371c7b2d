"""Reads the turn log: a window's view is one statement, and so one snapshot; so is a list of entries."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from pagefile.ports import EntryQuery, LogView, Neighbourhood, TurnRef, ViewRequest
from pagefile.records import Entry, Scope, Turn
from pagefile.stores import rules
from pagefile.stores.sql.plays import Row, Values, rows
from pagefile.stores.sql.reader import SqlReader, entry_values
from pagefile.stores.sql.rows import entry_of, head_and_checkpoint, keys, turn_of
from pagefile.stores.sql.sessions import profile


class PostgresReader(SqlReader):
    async def view(self, request: ViewRequest) -> LogView:
        rules.conversation_of(request.scope)
        values: Values = {
            **keys(request.scope),
            "budget": request.budget_tokens,
            "least": request.min_turns,
            "open_turn": request.open_turn,
        }
        found = await self._player.read(lambda: rows("view", values))
        # Before the first write there is no row to check; nothing was read, so nothing can be out of date.
        return _view(found, request, 0 if found else await self.epoch())

    async def entries(self, query: EntryQuery) -> list[Entry]:
        rules.conversation_of(query.scope)
        statement, values = "entries_back" if query.newest else "entries", entry_values(query)
        found = await self._player.read(lambda: rows(statement, values))
        if not found:
            return []
        owner = found[0][0]
        rules.check_owner(query.scope, owner)
        scope = replace(query.scope, user=owner)
        entries = [entry_of(one[1:], scope) for one in found if one[1] is not None]
        return entries[::-1] if query.newest else entries

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        values: Values = {
            **keys(scope),
            "names": [ref.conversation for ref in refs],
            "seqs": [ref.seq for ref in refs],
        }
        found = await self._player.read(lambda: rows("around", values))
        groups = (list(group) for _, group in groupby(found, key=lambda row: row[0]))
        return [_neighbourhood(group, scope.tenant) for group in groups if group[0][1] == 0]


def _view(found: Sequence[Row], request: ViewRequest, epoch: int) -> LogView:
    """One row has all that is not a turn, in its first column; the others are turns, in no order."""
    scope = request.scope
    top: Row | None = next((row[0] for row in found if row[0] is not None), None)
    if top is None:
        if request.open_turn is not None:
            raise rules.no_turn(request.open_turn)
        return LogView(rules.no_head(scope, epoch), None, ())
    rules.check_owner(scope, top[0])
    head, checkpoint, rest = head_and_checkpoint(top, scope)
    turns = [turn_of(row[1:], head.scope) for row in found if row[0] is None]
    open_turn = next((turn for turn in turns if turn.status == "open"), None)
    if request.open_turn is not None and open_turn is None:
        raise rules.no_turn(request.open_turn)
    return LogView(
        head=head,
        checkpoint=checkpoint,
        turns=tuple(sorted((turn for turn in turns if turn is not open_turn), key=_place)),
        open_turn=open_turn,
        profile=profile(rest, head.scope),
    )


def _place(turn: Turn) -> int:
    return turn.seq or 0


def _neighbourhood(found: Iterable[Row], tenant: str) -> Neighbourhood:
    near: dict[int, Turn] = {
        which: turn_of(entry, Scope(tenant, owner, name)) for _, which, name, owner, *entry in found
    }
    return Neighbourhood(near[0], near.get(1), near.get(2))
