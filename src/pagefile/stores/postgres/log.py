"""The turn log in few statements, since each costs a round trip.

A turn is written in one; the lock on the conversation's row puts turns in order. A window's view is one statement, and so one
snapshot; so is a list of entries.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from pagefile import ports
from pagefile.errors import ConflictError
from pagefile.records import Entry, Scope, Turn, utc
from pagefile.stores import rules
from pagefile.stores.encoding import Blob, label_values, stored_draft
from pagefile.stores.postgres.database import Database, played
from pagefile.stores.postgres.driver import TAKEN, Connection
from pagefile.stores.sql.log import SqlTurnLog, entry_by_id
from pagefile.stores.sql.pages import packed_blobs
from pagefile.stores.sql.plays import Play, Values, row
from pagefile.stores.sql.reader import SqlReader, check_owner, check_writable, entry_values
from pagefile.stores.sql.rows import (
    entry_of,
    exact_turn,
    head_and_checkpoint,
    keys,
    spoken_of,
    turn_columns,
    turn_of,
    turn_values,
)
from pagefile.stores.sql.sessions import profile


class PostgresTurnLog(SqlTurnLog):
    def __init__(self, database: Database, clock: ports.Clock) -> None:
        super().__init__(database, clock)
        self._database = database

    async def append(self, draft: ports.TurnDraft) -> Turn:
        rules.conversation_of(draft.scope)
        files = _files(draft, await packed_blobs(self._player, draft.blobs))
        times = {"at": utc(draft.at), "created": None}
        labels = {**label_values(draft.labels), "agent": draft.agent or None}
        values = {**_values(draft, self._now()), **labels, **times, **files}
        stored = stored_draft(draft)
        return await self._database.run(
            lambda connection: _append(connection, stored, values), in_transaction=draft.epoch is not None
        )

    async def advance(self, change: ports.TurnChange) -> Turn:
        rules.conversation_of(change.scope)
        now, files = self._now(), {}
        if isinstance(change, ports.Extend):
            files = _files(change, await packed_blobs(self._player, change.blobs))
        turn = None
        if ports.epoch_of(change) is None:
            turn = await self._database.run(lambda connection: _advance(connection, change, now, files))
        return turn or await self._database.run(
            lambda connection: _advance_alone(connection, change, now, files), in_transaction=True
        )

    def _put_turn(self, turn: Turn, now: datetime, *, restored: bool, agent: str | None) -> Play[None]:
        values = {**_values(turn, now), **label_values(ports.NO_LABELS), "at": utc(turn.at), "agent": agent}
        yield from row("append", {**values, "created": turn.created if restored else None})


async def _append(connection: Connection, draft: ports.TurnDraft, values: Values) -> Turn:
    """The turn in its place; one with an epoch is written in a transaction that keeps erasures away."""
    if draft.epoch is not None:
        await played(connection, check_writable(draft.epoch, [draft.scope]))
    try:
        # A savepoint, so that the reads after a unique violation can still use the transaction.
        async with connection.raw.transaction() if draft.epoch is not None else nullcontext():
            told = await connection.row("append_media" if values["hashes"] else "append", values)
    except TAKEN:
        await played(connection, check_owner(draft.scope))
        return rules.check_repeat(await played(connection, entry_by_id(draft.scope, draft.id)), draft)
    if told is None:
        await played(connection, check_owner(draft.scope))
        raise ConflictError(
            f"Conversation {draft.scope.conversation!r} was erased in the meantime: try again."
        )
    last_seq, created = told
    return rules.turn_in_place(draft, last_seq if draft.status == "done" else None, created)


async def _advance(
    connection: Connection, change: ports.TurnChange, now: datetime, files: Values
) -> Turn | None:
    """The turn after the change; None when it was changed concurrently."""
    found = await connection.row("turn_found", {**keys(change.scope), "id": change.turn_id})
    if found is not None:
        rules.check_owner(change.scope, found[1])
    if found is None or found[0] is None:
        raise rules.no_turn(change.turn_id)
    turn = exact_turn(found[2:], change.scope)
    if rules.stays(turn, change):
        return turn
    turn = rules.changed(turn, change)
    values = _values(turn, now) | files
    statement = "advance_media" if files.get("hashes") else "advance"
    told = await connection.row(statement, {**values, "row_version": found[0]})
    if told is None:
        return None
    last_seq, created = told
    return replace(turn, seq=None if turn.status == "open" else last_seq, created=created)


async def _advance_alone(
    connection: Connection, change: ports.TurnChange, now: datetime, files: Values
) -> Turn:
    """The same, with the conversation locked."""
    await played(connection, check_writable(ports.epoch_of(change), [change.scope]))
    await connection.row("turn_locked", keys(change.scope))
    turn = await _advance(connection, change, now, files)
    if turn is None:
        raise ConflictError(f"Turn {change.turn_id!r} changed while it was written: try again.")
    return turn


#: Conversations that one statement reads.
READ_TOGETHER = 200


def _values(turn: Turn | ports.TurnDraft, now: datetime) -> Values:
    counted = turn.status == "done" if isinstance(turn, ports.TurnDraft) else turn.counts
    status = {"ended": turn.status != "open", "done": turn.status == "done", "counted": counted}
    return {**turn_values(turn, now, turn_columns(turn)), **status}


def _files(turn: ports.TurnDraft | ports.Extend, blobs: Mapping[str, Blob]) -> Values:
    """The files attached to a turn, as lists; empty when there are none."""
    named = rules.attached(turn, blobs)
    kept = [blobs[key] for key in named]
    return {
        "hashes": list(named),
        "media_types": list(named.values()),
        "codecs": [blob.codec for blob in kept],
        "files": [blob.data for blob in kept],
    }


class PostgresReader(SqlReader):
    together = READ_TOGETHER

    async def view(self, request: ports.ViewRequest) -> ports.LogView:
        rules.conversation_of(request.scope)
        wanted = {"budget": request.budget_tokens, "least": request.min_turns, "open_turn": request.open_turn}
        wanted["limit"] = rules.MOST_RUNNING
        found = await self._rows("view", {**keys(request.scope), **wanted})
        # One row has all that is not a turn, in its first column; the others are turns, in no order.
        top = next((row[0] for row in found if row[0] is not None), None)
        if top is None:
            if request.open_turn is not None:
                raise rules.no_turn(request.open_turn)
            # Before the first write there is no row to check; nothing was read, so nothing can be out of date.
            return ports.LogView(rules.no_head(request.scope, await self.epoch()), None, ())
        rules.check_owner(request.scope, top[0])
        head, checkpoint, rest = head_and_checkpoint(top, request.scope)
        # Rows come newest first; reversing keeps the order of turns with equal times.
        turns = [turn_of(row[1:], head.scope) for row in reversed(found) if row[0] is None]
        ended = sorted((turn for turn in turns if turn.seq is not None), key=lambda turn: turn.seq or 0)
        running = sorted((turn for turn in turns if turn.seq is None), key=lambda turn: turn.created)
        return rules.view_of(request, head, checkpoint, ended, running, profile(rest, head.scope))

    async def entries(self, query: ports.EntryQuery) -> list[Entry]:
        rules.conversation_of(query.scope)
        found = await self._rows("entries_back" if query.newest else "entries", entry_values(query))
        if not found:
            return []
        scope = replace(query.scope, user=found[0][0])
        rules.check_owner(query.scope, scope.user)
        entries = [entry_of(one[1:], scope) for one in found if one[1] is not None]
        return entries[::-1] if query.newest else entries

    async def around(self, scope: Scope, refs: Sequence[ports.TurnRef]) -> list[ports.Neighbourhood]:
        places = {"names": [ref.conversation for ref in refs], "seqs": [ref.seq for ref in refs]}
        found = await self._rows("around", {**keys(scope), **places})
        near: list[ports.Neighbourhood] = []
        for _, group in groupby(found, key=lambda row: row[0]):
            turns: dict[int, Turn] = {
                which: spoken_of(entry, Scope(scope.tenant, owner, name))
                for _, which, name, owner, *entry in group
            }
            if 0 in turns:
                near.append(ports.Neighbourhood(turns[0], turns.get(1), turns.get(2)))
        return near
