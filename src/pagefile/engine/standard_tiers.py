"""The standard tiers and what they are built from. To add one, write its file and a line in `standard_tiers`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from pagefile.errors import SettingsError
from pagefile.models.chat import OpenAIChat
from pagefile.models.embedders import MemoryEncoder, OpenAIEmbedder, UniversalSentenceEncoder
from pagefile.models.extractors import ChatExtractor, RuleExtractor
from pagefile.models.summarizers import CallableSummarizer, ChatSummarizer, ChatSynopsis, ExtractiveSummarizer
from pagefile.ports import ChatModel, Clock, Embedder, FactExtractor, Meter, Store, Summarizer, VectorIndex
from pagefile.settings import EmbedderSettings, ModelSettings, Settings
from pagefile.tiers.archive import Archive, ArchiveRules, Describe
from pagefile.tiers.base import Counter, Tier
from pagefile.tiers.checkpoints import Checkpoints, WindowRules
from pagefile.tiers.derivation import Derivation, Health
from pagefile.tiers.episodes import Episodes, Horizon
from pagefile.tiers.fact_book import FactBook
from pagefile.tiers.facts import FactExtraction, FactRules, Facts
from pagefile.tiers.history import History
from pagefile.tiers.languages import Languages
from pagefile.tiers.loading import Loading
from pagefile.tiers.turn_index import Terms, TurnVectors
from pagefile.tiers.workspace import DEFAULT_RULES, AgentMemory, WorkspaceRules, Workspaces, parsed_rules
from pagefile.tiers.workspace.parts import Parts


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
    index: VectorIndex | None = None
    #: The vectors of turns, if there are an embedder and an index; shared with rebuilt windows.
    vectors: TurnVectors | None = None
    health: Health | None = None
    #: What the first windows wait for.
    loading: Loading = field(default_factory=Loading)
    #: How far each conversation is visible, when a past window is rebuilt.
    horizon: Horizon | None = None
    #: The language of each conversation.
    languages: Languages = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "languages", Languages(self.store.reader, self.settings.language))


# -- models ------------------------------------------------------------------------------------------------------------


def chat_model(settings: ModelSettings) -> OpenAIChat | None:
    if not settings.name:
        return None
    return OpenAIChat(settings.name, **_endpoint(settings))


def named_embedder(settings: EmbedderSettings, name: str | None) -> Embedder | None:
    """The embedder of a name, by default the one that the settings name."""
    name = settings.name if name is None else name
    if name == "none":
        return None
    if name == "pagefile-memory":
        return MemoryEncoder()
    if name == "use-multilingual":
        return UniversalSentenceEncoder()
    return OpenAIEmbedder(name, **_endpoint(settings), dimension=settings.dimension or None)


def _endpoint(settings: ModelSettings | EmbedderSettings) -> dict[str, Any]:
    return {"base_url": settings.base_url, "api_key": settings.api_key, "timeout_s": settings.timeout_s}


def summarizer_of(
    model: ChatModel | None, given: Summarizer | Callable[[str], str | Awaitable[str]] | None
) -> Summarizer:
    """What writes summaries: what the caller gave, or the model, or our own extraction."""
    if given is None:
        return ChatSummarizer(model) if model is not None else ExtractiveSummarizer()
    return given if isinstance(given, Summarizer) else CallableSummarizer(given)


def synopsis_of(settings: Settings, model: ChatModel | None) -> Describe | None:
    if settings.archive.synopsis != "model":
        return None
    return ChatSynopsis(_needed(model, "archive.synopsis"))


def extractor_of(settings: Settings, model: ChatModel | None) -> FactExtractor | None:
    match settings.facts.extract:
        case "off":
            return None
        case "rules":
            return RuleExtractor()
        case "model":
            return ChatExtractor(_needed(model, "facts.extract"))


def _needed(model: ChatModel | None, setting: str) -> ChatModel:
    if model is None:
        raise SettingsError(f'{setting} is "model", but there is no model: give one, or set model.name.')
    return model


# -- tiers -------------------------------------------------------------------------------------------------------------


def standard_tiers(kit: Kit) -> tuple[Tier, ...]:
    """The tiers of every memory, in the order in which they are asked."""
    rules = _archive_rules(kit.settings), _workspace_rules(kit.settings)
    shared = kit.counter, kit.clock, kit.languages
    archive = Archive(
        kit.store,
        *shared,
        rules[0],
        kit.meter,
        describe=kit.describe,
        embedder=kit.embedder if kit.settings.archive.embeddings else None,
        timeout_s=kit.settings.embedder.query_timeout_s,
        loading=kit.loading,
    )
    workspaces = Workspaces(Parts(archive, *shared, rules[1], kit.store.reader.epoch))
    return archive, _history(kit), _facts(kit), _episodes(kit), workspaces


def _shared(section: Any, rules: type[Any]) -> dict[str, Any]:
    """The settings of a section that a tier's rules know by the same name."""
    known = {rule.name for rule in fields(rules)}
    return {one.name: getattr(section, one.name) for one in fields(section) if one.name in known}


