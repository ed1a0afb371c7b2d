"""Keeps what recall needs in step with the log, in rounds started by the worker, and rebuilds it on request.

Writing has priority: while turns keep coming in, only a small share of the time is used. What is left when
the process ends or dies is found by the next one from the watermarks. Recall by meaning may fail: recall by word
continues, the failure is reported, and it recovers by itself.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

import anyio
import anyio.lowlevel

from pagefile import ports
from pagefile.backoff import Backoff
from pagefile.errors import ErasedError, PagefileError
from pagefile.records import JsonObject, Scope, Turn
from pagefile.tiers.base import Backlog, RetryLater, guarded
from pagefile.tiers.loading import Loading
from pagefile.tiers.turn_index import Derived, Plan, Terms, TurnVectors, tier_of

logger = logging.getLogger("pagefile")

#: The first and the longest pause after a failure.
FIRST_REST_S = 1.0
LONGEST_REST_S = 60.0


class Health:
    """Whether vectors can be made and searched now. A failure is logged once, counted, and followed by a pause."""

    def __init__(self, meter: ports.Meter, now: Callable[[], float] = monotonic) -> None:
        self._meter = meter
        self._backoff = Backoff(first_s=FIRST_REST_S, longest_s=LONGEST_REST_S, now=now)
        #: Why it does not work; None if it does.
        self.trouble: str | None = None

    @property
    def resting(self) -> bool:
        return self.trouble is not None and self._backoff.left_s > 0

    @property
    def rest_s(self) -> float:
        return self._backoff.left_s

    def failed(self, error: Exception) -> None:
        known = isinstance(error, (PagefileError, TimeoutError)) and bool(str(error))
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        self._meter.count("pagefile_degraded_total", tier="meaning")
        if reason != self.trouble:
            foreign = None if isinstance(error, (PagefileError, TimeoutError)) else error
            logger.warning("Recall uses words only: %s", reason, exc_info=foreign)
        self.trouble = reason
        self._backoff.failed()

    def well(self) -> None:
        if self.trouble is not None:
            logger.info("Recall uses meaning again.")
        self.trouble = None
        self._backoff.succeeded()


#: While turns keep coming in, pause between batches for this many times the duration of a batch.
REST_SHARE = 4.0
#: A round that takes longer than this is far behind: it pauses no more.
PATIENT_S = 5.0
#: Turns per batch. An erasure, or embedding a question, waits for one batch at most.
BATCH = 32
#: Conversations handled together.
_PAGE = 1000
_ALL = 10_000_000
#: A tier name without watermarks.
_NONE = "none"
#: How soon the log is read again after a failure of the store.
_RETRY_S = 30.0

#: Called with the number of log entries read and the total.
Progress = Callable[[int, int], None]


@dataclass(eq=False, repr=False, slots=True)
class Derivation:
    """Computes terms and vectors for the turns of the log."""

    source: ports.TurnSource
    log: ports.LogReader
    marks: ports.Watermarks
    terms: Terms
    vectors: TurnVectors | None
    health: Health
    meter: ports.Meter
    loading: Loading = field(default_factory=Loading)
    #: Vectors were skipped in a round, or never checked.
    _owed: bool = field(default=True, init=False)
    #: Vectors were made or found here: the embedder is loaded.
    warm: bool = field(default=False, init=False)
    _told: bool = field(default=False, init=False)
    #: Held during a batch: an erasure waits for it, or erased data would come back.
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _erased: int = field(default=0, init=False)

    # -- a round --------------------------------------------------------------------------------------------------------

    async def catch_up(self, backlog: Backlog) -> None:
        """Compute what is missing for the conversations that were written to, or for all."""
        due: list[float] = []

        def terms_failed(error: Exception) -> None:
            level = logging.DEBUG if self._told else logging.WARNING
            foreign = None if isinstance(error, PagefileError) else error
            logger.log(level, "could not keep the terms of turns: %s", error, exc_info=foreign)
            self._told = True
            due.append(_RETRY_S)

        with guarded(terms_failed):
            await self._follow(self.terms, backlog, sweep=backlog.sweep)
            self._told = False
        rest_s = await self._make_vectors(backlog)
        due += [] if rest_s is None else [rest_s]
        if due:
            raise RetryLater(min(due))

    async def _make_vectors(self, backlog: Backlog) -> float | None:
        """Returns the seconds until the next attempt if this one failed."""
        if self.vectors is None:
            return None
        if self.health.resting and not backlog.hurried:
            self._owed = True
            return self.health.rest_s
        ready, sweep = self.vectors.prepared, backlog.sweep or self._owed
        self._owed = True
        with guarded(self.health.failed):
            await self.vectors.prepare()
            made = await self._follow(self.vectors, backlog, sweep=sweep)
            if dropped := await self.vectors.drop_replaced():
                logger.info(
                    "vectors were made again by %s; %d older ones are gone",
                    self.vectors.embedder.name,
                    dropped,
                )
            if not self.warm and (made or self.vectors.any):
                await self.vectors.embedder.ready()
                self.warm = True
            self._owed = False
            if made:
                self.meter.count("pagefile_indexed_turns_total", made)
            if made or not ready:
                self.health.well()
            return None
        return self.health.rest_s

    async def _follow(self, derived: Derived, backlog: Backlog, *, sweep: bool) -> int:
        """Read on in the conversations that were written to, or in all of them; returns the number of turns."""
        if not sweep and len(backlog.scopes) <= _PAGE:

            async def written_to() -> list[ports.Behind]:
                known = [(scope, await self.marks.known(scope, derived.tier)) for scope in backlog.scopes]
                return [
                    ports.Behind(scope, marks.get(scope.conversation or "", 0), 0) for scope, marks in known
                ]

            return await self._read(derived, await self._plan(written_to), backlog)
        made = 0
        before: list[ports.Behind] = []
        find = partial(self.marks.behind, derived.tier, limit=_PAGE)
        while (behind := list((plan := await self._plan(find)).behind)) not in ([], before):
            before = behind
            made += await self._read(derived, plan, backlog)
            if len(behind) < _PAGE and plan.erased == self._erased:
                # All done; what is written meanwhile is left to the next round, or this one might never end.
                break
        return made

    async def _read(self, derived: Derived, plan: Plan, backlog: Backlog) -> int:
        made, started = 0, monotonic()
        while plan.behind:
            began = monotonic()
            made += await self._batch(derived, plan)
            if backlog.busy() and not backlog.hurried and began < started + PATIENT_S:
                await backlog.pause(REST_SHARE * (monotonic() - began))
            else:
                await anyio.lowlevel.checkpoint()
        return made

    async def _plan(self, find: Callable[[], Awaitable[Sequence[ports.Behind]]]) -> Plan:
        """What is to be read, and the epoch before that was determined."""
        erased, epoch = self._erased, await self.log.epoch()
        return Plan(await find(), erased, epoch)

    async def _batch(self, derived: Derived, plan: Plan) -> int:
        """Process about `BATCH` more turns; returns the exact number. The plan is empty once everything is read."""
        async with self._lock:
            if plan.erased != self._erased:
                plan.clear()
            read: list[Turn] = []
            reached: dict[Scope, int] = {}
            begun: list[ports.Behind] = []
            while plan.behind and len(read) < BATCH:
                begun.append(one := plan.pop())
                limit = BATCH - len(read)
                request = ports.SinceRequest(one.scope, {one.scope.conversation or "": one.seq}, limit)
                more = await self.source.since(request)
                read += more
                seq = (more[-1].seq or 0) if more else one.seq
                if len(more) == limit:
                    plan.push(ports.Behind(one.scope, seq, one.last_seq))
                # Checkpoints, resets and aborted turns may follow the last turn.
                seq = seq if len(more) == limit else max(seq, one.last_seq)
                if seq > one.seq:
                    reached[one.scope] = seq
            epoch = plan.epoch_of(begun)
            try:
                await self._keep(derived, read, reached, epoch)
            except ErasedError:
                await self._give_up(plan, begun)
                return 0
        return len(read)

    async def _keep(
        self, derived: Derived, read: Sequence[Turn], reached: Mapping[Scope, int], epoch: int
    ) -> None:
        """Store the results, then the watermarks; nothing if one of the conversations was erased since `epoch`."""
        kept = False
        try:
            if read:
                await derived.take(read, epoch=epoch)
            for scope, seq in reached.items():
                await self.marks.advance(scope, derived.tier, seq, epoch=epoch)
            kept = True
        finally:
            # Refused, cancelled or unreachable: the results stored so far will not be revisited.
            if not kept:
                with anyio.CancelScope(shield=True):
                    await derived.doubt(epoch)

    async def _give_up(self, plan: Plan, begun: Sequence[ports.Behind]) -> None:
        """Another process erased one of the conversations: read what is left of them from the beginning."""
        epoch = await self.log.epoch()
        for one in begun:
            # It may have a new owner, and it may be shorter.
            owner = await self.log.owner(one.scope)
            query = None if owner is None else ports.ConversationQuery(owner, limit=1)
            heads = () if query is None else await self.log.heads(query)
            plan.take_back(one, [ports.Behind(head.scope, 0, head.last_seq) for head in heads], epoch)

    async def describe(self) -> JsonObject:
        """What makes vectors, where they are, how many there are, and the current problem, if any; calls no model."""
        made = self.vectors
        if made is None:
            return {"by": "words", "trouble": None}
        try:
            collections, trouble = await made.index.collections(), self.health.trouble
        except PagefileError as error:
            collections, trouble = (), str(error)
        known = bool(made.embedder.dimension)
        return {
            "by": "words and meaning",
            "embedder": made.embedder.model.key if known else made.embedder.name,
            "home": made.index.name,
            "vectors": {collection.model.key: collection.vectors for collection in collections},
            #: Conversations not fully read, at most a thousand.
            "behind": len(await self.marks.behind(made.tier, limit=_PAGE)) if known else None,
            "trouble": trouble,
        }

    async def behind(self) -> list[Scope]:
        """Conversations not fully read; for vectors, only if they can be made."""
        found = await self.marks.behind(self.terms.tier, limit=_PAGE)
        if self.vectors is not None and self.health.trouble is None and self.vectors.embedder.dimension:
            found += await self.marks.behind(self.vectors.tier, limit=_PAGE)
        return [one.scope for one in found]

    async def warm_up(self) -> bool:
        """Load an encoder of this process once there is something to find with it, so that no question waits for that."""
        if self.vectors is None or not self.vectors.embedder.local:
            return True
        if self.warm or not (await self.vectors.models())[0]:
            return self.warm
        await self.vectors.embedder.ready()
        self.warm = True
        return True

    async def without_vectors(self) -> Sequence[ports.Behind]:
        """Conversations of which turns have no vectors yet, a thousand at most; none where no vectors are made."""
        if self.vectors is None or not self.vectors.embedder.dimension:
            return ()
        return await self.marks.behind(self.vectors.tier, limit=_PAGE)

    async def erased(self) -> None:
        """Something was erased, vectors included: between two batches, discard earlier plans."""
        async with self._lock:
            self._erased += 1

    async def load(self) -> None:
        """Load an embedder of our own, so that no question waits for it; if that fails, `describe` says so."""
        if self.vectors is not None and self.vectors.embedder.local:
            with guarded(self.health.failed):
                await self.vectors.embedder.ready()

    async def examine(self) -> JsonObject:
        """The same, after checking that the embedder and the vector store work."""
        if self.vectors is not None:
            await self.vectors.embedder.ready()
            await self.vectors.prepare()
        return await self.describe()

    # -- rebuild ------------------------------------------------------------------------------------------------------

    async def rebuild(self, progress: Progress, *, tenant: str | None, from_scratch: bool) -> dict[str, int]:
        """Compute what is missing with the current embedder and vector store, then remove what others made."""
        if self.vectors is not None:
            await self.vectors.prepare(beside=True)
        todo: dict[str, Derived | None] = {"terms": self.terms, "vectors": self.vectors}
        plans: dict[str, tuple[Derived, Plan]] = {}
        for name, derived in todo.items():
            if derived is not None:
                if from_scratch and tenant is None:
                    await self.marks.drop(derived.tier)
                # The watermarks of a single tenant cannot be dropped: use a tier name that has none.
                tier = _NONE if from_scratch else derived.tier
                find = partial(self.marks.behind, tier, limit=_ALL, tenant=tenant)
                plans[name] = derived, await self._plan(find)
        total = sum(plan.left for _, plan in plans.values())
        counts = dict.fromkeys((*todo, "dropped"), 0)
        for name, (derived, plan) in plans.items():
            while plan.behind:
                counts[name] += await self._batch(derived, plan)
                progress(total - sum(plan.left for _, plan in plans.values()), total)
        vectors = self.vectors
        if vectors is not None and not await self.marks.behind(vectors.tier, limit=1):
            # Vectors of other embedders go once those of the current one are complete.
            for collection in (await vectors.collections())[1]:
                counts["dropped"] += await vectors.index.drop(collection.model)
                await self.marks.drop(tier_of(vectors.index, collection.model))
        self.health.well()
        return counts
