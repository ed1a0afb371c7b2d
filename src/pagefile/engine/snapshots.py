"""The snapshot of a window: what is recorded with a call so that its window can be rebuilt from the log.

The messages themselves are not stored: the log has every turn, every page and every change of a fact. A
snapshot says how far each of them went, and holds the little that no log has: what was chosen by similarity,
pinned, or at hand in the process.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import lru_cache, partial
from itertools import takewhile
from operator import attrgetter
from typing import Any, TypeVar, cast

from pagefile import ports, records
from pagefile.content import Message
from pagefile.engine.log_queries import KINDS, heads_of, turn_in
from pagefile.engine.messages import as_of, steps_of
from pagefile.errors import HandleNotFoundError, NotFoundError, StoreError
from pagefile.settings import Settings
from pagefile.settings.model import CHANGED, RENAMED
from pagefile.tiers.base import WindowRequest, traced_rows
from pagefile.window.wording import ZH

#: Settings that decide what a window contains; the rest is in the arguments of `context()`.
DECIDING = (
    "language",
    "recall",
    "recall_max_share",
    "timezone",
    "facts.enabled",
    "facts.max_injection_tokens",
    "facts.max_context_turns",
    "facts.similarity_weight",
    "facts.confidence_weight",
    "facts.embeddings",
    "archive.threshold",
    "archive.strategy",
    "archive.running_tokens",
    "archive.low_water",
    "archive.inputs_from",
    "workspace.enabled",
    "workspace.max_tokens",
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """When and from what a window was made."""

    at: datetime
    #: The owner of the conversation.
    owner: str | None
    #: The state of the log: its last entry, the last reset, what the current checkpoint covers, and that
    #: checkpoint's `seq`.
    last_seq: int
    reset_seq: int
    covered_through_seq: int
    checkpoint_seq: int | None
    live_turns: int
    live_tokens: int
    #: The number of steps of the open turn.
    steps: int
    #: Safety data of the session, which has no history to read it from.
    profile: records.JsonObject | None
    settings: Mapping[str, records.JsonValue]
    #: What the tiers recorded.
    traces: Mapping[str, records.JsonValue]
    #: Hash of all messages.
    messages_hash: str
    #: The number of messages of the open turn; None for calls recorded before this field existed.
    messages: int | None = None
    #: The other open turns, oldest first: each id with the number of the user's messages; None for calls recorded before
    #: this field existed.
    running: Sequence[tuple[str, int]] | None = None

    def to_json(self) -> records.JsonObject:
        return {name: getattr(self, name) for name in _NAMES} | {"at": self.at.isoformat()}


_NAMES = tuple(known.name for known in fields(Snapshot))
#: What a snapshot has from the row of its conversation.
_OF_THE_LOG = ("last_seq", "reset_seq", "covered_through_seq", "live_turns", "live_tokens")


def snapshot_of(request: WindowRequest, settings: Settings, at: datetime, messages_hash: str) -> Snapshot:
    view, head = request.view, request.view.head
    return Snapshot(
        at=at,
        owner=head.scope.user,
        **{name: getattr(head, name) for name in _OF_THE_LOG},
        checkpoint_seq=None if view.checkpoint is None else view.checkpoint.seq,
        steps=0 if view.open_turn is None else len(view.open_turn.steps),
        messages=0 if view.open_turn is None else len(view.open_turn.messages),
        running=[(turn.id, len(turn.layout or ())) for turn in view.running],
        profile={key: value for key, value in (view.profile or {}).items() if key in ZH.safety} or None,
        settings={**_deciding(settings), "language": request.language, **_zone(request)},
        traces=request.traces,
        messages_hash=messages_hash,
    )


def _zone(request: WindowRequest) -> dict[str, records.JsonValue]:
    return {} if request.at is None else {"timezone": str(request.at.tzinfo)}


@lru_cache(maxsize=16)
def _deciding(settings: Settings) -> Mapping[str, records.JsonValue]:
    """The settings that decide what a window contains: the same for every window of a memory."""
    return {name: attrgetter(name)(settings) for name in DECIDING}


def present_names(settings: Mapping[str, records.JsonValue]) -> dict[str, records.JsonValue]:
    """Recorded settings by the names they have now: some had others when they were recorded."""
    return {RENAMED.get(name, name): value for name, value in settings.items() if name not in CHANGED}


def recorded_snapshot(call: records.WindowRecord) -> Snapshot | None:
    """The snapshot of a call; None for calls recorded before snapshots were introduced."""
    value = cast("Mapping[str, Any] | None", call.options.get(records.SNAPSHOT_KEY))
    if value is None:
        return None
    given: dict[str, Any] = {name: value.get(name) for name in _NAMES}
    given["at"] = datetime.fromisoformat(value["at"])
    given["settings"] = present_names(given["settings"])
    return Snapshot(**given)


#: Entries read at a time.
_BATCH = 200
#: Beyond the last turn of any conversation.
_END = 2**62

Rewrite = Callable[[records.Turn], Awaitable[records.Turn]]
R = TypeVar("R", records.Turn, ports.TurnTerms)


async def _unchanged(turn: records.Turn) -> records.Turn:
    return turn


async def _refused(self: object, *args: object, **kwargs: object) -> Any:
    """In place of the verbs that write, and of those that no window reads with."""
    raise StoreError("A window that is being rebuilt reads the past, and writes nothing.")


class PastStore(ports.Store):
    """The ports as they were then. Only what a window reads is supported."""

    def __init__(self, store: ports.Store, reader: "PastReader") -> None:
        # What a window reads of the other ports never changes; nothing is written, since no turn is absorbed
        # and no worker runs.
        for port in ports.Store.__annotations__:
            setattr(self, port, getattr(store, port))
        self.reader = reader
        self.ends = _Ends(store.reader, reader.scope, reader.snapshot)
        self.source = _PastSource(store.source, self.ends)
        self.terms = _PastTerms(store.terms, self.ends)
        self.facts = _PastFacts(store.facts, reader.snapshot)
        self.page_keeper = _PastPages(store.page_keeper, reader.snapshot)
        self.page_index = _PastPageIndex(store.page_index, store.page_keeper, reader.snapshot)

    erase = describe = _refused

    async def close(self) -> None:
        """The underlying store stays open."""


# -- the log -----------------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class PastReader(ports.LogReader):
    now: ports.LogReader
    scope: records.Scope
    snapshot: Snapshot
    #: The turn that was open.
    turn_id: str | None
    #: Applied to a turn before a window sees it, if other settings would have stored it differently.
    rewrite: Rewrite = _unchanged

    async def epoch(self, scope: records.Scope | None = None) -> int:
        return await self.now.epoch(scope)

    owner = heads = matching = located = _refused

    async def entries(self, query: ports.EntryQuery) -> list[records.Entry]:
        """The log as far as it went."""
        return [one for one in await self.now.entries(query) if (one.seq or _END) <= self.snapshot.last_seq]

    async def view(self, request: ports.ViewRequest) -> ports.LogView:
        taken: list[records.Turn] = []
        tokens = rewritten = 0
        async for was in self._live():
            turn = await self.rewrite(was)
            tokens += turn.tokens
            if tokens > request.budget_tokens and len(taken) >= request.min_turns:
                break
            taken.append(turn)
            rewritten += turn.tokens - was.tokens
        then = {name: getattr(self.snapshot, name) for name in _OF_THE_LOG}
        then["live_tokens"] += rewritten
        times, live = (records.NEVER, self.snapshot.at), self.snapshot.live_turns
        return ports.LogView(
            head=records.ConversationInfo(self.scope, None, *times, turns=live, **then),
            checkpoint=await self._checkpoint(),
            turns=tuple(reversed(taken)),
            open_turn=None if self.turn_id is None else await self._open_turn(self.turn_id),
            running=tuple([turn async for turn in self._running()]),
            profile=self.snapshot.profile,
        )

    async def _live(self) -> AsyncIterator[records.Turn]:
        """The turns that were live then, newest first. `seq` has no gaps, so a slice can be computed by counting."""
        least = max(self.snapshot.reset_seq, self.snapshot.covered_through_seq)
        end, ended = self.snapshot.last_seq, ports.EntryQuery(self.scope, statuses=ports.ENDED)
        while end > least:
            begin = max(least, end - _BATCH)
            for turn in reversed(await self.now.entries(replace(ended, after_seq=begin, limit=end - begin))):
                if isinstance(turn, records.Turn) and (turn.seq or _END) <= end and turn.counts:
                    yield turn.spoken
            end = begin

    async def _checkpoint(self) -> records.Checkpoint | None:
        seq = self.snapshot.checkpoint_seq
        if seq is None:
            return None
        query = ports.EntryQuery(self.scope, kinds=frozenset({"checkpoint"}), after_seq=seq - 1, limit=1)
        found = await self.now.entries(query)
        return next((one for one in found if isinstance(one, records.Checkpoint) and one.seq == seq), None)

    async def _open_turn(self, turn_id: str) -> records.Turn:
        found = await turn_then(self.now, self.scope, turn_id, self.snapshot)
        if found is None:
            raise NotFoundError(f"Turn {turn_id!r}, for which this window was made, is gone.")
        return await self.rewrite(found)

    async def _running(self) -> AsyncIterator[records.Turn]:
        """What the user had said in the other open turns; those that were erased since are left out."""
        behind = _behind(self.scope, self.snapshot)
        for turn_id, heard in self.snapshot.running or ():
            if (found := await turn_in(self.now, behind, turn_id)) is not None:
                then = replace(found, seq=None, status="open")
                yield replace(then, layout=(then.spoken.layout or ())[:heard] or None).spoken


# -- facts and pages ---------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _PastFacts(ports.FactStore):
    now: ports.FactStore
    snapshot: Snapshot

    async def list(self, scope: records.Scope, *, retracted: bool = False) -> list[records.Fact]:
        """The facts as they were: the current ones, with every later change undone."""
        facts = {fact.id: fact for fact in await self.now.list(scope, retracted=True)}
        number = self.snapshot.traces.get("facts")
        known = number if isinstance(number, int) else None
        for revision in reversed(await self.now.revisions(scope, after=known or 0)):
            if known is None and revision.at <= self.snapshot.at:
                break  # facts were not read then, so no revision was recorded: go by the time
            revision.take_back(facts)
        held = sorted(facts.values(), key=lambda fact: (fact.recorded, fact.id))
        return [fact for fact in held if retracted or fact.retracted is None]

    async def changed(self, scope: records.Scope) -> tuple[int, int]:
        return 0, 0

    get = revisions = owners = revise = restore = _refused


@dataclass(eq=False, slots=True)
class _PastPages(ports.PageKeeper):
    now: ports.PageKeeper
    snapshot: Snapshot

    async def pinned(self, scope: records.Scope) -> list[records.Page]:
        found: list[records.Page] = []
        for uuid in traced_rows(self.snapshot.traces.get("pinned")):
            with suppress(HandleNotFoundError):
                found.append(await self.now.page(scope, uuid))
        return found

    async def page(self, scope: records.Scope, uuid: str) -> records.Page:
        return await self.now.page(scope, uuid)

    async def named(self, scope: records.Scope, uuids: Sequence[str]) -> list[records.Page]:
        return await self.now.named(scope, uuids)

    equal_call = holding = tenants = pin = touch = due = purge = erase = _refused


@dataclass(eq=False, slots=True)
class _PastPageIndex(ports.PageIndex):
    """With other settings, a window finds other pages: of those there were."""

    now: ports.PageIndex
    keeper: ports.PageKeeper
    snapshot: Snapshot

    async def uuids(self, scope: records.Scope) -> list[str]:
        pages = await self.keeper.named(scope, await self.now.uuids(scope))
        return [page.uuid for page in pages if page.created <= self.snapshot.at]

    async def read(self, scope: records.Scope, uuids: Sequence[str]) -> list[ports.PageTerms]:
        return await self.now.read(scope, uuids)

    async def embeddings(
        self, scope: records.Scope, model: ports.EmbeddingModel
    ) -> Mapping[str, ports.Vector]:
        return await self.now.embeddings(scope, model)

    async def write(self, scope: records.Scope, uuid: str, terms: Sequence[str]) -> None:
        """A window segments a page that nobody has segmented yet; a replay keeps that to itself."""

    embed = _refused


# -- recall ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Ends:
    """How far each of the user's conversations went at that time; later entries are invisible."""

    reader: ports.LogReader
    scope: records.Scope
    snapshot: Snapshot
    ends: dict[str, int] | None = None

    async def known(self) -> Mapping[str, int]:
        """The last `seq` of each conversation, read once."""
        if self.ends is None:
            home = replace(self.scope, conversation=None) if self.scope.user else self.scope
            self.ends = {
                head.scope.conversation or "": await self._end(head)
                async for head in heads_of(self.reader, home)
            }
        return self.ends

    async def _end(self, head: records.ConversationInfo) -> int:
        """The last entry of a conversation that existed then, by binary search: entries are written in order of time."""
        if head.scope.conversation == self.scope.conversation:
            return self.snapshot.last_seq
        if head.updated <= self.snapshot.at:
            return head.last_seq
        there, gone = 0, head.last_seq + 1
        while gone - there > 1:
            middle = (there + gone) // 2
            query = ports.EntryQuery(head.scope, frozenset(KINDS), after_seq=middle - 1, limit=1)
            found = await self.reader.entries(query)
            if not found or found[0].created > self.snapshot.at:
                gone = middle
            else:
                there = middle
        return there

    async def since(
        self,
        request: ports.SinceRequest,
        read: Callable[[ports.SinceRequest], Awaitable[list[R]]],
        place: Callable[[R], tuple[str, int]],
    ) -> list[R]:
        """Up to the requested number of rows, skipping those that did not exist then."""
        ends, known = await self.known(), dict(request.known)
        found: list[R] = []
        while len(found) < request.limit:
            rows = await read(replace(request, known=known))
            for row in rows:
                name, seq = place(row)
                if seq > ends.get(name, 0):
                    known[name] = _END
                elif len(found) < request.limit:
                    found.append(row)
                    known[name] = seq
            if len(rows) < request.limit:
                break
        return found


