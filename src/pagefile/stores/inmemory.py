"""The oracle: every port in the plainest Python, obviously right, nothing kept when the process ends.

It recounts what a database would keep in counters. Other stores are tested against it, and it is the store of
`memory://`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeVar

from pagefile.errors import ClosedError, ConflictError, HandleNotFoundError, NotFoundError
from pagefile.ports import (
    Abort,
    AddStep,
    CallLog,
    CheckpointDraft,
    Clock,
    Complete,
    EntryQuery,
    FactStore,
    HeadQuery,
    LogReader,
    LogView,
    Neighbourhood,
    PageDraft,
    PageStore,
    ResetDraft,
    SessionStore,
    SinceRequest,
    Store,
    TurnChange,
    TurnDraft,
    TurnLog,
    TurnRef,
    TurnSource,
    ViewRequest,
)
from pagefile.records import (
    Call,
    Checkpoint,
    Entry,
    ErasureReceipt,
    Fact,
    Head,
    JsonObject,
    Page,
    Reset,
    Scope,
    Step,
    Turn,
    utc,
)
from pagefile.stores import rules, session
from pagefile.stores.encoding import plain

T = TypeVar("T")


@dataclass
class _Conversation:
    scope: Scope
    created: datetime
    updated: datetime
    agent: str | None = None
    #: Turns that ended, checkpoints and resets; the entry at place i has seq i + 1.
    ended: list[Entry] = field(default_factory=list[Entry])
    open: list[Turn] = field(default_factory=list[Turn])

    def entries(self) -> list[Entry]:
        return [*self.ended, *self.open]

    def find(self, entry_id: str) -> Entry | None:
        return next((entry for entry in self.entries() if entry.id == entry_id), None)

    def reset_seq(self) -> int:
        return max((entry.seq for entry in self.ended if isinstance(entry, Reset)), default=0)

    def checkpoint(self) -> Checkpoint | None:
        after = self.ended[self.reset_seq() :]
        return next((entry for entry in reversed(after) if isinstance(entry, Checkpoint)), None)

    def versions(self) -> int:
        return max((entry.version for entry in self.ended if isinstance(entry, Checkpoint)), default=0)

    def done(self, after: int = 0) -> list[Turn]:
        return [turn for turn in self.ended[after:] if isinstance(turn, Turn) and turn.status == "done"]

    def live(self) -> list[Turn]:
        checkpoint = self.checkpoint()
        return self.done(max(self.reset_seq(), checkpoint.covered_through_seq if checkpoint else 0))

    def head(self) -> Head:
        checkpoint, live = self.checkpoint(), self.live()
        return Head(
            scope=self.scope,
            agent=self.agent,
            created=self.created,
            updated=self.updated,
            last_seq=len(self.ended),
            reset_seq=self.reset_seq(),
            covered_through_seq=checkpoint.covered_through_seq if checkpoint else 0,
            turns=len(self.done(self.reset_seq())),
            live_turns=len(live),
            live_tokens=sum(turn.tokens for turn in live),
        )

    def claim(self, user: str) -> None:
        self.scope = replace(self.scope, user=user)
        self.ended = [replace(entry, scope=self.scope) for entry in self.ended]
        self.open = [replace(turn, scope=self.scope) for turn in self.open]


class _Room:
    """What the ports share."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.closed = False
        self.conversations: dict[tuple[str, str], _Conversation] = {}
        self.facts: dict[tuple[str, str], Fact] = {}
        self.pages: dict[tuple[str, str], PageDraft] = {}
        self.calls: dict[tuple[str, str], Call] = {}
        self.sessions: dict[tuple[str, str], session.SessionValue] = {}

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError

    def now(self) -> datetime:
        return utc(self.clock.now())

    def found(self, scope: Scope) -> _Conversation | None:
        self.check_open()
        conversation = self.conversations.get((scope.tenant, rules.conversation_of(scope)))
        if conversation is not None:
            rules.check_owner(scope, conversation.scope.user)
        return conversation

    def seen(self, scope: Scope) -> list[_Conversation]:
        self.check_open()
        return [
            conversation
            for (tenant, name), conversation in self.conversations.items()
            if tenant == scope.tenant
            and scope.conversation in (None, name)
            and rules.sees(scope, conversation.scope.user)
        ]

    def written(self, scope: Scope, agent: str | None = None) -> _Conversation:
        """The conversation, about to be written to: it gets its owner and its times."""
        now, conversation = self.now(), self.found(scope)
        if conversation is None:
            conversation = _Conversation(scope, now, now)
            self.conversations[scope.tenant, rules.conversation_of(scope)] = conversation
        if scope.user is not None and conversation.scope.user is None:
            conversation.claim(scope.user)
        conversation.agent = agent or conversation.agent
        conversation.updated = max(conversation.updated, now)
        return conversation

    def session(self, conversation: _Conversation) -> session.SessionValue:
        scope = conversation.scope
        key = scope.tenant, rules.conversation_of(scope)
        return self.sessions.setdefault(key, session.blank(scope))


