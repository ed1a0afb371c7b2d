"""Keeps what recall needs up to date with the log while nobody waits, and makes it anew when asked.

Writing comes first: work begins when it has been quiet for a moment, and while turns keep coming in only a small share of the
time is taken. What is left when the process ends, or dies, the next one finds behind its watermark.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from time import monotonic

import anyio
import anyio.lowlevel

from pagefile.errors import PagefileError
from pagefile.ports import Behind, Meter, Watermarks
from pagefile.records import JsonObject, Scope
from pagefile.tiers.indexing import Derived, Plan, Reader, Terms, TurnVectors, tier_of
from pagefile.tiers.meaning import Health

logger = logging.getLogger("pagefile")

#: Opening a memory is no time for heavy work: a command that is over by then never does any.
START_S = 1.0
#: Nothing was written for so long: it is quiet.
QUIET_S = 0.2
#: Work begins after so long even if it never gets quiet.
LONGEST_WAIT_S = 5.0
#: While turns keep coming in, so many times the time of a bite is left to them before the next one.
REST_SHARE = 4.0
#: What other processes left behind is looked for this often.
SWEEP_EVERY_S = 600.0
#: Turns of a bite. Whoever erases, and a question's vector, wait for one at most.
BITE = 32
#: Beyond so many conversations it is cheaper to look at the log than to ask for each.
_MOST_WAITING = 1000
#: Conversations looked at together.
_PAGE = 1000
_ALL = 10_000_000
#: A tier that has read nothing.
_NOBODY = "nobody"
#: After a failure of the store the log is looked at again this much later.
_RETRY_S = 30.0

#: Told how many entries of the log were read, and of how many.
Progress = Callable[[int, int], None]


class Indexer:
    """Leads terms and vectors through the log."""

    def __init__(
        self,
        reader: Reader,
        marks: Watermarks,
        terms: Terms,
        vectors: TurnVectors | None,
        health: Health,
        meter: Meter,
        *,
        by_itself: bool,
    ) -> None:
        self._meter = meter
        self._by_itself = by_itself
        self.reader = reader
        self.vectors = vectors
        self.health = health
        self._marks = marks
        self._terms = terms
        self._waiting: OrderedDict[Scope, None] = OrderedDict()
        self._last_write = 0.0
        #: When the whole log is looked at next: first as soon as possible.
        self._sweep_at = 0.0
        #: Vectors were left out of a round, or never looked at.
        self._owed = True
        self._wake = anyio.Event()
        self._hurry = anyio.Event()
        self._rounds = 0
        self._in_round = False
        #: The round under way is about turns that were written here.
        self._owes_writes = False
        self._round_done = anyio.Event()
        #: Something was made here: the heavy parts are loaded.
        self._warm = False
        self._told = False

    def written(self, scope: Scope) -> None:
        """A turn is in the log."""
        if not self._by_itself:
            return
        self._last_write = monotonic()
        if len(self._waiting) < _MOST_WAITING:
            self._waiting[scope] = None
        else:
            self._sweep_at = 0.0
        self._wake.set()

    def look(self) -> None:
        """Much was written: look at the whole log."""
        self._sweep_at = 0.0
        self._wake.set()

    async def settle(self) -> None:
        """Wait until what is written by now was looked at; what cannot be done now is tried again later, without waiting."""
        if not self._by_itself:
            return
        # The round under way may have read the log already: the one after it has not.
        wanted = self._rounds + (2 if self._in_round else 1)
        while self._rounds < wanted:
            self._hurry.set()
            self._wake.set()
            await self._round_done.wait()

    async def drain(self) -> None:
        """Finish at the end what was begun. A process that never got that far leaves everything to the next one."""
        if self._warm and (self._waiting or self._owes_writes):
            await self.settle()

    async def run(self) -> None:
        """Work until cancelled, unless everything is left to `rebuild`."""
        if not self._by_itself:
            return
        await self._pause(START_S)
        while True:
            while not (self._waiting or self._hurry.is_set()) and monotonic() < self._sweep_at:
                self._wake = anyio.Event()
                with anyio.move_on_after(self._sweep_at - monotonic()):
                    await self._wake.wait()
            await self._quiet()
            await self._round()

    # -- a round --------------------------------------------------------------------------------------------------------

    async def _quiet(self) -> None:
        """Wait until nobody writes, but not for ever."""
        latest = monotonic() + LONGEST_WAIT_S
        while not self._hurry.is_set():
            left = min(self._last_write + QUIET_S, latest) - monotonic()
            if left <= 0:
                return
            await self._pause(left)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless somebody is in a hurry."""
        with anyio.move_on_after(seconds):
            await self._hurry.wait()

    async def _round(self) -> None:
        hurried, self._hurry = self._hurry.is_set(), anyio.Event()
        waiting, self._waiting = list(self._waiting), OrderedDict()
        sweep = monotonic() >= self._sweep_at
        if sweep:
            self._sweep_at = monotonic() + SWEEP_EVERY_S
        self._in_round, self._owes_writes = True, bool(waiting)
        try:
            await self._keep_terms(waiting, sweep=sweep, hurried=hurried)
            await self._make_vectors(waiting, sweep=sweep, hurried=hurried)
        finally:
            self._in_round = self._owes_writes = False
            self._rounds += 1
            self._round_done.set()
            self._round_done = anyio.Event()

    async def _keep_terms(self, waiting: Sequence[Scope], *, sweep: bool, hurried: bool) -> None:
        try:
            await self._follow(self._terms, waiting, sweep=sweep, hurried=hurried)
        except Exception as error:
            # Nobody waits for this: the word index works the terms out by itself, and a later round tries again.
            self._tell("could not keep the terms of turns", error)
            self._sweep_within(_RETRY_S)
        else:
            self._told = False

    async def _make_vectors(self, waiting: Sequence[Scope], *, sweep: bool, hurried: bool) -> None:
        if self.vectors is None:
            return
        if self.health.resting and not hurried:
            self._owed = True
            self._sweep_within(self.health.rest_s)
            return
        try:
            ready = self.vectors.prepared
            await self.vectors.prepare()
            made = await self._follow(self.vectors, waiting, sweep=sweep or self._owed, hurried=hurried)
            if not self._warm and (made or self.vectors.any):
                await self.vectors.embedder.ready()
                self._warm = True
        except Exception as error:
            # Whatever an embedder or a home raises: nobody waits for this, and a later round tries again.
            self.health.failed(error)
            self._owed = True
            self._sweep_within(self.health.rest_s)
        else:
            self._owed = False
            if made:
                self._meter.count("pagefile_indexed_turns_total", made)
            if made or not ready:
                self.health.well()

    def _sweep_within(self, seconds: float) -> None:
        self._sweep_at = min(self._sweep_at, monotonic() + seconds)

    async def _follow(self, derived: Derived, waiting: Sequence[Scope], *, sweep: bool, hurried: bool) -> int:
        """Read on in the conversations that were written to, or in all of them; returns how many turns that were."""
        if not sweep:
            behind = [await self.reader.known(scope, derived) for scope in waiting]
            return await self._read(derived, self.reader.plan(behind), hurried=hurried)
        made = 0
        before: list[Behind] = []
        while (behind := await self._marks.behind(derived.tier, limit=_PAGE)) not in ([], before):
            before = behind
            made += await self._read(derived, self.reader.plan(behind), hurried=hurried)
        return made

    async def _read(self, derived: Derived, plan: Plan, *, hurried: bool) -> int:
        made = 0
        while plan.behind:
            began = monotonic()
            made += await self.reader.bite(derived, plan, BITE)
            busy = monotonic() < self._last_write + QUIET_S
            if busy and not hurried:
                await self._pause(REST_SHARE * (monotonic() - began))
            else:
                await anyio.lowlevel.checkpoint()
        return made

    def _tell(self, what: str, error: Exception) -> None:
        """Log a failure, the first time of many as a warning."""
        ours = isinstance(error, PagefileError)
        logger.log(
            logging.DEBUG if self._told else logging.WARNING,
            "%s: %s",
            what,
            error,
            exc_info=None if ours else error,
        )
        self._told = True

    async def describe(self) -> JsonObject:
        """Who makes vectors, where they are, how many, and what stands in the way; asks no model."""
        made = self.vectors
        if made is None:
            return {"by": "words", "trouble": None}
        try:
            shelves, trouble = await made.home.shelves(), self.health.trouble
        except PagefileError as error:
            shelves, trouble = (), str(error)
        known = bool(made.embedder.dimension)
        return {
            "by": "words and meaning",
            "embedder": made.embedder.maker.key if known else made.embedder.name,
            "home": made.home.name,
            "vectors": {shelf.maker.key: shelf.vectors for shelf in shelves},
            #: Conversations that are not read to their end, at most a thousand of them.
            "behind": len(await self._marks.behind(made.tier, limit=_PAGE)) if known else None,
            "trouble": trouble,
        }

    async def examine(self) -> JsonObject:
        """The same, after finding out whether the embedder and the home work."""
        if self.vectors is not None:
            await self.vectors.embedder.ready()
            await self.vectors.prepare()
        return await self.describe()

    # -- anew -----------------------------------------------------------------------------------------------------------

    async def rebuild(self, progress: Progress, *, tenant: str | None, anew: bool) -> dict[str, int]:
        """Make what is missing of every turn with the embedder and in the home of today, then remove what others made."""
        if self.vectors is not None:
            await self.vectors.prepare(beside=True)
        todo: list[Derived] = [self._terms] if self.vectors is None else [self._terms, self.vectors]
        plans = [await self._planned(derived, tenant, anew=anew) for derived in todo]
        total = sum(plan.left for plan in plans)
        made: list[int] = []
        for derived, plan in zip(todo, plans, strict=True):
            turns = 0
            while plan.behind:
                turns += await self.reader.bite(derived, plan, BITE)
                progress(total - sum(plan.left for plan in plans), total)
            made.append(turns)
        counts = {"terms": made[0], "vectors": sum(made[1:]), "dropped": await self._drop_others()}
        self.health.well()
        return counts

    async def _planned(self, derived: Derived, tenant: str | None, *, anew: bool) -> Plan:
        if anew and tenant is None:
            await self._marks.drop(derived.tier)
        # Of one tenant's, the watermarks cannot be dropped: a tier that nobody is known by has read nothing.
        tier = _NOBODY if anew else derived.tier
        return self.reader.plan(await self._marks.behind(tier, limit=_ALL, tenant=tenant))

    async def _drop_others(self) -> int:
        """Remove vectors of other embedders, once those of today's are complete."""
        vectors = self.vectors
        if vectors is None or await self._marks.behind(vectors.tier, limit=1):
            return 0
        _, others = await vectors.shelves()
        dropped = 0
        for shelf in others:
            dropped += await vectors.home.drop(shelf.maker)
            await self._marks.drop(tier_of(vectors.home, shelf.maker))
        return dropped
