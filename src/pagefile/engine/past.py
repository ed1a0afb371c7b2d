"""A read-only view of a store at a past moment, for rebuilding a window.

Turns, checkpoints and changes of facts are immutable once written, so the past is read from the same tables:
up to the `seq` in the log, and up to the revision, that the moment names.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from typing import Literal, TypeVar

from pagefile.content import Message
from pagefile.engine.messages import as_of, steps_of
from pagefile.engine.moments import Moment, listed
from pagefile.errors import HandleNotFoundError, NotFoundError, StoreError
from pagefile.ports import (
    EntryQuery,
    FactStore,
    HeadQuery,
    LogReader,
    LogView,
    Neighbourhood,
    PageKeeper,
    Part,
    PurgeRequest,
    SinceRequest,
    Store,
    TermStore,
    TurnRef,
    TurnSource,
    TurnTerms,
    ViewRequest,
)
from pagefile.records import (
    NEVER,
    Checkpoint,
    Entry,
    ErasureReceipt,
    Fact,
    Head,
    JsonObject,
    Page,
    Revision,
    Scope,
    Turn,
)

#: Entries, and conversations, read at a time.
_BATCH = 200
_HEADS = 500
#: Beyond the last turn of any conversation.
_END = 2**62

Rewrite = Callable[[Turn], Awaitable[Turn]]
R = TypeVar("R", Turn, TurnTerms)


class PastStore(Store):
    """The ports as they were then. Only what a window reads is supported."""

    def __init__(self, store: Store, scope: Scope, moment: Moment, turn_id: str | None) -> None:
        self._store = store
        #: The conversation, with its owner at the time.
        self.scope = Scope(scope.tenant, moment.owner, scope.conversation)
        self._moment = moment
        self._turn_id = turn_id
        self._ends: dict[str, int] | None = None
        #: Applied to a turn before a window sees it: the identity, unless other settings would have stored
        #: the turn differently.
        self.rewrite: Rewrite = _as_it_is
        self.reader = _PastReader(self, store)
        self.source = _PastSource(self, store)
        self.terms = _PastTerms(self)
        self.facts = _PastFacts(self, store)
        self.page_keeper = _PastPages(self, store)
        # What a window reads of these never changes; nothing is written, since no turn is absorbed and no
        # worker runs.
        self.pages = store.pages
        self.page_index = store.page_index
        self.log = store.log
        self.media = store.media
        self.calls = store.calls
        self.sessions = store.sessions
        self.watermarks = store.watermarks
        self.keys = store.keys
        self.items = store.items
        self.erasures = store.erasures
        self.media = store.media

    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        raise StoreError("What was cannot be erased: erase what is, with `memory.forget()`.")

    async def describe(self) -> JsonObject:
        return await self._store.describe()

    async def close(self) -> None:
        """The underlying store stays open."""

    # -- the log ------------------------------------------------------------------------------------------------------

    async def view(self, request: ViewRequest) -> LogView:
        taken: list[Turn] = []
        tokens = rewritten = 0
        async for was in self._live():
            turn = await self.rewrite(was)
            tokens += turn.tokens
            if tokens > request.budget_tokens and len(taken) >= request.min_turns:
                break
            taken.append(turn)
            rewritten += turn.tokens - was.tokens
        return LogView(
            head=self._head(rewritten),
            checkpoint=await self._checkpoint(),
            turns=tuple(reversed(taken)),
            open_turn=None if self._turn_id is None else await self._open_turn(self._turn_id),
            profile=self._moment.profile,
        )

    def _head(self, tokens: int) -> Head:
        moment = self._moment
        return Head(
            scope=self.scope,
            agent=None,
            created=NEVER,
            updated=moment.at,
            last_seq=moment.last_seq,
            reset_seq=moment.reset_seq,
            covered_through_seq=moment.covered_through_seq,
            turns=moment.live_turns,
            live_turns=moment.live_turns,
            live_tokens=moment.live_tokens + tokens,
        )

    async def _live(self) -> AsyncIterator[Turn]:
        """The done turns that were live then, newest first. `seq` has no gaps, so a slice can be computed by counting."""
        least = max(self._moment.reset_seq, self._moment.covered_through_seq)
        end = self._moment.last_seq
        while end > least:
            begin = max(least, end - _BATCH)
            for turn in reversed(await self.turns(begin, end)):
                yield turn
            end = begin

    async def turns(self, after: int, through: int) -> list[Turn]:
        """The done turns of a slice of the log, oldest first."""
        query = EntryQuery(self.scope, statuses=frozenset({"done"}), after_seq=after, limit=through - after)
        found = await self._store.reader.entries(query)
        return [turn for turn in found if isinstance(turn, Turn) and (turn.seq or _END) <= through]

    async def _checkpoint(self) -> Checkpoint | None:
        seq = self._moment.checkpoint_seq
        if seq is None:
            return None
        query = EntryQuery(self.scope, kinds=frozenset({"checkpoint"}), after_seq=seq - 1, limit=1)
        found = await self._store.reader.entries(query)
        return next((one for one in found if isinstance(one, Checkpoint) and one.seq == seq), None)

    async def _open_turn(self, turn_id: str) -> Turn:
        """The turn that was open then, in its state at the time."""
        found = await turn_then(self._store.reader, self.scope, turn_id, self._moment)
        if found is None:
            raise NotFoundError(f"Turn {turn_id!r}, for which this window was made, is gone.")
        return await self.rewrite(found)

    # -- facts and pages ----------------------------------------------------------------------------------------------

    async def facts_then(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        """The facts as they were: the current ones, with every later change undone."""
        facts = {fact.id: fact for fact in await self._store.facts.list(scope, retracted=True)}
        number = self._moment.traces.get("facts")
        known = number if isinstance(number, int) else None
        for revision in reversed(await self._store.facts.revisions(scope, after=known or 0)):
            if known is None and revision.at <= self._moment.at:
                break  # facts were not read then, so no revision was recorded: go by the time
            for before, after in zip(revision.before, revision.after, strict=True):
                if before is None:
                    facts.pop(after.id, None)
                else:
                    facts[before.id] = before
        held = sorted(facts.values(), key=lambda fact: (fact.recorded, fact.id))
        return [fact for fact in held if retracted or fact.retracted is None]

    async def pinned(self, scope: Scope) -> list[Page]:
        found: list[Page] = []
        for uuid in listed(self._moment.traces.get("pinned")):
            try:
                found.append(await self._store.page_keeper.page(scope, uuid))
            except HandleNotFoundError:
                continue
        return found

    # -- recall -------------------------------------------------------------------------------------------------------

    async def ends(self) -> Mapping[str, int]:
        """The last `seq` of each of the user's conversations at that time; later entries are invisible."""
        if self._ends is None:
            self._ends = await self._found_ends()
        return self._ends

    async def turns_since(self, request: SinceRequest) -> list[Turn]:
        return await self._since(
            request, self._store.source.since, lambda turn: (turn.scope.conversation or "", turn.seq or 0)
        )

    async def terms_since(self, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
        async def read(asked: SinceRequest) -> list[TurnTerms]:
            return await self._store.terms.since(asked, analyzer)

        return await self._since(request, read, lambda row: (row.conversation, row.seq))

    async def _since(
        self,
        request: SinceRequest,
        read: Callable[[SinceRequest], Awaitable[list[R]]],
        place: Callable[[R], tuple[str, int]],
    ) -> list[R]:
        """Up to the requested number of rows, skipping those that did not exist then."""
        ends, known = await self.ends(), dict(request.known)
        found: list[R] = []
        while len(found) < request.limit:
            rows = await read(SinceRequest(request.scope, known, request.limit))
            for row in rows:
                name, seq = place(row)
                if seq <= ends.get(name, 0) and len(found) < request.limit:
                    found.append(row)
                    known[name] = seq
                elif len(found) < request.limit:
                    known[name] = _END
            if len(rows) < request.limit:
                break
        return found

    async def _found_ends(self) -> dict[str, int]:
        home = self.scope if self.scope.user is None else Scope(self.scope.tenant, self.scope.user)
        ends: dict[str, int] = {}
        after: str | None = None
        while True:
            heads = await self._store.reader.heads(HeadQuery(home, _HEADS, after))
            for head in heads:
                ends[head.scope.conversation or ""] = await self._end(head)
            if len(heads) < _HEADS:
                return ends
            after = heads[-1].scope.conversation

    async def _end(self, head: Head) -> int:
        """The last entry of a conversation that existed then, by binary search: entries are written in order of time."""
        if head.scope.conversation == self.scope.conversation:
            return self._moment.last_seq
        if head.updated <= self._moment.at:
            return head.last_seq
        there, gone = 0, head.last_seq + 1
        while gone - there > 1:
            middle = (there + gone) // 2
            created = await self._created(head.scope, middle)
            if created is None or created > self._moment.at:
                gone = middle
            else:
                there = middle
        return there

    async def _created(self, scope: Scope, seq: int) -> datetime | None:
        every: frozenset[Literal["turn", "checkpoint", "reset"]] = frozenset({"turn", "checkpoint", "reset"})
        query = EntryQuery(scope, kinds=every, after_seq=seq - 1, limit=1)
        found = await self._store.reader.entries(query)
        return found[0].created if found else None


class _PastReader(LogReader):
    def __init__(self, past: PastStore, store: Store) -> None:
        self._past = past
        self._now = store.reader

    async def epoch(self, scope: Scope | None = None) -> int:
        return await self._now.epoch(scope)

    async def view(self, request: ViewRequest) -> LogView:
        return await self._past.view(request)

    async def owner(self, scope: Scope) -> Scope | None:
        return await self._now.owner(scope)

    async def entries(self, query: EntryQuery) -> list[Entry]:
        return await self._now.entries(query)

    async def heads(self, query: HeadQuery) -> list[Head]:
        return await self._now.heads(query)


class _PastSource(TurnSource):
    def __init__(self, past: PastStore, store: Store) -> None:
        self._past = past
        self._now = store.source

    async def since(self, request: SinceRequest) -> list[Turn]:
        return await self._past.turns_since(request)

    async def around(self, scope: Scope, refs: Sequence[TurnRef]) -> list[Neighbourhood]:
        return await self._now.around(scope, refs)


class _PastTerms(TermStore):
    def __init__(self, past: PastStore) -> None:
        self._past = past

    async def since(self, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
        return await self._past.terms_since(request, analyzer)

    async def write(
        self, scope: Scope, terms: Sequence[TurnTerms], analyzer: str, *, epoch: int | None = None
    ) -> None:
        raise _read_only()


class _PastFacts(FactStore):
    def __init__(self, past: PastStore, store: Store) -> None:
        self._past = past
        self._now = store.facts

    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        return await self._past.facts_then(scope, retracted=retracted)

    async def changed(self, scope: Scope) -> tuple[int, int]:
        return 0, 0

    async def get(self, scope: Scope, fact_id: str) -> Fact:
        return await self._now.get(scope, fact_id)

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        return await self._now.revisions(scope, after=after)

    async def owners(self, tenant: str) -> Sequence[Scope]:
        return await self._now.owners(tenant)

    async def revise(self, *args: object, **kwargs: object) -> Revision:
        raise _read_only()

    async def restore(self, *args: object, **kwargs: object) -> tuple[int, int]:
        raise _read_only()


class _PastPages(PageKeeper):
    def __init__(self, past: PastStore, store: Store) -> None:
        self._past = past
        self._now = store.page_keeper

    async def pinned(self, scope: Scope) -> list[Page]:
        return await self._past.pinned(scope)

    async def page(self, scope: Scope, uuid: str) -> Page:
        return await self._now.page(scope, uuid)

    async def equal_call(self, scope: Scope, call_hash: str, since: datetime) -> Page | None:
        return await self._now.equal_call(scope, call_hash, since)

    async def tenants(self) -> list[str]:
        return await self._now.tenants()

    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        raise _read_only()

    async def touch(self, scope: Scope, uuids: Sequence[str], at: datetime) -> None:
        raise _read_only()

    async def purge(self, request: PurgeRequest) -> list[Page]:
        raise _read_only()

    async def erase(self, scope: Scope, uuids: Sequence[str]) -> int:
        raise _read_only()


def _read_only() -> StoreError:
    return StoreError("A window that is made again reads what was, and writes nothing.")


async def turn_then(reader: LogReader, scope: Scope, turn_id: str, moment: Moment) -> Turn | None:
    """The turn a window was made for, with the messages and steps it had; None if it is gone."""
    found = await _turn_behind(reader, scope, turn_id, moment.last_seq)
    if found is None:
        return None
    then = replace(found, seq=None, status="open", assistant=None, assistant_tokens=0)
    if found.layout is None:
        return replace(then, steps=found.steps[: moment.steps])
    return as_of(then, _likely(found.layout, moment.steps) if moment.messages is None else moment.messages)


def _likely(layout: Sequence[Message], steps: int) -> int:
    """A guess at an unrecorded number of messages, from `steps`: models are called once results are in."""
    named = (place for place, one in enumerate(layout, 1) if min(steps_of(one), default=steps) < steps)
    known = max(named, default=0)
    return known + sum(1 for _ in takewhile(lambda one: one.role != "assistant", layout[known:]))


async def _turn_behind(reader: LogReader, scope: Scope, turn_id: str, seq: int) -> Turn | None:
    """A turn that was open when the log ended at `seq`: it ended after that, or is still open."""
    while True:
        query = EntryQuery(scope, after_seq=seq, limit=_BATCH)
        entries = [one for one in await reader.entries(query) if isinstance(one, Turn)]
        found = next((turn for turn in entries if turn.id == turn_id), None)
        if found is not None or len(entries) < _BATCH or entries[-1].seq is None:
            return found
        seq = entries[-1].seq


async def _as_it_is(turn: Turn) -> Turn:
    return turn