class _Log(TurnLog):
    def __init__(self, room: _Room) -> None:
        self._room = room

    async def append(self, draft: TurnDraft) -> Turn:
        known = self._room.found(draft.scope)
        if known is not None and (stored := known.find(draft.id)) is not None:
            return rules.check_repeat(stored, draft)
        turn = self._turn(draft)
        conversation = self._room.written(draft.scope, draft.agent)
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
        step = _plain_step(change.step) if isinstance(change, AddStep) else None
        conversation = self._room.written(change.scope)
        place = next(i for i, other in enumerate(conversation.open) if other.id == turn.id)
        turn = conversation.open[place]
        if isinstance(change, AddStep) and step is not None:
            turn = replace(turn, steps=(*turn.steps, step), tokens=turn.tokens + change.tokens_added)
            conversation.open[place] = turn
            return turn
        del conversation.open[place]
        if isinstance(change, Complete):
            turn = replace(
                turn,
                assistant=change.assistant,
                assistant_tokens=change.assistant_tokens,
                tokens=turn.tokens + change.tokens_added,
            )
        return self._end(conversation, turn, "aborted" if isinstance(change, Abort) else "done")

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

    async def restore(self, entries: Sequence[Entry]) -> int:
        self._room.check_open()
        if not entries:
            return 0
        plan = rules.restoration(entries)
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
        )

    def _stamp(self, conversation: _Conversation) -> datetime:
        last = conversation.ended[-1].created if conversation.ended else None
        return rules.stamp(self._room.now(), last)

    def _end(self, conversation: _Conversation, turn: Turn, status: Literal["done", "aborted"]) -> Turn:
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
        conversation = self._room.written(plan.scope)
        scope, times = conversation.scope, [entry.created for entry in (*ended, *opened)]
        conversation.created, conversation.updated = utc(min(times)), utc(max(times))
        conversation.open = [replace(turn, scope=scope) for turn in opened]
        for entry in ended:
            conversation.ended.append(replace(entry, scope=scope, created=utc(entry.created)))
            self._tell_session(conversation, conversation.ended[-1])
        return len(ended) + len(opened)

    def _append_restored(self, turn: Turn) -> None:
        conversation = self._room.written(turn.scope)
        turn = replace(turn, scope=conversation.scope, seq=None, created=self._stamp(conversation))
        if turn.status == "open":
            conversation.open.append(turn)
        else:
            self._end(conversation, turn, turn.status)

    def _tell_session(self, conversation: _Conversation, entry: Entry) -> None:
        if isinstance(entry, Checkpoint):
            value = self._room.session(conversation)
            session.put_checkpoint(value, entry.id, entry.summary, entry.created)
        elif isinstance(entry, Reset):
            session.put_reset(self._room.session(conversation), entry.created)
        elif entry.status == "done":
            owner, agent = conversation.scope.user, conversation.agent
            told = session.SessionTurn(owner, agent, entry.assistant, entry.created)
            session.put_turn(self._room.session(conversation), told)


