"""Keeps what recall needs up to date with the log, in rounds that the worker begins, and makes it again when asked.

Writing comes first: while turns keep coming in only a small share of the time is taken. What is left when the process ends, or dies,
the next one finds behind its watermark.
"""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic

import anyio
import anyio.lowlevel

from pagefile.errors import PagefileError
from pagefile.ports import Behind, Meter, VectorHome, Watermarks
from pagefile.records import JsonObject, Scope
from pagefile.tiers.base import Backlog, RetryLater
from pagefile.tiers.indexing import Derived, Plan, Reader, Terms, TurnVectors, tier_of
from pagefile.tiers.meaning import Health

logger = logging.getLogger("pagefile")

#: While turns keep coming in, this many times the time of a batch is left to them before the next one.
REST_SHARE = 4.0
#: Turns of a batch. Whoever erases, and a question's vector, wait for one at most.
BATCH = 32
#: Conversations looked at together.
_PAGE = 1000
_ALL = 10_000_000
#: A tier that has read nothing.
_NONE = "none"
#: After a failure of the store the log is looked at again this much later.
_RETRY_S = 30.0

#: Takes how many entries of the log were read, and of how many.
Progress = Callable[[int, int], None]


class Derivation:
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
        home: VectorHome | None = None,
    ) -> None:
        self._meter = meter
        #: Where vectors live, even when no embedder makes any.
        self._home = home
        self.reader = reader
        self.vectors = vectors
        self.health = health
        self._marks = marks
        self._terms = terms
        #: Vectors were left out of a round, or never looked at.
        self._owed = True
        #: Vectors were made or found here: the embedder is loaded.
        self.warm = False
        self._told = False

    # -- a round --------------------------------------------------------------------------------------------------------

    async def catch_up(self, backlog: Backlog) -> None:
        """Make what is missing of the conversations that were written to, or of all."""
        waits = [await self._keep_terms(backlog), await self._make_vectors(backlog)]
        due = [seconds for seconds in waits if seconds is not None]
        if due:
            raise RetryLater(min(due))

    async def _keep_terms(self, backlog: Backlog) -> float | None:
        """Gives the seconds until the next trial when this one failed."""
        try:
            await self._follow(self._terms, backlog, sweep=backlog.sweep)
        except Exception as error:
            # No caller waits for this: the word index works the terms out by itself, and a later round tries again.
            self._tell("could not keep the terms of turns", error)
            return _RETRY_S
        self._told = False
        return None

    async def _make_vectors(self, backlog: Backlog) -> float | None:
        if self.vectors is None:
            return None
        if self.health.resting and not backlog.hurried:
            self._owed = True
            return self.health.rest_s
        try:
            ready = self.vectors.prepared
            await self.vectors.prepare()
            made = await self._follow(self.vectors, backlog, sweep=backlog.sweep or self._owed)
            if not self.warm and (made or self.vectors.any):
                await self.vectors.embedder.ready()
                self.warm = True
        except Exception as error:
            # Whatever an embedder or a home raises: no caller waits for this, and a later round tries again.
            self.health.failed(error)
            self._owed = True
            return self.health.rest_s
        self._owed = False
        if made:
            self._meter.count("pagefile_indexed_turns_total", made)
        if made or not ready:
            self.health.well()
        return None

    async def _follow(self, derived: Derived, backlog: Backlog, *, sweep: bool) -> int:
        """Read on in the conversations that were written to, or in all of them; returns how many turns that were."""
        if not sweep and len(backlog.scopes) <= _PAGE:
            plan = await self.reader.plan(partial(self._known, derived, backlog.scopes))
            return await self._read(derived, plan, backlog)
        made = 0
        before: list[Behind] = []
        find = partial(self._marks.behind, derived.tier, limit=_PAGE)
        while (behind := list((plan := await self.reader.plan(find)).behind)) not in ([], before):
            before = behind
            made += await self._read(derived, plan, backlog)
            if len(behind) < _PAGE and self.reader.holds(plan):
                # That was all; what is written meanwhile is for the next round, or this one might never end.
                break
        return made

    async def _known(self, derived: Derived, scopes: Iterable[Scope]) -> list[Behind]:
        return [await self.reader.known(scope, derived) for scope in scopes]

    async def _read(self, derived: Derived, plan: Plan, backlog: Backlog) -> int:
        made = 0
        while plan.behind:
            began = monotonic()
            made += await self.reader.bite(derived, plan, BATCH)
            if backlog.busy() and not backlog.hurried:
                await backlog.pause(REST_SHARE * (monotonic() - began))
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

    async def behind(self) -> list[Scope]:
        """Conversations that are not read to their end; of vectors only where they can be made."""
        found = await self._marks.behind(self._terms.tier, limit=_PAGE)
        if self.vectors is not None and self.health.trouble is None and self.vectors.embedder.dimension:
            found += await self._marks.behind(self.vectors.tier, limit=_PAGE)
        return [one.scope for one in found]

    async def erased(self) -> None:
        """Something was erased, vectors too: between two batches, what was planned before is no longer true."""
        async with self.reader.lock:
            self.reader.erased()

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
                turns += await self.reader.bite(derived, plan, BATCH)
                progress(total - sum(plan.left for plan in plans), total)
            made.append(turns)
        counts = {"terms": made[0], "vectors": sum(made[1:]), "dropped": await self._drop_others()}
        self.health.well()
        return counts

    async def _planned(self, derived: Derived, tenant: str | None, *, anew: bool) -> Plan:
        if anew and tenant is None:
            await self._marks.drop(derived.tier)
        # Of one tenant's, the watermarks cannot be dropped: a tier that nobody is known by has read nothing.
        tier = _NONE if anew else derived.tier
        return await self.reader.plan(partial(self._marks.behind, tier, limit=_ALL, tenant=tenant))

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
