"""The standard tiers and what they are built from. To add one, write its file and a line in `standard_tiers`."""

from dataclasses import dataclass, field

from pagefile.models.extractors import RuleExtractor
from pagefile.models.summarizers import ExtractiveSummarizer
from pagefile.ports import Clock, Embedder, FactExtractor, Meter, Store, Summarizer, VectorHome
from pagefile.settings import Settings
from pagefile.tiers.archive import Archive, ArchiveRules, Describe
from pagefile.tiers.base import Counter, Tier
from pagefile.tiers.checkpoints import Checkpoints, WindowRules
from pagefile.tiers.derivation import Derivation, Health, Horizon
from pagefile.tiers.episodes import Episodes
from pagefile.tiers.facts import FactLearner, FactRules, Facts
from pagefile.tiers.facts_book import FactBook
from pagefile.tiers.history import History
from pagefile.tiers.indexing import Reader, Terms, TurnVectors
from pagefile.tiers.workspace import DEFAULT_RULES, WorkspaceRules, Workspaces, parsed_rules
from pagefile.window.wording import WORDINGS


@dataclass(frozen=True, slots=True)
class Kit:
    """What tiers are built from: a store, models and settings."""

    store: Store
    settings: Settings
    clock: Clock
    counter: Counter
    meter: Meter
    summarizer: Summarizer = field(default_factory=ExtractiveSummarizer)
    #: Writes synopses of archived results; if None, they are extracted.
    describe: Describe | None = None
    #: Extracts facts from turns; if None, none are extracted.
    extractor: FactExtractor | None = None
    embedder: Embedder | None = None
    #: Where vectors are stored, even if no embedder makes any.
    home: VectorHome | None = None
    #: The vectors of turns, if there are an embedder and a home; shared with rebuilt windows.
    vectors: TurnVectors | None = None
    health: Health | None = None
    #: How far each conversation is visible, when a past window is rebuilt.
    horizon: Horizon | None = None


def standard_tiers(kit: Kit) -> tuple[Tier, ...]:
    """The tiers of every memory, in the order in which they are asked."""
    archive = Archive(
        kit.store, kit.counter, kit.clock, _archive_rules(kit.settings), kit.meter, describe=kit.describe
    )
    return (
        archive,
        _history(kit),
        _facts(kit),
        _episodes(kit),
        Workspaces(archive, kit.counter, kit.clock, _workspace_rules(kit.settings), kit.store.reader.epoch),
    )


def window_rules(settings: Settings) -> WindowRules:
    """The window that the settings describe."""
    return WindowRules(settings.window_tokens, settings.threshold, settings.recent_turns)


def _archive_rules(settings: Settings) -> ArchiveRules:
    given = settings.archive
    return ArchiveRules(
        threshold=given.threshold,
        page_from=min(given.page_from, given.threshold),
        reuse_s=given.reuse_s,
        wording=WORDINGS[settings.language],
        strategy=given.strategy,
        max_postings=settings.recall_cache_postings,
        retention_days=given.retention_days,
        max_bytes=given.max_bytes,
    )


def _history(kit: Kit) -> History:
    store, settings = kit.store, kit.settings
    return History(
        kit.counter,
        Checkpoints(store.log, store.reader, kit.counter, kit.summarizer, kit.meter),
        window_rules(settings),
        store.calls,
        store.watermarks,
        mode=settings.checkpoints,
        running_tokens=settings.archive.running_tokens,
        wording=WORDINGS[settings.language],
        dedicated=settings.worker == "dedicated",
    )


def _facts(kit: Kit) -> Facts:
    given = kit.settings.memory
    rules = FactRules(
        budget_tokens=given.max_injection_tokens,
        context_turns=given.max_context_turns,
        similarity_weight=given.similarity_weight,
        confidence_weight=given.confidence_weight,
        enabled=given.enabled,
    )
    book = FactBook(kit.store.facts, kit.counter, kit.clock, kit.store.reader.epoch)
    learner = None if kit.extractor is None else _learner(kit, book, kit.extractor)
    embedder = kit.embedder if given.embeddings else None
    return Facts(book, kit.counter, rules, embedder=embedder, learner=learner)


def _learner(kit: Kit, book: FactBook, extractor: FactExtractor) -> FactLearner:
    return FactLearner(
        book,
        kit.store.reader,
        kit.store.watermarks,
        kit.meter,
        extractor,
        instead=RuleExtractor(),
    )


def _episodes(kit: Kit) -> Episodes:
    store, settings = kit.store, kit.settings
    derivation = Derivation(
        Reader(store.source, store.watermarks, store.reader),
        store.watermarks,
        Terms(store.terms),
        kit.vectors,
        kit.health or Health(kit.meter),
        kit.meter,
        home=kit.home,
    )
    return Episodes(
        store.source,
        store.terms,
        derivation,
        kit.counter,
        kit.meter,
        kit.clock,
        gate=settings.recall,
        turns=settings.recall_turns,
        max_postings=settings.recall_cache_postings,
        patience_s=settings.embedder.patience_s,
        by_itself=settings.indexing == "background",
        horizon=kit.horizon,
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
        max_tokens=given.max_tokens,
        max_runs=given.max_runs,
        language=settings.language,
        tools=(*parsed_rules(given.rules), *DEFAULT_RULES),
    )
