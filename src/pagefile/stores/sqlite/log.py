"""Writes the turn log. Every verb is one transaction that may be run again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

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
from pagefile.records import Checkpoint, Entry, JsonObject, Reset, Scope, Turn, utc
from pagefile.stores import rules
from pagefile.stores.changing import changed
from pagefile.stores.encoding import stored_draft, time_text, to_json
from pagefile.stores.packing import Blob, packed_all
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.epochs import check_writable
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.media import attach
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Values, keys, touched
from pagefile.stores.sqlite.writing import (
    State,
    attach_restored,
    entry_by_id,
    restore_turn,
    state_of,
    tell_conversation,
    texts_of,
    turn_in_place,
    turn_values,
    write_checkpoint,
    write_reset,
)


class SqliteTurnLog(TurnLog):
    """The turn log in `ai_message`, with its counters in `conversations`."""

    def __init__(self, writer: Writer, readers: Readers, clock: Clock) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock

    async def append(self, draft: TurnDraft) -> Turn:
        rules.conversation_of(draft.scope)
        texts = texts_of(draft)
        stored, blobs = stored_draft(draft), await self._packed(draft.blobs) if draft.blobs else {}
        return await self._writer.run(lambda connection: self._append(connection, stored, texts, blobs))

    async def advance(self, change: TurnChange) -> Turn:
        rules.conversation_of(change.scope)
        blobs = await self._packed(change.blobs) if isinstance(change, Extend) else {}
        return await self._writer.run(lambda connection: self._advance(connection, change, blobs))

    async def mark(self, marker: CheckpointDraft | ResetDraft) -> Entry:
        rules.conversation_of(marker.scope)
        if isinstance(marker, ResetDraft):
            return await self._writer.run(lambda connection: self._reset(connection, marker))
        return await self._writer.run(lambda connection: self._checkpoint(connection, marker))

    async def claim(self, scope: Scope, *, epoch: int | None = None) -> None:
        rules.conversation_of(scope)
        await self._writer.run(lambda connection: self._claim(connection, scope, epoch))

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
        if not entries:
            return await self._writer.run(lambda _: 0)
        value = None if session is None else to_json(session)
        plan = rules.restoration(
            entries, agent, value, labels, blobs, marks, expect_empty=expect_empty, epoch=epoch, origin=origin
        )
        small = await self._packed(plan.blobs)
        return await self._writer.run(lambda connection: self._restore(connection, plan, small))

    async def _packed(self, blobs: Mapping[str, bytes]) -> dict[str, Blob]:
        # Compressing takes a while: neither the event loop nor the writer should wait for it.
        if not blobs:
            return {}
        rules.check_blobs(blobs)
        return await self._readers.run(lambda _: packed_all(blobs))

    # -- turns --------------------------------------------------------------------------------------------------------

    def _append(
        self, connection: Connection, draft: TurnDraft, texts: Values, blobs: Mapping[str, Blob]
    ) -> Turn:
        check_writable(connection, draft.epoch, [draft.scope])
        now, state = utc(self._clock.now()), state_of(connection, draft.scope)
        turn = turn_in_place(draft, state, rules.stamp(now, state.last_created))
        values = turn_values(turn, now, texts)
        connection.execute(sql("turn_insert"), values)
        if not connection.changes():
            return rules.check_repeat(entry_by_id(connection, draft.scope, draft.id, state), draft)
        agent, known = draft.agent or state.agent, state.knows(draft)
        tell_conversation(connection, values, turn, agent, draft.labels, known=known)
        if blobs:
            attach(connection, turn.scope, turn.id, rules.attached(draft, blobs), blobs)
        return turn

    def _advance(self, connection: Connection, change: TurnChange, blobs: Mapping[str, Blob]) -> Turn:
        check_writable(connection, epoch_of(change), [change.scope])
        now, state = utc(self._clock.now()), state_of(connection, change.scope)
        turn = entry_by_id(connection, change.scope, change.turn_id, state)
        if not isinstance(turn, Turn):
            raise rules.no_turn(change.turn_id)
        if turn.status != "open":
            return rules.check_ended(turn, change)
        if rules.is_there(turn, change):
            return turn
        turn = changed(turn, change)
        created = turn.created if turn.status == "open" else rules.stamp(now, state.last_created)
        seq = None if turn.status == "open" else state.next_seq
        turn = replace(turn, scope=state.scope, seq=seq, created=created)
        values = turn_values(turn, now, texts_of(turn))
        connection.execute(sql("turn_update"), values)
        tell_conversation(connection, values, turn, state.agent)
        if isinstance(change, Extend):
            attach(connection, turn.scope, turn.id, rules.attached(change, blobs), blobs)
        return turn

    # -- markers ------------------------------------------------------------------------------------------------------

    def _checkpoint(self, connection: Connection, draft: CheckpointDraft) -> Entry:
        check_writable(connection, draft.epoch, [draft.scope])
        now, state = utc(self._clock.now()), state_of(connection, draft.scope)
        stored = entry_by_id(connection, draft.scope, draft.id, state)
        if stored is not None:
            return rules.check_same_marker(stored, draft.id, same=rules.same_checkpoint(stored, draft))
        rules.check_coverage(draft, state.head, state.version)
        checkpoint = Checkpoint(
            id=draft.id,
            scope=state.scope,
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
        return write_checkpoint(connection, checkpoint, draft.text, now, state.head.reset_seq)

    def _reset(self, connection: Connection, draft: ResetDraft) -> Entry:
        now, state = utc(self._clock.now()), state_of(connection, draft.scope)
        stored = entry_by_id(connection, draft.scope, draft.id, state)
        if stored is not None:
            return rules.check_same_marker(stored, draft.id, same=isinstance(stored, Reset))
        created = rules.stamp(now, state.last_created)
        reset = Reset(draft.id, state.scope, state.next_seq, created)
        connection.execute(sql("conversation_touch"), touched(reset.scope, time_text(now)))
        write_reset(connection, reset, now)
        return reset

    def _claim(self, connection: Connection, scope: Scope, epoch: int | None) -> None:
        check_writable(connection, epoch, [scope])
        if state_of(connection, scope).row is None:
            now = time_text(utc(self._clock.now()))
            connection.execute(sql("conversation_touch"), touched(scope, now))

    # -- restoring ----------------------------------------------------------------------------------------------------

    def _restore(self, connection: Connection, plan: rules.Restoration, blobs: Mapping[str, Blob]) -> int:
        check_writable(connection, plan.epoch, plan.fenced)
        now, state = utc(self._clock.now()), state_of(connection, plan.scope)
        if connection.execute(sql("entry_any"), keys(plan.scope)).get is None:
            rules.check_whole(plan.ended)
            count = self._restore_whole(connection, plan, state, now)
            attach_restored(connection, state.scope, plan.turns, blobs)
            marks = [{**keys(plan.scope), "tier": tier, "seq": seq} for tier, seq in plan.marks.items()]
            connection.executemany(sql("watermark_advance"), marks)
            return count
        rules.check_vacant(plan)
        new: list[Turn] = []
        for turn in plan.turns:
            stored = entry_by_id(connection, plan.scope, turn.id, state)
            if stored is not None:
                rules.check_repeat(stored, turn)
                continue
            state = state_of(connection, plan.scope)
            seq = None if turn.status == "open" else state.next_seq
            created = rules.stamp(now, state.last_created)
            placed = replace(turn, scope=state.scope, seq=seq, created=created)
            restore_turn(connection, placed, now, state.agent)
            new.append(turn)
        attach_restored(connection, state.scope, new, blobs)
        return len(new)

    def _restore_whole(
        self, connection: Connection, plan: rules.Restoration, state: State, now: datetime
    ) -> int:
        scope, reset_seq, agent = state.scope, 0, plan.agent or state.agent
        blank = connection.execute(sql("session_get"), keys(scope)).get is None
        connection.execute(sql("conversation_touch"), touched(scope, time_text(now), agent, plan.labels))
        for entry in (*plan.ended, *plan.open):
            owned = replace(entry, scope=scope, created=utc(entry.created))
            if isinstance(owned, Turn):
                restore_turn(connection, owned, now, agent)
            elif isinstance(owned, Reset):
                reset_seq = owned.seq
                write_reset(connection, owned, now)
            else:
                write_checkpoint(connection, owned, f"历史摘要: {owned.summary}", now, reset_seq)
        if blank and plan.session is not None:
            connection.execute(sql("session_put"), {**keys(scope), "value": plan.session})
        times = [entry.created for entry in (*plan.ended, *plan.open)]
        values = {**keys(scope), "created": time_text(min(times)), "updated": time_text(max(times))}
        connection.execute(sql("conversation_times"), values)
        return len(times)
