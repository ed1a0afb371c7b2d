"""Metrics at a glance: what Prometheus reads from `/metrics`, for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from pagefile.engine import Memory
from pagefile.inspector.frame import View, card, empty, figures, num, table, th
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import code
from pagefile.inspector.reader import Reader, words
from pagefile.records import JsonObject


@dataclass(frozen=True, slots=True)
class Measure:
    """One series: a counter, or a histogram's count and sum."""

    name: str
    tells: str
    labels: str
    count: float
    #: For a histogram: the sum of its observations, and upper bounds for its median and 95th percentile.
    total: float | None = None
    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True)
class Metrics:
    """Everything measured since the start, and what the service runs on."""

    measures: tuple[Measure, ...]
    runs_on: JsonObject


async def gather(memory: Memory, measures: Sequence[Measure], *, whole: bool) -> Metrics:
    """`whole`: also include what the service runs on, if the caller may see it."""
    return Metrics(tuple(measures), await memory.describe() if whole else {})


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """The upper bound of the bucket that contains a quantile; buckets are (upper bound, cumulative count)."""
    most = buckets[-1][1] if buckets else 0
    return next((edge for edge, count in buckets if count >= share * most), None) if most else None


def show(data: Metrics, reader: Reader) -> View:
    """The page."""
    say = reader.say
    counted = {measure.name: 0.0 for measure in data.measures}
    for measure in data.measures:
        counted[measure.name] += measure.count
    glance = figures(
        *(
            (say(f"metric.{name}"), reader.number(counted.get(f"pagefile_{name}", 0.0)))
            for name in (
                "turns_total",
                "window_tokens",
                "recalls_total",
                "page_faults_total",
                "checkpoints_total",
                "degraded_total",
            )
        )
    )
    body: list[Content] = [
        glance,
        card(_table(data, reader), title=say("metrics.all")) if data.measures else empty(say("metrics.none")),
        card(code(data.runs_on), title=say("metrics.runs_on")) if data.runs_on else None,
    ]
    lead = [say("metrics.lead"), " ", el("a", "/metrics", href="/metrics")]
    return View(say("nav.metrics"), body, lead=lead)


def _table(data: Metrics, reader: Reader) -> Element:
    say = reader.say
    head: list[Content] = [
        th(say("metrics.name")),
        th(say("metrics.count"), number=True),
        th(say("metrics.mean"), number=True),
        th("p50 ≤", number=True),
        th("p95 ≤", number=True),
    ]
    rows = [
        _row(measure, reader)
        for _, group in groupby(data.measures, lambda one: one.name)
        for measure in group
    ]
    return table(head, list[Content](rows), caption=say("metrics.all"))


def _row(measure: Measure, reader: Reader) -> Element:
    def told(value: float | None) -> str:
        if value is None:
            return "–"
        if measure.name.endswith("_seconds"):
            return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"
        return reader.number(value)

    mean = measure.total / measure.count if measure.total is not None and measure.count else None
    labels = el("span", measure.labels, class_="tag") if measure.labels else None
    return el(
        "tr",
        el("th", el("code", measure.name), labels, el("small", _tells(measure, reader)), scope="row"),
        num(reader.number(measure.count)),
        num(told(mean)),
        num(told(measure.p50)),
        num(told(measure.p95)),
    )


def _tells(measure: Measure, reader: Reader) -> str:
    """A metric's description, in the reader's language if there is a translation."""
    return reader.say(f"tells.{measure.name}") if f"tells.{measure.name}" in words() else measure.tells
