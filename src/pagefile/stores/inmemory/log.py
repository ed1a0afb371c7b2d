"""The turn log as lists in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, TypeVar

from pagefile.ports import (
    AddStep,
    CheckpointDraft,
    Extend,
    ResetDraft,
    TurnChange,
    TurnDraft,
    TurnLog,
)
from pagefile.records import (
    Checkpoint,
    Entry,
    JsonObject,
    Reset,
    Step,
    Turn,
    utc,
)
from pagefile.stores import rules, session
from pagefile.stores.changing import changed
from pagefile.stores.encoding import from_json, plain, to_json
from pagefile.stores.inmemory.room import Conversation, Room

T = TypeVar("T")


class InMemoryTurnLog(TurnLog):
    def __init__(self, room: Room) -> None:
        self._room = room

    async def append(self, draft: TurnDraft) -> Turn:
        known = self._room.found(draft.scope)
        if known is not None and (stored := known.find(draft.id)) is not None:
            return rules.check_repeat(stored, draft)
        turn = self._turn(draft)
        conversation = self._room.written(draft.scope, draft.agent)
        self._room.blobs.update(draft.blobs)
        turn = replace(turn, scope=conversation.scope, created=self._stamp(conversation))
        if draft.status == "open":
            conversation.open.append(turn)
            return turn
        return self._end(conversation, turn, "done")

    async def advance(self, change: TurnChange) -> Turn:
        conversation = self._room.found(change.scope)
        turn = conversation.find(change.turn_id) if conversation else None
        if not isinstance(turn, Turn):
            raise rules.no_turn(change.turn_id)
        if turn.status != "open":
            return rules.check_ended(turn, change)
        if isinstance(change, AddStep) and rules.has_step(turn, _plain_step(change.step)):
            return turn
        if isinstance(change, Extend) and (change.after or 0) < len(turn.messages):
            return rules.check_added(turn, change)
        after = changed(turn, change)
        self._room.blobs.update(change.blobs if isinstance(change, Extend) else {})
        conversation = self._room.written(change.scope)
        place = next(i for i, other in enumerate(conversation.open) if other.id == turn.id)
        if after.status == "open":
            conversation.open[place] = after
            return after
        del conversation.open[place]
        return self._end(conversation, after, after.status)

    async def mark(self, marker: CheckpointDraft | ResetDraft) -> Entry:
        known = self._room.found(marker.scope)
        stored = known.find(marker.id) if known else None
        if isinstance(marker, ResetDraft):
            if stored is not None:
                return rules.check_same_marker(stored, marker.id, same=isinstance(stored, Reset))
            return self._reset(marker)
        if stored is not None:
            return rules.check_same_marker(stored, marker.id, same=rules.same_checkpoint(stored, marker))
        current = known.checkpoint() if known else None
        head = known.head() if known else rules.no_head(marker.scope)
        rules.check_coverage(marker, head, current.version if current else 0)
        return self._checkpoint(marker)

    async def restore(
        self,
        entries: Sequence[Entry],
        *,
        agent: str | None = None,
        session: JsonObject | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> int:
        self._room.check_open()
        self._room.blobs.update(blobs or {})
        if not entries:
            return 0
        plan = rules.restoration(entries, agent, None if session is None else to_json(session))
        known = self._room.found(plan.scope)
        if known is None or not known.entries():
            rules.check_whole(plan.ended)
            return self._restore_whole(plan)
        turns = [entry for entry in (*plan.ended, *plan.open) if isinstance(entry, Turn)]
        new = [turn for turn in turns if known.find(turn.id) is None]
        for turn in turns:
            if turn not in new:
                rules.check_repeat(known.find(turn.id), turn)
        for turn in new:
            self._append_restored(_plain_turn(turn))
        return len(new)

    def _turn(self, draft: TurnDraft) -> Turn:
        return Turn(
            id=draft.id,
            scope=draft.scope,
            seq=None,
            status="open",
            user=draft.user,
            assistant=draft.assistant,
            steps=tuple(_plain_step(step) for step in draft.steps),
            at=utc(draft.at),
            created=self._room.now(),
            user_tokens=draft.user_tokens,
            assistant_tokens=draft.assistant_tokens,
            tokens=draft.tokens,
            counter=draft.counter,
            metadata=plain(draft.metadata),
            layout=draft.layout,
        )

    def _stamp(self, conversation: Conversation) -> datetime:
        last = conversation.ended[-1].created if conversation.ended else None
        return rules.stamp(self._room.now(), last)

    def _end(self, conversation: Conversation, turn: Turn, status: Literal["done", "aborted"]) -> Turn:
        created, seq = self._stamp(conversation), len(conversation.ended) + 1
        turn = replace(turn, status=status, seq=seq, created=created)
        conversation.ended.append(turn)
        self._tell_session(conversation, turn)
        return turn

    def _checkpoint(self, draft: CheckpointDraft) -> Checkpoint:
        conversation = self._room.written(draft.scope)
        before = len(conversation.done(conversation.reset_seq()))
        entry = Checkpoint(
            id=draft.id,
            scope=conversation.scope,
            seq=len(conversation.ended) + 1,
            version=conversation.versions() + 1,
            summary=draft.summary,
            covered_through_seq=draft.covered_through_seq,
            covered_turns=before - len(conversation.done(draft.covered_through_seq)),
            created=self._stamp(conversation),
            tokens=draft.tokens,
            counter=draft.counter,
            anchors=draft.anchors,
            archive_refs=draft.archive_refs,
        )
        conversation.ended.append(entry)
        self._tell_session(conversation, entry)
        return entry

    def _reset(self, draft: ResetDraft) -> Reset:
        conversation = self._room.written(draft.scope)
        seq, created = len(conversation.ended) + 1, self._stamp(conversation)
        entry = Reset(draft.id, conversation.scope, seq, created)
        conversation.ended.append(entry)
        self._tell_session(conversation, entry)
        return entry

    def _restore_whole(self, plan: rules.Restoration) -> int:
        ended = [_plain_turn(entry) if isinstance(entry, Turn) else entry for entry in plan.ended]
        opened = [_plain_turn(turn) for turn in plan.open]
        blank = (plan.scope.tenant, plan.scope.conversation) not in self._room.sessions
        conversation = self._room.written(plan.scope, plan.agent)
        scope, times = conversation.scope, [entry.created for entry in (*ended, *opened)]
        conversation.created, conversation.updated = utc(min(times)), utc(max(times))
        conversation.open = [replace(turn, scope=scope) for turn in opened]
        for entry in ended:
            conversation.ended.append(replace(entry, scope=scope, created=utc(entry.created)))
            self._tell_session(conversation, conversation.ended[-1])
        if blank and plan.session is not None:
            self._room.sessions[scope.tenant, rules.conversation_of(scope)] = from_json(plan.session)
        return len(ended) + len(opened)

    def _append_restored(self, turn: Turn) -> None:
        conversation = self._room.written(turn.scope)
        turn = replace(turn, scope=conversation.scope, seq=None, created=self._stamp(conversation))
        if turn.status == "open":
            conversation.open.append(turn)
        else:
            self._end(conversation, turn, turn.status)

    def _tell_session(self, conversation: Conversation, entry: Entry) -> None:
        if isinstance(entry, Checkpoint):
            value = self._room.session(conversation)
            session.put_checkpoint(value, entry.id, entry.summary, entry.created)
        elif isinstance(entry, Reset):
            session.put_reset(self._room.session(conversation), entry.created)
        elif entry.status == "done":
            owner, agent = conversation.scope.user, conversation.agent
            told = session.SessionTurn(owner, agent, entry.assistant, entry.created)
            session.put_turn(self._room.session(conversation), told)


def _plain_step(step: Step) -> Step:
    return replace(step, input=plain(step.input))


def _plain_turn(turn: Turn) -> Turn:
    steps = tuple(_plain_step(step) for step in turn.steps)
    return replace(
        turn, steps=steps, metadata=plain(turn.metadata), at=utc(turn.at), created=utc(turn.created)
    )
