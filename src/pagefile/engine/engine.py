"""Everything a conversation handle needs, put together once when a memory is opened."""

import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import anyio

from pagefile.engine.background import CallWriter, PageRetention
from pagefile.engine.indexing import Indexer
from pagefile.engine.learning import Learning
from pagefile.engine.ledger import Ledger
from pagefile.engine.metering import MemoryChanges, MeteredSessions, NoMeter
from pagefile.engine.tending import Tender
from pagefile.errors import ClosedError
from pagefile.models.extractors import RuleExtractor
from pagefile.models.summarizers import ExtractiveSummarizer
from pagefile.ports import (
    Clock,
    Embedder,
    FactExtractor,
    HeadQuery,
    Meter,
    SessionCache,
    SessionStore,
    Store,
    Summarizer,
    VectorHome,
)
from pagefile.records import ErasureReceipt, Scope
from pagefile.settings import MemorySettings, Settings
from pagefile.stores import CachedSessions, versions_in
from pagefile.tiers.archive import Archive, ArchiveRules, Describe
from pagefile.tiers.base import Counter, Note, Occasion, Tier
from pagefile.tiers.checkpoints import Checkpoints, WindowRules
from pagefile.tiers.episodes import Episodes
from pagefile.tiers.facts import FactRules, Facts
from pagefile.tiers.facts_book import FactBook
from pagefile.tiers.facts_learning import FactLearner
from pagefile.tiers.history import History
from pagefile.tiers.indexing import Reader, Terms, TurnVectors
from pagefile.tiers.meaning import Health, Meaning
from pagefile.tiers.page_search import PageSearch
from pagefile.tiers.paging import Paging
from pagefile.tiers.workspace import DEFAULT_RULES, WorkspaceRules, Workspaces, parsed_rules
from pagefile.window.candidates import Candidate
from pagefile.window.wording import WORDINGS

logger = logging.getLogger("pagefile")

R = TypeVar("R")

#: Conversations looked at together.
_BATCH = 500
#: The trace of a tier that failed: it offered nothing.
FAILED = "failed"


@dataclass(slots=True)
class Engine:
    """A store, its tiers, and the settings they were opened with."""

    store: Store
    #: Session values: the store's, or a cache in front of it.
    sessions: SessionStore
    cache: SessionCache | None
    settings: Settings
    clock: Clock
    counter: Counter
    meter: Meter
    history: History
    checkpoints: Checkpoints
    tender: Tender
    archive: Archive
    paging: Paging
    page_search: PageSearch
    episodes: Episodes
    indexer: Indexer
    #: Where vectors live, even when no embedder makes any.
    vectors: VectorHome | None
    facts: Facts
    learning: Learning
    workspaces: Workspaces
    calls: CallWriter
    ledger: Ledger
    changes: MemoryChanges
    retention: PageRetention
    closed: bool = False
    #: Nothing is looked up from elsewhere and no window is written down.
    incognito: bool = False
    #: How often each tier failed since opening.
    failures: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def build(
        cls,
        store: Store,
        settings: Settings,
        clock: Clock,
        counter: Counter,
        *,
        summarizer: Summarizer | None = None,
        meter: Meter | None = None,
        cache: SessionCache | None = None,
        describe: Describe | None = None,
        vectors: VectorHome | None = None,
        embedder: Embedder | None = None,
        extractor: FactExtractor | None = None,
    ) -> "Engine":
        """The tiers over a store."""
        meter = meter or NoMeter()
        checkpoints = Checkpoints(
            store.log, store.reader, counter, summarizer or ExtractiveSummarizer(), meter
        )
        archive = Archive(
            store.pages, store.page_keeper, counter, clock, _archive_rules(settings), meter, describe=describe
        )
        indexer = _indexer(store, vectors, embedder, meter, by_itself=settings.indexing == "background")
        facts = _facts(store, counter, clock, settings.memory, embedder)
        engine = cls(
            store=store,
            sessions=MeteredSessions(_sessions(store, cache), meter, cache),
            cache=cache,
            settings=settings,
            clock=clock,
            counter=counter,
            meter=meter,
            history=History(
                counter,
                running_tokens=settings.archive.running_tokens,
                wording=WORDINGS[settings.language],
            ),
            checkpoints=checkpoints,
            tender=Tender(checkpoints.tend, rules_of(settings), meter),
            archive=archive,
            paging=Paging(archive, store.pages, store.page_keeper, counter, settings.archive.strategy),
            page_search=PageSearch(store.pages, store.page_index, settings.recall_cache_postings),
            episodes=Episodes(
                store.source,
                store.terms,
                Meaning(indexer.vectors, indexer.health),
                counter,
                meter,
                clock,
                gate=settings.recall,
                turns=settings.recall_turns,
                max_postings=settings.recall_cache_postings,
                patience_s=settings.embedder.patience_s,
            ),
            indexer=indexer,
            vectors=vectors,
            facts=facts,
            learning=_learning(store, facts, meter, extractor, erasing=indexer.reader.lock),
            workspaces=Workspaces(archive, counter, clock, _workspace_rules(settings)),
            calls=CallWriter(store.calls, keep=settings.calls_kept),
            ledger=Ledger(store.reader),
            changes=MemoryChanges(meter),
            retention=PageRetention(
                store.page_keeper,
                clock,
                days=settings.archive.retention_days,
                max_bytes=settings.archive.max_bytes,
            ),
        )
        archive.on_failure = partial(engine.failed, "archive")
        engine.workspaces.on_failure(lambda error, first: engine.failed("workspace", error, logs=first))
        return engine

    def forget(self, scope: Scope) -> None:
        """Drop whatever is cached of a scope that was erased."""
        self.history.forget()
        self.episodes.forget(scope)
        self.facts.book.forget()
        self.paging.forget()
        self.page_search.forget()
        self.workspaces.forget(scope)
        self.tender.forget()
        self.ledger.forget()
        self.changes.forget()

    @property
    def tends(self) -> bool:
        """Whether checkpoints are made in the background."""
        return self.settings.checkpoints == "background" and not self.incognito

    async def forget_sessions(self, scope: Scope) -> None:
        """Drop the session values of a scope that is about to be erased from the cache."""
        if self.cache is None:
            return
        after: str | None = None
        while True:
            heads = await self.store.reader.heads(HeadQuery(scope, _BATCH, after))
            for head in heads:
                await self.cache.drop(head.scope)
            if len(heads) < _BATCH:
                return
            after = heads[-1].scope.conversation

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """Erase a scope, its vectors first: a store that forgot it would no longer know whose they are."""
        async with self.indexer.reader.lock:
            gone = await self.vectors.erase(scope) if self.vectors is not None else 0
            receipt = await self.store.erase(scope)
            self.indexer.reader.erased()
        episodes = gone + receipt.counts.get("conversation_episodes", 0)
        counts = {**receipt.counts, "conversation_episodes": episodes} if episodes else receipt.counts
        return replace(receipt, counts=counts)

    async def close(self) -> None:
        """Let go of the store, the vectors and the cache."""
        if self.vectors is not None:
            await self.vectors.close()
        await self.store.close()
        if self.cache is not None:
            await self.cache.close()

    def check_open(self) -> None:
        """Refuse to work for a memory that was closed."""
        if self.closed:
            raise ClosedError

    async def offers(self, occasion: Occasion) -> list[Candidate]:
        """What all tiers offer. A tier that fails gives less context and says so; it never costs the answer."""
        tiers: list[Tier] = [self.history]
        if self.settings.memory.enabled and not self.incognito:
            tiers.append(self.facts)
        if not self.incognito:
            tiers.append(self.episodes)
        tiers.append(self.workspaces)
        found: list[Candidate] = []
        for tier in tiers:
            offered = await self.guarded(tier.name, occasion.note, tier.offer(occasion))
            if offered is None:
                occasion.traces[tier.name] = FAILED
            found += offered or ()
        return found

    async def guarded(self, tier: str, note: Note, work: Awaitable[R]) -> R | None:
        """The one place that catches a failing tier: it gives None and stands in the receipt, the log and the counts."""
        try:
            return await work
        except Exception as error:
            if self.settings.on_tier_error == "raise":
                raise
            self.failed(tier, error)
            note(f"{tier} failed: {type(error).__name__}: {error}")
            return None

    def failed(self, tier: str, error: Exception, *, logs: bool = True) -> None:
        """Count and log a failure that nobody has to handle; `logs` False only counts one like those before it."""
        self.failures[tier] = self.failures.get(tier, 0) + 1
        self.meter.count("pagefile_degraded_total", tier=tier)
        if logs:
            logger.error("the %s tier failed; going on without it", tier, exc_info=error)


