"""Has facts read out of completed turns while nobody waits: a conversation at a time, once it has been quiet for a moment.

What could not be read is owed: after a rest one of those conversations is tried again, and when that goes well all of them are.
"""

import logging
from time import monotonic

import anyio

from pagefile.ports import Meter, Watermarks
from pagefile.records import Scope
from pagefile.tiers.facts_learning import TIER, FactLearner

logger = logging.getLogger("pagefile")

#: What an earlier process left unread is looked for so long after opening.
START_S = 1.0
#: How long a failure is left alone before the next trial: the first time, and at most.
FIRST_REST_S = 5.0
LONGEST_REST_S = 300.0
_MOST = 10_000


class Learning:
    """Notices completed turns; without a learner it does nothing at all."""

    def __init__(self, learner: FactLearner | None, marks: Watermarks, meter: Meter) -> None:
        self._learner = learner
        self._marks = marks
        self._meter = meter
        #: When each conversation is read.
        self._due: dict[Scope, float] = {}
        #: Those for which reading failed, and when one of them is tried again.
        self._owed: dict[Scope, None] = {}
        self._rest_s = 0.0
        self._retry_at = 0.0
        self._busy = False
        self._swept = learner is None
        self._hurry = self._settling = False
        self._wake = anyio.Event()
        self._progress = anyio.Event()
        #: How often reading failed since opening.
        self.failures = 0

    def written(self, scope: Scope) -> None:
        """A turn is in the log: its conversation is read once it has been quiet."""
        if self._learner is not None:
            self._due[scope] = monotonic() + self._learner.extractor.quiet_s
            self._wake.set()

    async def settle(self) -> None:
        """Wait until everything written by now was read; what fails is tried again later, without waiting."""
        if self._learner is None:
            return
        self._hurry = self._settling = True
        self._pay()
        self._wake.set()
        try:
            while self._due or self._busy or not self._swept:
                await self._progress.wait()
        finally:
            self._hurry = self._settling = False

    async def drain(self) -> None:
        """Finish at the end what was written here; what others left behind is left to the next opening."""
        self._hurry = True
        self._wake.set()
        while self._due or self._busy:
            await self._progress.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        if self._learner is None:
            return
        opened = monotonic()
        while True:
            if not self._swept and (self._settling or monotonic() >= opened + START_S):
                await self._sweep()
                self._tell()
            if self._owed and monotonic() >= self._retry_at:
                self._due.setdefault(self._owed.popitem()[0], 0.0)
            scope = self._next()
            if scope is not None:
                self._busy = True
                self._due.pop(scope)
                try:
                    await self._learn(self._learner, scope)
                finally:
                    self._busy = False
                    self._tell()
                continue
            await self._pause(opened)

    async def _pause(self, opened: float) -> None:
        self._wake = anyio.Event()
        moments = [*self._due.values(), *(() if self._swept else (opened + START_S,))]
        moments += [self._retry_at] if self._owed else []
        timeout = max(0.0, min(moments) - monotonic()) if moments else None
        with anyio.move_on_after(timeout):
            await self._wake.wait()

    def _next(self) -> Scope | None:
        now = monotonic()
        return next((scope for scope, due in self._due.items() if self._hurry or due <= now), None)

    async def _sweep(self) -> None:
        """Conversations that an earlier process left behind."""
        self._swept = True
        try:
            for behind in await self._marks.behind(TIER, limit=_MOST):
                self._due.setdefault(behind.scope, 0.0)
        except Exception:
            # Nobody waits for this; the next opening looks again.
            logger.exception("could not look for turns whose facts were not read")
            self._failed()

    async def _learn(self, learner: FactLearner, scope: Scope) -> None:
        try:
            await learner.learn(scope)
        except Exception:
            # Nobody waits for this; it is tried again after a rest, with the next turn or at the next opening.
            logger.exception("could not read the facts of conversation %r", scope.conversation)
            self._failed()
            self._owed[scope] = None
            if monotonic() >= self._retry_at:
                # Of several that fail in one rest, the first one counts.
                self._rest_s = min(LONGEST_REST_S, 2 * self._rest_s or FIRST_REST_S)
                self._retry_at = monotonic() + self._rest_s
        else:
            self._rest_s = 0.0
            self._owed.pop(scope, None)
            self._pay()

    def _pay(self) -> None:
        """Read everything that is owed."""
        for scope in self._owed:
            self._due.setdefault(scope, 0.0)
        self._owed.clear()

    def _failed(self) -> None:
        self.failures += 1
        self._meter.count("pagefile_degraded_total", tier="facts")

    def _tell(self) -> None:
        self._progress.set()
        self._progress = anyio.Event()
