"""Reads the turn log: a window's view is one statement, and so one snapshot; so is a list of entries."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from pagefile.ports import EntryQuery, LogView, Neighbourhood, TurnRef, ViewRequest
from pagefile.records import Entry, Scope, Turn
from pagefile.stores import rules
from pagefile.stores.sql.reader import SqlReader, entry_values
from pagefile.stores.sql.rows import entry_of, head_and_checkpoint, keys, turn_of
from pagefile.stores.sql.sessions import profile


class PostgresReader(SqlReader):
    async def view(self, request: ViewRequest) -> LogView:
        rules.conversation_of(request.scope)
        values = {
            **keys(request.scope),
            "budget": request.budget_tokens,
            "least": request.min_turns,
            "open_turn": request.open_turn,
        }
        found = await self._rows("view", values)
        # One row has all that is not a turn, in its first column; the others are turns, in no order.
        top = next((row[0] for row in found if row[0] is not None), None)
        if top is None:
            if request.open_turn is not None:
                raise rules.no_turn(request.open_turn)
            # Before the first write there is no row to check; nothing was read, so nothing can be out of date.
            return LogView(rules.no_head(request.scope, await self.epoch()), None, ())
        rules.check_owner(request.scope, top[0])
        head, checkpoint, rest = head_and_checkpoint(top, request.scope)
        turns = [turn_of(row[1:], head.scope) for row in found if row[0] is None]
        open_turn = next((turn for turn in turns if turn.status == "open"), None)
        if request.open_turn is not None and open_turn is None:
            raise rules.no_turn(request.open_turn)
        ended = sorted((turn for turn in turns if turn is not open_turn), key=lambda turn: turn.seq or 0)
        return LogView(head, checkpoint, tuple(ended), open_turn, profile(rest, head.scope))

    async def entries(self, query: EntryQuery) -> list[Entry]:
        rules.conversation_of(query.scope)
        found = await self._rows("entries_back" if query.newest else "entries", entry_values(query))
        if not found:
            return []
        scope = replace(query.scope, user=found[0][0])
        rules.check_owner(query.scope, scope.user)
        entries = [entry_of(one[1:], scope) for one in found if one[1] is not None]
        return entries[::-1] if query.newest else entries

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        places = {"names": [ref.conversation for ref in refs], "seqs": [ref.seq for ref in refs]}
        found = await self._rows("around", {**keys(scope), **places})
        near: list[Neighbourhood] = []
        for _, group in groupby(found, key=lambda row: row[0]):
            turns: dict[int, Turn] = {
                which: turn_of(entry, Scope(scope.tenant, owner, name))
                for _, which, name, owner, *entry in group
            }
            if 0 in turns:
                near.append(Neighbourhood(turns[0], turns.get(1), turns.get(2)))
        return near
