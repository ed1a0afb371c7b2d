"""Recall by meaning may fail: recall by word continues, the failure is reported, and it recovers by itself."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic

import anyio

from pagefile.backoff import Backoff
from pagefile.errors import PagefileError
from pagefile.ports import Meter, Near
from pagefile.records import Scope
from pagefile.tiers.indexing import TurnVectors

logger = logging.getLogger("pagefile")

#: The first and the longest pause after a failure.
FIRST_REST_S = 1.0
LONGEST_REST_S = 60.0


class Health:
    """Whether vectors can be made and searched now. A failure is logged once, counted, and followed by a pause."""

    def __init__(self, meter: Meter, now: Callable[[], float] = monotonic) -> None:
        self._meter = meter
        self._backoff = Backoff(first_s=FIRST_REST_S, longest_s=LONGEST_REST_S, now=now)
        #: Why it does not work; None if it does.
        self.trouble: str | None = None

    @property
    def resting(self) -> bool:
        """Whether it is too early for another attempt."""
        return self.trouble is not None and self._backoff.left_s > 0

    @property
    def rest_s(self) -> float:
        """Seconds until the next attempt."""
        return self._backoff.left_s

    def failed(self, error: Exception) -> None:
        """An attempt failed."""
        reason = str(error) if isinstance(error, PagefileError) else f"{type(error).__name__}: {error}"
        self._meter.count("pagefile_degraded_total", tier="meaning")
        if reason != self.trouble:
            foreign = None if isinstance(error, (PagefileError, TimeoutError)) else error
            logger.warning("recall goes by word alone: %s", reason, exc_info=foreign)
        self.trouble = reason
        self._backoff.failed()

    def well(self) -> None:
        """An attempt succeeded."""
        if self.trouble is not None:
            logger.info("recall goes by meaning again")
        self.trouble = None
        self._backoff.succeeded()


#: How far each conversation is visible, when a past window is rebuilt.
Horizon = Callable[[], Awaitable[Mapping[str, int]]]


class Meaning:
    """Finds the turns closest to a question, with a timeout and without ever failing."""

    def __init__(
        self, vectors: TurnVectors | None, health: Health, *, horizon: Horizon | None = None
    ) -> None:
        self.vectors = vectors
        self.health = health
        self._horizon = horizon

    async def near(
        self, scope: Scope, question: str, limit: int, patience_s: float
    ) -> tuple[Sequence[Near], str | None]:
        """The closest turns, and a note for the receipt, if any."""
        if self.vectors is None:
            return (), None
        if not self.health.resting:
            try:
                with anyio.fail_after(patience_s):
                    found = await self._near(self.vectors, scope, question, limit)
            except TimeoutError:
                self.health.failed(
                    TimeoutError(f"the question's vector was not there within {patience_s:g} s")
                )
            except Exception as error:
                # Whatever an embedder or a vector store raises: recall by word still works.
                self.health.failed(error)
            else:
                self.health.well()
                return found, None
        return (), f"episodes were looked for by word only: {self.health.trouble}"

    async def _near(self, vectors: TurnVectors, scope: Scope, question: str, limit: int) -> Sequence[Near]:
        if self._horizon is None:
            return await vectors.near(scope, question, limit)
        # Twice as many, since some of them did not exist yet.
        found = await vectors.near(scope, question, 2 * limit)
        ends = await self._horizon()
        return [one for one in found if one.seq <= ends.get(one.conversation, 0)][:limit]