class _Reader(LogReader, TurnSource):
    def __init__(self, room: _Room) -> None:
        self._room = room

    async def view(self, request: ViewRequest) -> LogView:
        conversation = self._room.found(request.scope)
        open_turn: Turn | None = None
        if request.open_turn is not None:
            turns = conversation.open if conversation else []
            open_turn = next((turn for turn in turns if turn.id == request.open_turn), None)
            if open_turn is None:
                raise rules.no_turn(request.open_turn)
        if conversation is None:
            return LogView(rules.no_head(request.scope), None, ())
        taken: list[Turn] = []
        for turn in reversed(conversation.live()):
            total = sum(earlier.tokens for earlier in taken) + turn.tokens
            if len(taken) >= request.min_turns and total > request.budget_tokens:
                break
            taken.append(turn)
        return LogView(conversation.head(), conversation.checkpoint(), tuple(reversed(taken)), open_turn)

    async def entries(self, query: EntryQuery) -> list[Entry]:
        conversation = self._room.found(query.scope)
        chosen = [
            entry
            for entry in (conversation.entries() if conversation else [])
            if (entry.seq is None or entry.seq > query.after_seq) and _asked_for(entry, query)
        ]
        return chosen[max(0, len(chosen) - query.limit) :] if query.newest else chosen[: query.limit]

    async def heads(self, query: HeadQuery) -> list[Head]:
        seen = [conversation.head() for conversation in self._room.seen(query.scope)]
        seen.sort(key=lambda head: head.scope.conversation or "")
        seen.sort(key=lambda head: head.updated, reverse=True)
        return _behind(seen, lambda head: head.scope.conversation, query.after)[: query.limit]

    async def since(self, request: SinceRequest) -> list[Turn]:
        seen = {rules.conversation_of(found.scope): found for found in self._room.seen(request.scope)}
        turns = [turn for name in sorted(seen) for turn in seen[name].done(request.known.get(name, 0))]
        return turns[: request.limit]

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        seen = {rules.conversation_of(found.scope): found for found in self._room.seen(scope)}
        found: list[Neighbourhood] = []
        for ref in refs:
            turns = seen[ref.conversation].done() if ref.conversation in seen else []
            place = next((i for i, turn in enumerate(turns) if turn.seq == ref.seq), None)
            if place is not None:
                before = turns[place - 1] if place > 0 else None
                after = turns[place + 1] if place + 1 < len(turns) else None
                found.append(Neighbourhood(turns[place], before, after))
        return found


class _Facts(FactStore):
    def __init__(self, room: _Room) -> None:
        self._room = room

    async def put(self, fact: Fact) -> Fact:
        self._room.check_open()
        user, key = rules.user_of(fact.scope), (fact.scope.tenant, fact.id)
        if key in self._room.facts and self._room.facts[key].scope.user != user:
            raise ConflictError(f"Fact {fact.id!r} belongs to another user: give the new fact a new id.")
        self._room.facts[key] = _utc_fact(fact)
        return self._room.facts[key]

    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        self._room.check_open()
        facts = [
            fact
            for (tenant, _), fact in self._room.facts.items()
            if tenant == scope.tenant
            and scope.user in (None, fact.scope.user)
            and (retracted or fact.retracted is None)
        ]
        return sorted(facts, key=lambda fact: (fact.recorded, fact.id))

    async def retract(self, scope: Scope, fact_id: str, at: datetime) -> Fact:
        self._room.check_open()
        fact = self._room.facts.get((scope.tenant, fact_id))
        if fact is None or scope.user not in (None, fact.scope.user):
            raise NotFoundError(f"There is no fact {fact_id!r}.")
        if fact.retracted is None:
            fact = replace(fact, retracted=utc(at))
            self._room.facts[scope.tenant, fact_id] = fact
        return fact


class _Pages(PageStore):
    def __init__(self, room: _Room) -> None:
        self._room = room

    async def put(self, draft: PageDraft) -> Page:
        self._room.check_open()
        page = replace(draft.page, input=plain(draft.page.input), created=utc(draft.page.created))
        stored = self._room.pages.setdefault((page.scope.tenant, page.uuid), PageDraft(page, draft.text))
        if stored.text != draft.text or stored.page.scope.user != page.scope.user:
            raise ConflictError(
                f"Page {page.uuid!r} is there already with another text: give the new page a new uuid."
            )
        return stored.page

    async def load(self, scope: Scope, uuid: str) -> tuple[Page, str]:
        self._room.check_open()
        stored = self._room.pages.get((scope.tenant, uuid))
        if stored is None or (scope.user and stored.page.scope.user not in (None, scope.user)):
            raise HandleNotFoundError(
                f"There is no archived page {uuid!r} here: copy the uuid from its placeholder."
            )
        return stored.page, stored.text

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Page]:
        self._room.check_open()
        pages = [draft.page for draft in self._room.pages.values() if _within(draft.page.scope, scope)]
        pages.sort(key=lambda page: (page.created, page.uuid), reverse=True)
        return _behind(pages, lambda page: page.uuid, after)[:limit]


class _Calls(CallLog):
    def __init__(self, room: _Room) -> None:
        self._room = room

    async def add(self, calls: Sequence[Call], *, keep: int) -> None:
        self._room.check_open()
        for call in calls:
            written = replace(call, at=utc(call.at), options=plain(call.options), receipt=plain(call.receipt))
            self._room.calls.setdefault((call.scope.tenant, call.id), written)
        for tenant, name in {(call.scope.tenant, call.scope.conversation) for call in calls}:
            mine = [
                key
                for key, call in self._room.calls.items()
                if (call.scope.tenant, call.scope.conversation) == (tenant, name)
            ]
            for key in mine[: max(0, len(mine) - keep)]:
                del self._room.calls[key]

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Call]:
        self._room.check_open()
        newest = [call for call in reversed(self._room.calls.values()) if _within(call.scope, scope)]
        return _behind(newest, lambda call: call.id, after)[:limit]


