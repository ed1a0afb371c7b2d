"""The metrics, and a meter that ignores them."""

from dataclasses import dataclass
from typing import Literal

from pagefile.lru import Lru
from pagefile.ports import Meter
from pagefile.records import Scope
from pagefile.window.candidates import MEMORY
from pagefile.window.receipt import Receipt


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: Literal["counter", "histogram", "gauge"]
    tells: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


#: Conversations whose last window is remembered.
_MOST_CONVERSATIONS = 10_000
_SECONDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_TOKENS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_CHARS = (30, 100, 300, 600, 1_200, 3_000)
_RATIOS = (0.1, 0.25, 0.5, 0.6, 0.75, 0.9, 1.0, 2.0, 10.0)
_WAITING = (0, 1, 3, 10, 30, 100, 1_000)


def _counter(name: str, tells: str, *labels: str) -> Metric:
    return Metric(name, "counter", tells, labels)


def _histogram(name: str, tells: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name, "histogram", tells, labels, buckets)


#: Every metric there is.
METRICS: tuple[Metric, ...] = (
    _counter("pagefile_checkpoints_total", "Checkpoints that took effect."),
    _histogram("pagefile_summary_chars", "Characters of the summaries of checkpoints.", _CHARS),
    _histogram("pagefile_token_ratio", "How full windows would be with every live turn in them.", _RATIOS),
    _histogram("pagefile_store_seconds", "Time of database calls.", _SECONDS, "verb"),
    _histogram("pagefile_session_seconds", "Time to read a session value.", _SECONDS),
    _counter("pagefile_session_cache_total", "Session reads answered by the cache, or not.", "result"),
    _histogram("pagefile_window_tokens", "Tokens per window.", _TOKENS),
    _counter(
        "pagefile_memory_changes_total",
        "Windows that show other memories than the window before them in their conversation.",
    ),
    _counter("pagefile_turns_total", "Turns written.", "status"),
    _counter("pagefile_facts_total", "Facts extracted from turns, and what became of them.", "outcome"),
    _counter("pagefile_redacted_total", "Pieces of text removed before they were stored.", "kind"),
    _counter("pagefile_recalls_total", "Recalls."),
    _counter("pagefile_indexed_turns_total", "Turns whose vectors were made in the background."),
    _counter("pagefile_page_faults_total", "Archived pages loaded."),
    _counter("pagefile_degraded_total", "Times that something failed and work continued without it.", "tier"),
    _histogram(
        "pagefile_background_waiting", "Conversations waiting for background work when one begins.", _WAITING
    ),
    _counter(
        "pagefile_gateway_requests_total",
        "Requests through the gateway, and what memory did.",
        "protocol",
        "status",
    ),
    _histogram(
        "pagefile_gateway_seconds", "Time of gateway requests, answers included.", _SECONDS, "protocol"
    ),
    _histogram("pagefile_gateway_window_seconds", "Time that memory added to gateway requests.", _SECONDS),
    _counter(
        "pagefile_gateway_answers_total",
        "Answers of providers to requests that memory saw, by their HTTP status.",
        "protocol",
        "code",
    ),
    _counter("pagefile_http_requests_total", "Requests to the service.", "method", "route", "code"),
    _histogram(
        "pagefile_http_seconds", "Time of requests to the service, answers included.", _SECONDS, "route"
    ),
    _counter("pagefile_mcp_calls_total", "Calls of tools over MCP, and how they ended.", "tool", "outcome"),
    _histogram("pagefile_mcp_seconds", "Time of tool calls over MCP.", _SECONDS, "tool"),
    Metric("pagefile_database_up", "gauge", "1 if the database answers, else 0."),
    Metric(
        "pagefile_session_cache_up",
        "gauge",
        "1 if the session cache answered when it was last asked, else 0.",
    ),
    Metric("pagefile_tasks", "gauge", "Tasks that run in the process that answers."),
    Metric("pagefile_index_lag_turns", "gauge", "Turns that recall by meaning does not find yet."),
    Metric("pagefile_index_lag_seconds", "gauge", "How long the oldest of them has waited."),
)


class NoMeter(Meter):
    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        pass

    def observe(self, name: str, value: float, **labels: str) -> None:
        pass


class MemoryChanges:
    """Counts how often a conversation's windows show different memories, which no prompt cache can serve."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._shown: Lru[Scope, int] = Lru(_MOST_CONVERSATIONS)

    def note(self, scope: Scope, receipt: Receipt) -> None:
        """A window was handed out. The first one seen of a conversation is not a change."""
        shown = hash(frozenset([(v.id, v.form) for v in receipt.verdicts if v.block in MEMORY and v.kept]))
        if self._shown.get(scope, shown) != shown:
            self._meter.count("pagefile_memory_changes_total")
        self._shown[scope] = shown

    def forget(self) -> None:
        self._shown.clear()
