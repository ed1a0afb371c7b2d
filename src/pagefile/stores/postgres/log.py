"""Writes the turn log. A turn takes one statement, which orders itself behind others at its conversation's row."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime

from pagefile.errors import ConflictError
from pagefile.ports import (
    NO_LABELS,
    CheckpointDraft,
    Clock,
    Extend,
    Labels,
    ResetDraft,
    TurnChange,
    TurnDraft,
    TurnLog,
    epoch_of,
)
from pagefile.records import Entry, JsonObject, Scope, Turn, utc
from pagefile.stores import rules
from pagefile.stores.changing import changed
from pagefile.stores.digests import turn_digest
from pagefile.stores.encoding import label_values, stored_draft, to_json, turn_texts
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import TAKEN, Connection, Row, Values
from pagefile.stores.postgres.epochs import check_writable
from pagefile.stores.postgres.marking import add_checkpoint, add_reset, check_owner, claim
from pagefile.stores.postgres.media import media_values, packed_off
from pagefile.stores.postgres.restoring import restore
from pagefile.stores.postgres.rows import entry_of, keys, turn_of


class PostgresTurnLog(TurnLog):
    """The turn log in `ai_message`, with its counters in `conversations`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def append(self, draft: TurnDraft) -> Turn:
        rules.conversation_of(draft.scope)
        values = {**_draft_values(draft, self._now()), **media_values(draft, await packed_off(draft.blobs))}
        stored = stored_draft(draft)
        if draft.epoch is None:
            return await self._database.read(lambda connection: _append(connection, stored, values))
        return await self._database.write(lambda connection: _append_fenced(connection, stored, values))

    async def advance(self, change: TurnChange) -> Turn:
        rules.conversation_of(change.scope)
        now = self._now()
        files = media_values(change, await packed_off(change.blobs)) if isinstance(change, Extend) else {}
        turn = None
        if epoch_of(change) is None:
            turn = await self._database.read(lambda connection: _advance(connection, change, now, files))
        return turn or await self._database.write(
            lambda connection: _advance_alone(connection, change, now, files)
        )

    async def mark(self, marker: CheckpointDraft | ResetDraft) -> Entry:
        rules.conversation_of(marker.scope)
        now = self._now()
        if isinstance(marker, ResetDraft):
            return await self._database.write(lambda connection: add_reset(connection, marker, now))
        return await self._database.write(lambda connection: add_checkpoint(connection, marker, now))

    async def claim(self, scope: Scope, *, epoch: int | None = None) -> None:
        rules.conversation_of(scope)
        now = self._now()
        await self._database.write(lambda connection: claim(connection, scope, epoch, now))

    async def restore(
        self,
        entries: Sequence[Entry],
        *,
        agent: str | None = None,
        session: JsonObject | None = None,
        labels: Labels = NO_LABELS,
        blobs: Mapping[str, bytes] | None = None,
        marks: Mapping[str, int] | None = None,
        expect_empty: bool = False,
        epoch: int | None = None,
        origin: Scope | None = None,
    ) -> int:
        self._database.check_open()
        if not entries:
            return 0
        value = None if session is None else to_json(session)
        plan = rules.restoration(
            entries, agent, value, labels, blobs, marks, expect_empty=expect_empty, epoch=epoch, origin=origin
        )
        now = self._now()
        files = await packed_off(plan.blobs)
        return await self._database.write(lambda connection: restore(connection, plan, files, now))

    def _now(self) -> datetime:
        return utc(self._clock.now())


async def _append_fenced(connection: Connection, draft: TurnDraft, values: Values) -> Turn:
    """The same in a transaction that keeps erasures away."""
    await check_writable(connection, draft.epoch, [draft.scope])
    return await _append(connection, draft, values)


async def _append(connection: Connection, draft: TurnDraft, values: Values) -> Turn:
    try:
        # In a transaction this is a savepoint: what is read when the id is taken needs the transaction whole.
        async with connection.raw.transaction() if draft.epoch is not None else nullcontext():
            told = await connection.row("append_media" if values["hashes"] else "append", values)
    except TAKEN:
        return rules.check_repeat(await _stored(connection, draft), draft)
    if told is None:
        await check_owner(connection, draft.scope)
        raise ConflictError(f"Conversation {draft.scope.conversation!r} was erased meanwhile: try again.")
    last_seq, created = told
    return Turn(
        draft.id,
        draft.scope,
        last_seq if draft.status == "done" else None,
        draft.status,
        draft.user,
        draft.assistant,
        draft.steps,
        utc(draft.at),
        created,
        draft.user_tokens,
        draft.assistant_tokens,
        draft.tokens,
        draft.counter,
        draft.metadata,
        draft.layout,
    )


async def _stored(connection: Connection, draft: TurnDraft) -> Entry | None:
    await check_owner(connection, draft.scope)
    row = await connection.row("entry_by_id", {**keys(draft.scope), "id": draft.id})
    return None if row is None else entry_of(row, draft.scope)


async def _advance(connection: Connection, change: TurnChange, now: datetime, files: Values) -> Turn | None:
    """The turn after the change; None when somebody else changed it in between."""
    found = await connection.row("turn_found", {**keys(change.scope), "id": change.turn_id})
    turn = _found_turn(found, change)
    if turn.status != "open":
        return rules.check_ended(turn, change)
    if rules.is_there(turn, change):
        return turn
    turn = changed(turn, change)
    values = _change_values(turn, change.scope, now) | files
    statement = "advance_media" if files.get("hashes") else "advance"
    told = await connection.row(statement, {**values, "row_version": found[0] if found else None})
    if told is None:
        return None
    last_seq, created = told
    seq = None if turn.status == "open" else last_seq
    return replace(turn, seq=seq, created=created)


async def _advance_alone(connection: Connection, change: TurnChange, now: datetime, files: Values) -> Turn:
    """The same, with everybody else kept away from the conversation."""
    await check_writable(connection, epoch_of(change), [change.scope])
    await connection.row("turn_locked", keys(change.scope))
    turn = await _advance(connection, change, now, files)
    if turn is None:
        raise ConflictError(f"Turn {change.turn_id!r} changed while it was written: try again.")
    return turn


def _found_turn(row: Row | None, change: TurnChange) -> Turn:
    if row is not None:
        rules.check_owner(change.scope, row[1])
    if row is None or row[0] is None:
        raise rules.no_turn(change.turn_id)
    return turn_of(row[2:], change.scope)


def _draft_values(draft: TurnDraft, now: datetime) -> Values:
    done, texts = draft.status == "done", turn_texts(draft)
    return {
        **keys(draft.scope),
        "id": draft.id,
        "agent": draft.agent or None,
        "now": now,
        "created": None,
        "ended": done,
        "done": done,
        "status": draft.status,
        "query": draft.user,
        "answer": draft.assistant,
        "at": utc(draft.at),
        **texts,
        "digest": turn_digest(draft, texts),
        **label_values(draft.labels),
        "user_tokens": draft.user_tokens,
        "assistant_tokens": draft.assistant_tokens,
        "tokens": draft.tokens,
        "counter": draft.counter,
    }


def _change_values(turn: Turn, scope: Scope, now: datetime) -> Values:
    texts = turn_texts(turn)
    return {
        **keys(scope),
        "id": turn.id,
        "now": now,
        "ended": turn.status != "open",
        "done": turn.status == "done",
        "status": turn.status,
        "query": turn.user,
        "answer": turn.assistant,
        **texts,
        "digest": turn_digest(turn, texts),
        "user_tokens": turn.user_tokens,
        "assistant_tokens": turn.assistant_tokens,
        "tokens": turn.tokens,
    }
