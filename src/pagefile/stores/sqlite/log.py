"""Writes the turn log. Every verb is one transaction that may be run again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pagefile.ports import (
    AddStep,
    CheckpointDraft,
    Clock,
    ResetDraft,
    TurnChange,
    TurnDraft,
    TurnLog,
)
from pagefile.records import (
    RESET_QUERY,
    Checkpoint,
    Entry,
    Head,
    JsonObject,
    Reset,
    Scope,
    Turn,
    utc,
)
from pagefile.stores import rules, session
from pagefile.stores.changing import changed, checkpoint_values
from pagefile.stores.encoding import metadata_text, plain, steps_text, text_time, time_text, to_json
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import HEAD_COLUMNS, Row, Values, entry_of, head_of, keys


@dataclass(frozen=True, slots=True)
class _State:
    """A conversation as a write finds it. Most writes need only a little of it: the rest is made when asked for."""

    scope: Scope
    #: The statement `state`; None when nobody wrote to the conversation yet.
    row: Row | None
    next_seq: int
    last_created: datetime | None

    @property
    def head(self) -> Head:
        return rules.no_head(self.scope) if self.row is None else head_of(self.row[:HEAD_COLUMNS], self.scope)

    @property
    def agent(self) -> str | None:
        return None if self.row is None else self.row[1]

    @property
    def versions(self) -> int:
        """How many checkpoints there were."""
        return 0 if self.row is None else self.row[HEAD_COLUMNS + 1]

    @property
    def version(self) -> int:
        """The checkpoint in force, 0 when there is none."""
        return self.versions if self.row is not None and self.row[HEAD_COLUMNS + 2] else 0

    @property
    def owned(self) -> Scope:
        """The scope as it will be once this write has claimed the conversation."""
        scope = self.scope
        owner = scope.user if self.row is None else self.row[0] or scope.user
        return scope if scope.user == owner else Scope(scope.tenant, owner, scope.conversation)


class SqliteTurnLog(TurnLog):
    """The turn log in `ai_message`, with its counters in `conversations`."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock

    async def append(self, draft: TurnDraft) -> Turn:
        rules.conversation_of(draft.scope)
        texts = {"steps": steps_text(draft.steps), "metadata": metadata_text(draft.metadata)}
        if draft.steps or draft.metadata:
            draft = _as_stored(draft)
        return await self._writer.run(lambda connection: self._append(connection, draft, texts))

    async def advance(self, change: TurnChange) -> Turn:
        rules.conversation_of(change.scope)
        return await self._writer.run(lambda connection: self._advance(connection, change))

    async def mark(self, marker: CheckpointDraft | ResetDraft) -> Entry:
        rules.conversation_of(marker.scope)
        if isinstance(marker, ResetDraft):
            return await self._writer.run(lambda connection: self._reset(connection, marker))
        return await self._writer.run(lambda connection: self._checkpoint(connection, marker))

    async def restore(
        self,
        entries: Sequence[Entry],
        *,
        agent: str | None = None,
        session: JsonObject | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> int:
        if not entries:
            return await self._writer.run(lambda _: 0)
        plan = rules.restoration(entries, agent, None if session is None else to_json(session))
        return await self._writer.run(lambda connection: self._restore(connection, plan))

    # -- turns --------------------------------------------------------------------------------------------------------

    def _append(self, connection: Connection, draft: TurnDraft, texts: Values) -> Turn:
        now, state = utc(self._clock.now()), _state(connection, draft.scope)
        turn = _turn(draft, state, rules.stamp(now, state.last_created))
        values = _turn_values(turn, now, texts)
        connection.execute(sql("turn_insert"), values)
        if not connection.changes():
            return rules.check_repeat(_entry(connection, draft.scope, draft.id, state), draft)
        _tell_conversation(connection, values, turn, draft.agent or state.agent)
        return turn

    def _advance(self, connection: Connection, change: TurnChange) -> Turn:
        now, state = utc(self._clock.now()), _state(connection, change.scope)
        turn = _entry(connection, change.scope, change.turn_id, state)
        if not isinstance(turn, Turn):
            raise rules.no_turn(change.turn_id)
        if turn.status != "open":
            return rules.check_ended(turn, change)
        if isinstance(change, AddStep) and rules.has_step(turn, change.step):
            return turn
        turn = changed(turn, change)
        created = turn.created if turn.status == "open" else rules.stamp(now, state.last_created)
        seq = None if turn.status == "open" else state.next_seq
        turn = replace(turn, scope=state.owned, seq=seq, created=created)
        values = _turn_values(turn, now, {"steps": steps_text(turn.steps), "metadata": None})
        connection.execute(sql("turn_update"), values)
        _tell_conversation(connection, values, turn, state.agent)
        return turn

    # -- markers ------------------------------------------------------------------------------------------------------

    def _checkpoint(self, connection: Connection, draft: CheckpointDraft) -> Entry:
        now, state = utc(self._clock.now()), _state(connection, draft.scope)
        stored = _entry(connection, draft.scope, draft.id, state)
        if stored is not None:
            return rules.check_same_marker(stored, draft.id, same=rules.same_checkpoint(stored, draft))
        rules.check_coverage(draft, state.head, state.version)
        checkpoint = Checkpoint(
            id=draft.id,
            scope=state.owned,
            seq=state.next_seq,
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
        return _write_checkpoint(connection, checkpoint, draft.text, now, state.head.reset_seq)

    def _reset(self, connection: Connection, draft: ResetDraft) -> Entry:
        now, state = utc(self._clock.now()), _state(connection, draft.scope)
        stored = _entry(connection, draft.scope, draft.id, state)
        if stored is not None:
            return rules.check_same_marker(stored, draft.id, same=isinstance(stored, Reset))
        created = rules.stamp(now, state.last_created)
        reset = Reset(draft.id, state.owned, state.next_seq, created)
        connection.execute(
            sql("conversation_touch"), {**keys(reset.scope), "agent": None, "now": time_text(now)}
        )
        _write_reset(connection, reset, now)
        return reset

    # -- restoring ----------------------------------------------------------------------------------------------------

    def _restore(self, connection: Connection, plan: rules.Restoration) -> int:
        now, state = utc(self._clock.now()), _state(connection, plan.scope)
        if connection.execute(sql("entry_any"), keys(plan.scope)).get is None:
            rules.check_whole(plan.ended)
            return self._restore_whole(connection, plan, state, now)
        new = 0
        for turn in (entry for entry in (*plan.ended, *plan.open) if isinstance(entry, Turn)):
            stored = _entry(connection, plan.scope, turn.id, state)
            if stored is not None:
                rules.check_repeat(stored, turn)
                continue
            state, new = _state(connection, plan.scope), new + 1
            seq = None if turn.status == "open" else state.next_seq
            created = rules.stamp(now, state.last_created)
            placed = replace(turn, scope=state.owned, seq=seq, created=created)
            _restore_turn(connection, placed, now, state.agent)
        return new

    def _restore_whole(
        self, connection: Connection, plan: rules.Restoration, state: _State, now: datetime
    ) -> int:
        scope, reset_seq, agent = state.owned, 0, plan.agent or state.agent
        blank = connection.execute(sql("session_get"), keys(scope)).get is None
        connection.execute(sql("conversation_touch"), {**keys(scope), "agent": agent, "now": time_text(now)})
        for entry in (*plan.ended, *plan.open):
            owned = replace(entry, scope=scope, created=utc(entry.created))
            if isinstance(owned, Turn):
                _restore_turn(connection, owned, now, agent)
            elif isinstance(owned, Reset):
                reset_seq = owned.seq
                _write_reset(connection, owned, now)
            else:
                _write_checkpoint(connection, owned, f"历史摘要: {owned.summary}", now, reset_seq)
        if blank and plan.session is not None:
            connection.execute(sql("session_put"), {**keys(scope), "value": plan.session})
        times = [entry.created for entry in (*plan.ended, *plan.open)]
        values = {**keys(scope), "created": time_text(min(times)), "updated": time_text(max(times))}
        connection.execute(sql("conversation_times"), values)
        return len(times)


def _restore_turn(connection: Connection, turn: Turn, now: datetime, agent: str | None) -> None:
    texts = {"steps": steps_text(turn.steps), "metadata": metadata_text(turn.metadata)}
    values = _turn_values(turn, now, texts)
    connection.execute(sql("turn_insert"), values)
    _tell_conversation(connection, values, turn, agent)


def _state(connection: Connection, scope: Scope) -> _State:
    row: Any = connection.execute(sql("state"), keys(scope)).fetchone()
    if row is None:
        return _State(scope, None, 1, None)
    rules.check_owner(scope, row[0])
    last_created = row[HEAD_COLUMNS]
    return _State(scope, row, row[4] + 1, None if last_created is None else text_time(last_created))


def _entry(connection: Connection, scope: Scope, entry_id: str, state: _State) -> Entry | None:
    row: Any = connection.execute(sql("entry_by_id"), {**keys(scope), "id": entry_id}).fetchone()
    return None if row is None else entry_of(row, state.head.scope)


def _as_stored(draft: TurnDraft) -> TurnDraft:
    """The draft with its JSON as it comes back from the database."""
    steps = tuple(replace(step, input=plain(step.input)) for step in draft.steps)
    return replace(draft, steps=steps, metadata=plain(draft.metadata))


def _turn(draft: TurnDraft, state: _State, created: datetime) -> Turn:
    """The turn in its place. Named one by one: `record()` makes one, and `replace` would double what that costs."""
    return Turn(
        draft.id,
        state.owned,
        state.next_seq if draft.status == "done" else None,
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
    )


def _turn_values(turn: Turn, now: datetime, texts: Values) -> Values:
    created = time_text(turn.created)
    return {
        "id": turn.id,
        "tenant": turn.scope.tenant,
        "conversation": turn.scope.conversation,
        "user": turn.scope.user,
        "query": turn.user,
        "answer": turn.assistant,
        "create_time": created,
        "now": created if turn.created == now else time_text(now),
        "seq": turn.seq,
        "kind": "turn",
        "status": turn.status,
        "at": time_text(turn.at),
        "user_tokens": turn.user_tokens,
        "assistant_tokens": turn.assistant_tokens,
        "tokens": turn.tokens,
        "counter": turn.counter,
        **texts,
    }


def _marker_values(marker: Checkpoint | Reset, now: datetime) -> Values:
    created = time_text(marker.created)
    return {
        **keys(marker.scope),
        "id": marker.id,
        "create_time": created,
        "now": time_text(now),
        "seq": marker.seq,
        "status": "done",
        "at": created,
        "steps": None,
        "metadata": None,
        "user_tokens": 0,
        "assistant_tokens": 0,
        "tokens": 0,
        "counter": "",
        "seconds": session.seconds(marker.created),
    }


def _write_checkpoint(
    connection: Connection, checkpoint: Checkpoint, text: str, now: datetime, reset_seq: int
) -> Checkpoint:
    covered = checkpoint.covered_through_seq
    coverage: Any = connection.execute(
        sql("coverage"), {**keys(checkpoint.scope), "covered": covered, "reset_seq": reset_seq}
    ).fetchone()
    checkpoint = replace(checkpoint, covered_turns=coverage[0])
    values = {
        **_marker_values(checkpoint, now),
        **checkpoint_values(checkpoint, text, coverage),
        "turn_count": None,
        "mode": session.SUMMARY_N,
        "checkpoint": checkpoint.id,
    }
    for statement in ("turn_insert", "summary_put", "conversation_checkpoint"):
        connection.execute(sql(statement), values)
    _update_session(connection, "session_marker", values, checkpoint.scope)
    return checkpoint


def _write_reset(connection: Connection, reset: Reset, now: datetime) -> None:
    values = {
        **_marker_values(reset, now),
        "query": RESET_QUERY,
        "answer": None,
        "kind": "reset",
        "turn_count": 0,
        "summary": "",
        "mode": session.FULL_HISTORY,
        "checkpoint": "",
    }
    for statement in ("turn_insert", "conversation_reset", "summary_drop"):
        connection.execute(sql(statement), values)
    _update_session(connection, "session_marker", values, reset.scope)


def _tell_conversation(connection: Connection, values: Values, turn: Turn, agent: str | None) -> None:
    """Count the turn in its conversation and, when it is done, in the session; `values` are its own."""
    values["agent"] = agent
    if turn.seq is None:
        connection.execute(sql("conversation_touch"), values)
        return
    done = turn.status == "done"
    values["done"], values["live_tokens"] = int(done), turn.tokens if done else 0
    connection.execute(sql("conversation_turn"), values)
    if done:
        values["seconds"] = session.seconds(turn.created)
        _update_session(connection, "session_turn", values, turn.scope)


def _update_session(connection: Connection, statement: str, values: Values, scope: Scope) -> None:
    connection.execute(sql(statement), values)
    if not connection.changes():
        blank = to_json(session.blank(scope))
        connection.execute(sql("session_put"), {**keys(scope), "value": blank})
        connection.execute(sql(statement), values)
