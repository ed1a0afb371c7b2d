"""Writes the turn log: markers, claims and restored entries. Each backend writes turns in its own way."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Unpack

from pagefile.ports import NO_LABELS, Beside, CheckpointDraft, Clock, ResetDraft, TurnDraft, TurnLog
from pagefile.records import CHECKPOINT_QUERY, RESET_QUERY, Checkpoint, Entry, Reset, Scope, Turn, utc
from pagefile.stores import rules, session
from pagefile.stores.encoding import Blob, label_values, moment
from pagefile.stores.restoration import Restoration, check_vacant, check_whole, restoration
from pagefile.stores.sql.pages import attach, packed_blobs
from pagefile.stores.sql.plays import Play, Player, Row, Values, count, each, first, many, row
from pagefile.stores.sql.reader import check_owner, check_writable
from pagefile.stores.sql.rows import checkpoint_metadata, entry_of, exact_entry, head_of, keys, values_of
from pagefile.stores.sql.sessions import put_session, session_of, tell_session


class SqlTurnLog(TurnLog):
    """The turn log in `ai_message`, with its counters in `conversations`."""

    def __init__(self, player: Player, clock: Clock) -> None:
        self._player = player
        self._clock = clock

    @abstractmethod
    def _put_turn(self, turn: Turn, now: datetime, *, restored: bool, agent: str | None) -> Play[None]:
        """Write a turn after all others: with its own time if it is `restored`, else with a time later than theirs."""

    async def mark(self, marker: CheckpointDraft | ResetDraft) -> Entry:
        rules.conversation_of(marker.scope)
        now = self._now()
        return await self._player.write(lambda: _mark(marker, now))

    async def claim(self, scope: Scope, *, epoch: int | None = None) -> None:
        rules.conversation_of(scope)
        now = self._now()

        def play() -> Play[None]:
            yield from check_writable(epoch, [scope])
            yield from count("conversation_begun", {**keys(scope), "now": now})
            yield from check_owner(scope)

        await self._player.write(play)

    async def restore(self, entries: Sequence[Entry], **beside: Unpack[Beside]) -> int:
        if not entries:
            return await self._player.compute(lambda: 0)
        plan = restoration(entries, **beside)
        now = self._now()
        packed = await packed_blobs(self._player, plan.blobs)
        return await self._player.write(lambda: self._restore(plan, packed, now))

    def _now(self) -> datetime:
        return utc(self._clock.now())

    def _restore(self, plan: Restoration, blobs: Mapping[str, Blob], now: datetime) -> Play[int]:
        yield from check_writable(plan.epoch, plan.fenced)
        yield from count("conversation_begun", {**keys(plan.scope), "now": now})
        yield from state_of(plan.scope)
        if (yield from row("entry_any", keys(plan.scope))) is None:
            check_whole(plan.ended)
            yield from self._restore_whole(plan, now)
            marks = [{**keys(plan.scope), "tier": tier, "seq": seq} for tier, seq in plan.marks.items()]
            yield from many("watermark_advance", marks)
            attached, new = plan.turns, len(plan.ended) + len(plan.open)
        else:
            check_vacant(plan)
            attached = yield from self._restore_turns(plan, now)
            new = len(attached)
        for turn in attached if blobs else ():
            yield from attach(plan.scope, turn, turn.id, blobs)
        return new

    def _restore_turns(self, plan: Restoration, now: datetime) -> Play[list[Turn]]:
        """Add the turns that are missing after the entries that exist."""
        ids = {**keys(plan.scope), "ids": [turn.id for turn in plan.turns]}
        found = yield from each("entries_by_id", ids, lambda one: entry_of(one, plan.scope))
        stored = {entry.id: entry for entry in found}
        for turn in plan.turns:
            if turn.id in stored:
                rules.check_repeat(stored[turn.id], turn)
        new = [turn for turn in plan.turns if turn.id not in stored]
        for turn in new:
            yield from self._put_turn(turn, now, restored=False, agent=None)
        return new

    def _restore_whole(self, plan: Restoration, now: datetime) -> Play[None]:
        reset_seq, scope, entries = 0, plan.scope, (*plan.ended, *plan.open)
        blank = (yield from session_of(scope)) is None
        for entry in entries:
            owned = replace(entry, created=utc(entry.created))
            if isinstance(owned, Turn):
                yield from self._put_turn(owned, now, restored=True, agent=plan.agent)
            elif isinstance(owned, Reset):
                reset_seq = owned.seq
                yield from _write_reset(owned, now)
            else:
                yield from _write_checkpoint(owned, f"历史摘要: {owned.summary}", now, reset_seq)
        if blank and plan.session is not None:
            yield from put_session(scope, plan.session, now)
        times = [utc(entry.created) for entry in entries]
        told = {"created": min(times), "updated": max(times), "agent": plan.agent or None}
        yield from count("conversation_times", {**keys(scope), **told, **label_values(plan.labels)})


def _mark(draft: CheckpointDraft | ResetDraft, now: datetime) -> Play[Entry]:
    """The marker at its position, or what is stored under its id."""
    if isinstance(draft, ResetDraft):
        yield from count("conversation_begun", {**keys(draft.scope), "now": now})
    else:
        yield from check_writable(draft.epoch, [draft.scope])
    scope, state = draft.scope, (yield from state_of(draft.scope))
    stored = yield from entry_by_id(scope, draft.id)
    if stored is not None:
        return rules.check_same_marker(stored, draft)
    created = rules.stamp(now, state.last_created)
    if isinstance(draft, ResetDraft):
        reset = Reset(draft.id, scope, state.next_seq, created)
        yield from _write_reset(reset, now)
        return reset
    head, versions, current = rules.no_head(scope), 0, None
    if state.row is not None:
        head = head_of(state.row[:_COUNTED_COLUMNS], scope)
        _, versions, current = state.row[_COUNTED_COLUMNS:]
    rules.check_coverage(draft, head, versions if current else 0)
    checkpoint = rules.checkpoint_in_place(draft, scope, state.next_seq, versions + 1, created)
    return (yield from _write_checkpoint(checkpoint, draft.text, now, head.reset_seq))


def entry_by_id(scope: Scope, entry_id: str) -> Play[Entry | None]:
    values = {**keys(scope), "id": entry_id}
    return (yield from first("entry_by_id", values, lambda one: exact_entry(one, scope)))


#: The columns of the statement `coverage`.
_COVERAGE = ("covered_turns", "covered_messages", "live_turns", "live_tokens")


def _write_checkpoint(checkpoint: Checkpoint, text: str, now: datetime, reset_seq: int) -> Play[Checkpoint]:
    values = {**_marker_values(checkpoint, now), "reset_seq": reset_seq}
    coverage = yield from row("coverage", values)
    assert coverage is not None
    values |= dict(zip(_COVERAGE, coverage, strict=True))
    checkpoint = replace(checkpoint, covered_turns=values["covered_turns"])
    values |= {"query": CHECKPOINT_QUERY, "answer": text, "kind": "checkpoint"}
    values["metadata"] = checkpoint_metadata(checkpoint)
    values |= {"mode": session.SUMMARY_N, "checkpoint": checkpoint.id}
    for statement in ("marker_put", "summary_put", "conversation_checkpoint"):
        yield from count(statement, values)
    yield from tell_session("session_checkpoint", values, checkpoint.scope)
    return checkpoint


def _write_reset(reset: Reset, now: datetime) -> Play[None]:
    values = {**_marker_values(reset, now), "query": RESET_QUERY, "answer": None, "kind": "reset"}
    values |= {"summary": "", "mode": session.FULL_HISTORY, "checkpoint": ""}
    for statement in ("marker_put", "summary_drop", "conversation_reset"):
        yield from count(statement, values)
    yield from tell_session("session_reset", values, reset.scope)


def _marker_values(marker: Checkpoint | Reset, now: datetime) -> Values:
    """The parameters that both markers have; a reset has no metadata and no tokens."""
    blank: Values = {"metadata": None, "tokens": 0, "counter": ""}
    return {**blank, **values_of(marker), "now": now, "seconds": session.seconds(marker.created)}


#: The columns of the fragment `counted` of log.sql: a head without the epoch, which a write does not need.
_COUNTED_COLUMNS = 13


@dataclass(frozen=True, slots=True)
class State:
    """The row of the statement `state`. Most writes need only a little of it: the rest is decoded on demand."""

    #: None before the first write to the conversation.
    row: Row | None
    next_seq: int
    last_created: datetime | None

    @property
    def agent(self) -> str | None:
        return None if self.row is None else self.row[1]

    def knows(self, draft: TurnDraft) -> bool:
        """Whether a completed turn changes nothing about the conversation itself."""
        known = self.row is not None and draft.agent in (None, self.row[1])
        return known and draft.status == "done" and draft.labels == NO_LABELS


def state_of(scope: Scope) -> Play[State]:
    """The conversation, which must belong to this scope, locked until the transaction ends."""
    found: Row | None = yield "row", "state", keys(scope)
    if found is None:
        return State(None, 1, None)
    rules.check_owner(scope, found[0])
    last_created = found[_COUNTED_COLUMNS]
    return State(found, found[4] + 1, None if last_created is None else moment(last_created))
