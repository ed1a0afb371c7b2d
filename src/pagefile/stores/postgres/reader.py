"""Reads the turn log: a window's view is one statement, and so one snapshot."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

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
from pagefile.records import Entry, Head, Scope, Turn
from pagefile.stores import rules
from pagefile.stores.epochs import written_keys
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Row, Values
from pagefile.stores.postgres.rows import (
    CHECKPOINT_COLUMNS,
    HEAD_COLUMNS,
    checkpoint_of,
    entry_of,
    head_of,
    keys,
    turn_of,
)
from pagefile.stores.postgres.sessions import profile

#: Where the session's part of the statement `view` begins.
_SESSION = HEAD_COLUMNS + CHECKPOINT_COLUMNS


class PostgresReader(LogReader, TurnSource):
    """The log as windows, lists and indexes want it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def epoch(self, scope: Scope | None = None) -> int:
        if scope is None:
            row = await self._database.row("epoch_now", {})
        else:
            row = await self._database.row("epoch_newest", {"names": written_keys([scope])})
        return (row[0] if row else None) or 0

    async def view(self, request: ViewRequest) -> LogView:
        rules.conversation_of(request.scope)
        values: Values = {
            **keys(request.scope),
            "budget": request.budget_tokens,
            "least": request.min_turns,
            "open_turn": request.open_turn,
        }
        rows = await self._database.rows("view", values)
        # Where nothing was written there is no row that could tell; nothing was read, so nothing can be out of date.
        return _view(rows, request, 0 if rows else await self.epoch())

    async def owner(self, scope: Scope) -> Scope | None:
        rules.conversation_of(scope)
        row = await self._database.row("owner", keys(scope))
        return None if row is None else replace(scope, user=row[0])

    async def entries(self, query: EntryQuery) -> list[Entry]:
        rules.conversation_of(query.scope)
        values: Values = {
            **keys(query.scope),
            "kinds": sorted(query.kinds),
            "statuses": sorted(query.statuses),
            "after_seq": query.after_seq,
            "limit": max(0, query.limit),
        }
        rows = await self._database.rows("entries_back" if query.newest else "entries", values)
        return _entries(rows, query)

    async def heads(self, query: HeadQuery) -> list[Head]:
        return await self._database.read(lambda connection: _heads(connection, query))

    async def since(self, request: SinceRequest) -> list[Turn]:
        return await self._database.read(lambda connection: _since(connection, request))

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        values: Values = {
            **keys(scope),
            "names": [ref.conversation for ref in refs],
            "seqs": [ref.seq for ref in refs],
        }
        rows = await self._database.rows("around", values)
        groups = (list(group) for _, group in groupby(rows, key=lambda row: row[0]))
        return [_neighbourhood(group, scope.tenant) for group in groups if group[0][1] == 0]


def _view(rows: Sequence[Row], request: ViewRequest, epoch: int) -> LogView:
    """One row has all that is not a turn, in its first column; the others are turns, in no order."""
    scope = request.scope
    top: Row | None = next((row[0] for row in rows if row[0] is not None), None)
    if top is None and request.open_turn is None:
        return LogView(rules.no_head(scope, epoch), None, ())
    if top is not None:
        rules.check_owner(scope, top[0])
    head = rules.no_head(scope) if top is None else head_of(top[:HEAD_COLUMNS], scope)
    turns = [turn_of(row[1:], head.scope) for row in rows if row[0] is None]
    open_turn = next((turn for turn in turns if turn.status == "open"), None)
    if top is None or (request.open_turn is not None and open_turn is None):
        raise rules.no_turn(request.open_turn or "")
    return LogView(
        head=head,
        checkpoint=None
        if top[HEAD_COLUMNS] is None
        else checkpoint_of(top[HEAD_COLUMNS:_SESSION], head.scope),
        turns=tuple(sorted((turn for turn in turns if turn is not open_turn), key=_place)),
        open_turn=open_turn,
        profile=profile(top[_SESSION:], head.scope),
    )


def _place(turn: Turn) -> int:
    return turn.seq or 0


def _entries(rows: Sequence[Row], query: EntryQuery) -> list[Entry]:
    if not rows:
        return []
    owner = rows[0][0]
    rules.check_owner(query.scope, owner)
    scope = replace(query.scope, user=owner)
    found = [entry_of(row[1:], scope) for row in rows if row[1] is not None]
    return found[::-1] if query.newest else found


async def _heads(connection: Connection, query: HeadQuery) -> list[Head]:
    scope = query.scope
    updated = None
    if query.after is not None:
        last = await _head(connection, scope, query.after)
        if last is None or scope.conversation not in {None, query.after}:
            raise rules.nothing_behind(query.after)
        updated = last.updated
    if scope.conversation is not None:
        head = None if query.after is not None else await _head(connection, scope, scope.conversation)
        return [head] if head is not None and query.limit > 0 else []
    values = {**keys(scope), "after": query.after, "updated": updated, "limit": max(0, query.limit)}
    rows = await connection.rows("heads_of_tenant" if scope.user is None else "heads_of_user", values)
    return [head_of(row[1:], replace(scope, conversation=row[0])) for row in rows]


async def _head(connection: Connection, scope: Scope, name: str) -> Head | None:
    """A conversation, if a list for the scope shows it."""
    place = replace(scope, conversation=name)
    row = await connection.row("head_of_conversation", keys(place))
    head = None if row is None else head_of(row[1:], place)
    return head if head is not None and rules.sees(scope, head.scope.user) else None


async def _since(connection: Connection, request: SinceRequest) -> list[Turn]:
    known: Values = {"names": list(request.known), "seqs": list(request.known.values())}
    turns: list[Turn] = []
    for name, owner, after in await connection.rows("conversations_seen", {**keys(request.scope), **known}):
        if len(turns) >= request.limit:
            break
        scope = Scope(request.scope.tenant, owner, name)
        values = {**keys(scope), "after_seq": after, "limit": request.limit - len(turns)}
        turns += [turn_of(row, scope) for row in await connection.rows("turns_after", values)]
    return turns


def _neighbourhood(rows: Iterable[Row], tenant: str) -> Neighbourhood:
    near: dict[int, Turn] = {
        which: turn_of(entry, Scope(tenant, owner, name)) for _, which, name, owner, *entry in rows
    }
    return Neighbourhood(near[0], near.get(1), near.get(2))
