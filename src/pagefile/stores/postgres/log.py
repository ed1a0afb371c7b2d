"""Writes turns, one statement each; the lock on the conversation's row puts them in order."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime

from pagefile.errors import ConflictError
from pagefile.ports import NO_LABELS, Clock, Extend, TurnChange, TurnDraft, epoch_of
from pagefile.records import Turn, utc
from pagefile.stores import rules
from pagefile.stores.encoding import Blob, label_values, stored_draft
from pagefile.stores.postgres.database import Database, played
from pagefile.stores.postgres.driver import TAKEN, Connection
from pagefile.stores.sql.log import SqlTurnLog, entry_by_id
from pagefile.stores.sql.pages import packed_blobs
from pagefile.stores.sql.plays import Play, Values, row
from pagefile.stores.sql.reader import check_owner, check_writable
from pagefile.stores.sql.rows import keys, turn_columns, turn_of, turn_values
from pagefile.stores.turn_changes import changed, turn_in_place


class PostgresTurnLog(SqlTurnLog):
    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._database = database

    async def append(self, draft: TurnDraft) -> Turn:
        rules.conversation_of(draft.scope)
        files = _files(draft, await packed_blobs(self._player, draft.blobs))
        times = {"at": utc(draft.at), "created": None}
        labels = {**label_values(draft.labels), "agent": draft.agent or None}
        values = {**_values(draft, self._now()), **labels, **times, **files}
        stored = stored_draft(draft)
        return await self._database.run(
            lambda connection: _append(connection, stored, values), in_transaction=draft.epoch is not None
        )

    async def advance(self, change: TurnChange) -> Turn:
        rules.conversation_of(change.scope)
        now, files = self._now(), {}
        if isinstance(change, Extend):
            files = _files(change, await packed_blobs(self._player, change.blobs))
        turn = None
        if epoch_of(change) is None:
            turn = await self._database.run(lambda connection: _advance(connection, change, now, files))
        return turn or await self._database.run(
            lambda connection: _advance_alone(connection, change, now, files), in_transaction=True
        )

    def _put_turn(self, turn: Turn, now: datetime, *, restored: bool, agent: str | None) -> Play[None]:
        values = {**_values(turn, now), **label_values(NO_LABELS), "at": utc(turn.at), "agent": agent}
        yield from row("append", {**values, "created": turn.created if restored else None})


async def _append(connection: Connection, draft: TurnDraft, values: Values) -> Turn:
    """The turn in its place; one with an epoch is written in a transaction that keeps erasures away."""
    if draft.epoch is not None:
        await played(connection, check_writable(draft.epoch, [draft.scope]))
    try:
        # In a transaction this is a savepoint: what is read when the id is taken needs the transaction whole.
        async with connection.raw.transaction() if draft.epoch is not None else nullcontext():
            told = await connection.row("append_media" if values["hashes"] else "append", values)
    except TAKEN:
        await played(connection, check_owner(draft.scope))
        return rules.check_repeat(await played(connection, entry_by_id(draft.scope, draft.id)), draft)
    if told is None:
        await played(connection, check_owner(draft.scope))
        raise ConflictError(f"Conversation {draft.scope.conversation!r} was erased meanwhile: try again.")
    last_seq, created = told
    return turn_in_place(draft, last_seq if draft.status == "done" else None, created)


async def _advance(connection: Connection, change: TurnChange, now: datetime, files: Values) -> Turn | None:
    """The turn after the change; None when it was changed concurrently."""
    found = await connection.row("turn_found", {**keys(change.scope), "id": change.turn_id})
    if found is not None:
        rules.check_owner(change.scope, found[1])
    if found is None or found[0] is None:
        raise rules.no_turn(change.turn_id)
    turn = turn_of(found[2:], change.scope)
    if rules.stays(turn, change):
        return turn
    turn = changed(turn, change)
    values = _values(turn, now) | files
    statement = "advance_media" if files.get("hashes") else "advance"
    told = await connection.row(statement, {**values, "row_version": found[0]})
    if told is None:
        return None
    last_seq, created = told
    seq = None if turn.status == "open" else last_seq
    return replace(turn, seq=seq, created=created)


async def _advance_alone(connection: Connection, change: TurnChange, now: datetime, files: Values) -> Turn:
    """The same, with the conversation locked."""
    await played(connection, check_writable(epoch_of(change), [change.scope]))
    await connection.row("turn_locked", keys(change.scope))
    turn = await _advance(connection, change, now, files)
    if turn is None:
        raise ConflictError(f"Turn {change.turn_id!r} changed while it was written: try again.")
    return turn


def _values(turn: Turn | TurnDraft, now: datetime) -> Values:
    status = {"ended": turn.status != "open", "done": turn.status == "done"}
    return {**turn_values(turn, now, turn_columns(turn)), **status}


def _files(turn: TurnDraft | Extend, blobs: Mapping[str, Blob]) -> Values:
    """The files attached to a turn, as lists; empty when there are none."""
    named = rules.attached(turn, blobs)
    kept = [blobs[key] for key in named]
    return {
        "hashes": list(named),
        "media_types": list(named.values()),
        "codecs": [blob.codec for blob in kept],
        "files": [blob.data for blob in kept],
    }