def _archive_rules(settings: Settings) -> ArchiveRules:
    given = settings.archive
    given = replace(given, page_from=min(given.page_from, given.threshold))
    rules = ArchiveRules(**_shared(given, ArchiveRules), max_postings=settings.recall_cache_postings)
    return replace(rules, recall=settings.recall)


def _history(kit: Kit) -> History:
    store, settings = kit.store, kit.settings
    return History(
        kit.counter,
        Checkpoints(store.log, store.reader, kit.counter, kit.summarizer, kit.meter, kit.languages),
        WindowRules(settings.window_tokens, settings.threshold, settings.recent_turns),
        store.calls,
        store.watermarks,
        mode=settings.checkpoints,
        dedicated=settings.worker == "dedicated",
    )


def _facts(kit: Kit) -> Facts:
    given = kit.settings.facts
    limits = {"budget_tokens": given.max_injection_tokens, "context_turns": given.max_context_turns}
    rules = FactRules(**limits, **_shared(given, FactRules))
    book = FactBook(kit.store.facts, kit.counter, kit.clock, kit.store.reader.epoch)
    extraction = None
    if kit.extractor is not None:
        log = kit.store.reader, kit.store.watermarks
        extraction = FactExtraction(book, *log, kit.meter, kit.extractor, instead=RuleExtractor())
    embedder = kit.embedder if given.embeddings else None
    return Facts(
        book,
        kit.counter,
        rules,
        embedder=embedder,
        extraction=extraction,
        timeout_s=kit.settings.embedder.query_timeout_s,
        loading=kit.loading,
    )


def _episodes(kit: Kit) -> Episodes:
    store, settings = kit.store, kit.settings
    log, health = (store.source, store.reader, store.watermarks), kit.health or Health(kit.meter)
    derivation = Derivation(*log, Terms(store.terms), kit.vectors, health, kit.meter, kit.loading)
    return Episodes(
        store.source,
        store.terms,
        derivation,
        kit.counter,
        kit.meter,
        kit.clock,
        gate=settings.recall,
        max_postings=settings.recall_cache_postings,
        timeout_s=settings.embedder.query_timeout_s,
        timezone=settings.timezone,
        max_share=settings.recall_max_share,
        by_itself=settings.indexing == "background",
        horizon=kit.horizon,
        max_lag_s=settings.recall_max_lag_s,
    )


def _workspace_rules(settings: Settings) -> WorkspaceRules:
    given = settings.workspace
    return WorkspaceRules(
        **_shared(given, WorkspaceRules),
        notes=partial(AgentMemory, **_shared(given, AgentMemory)),
        threshold=settings.archive.threshold,
        page_from=settings.archive.page_from,
        tools=(*parsed_rules(given.rules), *DEFAULT_RULES),
    )
