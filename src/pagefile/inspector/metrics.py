"""Metrics at a glance: what Prometheus reads from `/metrics`, for people."""

from collections.abc import Sequence
from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.inspector import ui
from pagefile.inspector.markup import Content, el
from pagefile.inspector.page_request import Reader, words
from pagefile.records import JsonObject


@dataclass(frozen=True, slots=True)
class Spread:
    """The observations of a histogram: their sum, and upper bounds for their median and 95th percentile."""

    total: float
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Measure:
    """One series: a counter, or a histogram."""

    name: str
    tells: str
    labels: str
    count: float
    #: None for a counter.
    spread: Spread | None


@dataclass(frozen=True, slots=True)
class Metrics:
    measures: tuple[Measure, ...]
    runs_on: JsonObject


async def gather(memory: Memory, measures: Sequence[Measure], *, whole: bool) -> Metrics:
    """`whole`: also include what the service runs on, if the caller may see it."""
    return Metrics(tuple(measures), await memory.describe() if whole else {})


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """The upper bound of the bucket that contains a quantile; buckets are (upper bound, cumulative count)."""
    most = buckets[-1][1] if buckets else 0
    return next((edge for edge, count in buckets if count >= share * most), None) if most else None


def show(data: Metrics, reader: Reader) -> ui.View:
    say = reader.say
    counted = {key: 0.0 for key in words() if key.startswith("metric.")}
    for measure in data.measures:
        key = f"metric.{measure.name.removeprefix('pagefile_')}"
        if key in counted:
            counted[key] += measure.count
    columns = {"metrics.name": "row", **ui.numbers("metrics.count", "metrics.mean", "p50 ≤", "p95 ≤")}
    rows = [_row(measure, reader) for measure in data.measures]
    everything = ui.card(say("metrics.all"), ui.table(reader, say("metrics.all"), columns, rows))
    body: list[Content] = [
        ui.figures(reader, {key: reader.number(count) for key, count in counted.items()}),
        everything if rows else ui.empty(say("metrics.none")),
        ui.card(say("metrics.runs_on"), ui.code(data.runs_on)) if data.runs_on else None,
    ]
    lead = [say("metrics.lead"), " ", el("a", "/metrics", href="/metrics")]
    return ui.View(say("nav.metrics"), body, lead=lead)


def _row(measure: Measure, reader: Reader) -> tuple[ui.Value, ...]:
    def as_text(value: float | None) -> str:
        if value is None:
            return "–"
        if measure.name.endswith("_seconds"):
            return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"
        return reader.number(value)

    spread = measure.spread
    mean = spread.total / measure.count if spread and measure.count else None
    bounds = (spread.p50, spread.p95) if spread else (None, None)
    about = reader.known(f"tells.{measure.name}", measure.tells)
    name = [el("code", measure.name), ui.some("span", measure.labels, class_="tag"), el("small", about)]
    return name, reader.number(measure.count), *map(as_text, (mean, *bounds))