@dataclass(eq=False, slots=True)
class _PastSource(ports.TurnSource):
    now: ports.TurnSource
    ends: _Ends

    async def since(self, request: ports.SinceRequest) -> list[records.Turn]:
        read = self.now.since
        return await self.ends.since(request, read, lambda one: (one.scope.conversation or "", one.seq or 0))

    async def around(self, scope: records.Scope, refs: Sequence[ports.TurnRef]) -> list[ports.Neighbourhood]:
        return await self.now.around(scope, refs)

    async def at(self, scope: records.Scope, refs: Sequence[ports.TurnRef]) -> list[records.Turn]:
        return await self.now.at(scope, refs)


@dataclass(eq=False, slots=True)
class _PastTerms(ports.TermStore):
    now: ports.TermStore
    ends: _Ends

    async def since(self, request: ports.SinceRequest, analyzer: str) -> list[ports.TurnTerms]:
        read = partial(self.now.since, analyzer=analyzer)
        return await self.ends.since(request, read, lambda row: (row.conversation, row.seq))

    write = _refused


# -- open turns --------------------------------------------------------------------------------------------------------


def _behind(scope: records.Scope, snapshot: Snapshot) -> ports.EntryQuery:
    """Where the turns are that were open when the log ended there: they ended after that, or are still open."""
    return ports.EntryQuery(scope, after_seq=snapshot.last_seq, limit=_BATCH)


async def turn_then(
    reader: ports.LogReader, scope: records.Scope, turn_id: str, snapshot: Snapshot
) -> records.Turn | None:
    """The turn a window was made for, with the messages and steps it had; None if it is gone."""
    found = await turn_in(reader, _behind(scope, snapshot), turn_id)
    if found is None:
        return None
    then = replace(found, seq=None, status="open", assistant=None, assistant_tokens=0)
    if found.layout is None:
        return replace(then, steps=found.steps[: snapshot.steps])
    messages = snapshot.messages
    return as_of(then, _likely(found.layout, snapshot.steps) if messages is None else messages)


def _likely(layout: Sequence[Message], steps: int) -> int:
    """A guess at an unrecorded number of messages, from `steps`: models are called once results are in."""
    named = (place for place, one in enumerate(layout, 1) if min(steps_of(one), default=steps) < steps)
    known = max(named, default=0)
    return known + sum(1 for _ in takewhile(lambda one: one.role != "assistant", layout[known:]))
