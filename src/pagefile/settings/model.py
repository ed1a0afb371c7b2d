"""The settings themselves: plain frozen dataclasses, so that importing Pagefile costs nothing.

The same names stand in `pagefile.toml`, in YAML, in the environment (`PAGEFILE_WINDOW_TOKENS`,
`PAGEFILE_MEMORY__ENABLED`) and, where it makes sense, on the command line. Whoever makes a `Settings`, a value that
cannot work is refused at birth.
"""

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from pagefile.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Limit:
    """The numbers a setting may have."""

    least: float = 0
    most: float = math.inf
    #: True: `least` itself is too little.
    above: bool = False

    def problem(self, value: float) -> str | None:
        """What is wrong with a value, None when nothing is."""
        if self.above and value <= self.least:
            return f"must be more than {self.least:g}, not {value!r}"
        if value < self.least:
            return f"must be at least {self.least:g}, not {value!r}"
        return f"must be at most {self.most:g}, not {value!r}" if value > self.most else None


Positive = Annotated[int, Limit(least=1)]
Count = Annotated[int, Limit()]
Weight = Annotated[float, Limit()]
Share = Annotated[float, Limit(most=1)]


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """Which facts enter a window: the `memory:` keys of document 004."""

    #: False: no facts are offered to any window.
    enabled: bool = True
    #: Facts never take more than this many tokens of a window.
    max_injection_tokens: Count = 2000
    #: How many of the latest turns say what the conversation is about.
    max_context_turns: Count = 3
    #: What a fact's likeness to the conversation counts for in its rank.
    similarity_weight: Weight = 0.6
    #: What its confidence counts for.
    confidence_weight: Weight = 0.4
    #: True: facts are compared with the conversation by meaning as well, with the embedder.
    embeddings: bool = False
    #: Who reads facts out of completed turns: nobody, our own rules, or the chat model. Off until somebody decides that
    #: statements about their users are kept.
    extract: Literal["off", "rules", "model"] = "off"

    def __post_init__(self) -> None:
        _check(self, "memory.")


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """When a tool result becomes a page (document 000)."""

    #: Results of more characters than this leave the window as soon as their turn is over.
    threshold: Count = 10_000
    #: Results of more characters than this have a page too, so that the oldest can leave when many pile up.
    page_from: Count = 2_000
    #: Who says in the placeholder what a page is about: an extract by type, or the chat model.
    synopsis: Literal["extract", "model"] = "extract"
    #: Results of the running turn take at most so many tokens in full, the oldest leave first: for agents that call dozens of
    #: tools in one turn. 0: as many as fit into the window.
    running_tokens: Count = 0
    #: Who decides that a page comes back: the model by calling `load_tool_history`, words that point back, likeness, or both.
    strategy: Literal["model", "keyword", "similarity", "hybrid"] = "model"
    #: `chat.fetched()` finds the page of an equal call that is at most so many seconds old; 0 never does.
    reuse_s: Weight = 0.0
    #: Texts of pages are purged after so many days; 0 keeps them for good.
    retention_days: Weight = 0.0
    #: Texts of a tenant's pages take at most so many bytes on disk, the oldest are purged first; 0 is no limit.
    max_bytes: Count = 0

    def __post_init__(self) -> None:
        _check(self, "archive.")


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """What a run keeps of its tools' results (document 003, which calls the first three `memory_enabled` and so on)."""

    #: 是否启用 Agent 记忆系统: whether a run remembers anything. False: nothing is remembered, no equal call is answered from before, no hint is shown.
    enabled: bool = True
    #: 最大记忆内容片段数: how many chunks a run keeps.
    max_chunks: Count = 10
    #: 最小相关性阈值（低于此值的内容不记忆）: results of less relevance than this are not remembered.
    min_relevance: Share = 0.5
    #: How many chunks a window shows.
    max_injected: Count = 5
    #: Characters kept of a search result.
    search_chars: Positive = 300
    #: Characters kept of a page that was read.
    page_chars: Positive = 500
    #: Pages that were read all count the same: beyond this share of the room they give way to search results.
    page_share: Share = 0.5
    #: Characters of a table of contents in the hint that it is at hand; 0 names the documents only.
    outline_chars: Count = 1_200
    #: Hint and chunks never take more than this many tokens of a window.
    max_tokens: Count = 1_500
    #: An equal call of a cacheable tool is answered from before for so many seconds; 0 is as long as the run lasts.
    cache_s: Weight = 0.0
    #: How many runs are kept at once; the one used longest ago is let go.
    max_runs: Positive = 256
    #: Rules for tools of your own, before those of the document: "list_*=toc+cache, grep=search, read_file=page".
    rules: str | None = None

    def __post_init__(self) -> None:
        _check(self, "workspace.")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A chat model behind any OpenAI-compatible endpoint; it writes summaries."""

    #: The model's name; without one, summaries are extracted.
    name: str | None = None
    #: Where the endpoint is, such as "http://127.0.0.1:11434/v1"; else the one of OpenAI.
    base_url: str | None = None
    #: Never printed and never logged.
    api_key: str | None = None
    #: How long to wait for an answer, in seconds.
    timeout_s: Weight = 60.0

    def __post_init__(self) -> None:
        _check(self, "model.")


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Who turns texts into vectors, so that turns are found by what they mean."""

    #: "use-multilingual" comes with Pagefile and works offline, "none" leaves recall to words; anything else is a model behind an
    #: OpenAI-compatible endpoint.
    name: str = "use-multilingual"
    #: Where the endpoint of that model is; else the one of OpenAI.
    base_url: str | None = None
    #: Never printed and never logged.
    api_key: str | None = None
    #: How long to wait for vectors, in seconds; recall then goes by words.
    timeout_s: Annotated[float, Limit(above=True)] = 10.0
    #: How long a window waits for the vector of its question, in seconds; it then holds what was found by words, and its receipt
    #: says so. More of it suits an embedder that is far away. Commands and the demo wait up to 30 seconds unless this is set.
    patience_s: Annotated[float, Limit(above=True)] = 1.0
    #: Asks the model for vectors of so many numbers; 0: as it makes them.
    dimension: Count = 0

    def __post_init__(self) -> None:
        _check(self, "embedder.")


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The HTTP service."""

    #: Where to listen; beyond this machine only with keys.
    host: str = "127.0.0.1"
    #: The port to listen on.
    port: Annotated[int, Limit(least=1, most=65535)] = 8780
    #: The largest request body, in bytes.
    max_body_bytes: Positive = 32_000_000
    #: The largest export that may be imported, in bytes; it is kept on disk while it comes in.
    max_import_bytes: Positive = 1_000_000_000
    #: A line on stderr for every request and every failure, without what people said: "text" to read, "json" to collect. With
    #: "none", only warnings and failures are told.
    logs: Literal["none", "text", "json"] = "none"
    #: True: an OpenTelemetry span for every request, for the provider that the process has. Needs the extra otel.
    tracing: bool = False
    #: Nobody is let in without a key (`pagefile keys add`). Always so where other machines can reach the service.
    require_keys: bool = False
    #: How many requests each key may make in a minute, counted by each worker for itself; 0 is no limit.
    requests_per_minute: Count = 0
    #: More names that the service answers to, such as "memory.example.com, 10.0.0.7"; "*" for any, where keys are required.
    hosts: str | None = None
    #: Web pages that may call the service from a browser, such as "https://app.example.com"; none unless set.
    cors_origins: str | None = None
    #: How many processes answer; `pagefile serve --workers`.
    workers: Positive = 1

    def __post_init__(self) -> None:
        _check(self, "service.")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set; the defaults work offline."""

    #: Where everything is kept.
    url: str = "sqlite:///pagefile.db"
    #: A cache of session values in front of the database, such as `redis://127.0.0.1:6379`; empty for none.
    sessions: str | None = None
    #: Which tokenizer counts: "o200k_base", "cl100k_base", "qwen", "deepseek", "file:/path/tokenizer.json", "estimate".
    tokenizer: str = "o200k_base"
    #: How many tokens a window may have; `chat.context()` can be told otherwise, for this and the next five.
    window_tokens: Positive = 16_000
    #: The model that gets the windows, such as "gpt-5": its context size takes the place of `window_tokens`.
    window_for: str | None = None
    #: How many tokens of a window are left free for the model's answer.
    answer_tokens: Count = 0
    #: A checkpoint takes effect when the live turns fill this share of the window.
    threshold: Annotated[float, Limit(above=True, most=1)] = 0.75
    #: How many of the latest turns a checkpoint leaves as they were said.
    recent_turns: Positive = 8
    #: Where recalled turns and facts stand: "tail", beside the question, so that what comes before stays the same for a prompt
    #: cache; "head", in the leading system message.
    placement: Literal["tail", "head"] = "tail"
    #: The language of placeholders, the guide to them and labels: "zh" is the design documents' own, "en" for English agents.
    language: Literal["zh", "en"] = "zh"
    #: Where vectors of turns live: nothing for the database itself, `milvus://…`, or "none" to have none.
    vectors: str | None = None
    #: "background": what recall needs of new turns is made while nobody waits; "manual": only by `pagefile rebuild` and
    #: `memory.rebuild()`, for processes beside one that does it, or a nightly job.
    indexing: Literal["background", "manual"] = "background"
    #: "never": windows hold no episodes; "auto": past turns come back when the question touches them; "always": the best few
    #: that have anything in common with it.
    recall: Literal["auto", "always", "never"] = "auto"
    #: How many past turns a window may recall.
    recall_turns: Count = 3
    #: Upper bound of the word index kept in memory, in postings (about 8 bytes each).
    recall_cache_postings: Count = 20_000_000
    #: "full": a recorded turn survives a power cut; "normal": it survives a crash of the process.
    synchronous: Literal["full", "normal"] = "full"
    #: A message (user or assistant) of more characters is refused.
    max_message_chars: Positive = 2_000_000
    #: A tool result of more characters is refused.
    max_result_chars: Positive = 64_000_000
    #: When a window fills: "background" prepares a checkpoint early and lets it take effect without anybody waiting, "sync"
    #: makes one before the window is handed out, "manual" leaves it to `chat.checkpoint()`.
    checkpoints: Literal["background", "sync", "manual"] = "background"
    #: Where background work is done (indexes, checkpoints, facts): "inside" this process; "apart", by a `pagefile worker` that runs
    #: beside it; "dedicated" is that process itself, which looks for what others wrote.
    worker: Literal["inside", "apart", "dedicated"] = "inside"
    #: How long closing waits for background work, in seconds.
    drain_s: Weight = 5.0
    #: How many windows of each conversation `chat.calls()` remembers; 0 keeps none.
    calls_kept: Count = 50
    #: What happens when a tier fails while a window is built: "record" writes it into the receipt, "raise" is for tests.
    on_tier_error: Literal["record", "raise"] = "record"
    memory: MemorySettings = field(default_factory=MemorySettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    workspace: WorkspaceSettings = field(default_factory=WorkspaceSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)

    def __post_init__(self) -> None:
        _check(self, "")


def problem(annotation: Any, value: object) -> str | None:
    """What is wrong with a value for a setting of this type, None when nothing is."""
    if get_origin(annotation) is Annotated:
        base, limit = get_args(annotation)
        return problem(base, value) or limit.problem(value)
    if get_origin(annotation) is Literal:
        allowed = get_args(annotation)
        return None if value in allowed else f"must be {' or '.join(map(repr, allowed))}, not {value!r}"
    if annotation is str and isinstance(value, str) and not value.strip():
        return "is empty"
    return None if _is(annotation, value) else f"must be {_word(annotation)}, not {value!r}"


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _word(kind: Any) -> str:
    return _WORDS.get(kind) or f"a section, {kind.__name__}(…)"


def _is(kind: Any, value: object) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _check(settings: Any, prefix: str) -> None:
    problems = (
        (known.name, problem(known.type, getattr(settings, known.name))) for known in fields(settings)
    )
    found = [f"{prefix}{name} {what}" for name, what in problems if what]
    if found:
        raise SettingsError(f"{'; '.join(found)}.")


def known_settings(section: type = Settings, prefix: str = "") -> dict[str, Any]:
    """Every setting by its dotted name (`memory.enabled`), with its type."""
    known: dict[str, Any] = {}
    for setting in fields(section):
        name = f"{prefix}{setting.name}"
        nested = is_dataclass(setting.type)
        known |= known_settings(cast("type", setting.type), f"{name}.") if nested else {name: setting.type}
    return known
