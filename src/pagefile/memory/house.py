"""Everything a conversation handle needs, put together once when a memory is opened."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagefile.errors import ClosedError
from pagefile.memory.background import CallWriter
from pagefile.ports import Clock, Store
from pagefile.settings import Settings
from pagefile.tiers.archive import Archive
from pagefile.tiers.base import Counter, Occasion, Tier
from pagefile.tiers.episodes import Episodes
from pagefile.tiers.facts import Facts
from pagefile.tiers.history import History
from pagefile.window.candidates import Candidate

logger = logging.getLogger("pagefile")


@dataclass(slots=True)
class House:
    """A store, its tiers, and the settings they were opened with."""

    store: Store
    settings: Settings
    clock: Clock
    counter: Counter
    history: History
    archive: Archive
    episodes: Episodes
    facts: Facts
    calls: CallWriter
    closed: bool = False
    #: Nothing is looked up from elsewhere and no window is written down.
    incognito: bool = False
    #: How often each tier failed since opening.
    failures: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def build(cls, store: Store, settings: Settings, clock: Clock, counter: Counter) -> "House":
        """The tiers over a store."""
        memory = settings.memory
        return cls(
            store=store,
            settings=settings,
            clock=clock,
            counter=counter,
            history=History(store.log, store.reader, counter),
            archive=Archive(store.pages, counter, clock, threshold=settings.archive.threshold),
            episodes=Episodes(
                store.source,
                counter,
                turns=settings.recall_turns,
                max_postings=settings.recall_cache_postings,
            ),
            facts=Facts(
                store.facts,
                counter,
                clock,
                context_turns=memory.max_context_turns,
                similarity_weight=memory.similarity_weight,
                confidence_weight=memory.confidence_weight,
            ),
            calls=CallWriter(store.calls, keep=settings.calls_kept),
        )

    def check_open(self) -> None:
        """Refuse to work for a memory that was closed."""
        if self.closed:
            raise ClosedError

    async def offers(self, occasion: Occasion) -> list[Candidate]:
        """What all tiers offer. A tier that fails gives less context and says so; it never costs the answer."""
        tiers: list[Tier] = [self.history]
        if self.settings.memory.enabled and not self.incognito:
            tiers.append(self.facts)
        if self.settings.recall == "auto" and not self.incognito:
            tiers.append(self.episodes)
        found: list[Candidate] = []
        for tier in tiers:
            found += await self._offer(tier, occasion)
        return found

    async def _offer(self, tier: Tier, occasion: Occasion) -> Sequence[Candidate]:
        try:
            return await tier.offer(occasion)
        except Exception as error:
            if self.settings.on_tier_error == "raise":
                raise
            self.failures[tier.name] = self.failures.get(tier.name, 0) + 1
            logger.exception("the %s tier failed; the window goes out without it", tier.name)
            occasion.note(f"{tier.name} failed: {type(error).__name__}: {error}")
            return ()
