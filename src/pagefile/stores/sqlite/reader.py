"""Reads the turn log, each verb in one snapshot."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

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
from pagefile.stores.encoding import from_json
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.epochs import newest_epoch
from pagefile.stores.sqlite.lanes import Readers
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import (
    CHECKPOINT_COLUMNS,
    HEAD_COLUMNS,
    Values,
    checkpoint_of,
    entry_of,
    head_of,
    keys,
    turn_of,
)


class SqliteReader(LogReader, TurnSource):
    """The log as windows, lists and indexes want it."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def epoch(self, scope: Scope | None = None) -> int:
        if scope is None:
            return await self._readers.run(_epoch)
        return await self._readers.run(lambda connection: newest_epoch(connection, [scope]) or 0)

    async def view(self, request: ViewRequest) -> LogView:
        rules.conversation_of(request.scope)
        return await self._readers.run_again(
            (request.scope, request.budget_tokens), lambda connection: _view(connection, request)
        )

    async def owner(self, scope: Scope) -> Scope | None:
        rules.conversation_of(scope)
        return await self._readers.run(lambda connection: _owner(connection, scope))

    async def entries(self, query: EntryQuery) -> list[Entry]:
        rules.conversation_of(query.scope)
        return await self._readers.run(lambda connection: _entries(connection, query))

    async def heads(self, query: HeadQuery) -> list[Head]:
        return await self._readers.run(lambda connection: _heads(connection, query))

    async def since(self, request: SinceRequest) -> list[Turn]:
        return await self._readers.run(lambda connection: _since(connection, request))

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        return await self._readers.run(lambda connection: _around(connection, scope, refs))


def _epoch(connection: Connection) -> int:
    number: Any = connection.execute(sql("epoch_now")).get
    return number


def _owner(connection: Connection, scope: Scope) -> Scope | None:
    row: Any = connection.execute(sql("owner"), keys(scope)).fetchone()
    return None if row is None else replace(scope, user=row[0])


def _view(connection: Connection, request: ViewRequest) -> LogView:
    scope = request.scope
    row: Any = connection.execute(sql("view"), {**keys(scope), "open_turn": request.open_turn}).fetchone()
    if row is not None:
        rules.check_owner(scope, row[0])
    last_column = HEAD_COLUMNS + CHECKPOINT_COLUMNS
    open_row: Any = row[last_column:-1] if row is not None and row[last_column] is not None else None
    if request.open_turn is not None and open_row is None:
        raise rules.no_turn(request.open_turn)
    if row is None:
        return LogView(rules.no_head(scope, _epoch(connection)), None, ())
    head = head_of(row[:HEAD_COLUMNS], scope)
    checkpoint_row = row[HEAD_COLUMNS:last_column]
    return LogView(
        head=head,
        checkpoint=None if checkpoint_row[0] is None else checkpoint_of(checkpoint_row, head.scope),
        turns=_live_turns(connection, head, request) if head.live_turns else (),
        open_turn=None if open_row is None else turn_of(open_row, head.scope),
        profile=from_json(row[-1]),
    )


def _live_turns(connection: Connection, head: Head, request: ViewRequest) -> tuple[Turn, ...]:
    after = max(head.reset_seq, head.covered_through_seq)
    taken: list[Turn] = []
    tokens = 0
    with closing(connection.execute(sql("turns_back"), {**keys(head.scope), "after": after})) as rows:
        for row in rows:
            turn = turn_of(row, head.scope)
            tokens += turn.tokens
            if tokens > request.budget_tokens and len(taken) >= request.min_turns:
                break
            taken.append(turn)
    return tuple(reversed(taken))


def _entries(connection: Connection, query: EntryQuery) -> list[Entry]:
    scope = _owner(connection, query.scope)
    if scope is None:
        return []
    rules.check_owner(query.scope, scope.user)
    values = {
        **keys(scope),
        "kinds": " ".join(query.kinds),
        "statuses": " ".join(query.statuses),
        "after": query.after_seq,
        "limit": max(0, query.limit),
    }
    # Open turns stand last, so the newest entries begin with them.
    order = ("entries_open_back", "entries_ended_back") if query.newest else ("entries_ended", "entries_open")
    found: list[Entry] = []
    for statement in order:
        values["limit"] = max(0, query.limit) - len(found)
        found += [entry_of(row, scope) for row in connection.execute(sql(statement), values)]
    return found[::-1] if query.newest else found