def _indexer(
    store: Store, home: VectorHome | None, embedder: Embedder | None, meter: Meter, *, by_itself: bool
) -> Indexer:
    reader = Reader(store.source, store.watermarks)
    made = None if home is None or embedder is None else TurnVectors(home, embedder, store.watermarks)
    return Indexer(
        reader, store.watermarks, Terms(store.terms), made, Health(meter), meter, by_itself=by_itself
    )


def _archive_rules(settings: Settings) -> ArchiveRules:
    return ArchiveRules(
        threshold=settings.archive.threshold,
        page_from=min(settings.archive.page_from, settings.archive.threshold),
        reuse_s=settings.archive.reuse_s,
        wording=WORDINGS[settings.language],
    )


def _workspace_rules(settings: Settings) -> WorkspaceRules:
    given = settings.workspace
    return WorkspaceRules(
        enabled=given.enabled,
        max_chunks=given.max_chunks,
        min_relevance=given.min_relevance,
        max_injected=given.max_injected,
        search_chars=given.search_chars,
        page_chars=given.page_chars,
        page_share=given.page_share,
        outline_chars=given.outline_chars,
        cache_s=given.cache_s,
        threshold=settings.archive.threshold,
        page_from=settings.archive.page_from,
        max_runs=given.max_runs,
        language=settings.language,
        tools=(*parsed_rules(given.rules), *DEFAULT_RULES),
    )


def _facts(
    store: Store, counter: Counter, clock: Clock, settings: MemorySettings, embedder: Embedder | None
) -> Facts:
    rules = FactRules(
        budget_tokens=settings.max_injection_tokens,
        context_turns=settings.max_context_turns,
        similarity_weight=settings.similarity_weight,
        confidence_weight=settings.confidence_weight,
    )
    by_meaning = embedder if settings.embeddings else None
    return Facts(FactBook(store.facts, counter, clock), counter, rules, embedder=by_meaning)


def _learning(
    store: Store, facts: Facts, meter: Meter, extractor: FactExtractor | None, *, erasing: anyio.Lock
) -> Learning:
    learner = None
    if extractor is not None:
        reads = facts.book, store.reader, store.watermarks, meter
        learner = FactLearner(*reads, extractor, instead=RuleExtractor(), erasing=erasing)
    return Learning(learner, store.watermarks, meter)


def _sessions(store: Store, cache: SessionCache | None) -> SessionStore:
    return (
        store.sessions if cache is None else CachedSessions(store.sessions, cache, versions_in(store.reader))
    )


def rules_of(settings: Settings) -> WindowRules:
    """The window that the settings speak of."""
    return WindowRules(settings.window_tokens, settings.threshold, settings.recent_turns)
