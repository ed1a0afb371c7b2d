"""Writes a conversation back as it was."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pagefile.ports import NO_LABELS
from pagefile.records import Entry, Reset, Turn, utc
from pagefile.stores import rules
from pagefile.stores.digests import turn_digest
from pagefile.stores.encoding import from_json, label_values, turn_texts
from pagefile.stores.packing import Blob
from pagefile.stores.postgres.driver import Connection, Values
from pagefile.stores.postgres.epochs import check_writable
from pagefile.stores.postgres.marking import State, state_of, write_checkpoint, write_reset
from pagefile.stores.postgres.media import media_values
from pagefile.stores.postgres.rows import entry_of, keys
from pagefile.stores.postgres.sessions import session_values


async def restore(
    connection: Connection, plan: rules.Restoration, blobs: Mapping[str, Blob], now: datetime
) -> int:
    """How many of the entries were new."""
    await check_writable(connection, plan.epoch, plan.fenced)
    await connection.count("conversation_begun", {**keys(plan.scope), "now": now})
    state = await state_of(connection, plan.scope)
    if await connection.row("entry_any", keys(plan.scope)) is None:
        rules.check_whole(plan.ended)
        count = await _restore_whole(connection, plan, state, now)
        await _attach(connection, plan.turns, blobs)
        for tier, seq in plan.marks.items():
            await connection.count("watermark_advance", {**keys(plan.scope), "tier": tier, "seq": seq})
        return count
    rules.check_vacant(plan)
    turns = plan.turns
    stored = await _stored(connection, turns, state)
    for turn in turns:
        if turn.id in stored:
            rules.check_repeat(stored[turn.id], turn)
    new = [turn for turn in turns if turn.id not in stored]
    for turn in new:
        await connection.row("append", _values(turn, now, None, None))
    await _attach(connection, new, blobs)
    return len(new)


async def _attach(connection: Connection, turns: Sequence[Turn], blobs: Mapping[str, Blob]) -> None:
    for turn in turns if blobs else ():
        await connection.count("media_put", {**keys(turn.scope), "id": turn.id, **media_values(turn, blobs)})


async def _restore_whole(connection: Connection, plan: rules.Restoration, state: State, now: datetime) -> int:
    reset_seq, entries = 0, (*plan.ended, *plan.open)
    told = await connection.row("session_get", keys(state.head.scope))
    blank = told is None or not told[1]
    for entry in entries:
        owned = replace(entry, scope=state.head.scope, created=utc(entry.created))
        if isinstance(owned, Turn):
            await connection.row("append", _values(owned, now, owned.created, plan.agent))
        elif isinstance(owned, Reset):
            reset_seq = owned.seq
            await write_reset(connection, owned, now)
        else:
            await write_checkpoint(connection, owned, f"历史摘要: {owned.summary}", now, reset_seq)
    if blank and plan.session is not None:
        await connection.row(
            "session_put", {**session_values(state.head.scope, from_json(plan.session)), "now": now}
        )
    times = [utc(entry.created) for entry in entries]
    labels = label_values(plan.labels)
    values = {**keys(state.head.scope), "created": min(times), "updated": max(times), **labels}
    await connection.count("conversation_times", values)
    return len(times)


async def _stored(connection: Connection, turns: list[Turn], state: State) -> dict[str, Entry]:
    values: Values = {**keys(state.head.scope), "ids": [turn.id for turn in turns]}
    found: list[Any] = await connection.rows("entries_by_id", values)
    return {row[1]: entry_of(row, state.head.scope) for row in found}


def _values(turn: Turn, now: datetime, created: datetime | None, agent: str | None) -> Values:
    texts = turn_texts(turn)
    return {
        **keys(turn.scope),
        "id": turn.id,
        "agent": agent,
        "now": now,
        "created": created,
        "ended": turn.status != "open",
        "done": turn.status == "done",
        "status": turn.status,
        "query": turn.user,
        "answer": turn.assistant,
        "at": utc(turn.at),
        **texts,
        "digest": turn_digest(turn, texts),
        **label_values(NO_LABELS),
        "user_tokens": turn.user_tokens,
        "assistant_tokens": turn.assistant_tokens,
        "tokens": turn.tokens,
        "counter": turn.counter,
    }
