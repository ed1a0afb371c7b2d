"""The turn log as lists in memory, written and read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Unpack, cast

from pagefile.ports import (
    Beside,
    CheckpointDraft,
    ConversationQuery,
    EntryQuery,
    Extend,
    LogReader,
    LogView,
    MatchQuery,
    Neighbourhood,
    ResetDraft,
    SinceRequest,
    TurnChange,
    TurnDraft,
    TurnLog,
    TurnPlace,
    TurnRef,
    TurnSource,
    ViewRequest,
    epoch_of,
)
from pagefile.records import Checkpoint, ConversationInfo, Entry, JsonObject, Reset, Scope, Turn, utc
from pagefile.stores import rules, session
from pagefile.stores.encoding import json_copy, stored, stored_draft, stored_layout, stored_steps
from pagefile.stores.restoration import Restoration, check_vacant, check_whole, restoration
from tests.oracle.tables import Conversation, Port, behind


class OracleTurnLog(Port, TurnLog):
    async def append(self, draft: TurnDraft) -> Turn:
        rules.check_blobs(draft.blobs)
        self._tables.check_epoch(draft.epoch, draft.scope)
        known = self._tables.found(draft.scope)
        if known is not None and (stored := known.find(draft.id)) is not None:
            return rules.check_repeat(stored, draft)
        kept = stored_draft(draft)
        conversation = self._tables.written(draft.scope, draft.agent, draft.labels)
        turn = rules.turn_in_place(kept, None, self._stamp(conversation))
        self._tables.attach(turn, rules.attached(turn, draft.blobs), draft.blobs)
        if draft.status == "open":
            conversation.open.append(turn)
            return turn
        return self._end(conversation, turn)

    async def advance(self, change: TurnChange) -> Turn:
        self._tables.check_epoch(epoch_of(change), change.scope)
        conversation = self._tables.found(change.scope)
        turn = conversation.find(change.turn_id) if conversation else None
        if not isinstance(turn, Turn):
            raise rules.no_turn(change.turn_id)
        if rules.stays(turn, change):
            return turn
        after = rules.changed(turn, change)
        if isinstance(change, Extend):
            rules.check_blobs(change.blobs)
            self._tables.attach(turn, rules.attached(change, change.blobs), change.blobs)
        conversation = self._tables.written(change.scope)
        place = next(i for i, other in enumerate(conversation.open) if other.id == turn.id)
        after = replace(after, scope=conversation.scope)
        if after.status == "open":
            conversation.open[place] = after
            return after
        del conversation.open[place]
        return self._end(conversation, after)

    async def mark(self, marker: CheckpointDraft | ResetDraft) -> Entry:
        if isinstance(marker, CheckpointDraft):
            self._tables.check_epoch(marker.epoch, marker.scope)
        known = self._tables.found(marker.scope)
        stored = known.find(marker.id) if known else None
        if isinstance(marker, ResetDraft):
            if stored is not None:
                return rules.check_same_marker(stored, marker)
            return self._reset(marker)
        if stored is not None:
            return rules.check_same_marker(stored, marker)
        current = known.checkpoint() if known else None
        head = known.head() if known else rules.no_head(marker.scope)
        rules.check_coverage(marker, head, current.version if current else 0)
        return self._checkpoint(marker)

    async def claim(self, scope: Scope, *, epoch: int | None = None) -> None:
        self._tables.check_epoch(epoch, scope)
        if self._tables.found(scope) is None:
            self._tables.written(scope)

    async def restore(self, entries: Sequence[Entry], **beside: Unpack[Beside]) -> int:
        tables = self._tables
        if not entries:
            return 0
        plan = restoration(entries, **beside)
        tables.check_epoch(plan.epoch, *plan.fenced)
        known = tables.found(plan.scope)
        if known is None or not known.entries():
            check_whole(plan.ended)
            return self._restore_whole(plan)
        check_vacant(plan)
        turns = plan.turns
        new = [turn for turn in turns if known.find(turn.id) is None]
        for turn in turns:
            if turn not in new:
                rules.check_repeat(known.find(turn.id), turn)
        for turn in new:
            self._append_restored(_plain_turn(turn))
            self._tables.attach(turn, rules.attached(turn, plan.blobs), plan.blobs)
        return len(new)

    def _stamp(self, conversation: Conversation) -> datetime:
        last = conversation.ended[-1].created if conversation.ended else None
        return rules.stamp(self._tables.now(), last)

    def _end(self, conversation: Conversation, turn: Turn) -> Turn:
        created, seq = self._stamp(conversation), len(conversation.ended) + 1
        turn = replace(turn, seq=seq, created=created)
        conversation.ended.append(turn)
        self._tell_session(conversation, turn)
        return turn

    def _checkpoint(self, draft: CheckpointDraft) -> Checkpoint:
        conversation = self._tables.written(draft.scope)
        before = len(conversation.done(conversation.reset_seq()))
        covered = before - len(conversation.done(draft.covered_through_seq))
        seq, version = len(conversation.ended) + 1, conversation.versions() + 1
        entry = rules.checkpoint_in_place(draft, conversation.scope, seq, version, self._stamp(conversation))
        entry = replace(entry, covered_turns=covered)
        conversation.ended.append(entry)
        self._tell_session(conversation, entry)
        return entry

    def _reset(self, draft: ResetDraft) -> Reset:
        conversation = self._tables.written(draft.scope)
        seq, created = len(conversation.ended) + 1, self._stamp(conversation)
        entry = Reset(draft.id, conversation.scope, seq, created)
        conversation.ended.append(entry)
        self._tell_session(conversation, entry)
        return entry

    def _restore_whole(self, plan: Restoration) -> int:
        ended = [_plain_turn(entry) if isinstance(entry, Turn) else entry for entry in plan.ended]
        opened = [_plain_turn(turn) for turn in plan.open]
        blank = (plan.scope.tenant, plan.scope.conversation) not in self._tables.sessions
        conversation = self._tables.written(plan.scope, plan.agent, plan.labels)
        scope, times = conversation.scope, [entry.created for entry in (*ended, *opened)]
        conversation.created, conversation.updated = utc(min(times)), utc(max(times))
        conversation.open = [replace(turn, scope=scope) for turn in opened]
        for entry in ended:
            conversation.ended.append(replace(entry, scope=scope, created=utc(entry.created)))
            self._tell_session(conversation, conversation.ended[-1])
        for turn in plan.turns:
            self._tables.attach(turn, rules.attached(turn, plan.blobs), plan.blobs)
        if blank and plan.session is not None:
            self._tables.sessions[scope.tenant, rules.conversation_of(scope)] = dict(plan.session)
        for tier, seq in plan.marks.items():
            self._tables.watermarks[scope.tenant, rules.conversation_of(scope), tier] = seq
        return len(ended) + len(opened)

    def _append_restored(self, turn: Turn) -> None:
        conversation = self._tables.written(turn.scope)
        turn = replace(turn, scope=conversation.scope, seq=None, created=self._stamp(conversation))
        if turn.status == "open":
            conversation.open.append(turn)
        else:
            self._end(conversation, turn)

    def _tell_session(self, conversation: Conversation, entry: Entry) -> None:
        if isinstance(entry, Checkpoint):
            value = self._tables.session(conversation)
            session.put_summary(value, entry.summary, entry.id, entry.created)
        elif isinstance(entry, Reset):
            session.put_reset(self._tables.session(conversation), entry.created)
        elif entry.status == "done":
            owner, agent = conversation.scope.user, conversation.agent
            value = self._tables.session(conversation)
            session.put_turn(value, owner, agent, entry.assistant, entry.created)


def _plain_turn(turn: Turn) -> Turn:
    layout = None if turn.layout is None else stored_layout(turn.layout)
    return replace(stored(turn), steps=stored_steps(turn.steps), layout=layout)


class OracleReader(Port, LogReader, TurnSource):
    async def epoch(self, scope: Scope | None = None) -> int:
        return self._tables.epoch if scope is None else self._tables.newest_epoch(scope)

    async def view(self, request: ViewRequest) -> LogView:
        conversation = self._tables.found(request.scope)
        if conversation is None:
            if request.open_turn is not None:
                raise rules.no_turn(request.open_turn)
            return LogView(rules.no_head(request.scope, self._tables.epoch), None, ())
        taken: list[Turn] = []
        for turn in reversed(conversation.live()):
            total = sum(earlier.tokens for earlier in taken) + turn.tokens
            if len(taken) >= request.min_turns and total > request.budget_tokens:
                break
            taken.append(turn)
        began = conversation.began()
        others = [turn for turn in conversation.open if turn.id != request.open_turn and turn.created > began]
        mine = [turn for turn in conversation.open if turn.id == request.open_turn]
        head, checkpoint = conversation.head(self._tables.epoch), conversation.checkpoint()
        running = [*others[-rules.MOST_RUNNING :], *mine]
        return rules.view_of(request, head, checkpoint, taken[::-1], running, self._profile(request.scope))

    def _profile(self, scope: Scope) -> JsonObject | None:
        value = self._tables.sessions.get((scope.tenant, rules.conversation_of(scope)))
        return None if value is None else json_copy(cast("JsonObject", value).get("user_snapshot"))

    async def owner(self, scope: Scope) -> Scope | None:
        found = self._tables.conversations.get((scope.tenant, rules.conversation_of(scope)))
        return None if found is None else found.scope

    async def entries(self, query: EntryQuery) -> list[Entry]:
        conversation = self._tables.found(query.scope)
        chosen = [
            entry
            for entry in (conversation.entries() if conversation else [])
            if (entry.seq is None or entry.seq > query.after_seq) and _asked_for(entry, query)
        ]
        return chosen[max(0, len(chosen) - query.limit) :] if query.newest else chosen[: query.limit]

    async def heads(self, query: ConversationQuery) -> list[ConversationInfo]:
        seen = [conversation.head(self._tables.epoch) for conversation in self._tables.seen(query.scope)]
        seen.sort(key=lambda head: head.scope.conversation or "")
        seen.sort(key=lambda head: head.updated, reverse=True)
        return behind(seen, lambda head: head.scope.conversation, query.after)[: query.limit]

    async def matching(self, query: MatchQuery) -> list[TurnRef]:
        found: list[TurnRef] = []
        seen = {rules.conversation_of(one.scope): one for one in self._tables.seen(Scope(query.tenant))}
        for name in sorted(set(query.conversations) & set(seen)):
            turns = [
                one
                for one in seen[name].ended
                if isinstance(one, Turn) and one.counts and _matches(one, query)
            ]
            found += [TurnRef(name, turn.seq or 0) for turn in reversed(turns)]
        return found

    async def located(self, scope: Scope, turn_ids: Sequence[str]) -> Mapping[str, TurnPlace]:
        found: dict[str, TurnPlace] = {}
        for one in sorted(self._tables.seen(scope), key=lambda one: one.head(0).created):
            for turn in one.entries():
                if isinstance(turn, Turn) and turn.id in turn_ids:
                    found.setdefault(turn.id, TurnPlace(one.scope, turn.seq))
        return found

    async def since(self, request: SinceRequest) -> list[Turn]:
        seen = {rules.conversation_of(found.scope): found for found in self._tables.seen(request.scope)}
        turns = [turn for name in sorted(seen) for turn in seen[name].done(request.known.get(name, 0))]
        return turns[: request.limit]

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        seen = {rules.conversation_of(found.scope): found for found in self._tables.seen(scope)}
        found: list[Neighbourhood] = []
        for ref in refs:
            turns = seen[ref.conversation].done() if ref.conversation in seen else []
            place = next((i for i, turn in enumerate(turns) if turn.seq == ref.seq), None)
            if place is not None:
                before = turns[place - 1] if place > 0 else None
                after = turns[place + 1] if place + 1 < len(turns) else None
                found.append(Neighbourhood(turns[place], before, after))
        return found


def _matches(turn: Turn, query: MatchQuery) -> bool:
    said = " ".join([turn.text, *(f"{step.tool} {step.input} {step.result}" for step in turn.steps)]).lower()
    return (
        query.after_seq < (turn.seq or 0) < query.before_seq
        and all(word.lower() in said for word in query.words)
        and (query.tool is None or any(step.tool == query.tool for step in turn.steps))
        and (query.since is None or turn.at >= query.since)
        and (query.until is None or turn.at < query.until)
    )


def _asked_for(entry: Entry, query: EntryQuery) -> bool:
    if isinstance(entry, Turn):
        return "turn" in query.kinds and entry.status in query.statuses
    return ("checkpoint" if isinstance(entry, Checkpoint) else "reset") in query.kinds