def _heads(connection: Connection, query: HeadQuery) -> list[Head]:
    scope = query.scope
    behind: Values = {"after": query.after, "updated": None}
    if query.after is not None:
        last = _head(connection, scope, query.after)
        if last is None or scope.conversation not in {None, query.after}:
            raise rules.nothing_behind(query.after)
        behind["updated"] = _updated_text(connection, scope, query.after)
    if scope.conversation is not None:
        head = None if query.after is not None else _head(connection, scope, scope.conversation)
        return [head] if head is not None and query.limit > 0 else []
    statement = "heads_of_tenant" if scope.user is None else "heads_of_user"
    values = {**keys(scope), **behind, "limit": max(0, query.limit)}
    rows: Any = connection.execute(sql(statement), values)
    return [head_of(row[1:], replace(scope, conversation=row[0])) for row in rows]


def _head(connection: Connection, scope: Scope, name: str) -> Head | None:
    """A conversation, if a list for the scope shows it."""
    place = replace(scope, conversation=name)
    row: Any = connection.execute(sql("head_of_conversation"), keys(place)).fetchone()
    head = None if row is None else head_of(row[1:], place)
    return head if head is not None and rules.sees(scope, head.scope.user) else None


def _updated_text(connection: Connection, scope: Scope, conversation: str) -> str:
    values = {**keys(scope), "conversation": conversation}
    row: Any = connection.execute(sql("head_of_conversation"), values).fetchone()
    return row[4]


def _since(connection: Connection, request: SinceRequest) -> list[Turn]:
    turns: list[Turn] = []
    for scope, last_seq in seen(connection, request.scope):
        known = request.known.get(scope.conversation or "", 0)
        if len(turns) >= request.limit:
            break
        if last_seq > known:
            values = {**keys(scope), "after": known, "limit": request.limit - len(turns)}
            turns += [turn_of(row, scope) for row in connection.execute(sql("turns_after"), values)]
    return turns


def seen(connection: Connection, scope: Scope) -> list[tuple[Scope, int]]:
    """The conversations of a scope with their owners, and how far their logs go."""
    if scope.conversation is not None:
        head = _head(connection, scope, scope.conversation)
        return [] if head is None else [(head.scope, head.last_seq)]
    statement = "conversations_of_tenant" if scope.user is None else "conversations_of_user"
    rows: Any = connection.execute(sql(statement), keys(scope))
    return [(Scope(scope.tenant, owner, name), last_seq) for name, owner, last_seq in rows]


def _around(connection: Connection, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
    # Most of what is found together was said in a few conversations.
    homes = {name: _home(connection, scope, name) for name in {ref.conversation for ref in refs}}
    near = (_around_one(connection, homes[ref.conversation], ref) for ref in refs)
    return [place for place in near if place is not None]


def _home(connection: Connection, scope: Scope, name: str) -> Scope | None:
    """A conversation with its owner; None where the scope does not see it."""
    if scope.conversation not in {None, name}:
        return None
    home = _owner(connection, replace(scope, conversation=name))
    return None if home is None or not rules.sees(scope, home.user) else home


def _around_one(connection: Connection, home: Scope | None, ref: TurnRef) -> Neighbourhood | None:
    if home is None:
        return None
    values = {**keys(home), "seq": ref.seq, "after": ref.seq, "limit": 1}
    near = [turn_of(row, home) for row in connection.execute(sql("turns_up_to"), values)]
    if not near or near[0].seq != ref.seq:
        return None
    after = [turn_of(row, home) for row in connection.execute(sql("turns_after"), values)]
    return Neighbourhood(near[0], near[1] if len(near) > 1 else None, after[0] if after else None)
