"""Writes checkpoints and resets, with their conversation locked."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pagefile.ports import CheckpointDraft, ResetDraft
from pagefile.records import RESET_QUERY, Checkpoint, Entry, Head, Reset, Scope
from pagefile.stores import rules
from pagefile.stores.changing import checkpoint_values
from pagefile.stores.postgres.driver import Connection, Values
from pagefile.stores.postgres.epochs import check_writable
from pagefile.stores.postgres.rows import HEAD_COLUMNS, entry_of, head_of, keys


@dataclass(frozen=True, slots=True)
class State:
    """A conversation as a write finds it."""

    head: Head
    last_created: datetime | None
    #: How many checkpoints there were.
    versions: int
    #: The checkpoint in force, 0 when there is none.
    version: int


async def state_of(connection: Connection, scope: Scope) -> State:
    """The conversation, locked until the transaction ends."""
    row = await connection.row("state", keys(scope))
    if row is None:
        return State(rules.no_head(scope), None, 0, 0)
    rules.check_owner(scope, row[0])
    last_created, versions, in_force = row[HEAD_COLUMNS:]
    return State(head_of(row[:HEAD_COLUMNS], scope), last_created, versions, versions if in_force else 0)


async def check_owner(connection: Connection, scope: Scope) -> None:
    """A conversation that is there is this scope's."""
    row = await connection.row("owner", keys(scope))
    if row is not None:
        rules.check_owner(scope, row[0])


async def claim(connection: Connection, scope: Scope, epoch: int | None, now: datetime) -> None:
    """The conversation is this user's from now on, unless it is somebody's."""
    await check_writable(connection, epoch, [scope])
    await connection.count("conversation_begun", {**keys(scope), "now": now})
    await check_owner(connection, scope)


async def add_checkpoint(connection: Connection, draft: CheckpointDraft, now: datetime) -> Entry:
    """The checkpoint in its place, or what is stored under its id."""
    await check_writable(connection, draft.epoch, [draft.scope])
    state = await state_of(connection, draft.scope)
    stored = await _entry(connection, draft, state)
    if stored is not None:
        return rules.check_same_marker(stored, draft.id, same=rules.same_checkpoint(stored, draft))
    rules.check_coverage(draft, state.head, state.version)
    checkpoint = Checkpoint(
        id=draft.id,
        scope=state.head.scope,
        seq=state.head.last_seq + 1,
        version=state.versions + 1,
        summary=draft.summary,
        covered_through_seq=draft.covered_through_seq,
        covered_turns=0,
        created=rules.stamp(now, state.last_created),
        tokens=draft.tokens,
        counter=draft.counter,
        anchors=draft.anchors,
        archive_refs=draft.archive_refs,
    )
    return await write_checkpoint(connection, checkpoint, draft.text, now, state.head.reset_seq)


async def add_reset(connection: Connection, draft: ResetDraft, now: datetime) -> Entry:
    """The reset in its place, or what is stored under its id."""
    await connection.count("conversation_begun", {**keys(draft.scope), "now": now})
    state = await state_of(connection, draft.scope)
    stored = await _entry(connection, draft, state)
    if stored is not None:
        return rules.check_same_marker(stored, draft.id, same=isinstance(stored, Reset))
    created = rules.stamp(now, state.last_created)
    reset = Reset(draft.id, state.head.scope, state.head.last_seq + 1, created)
    await write_reset(connection, reset, now)
    return reset


async def _entry(connection: Connection, draft: CheckpointDraft | ResetDraft, state: State) -> Entry | None:
    row = await connection.row("entry_by_id", {**keys(draft.scope), "id": draft.id})
    return None if row is None else entry_of(row, state.head.scope)


async def write_checkpoint(
    connection: Connection, checkpoint: Checkpoint, text: str, now: datetime, reset_seq: int
) -> Checkpoint:
    """Write the checkpoint's row, and make it the one in force."""
    covered = checkpoint.covered_through_seq
    asked = {**keys(checkpoint.scope), "covered": covered, "reset_seq": reset_seq}
    coverage: Any = await connection.row("coverage", asked)
    checkpoint = replace(checkpoint, covered_turns=coverage[0])
    values = {
        **_marker_values(checkpoint, now),
        **checkpoint_values(checkpoint, text, coverage),
    }
    await connection.count("checkpoint", values)
    return checkpoint


async def write_reset(connection: Connection, reset: Reset, now: datetime) -> None:
    """Write the reset's row, and begin anew."""
    values = {**_marker_values(reset, now), "query": RESET_QUERY, "answer": None, "kind": "reset"}
    await connection.count("reset", values)


def _marker_values(marker: Checkpoint | Reset, now: datetime) -> Values:
    return {
        **keys(marker.scope),
        "id": marker.id,
        "created": marker.created,
        "now": now,
        "seq": marker.seq,
        "metadata": None,
        "tokens": 0,
        "counter": "",
    }