class _Sessions(SessionStore):
    def __init__(self, room: _Room) -> None:
        self._room = room

    async def get(self, scope: Scope) -> JsonObject | None:
        self._room.found(scope)
        value = self._room.sessions.get((scope.tenant, rules.conversation_of(scope)))
        return None if value is None else plain(value)

    async def put(self, scope: Scope, value: JsonObject) -> None:
        fresh = plain(value)
        self._room.written(scope)
        self._room.sessions[scope.tenant, rules.conversation_of(scope)] = fresh


class InMemoryStore(Store):
    """A store in this process, gone with it."""

    def __init__(self, clock: Clock) -> None:
        self._room = _Room(clock)
        self.log = _Log(self._room)
        self.reader = self.source = _Reader(self._room)
        self.facts = _Facts(self._room)
        self.pages = _Pages(self._room)
        self.calls = _Calls(self._room)
        self.sessions = _Sessions(self._room)

    async def erase(self, scope: Scope) -> ErasureReceipt:
        room = self._room
        if scope.conversation is not None:
            room.found(scope)
            scope = Scope(scope.tenant, None, scope.conversation)
        gone = {
            key
            for key, found in room.conversations.items()
            if key[0] == scope.tenant
            and (scope.conversation is None or key[1] == scope.conversation)
            and (scope.user is None or found.scope.user == scope.user)
        }

        def hit(owned: Scope) -> bool:
            return _within(owned, scope) or (owned.tenant, owned.conversation) in gone

        entries = [entry for key in gone for entry in room.conversations[key].entries()]
        summaries = [key for key in gone if room.conversations[key].checkpoint() is not None]
        texts_before = {draft.text for draft in room.pages.values()}
        counts = {
            "ai_message": len(entries),
            "conversation_summaries": len(summaries),
            "facts": _drop(room.facts, lambda fact: hit(fact.scope)),
            "tool_result_archive": _drop(room.pages, lambda draft: hit(draft.page.scope)),
            "context_calls": _drop(room.calls, lambda call: hit(call.scope)),
            "sessions": sum(room.sessions.pop(key, None) is not None for key in gone),
            "watermarks": 0,
        }
        counts["blobs"] = len(texts_before - {draft.text for draft in room.pages.values()})
        counts["conversations"] = sum(room.conversations.pop(key, None) is not None for key in gone)
        return ErasureReceipt(scope, room.now(), counts)

    async def describe(self) -> JsonObject:
        self._room.check_open()
        return {"backend": "memory", "version": None, "place": None, "bytes": None, "read_only": False}

    async def close(self) -> None:
        self._room.closed = True


def _plain_step(step: Step) -> Step:
    return replace(step, input=plain(step.input))


def _plain_turn(turn: Turn) -> Turn:
    steps = tuple(_plain_step(step) for step in turn.steps)
    return replace(
        turn, steps=steps, metadata=plain(turn.metadata), at=utc(turn.at), created=utc(turn.created)
    )


def _utc_fact(fact: Fact) -> Fact:
    return replace(
        fact,
        valid_from=utc(fact.valid_from),
        valid_to=fact.valid_to and utc(fact.valid_to),
        recorded=utc(fact.recorded),
        retracted=fact.retracted and utc(fact.retracted),
    )


def _asked_for(entry: Entry, query: EntryQuery) -> bool:
    if isinstance(entry, Turn):
        return "turn" in query.kinds and entry.status in query.statuses
    return ("checkpoint" if isinstance(entry, Checkpoint) else "reset") in query.kinds


def _within(owned: Scope, scope: Scope) -> bool:
    return (
        owned.tenant == scope.tenant
        and scope.user in (None, owned.user)
        and scope.conversation in (None, owned.conversation)
    )


def _behind(items: Sequence[T], name: Callable[[T], str | None], after: str | None) -> Sequence[T]:
    if after is None:
        return list(items)
    place = next((i for i, item in enumerate(items) if name(item) == after), None)
    if place is None:
        raise NotFoundError(f"There is nothing to continue behind: {after!r} is not in this list.")
    return list(items[place + 1 :])


def _drop(table: dict[tuple[str, str], T], goes: Callable[[T], bool]) -> int:
    keys: Iterable[tuple[str, str]] = [key for key, item in table.items() if goes(item)]
    for key in keys:
        del table[key]
    return len(list(keys))
