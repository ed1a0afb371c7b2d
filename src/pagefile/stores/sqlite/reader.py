"""A window's view in one snapshot, read in place where that is quicker than a thread, and what stands around a turn."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from pagefile.ports import LogView, Neighbourhood, TurnRef, ViewRequest
from pagefile.records import Head, Scope, Turn
from pagefile.stores import rules
from pagefile.stores.encoding import from_json
from pagefile.stores.sql.epochs import epoch_now
from pagefile.stores.sql.plays import Play, each
from pagefile.stores.sql.reader import SqlReader, owner_of
from pagefile.stores.sql.rows import (
    CHECKPOINT_COLUMNS,
    HEAD_COLUMNS,
    checkpoint_of,
    head_of,
    keys,
    turn_of,
)
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers
from pagefile.stores.sqlite.player import SqlitePlayer, played
from pagefile.stores.sqlite.queries import sql


class SqliteReader(SqlReader):
    """The log as windows, lists and indexes want it."""

    def __init__(self, player: SqlitePlayer, readers: Readers) -> None:
        super().__init__(player)
        self._readers = readers

    async def view(self, request: ViewRequest) -> LogView:
        rules.conversation_of(request.scope)
        return await self._readers.run_again(
            (request.scope, request.budget_tokens), lambda connection: _view(connection, request)
        )

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        return await self._player.read(lambda: _around(scope, refs))


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
        return LogView(rules.no_head(scope, played(connection, epoch_now())), None, ())
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
    near = yield from each("turns_up_to", values, lambda row: turn_of(row, home))
    if not near or near[0].seq != ref.seq:
        return None
    after = yield from each("turns_after", values, lambda row: turn_of(row, home))
    return Neighbourhood(near[0], near[1] if len(near) > 1 else None, after[0] if after else None)
