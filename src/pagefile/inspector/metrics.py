"""Metrics at a glance: what Prometheus reads from `/metrics`, for people."""

from collections.abc import Sequence
from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.engine.usage import MOST_CALLS, Day, Usage, usage
from pagefile.inspector import ui, urls
from pagefile.inspector.charts import Point, costs
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader, words
from pagefile.records import JsonObject

_DAYS_SHOWN, _ROWS_OPEN = 60, 14


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
    #: From what is stored, whichever process wrote it.
    usage: Usage


async def gather(memory: Memory, measures: Sequence[Measure], asked: PageRequest, *, whole: bool) -> Metrics:
    """`whole`: also include what the service runs on, if the caller may see it."""
    used = await usage(memory, **asked.owner)
    return Metrics(tuple(measures), await memory.describe() if whole else {}, used)


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
    figures = ui.figures(reader, {key: reader.number(count) for key, count in counted.items()})
    body: list[Content] = [
        _usage(data.usage, reader),
        ui.card(say("metrics.process"), ui.soft(say("metrics.process_about")), figures),
        everything if rows else ui.empty(say("metrics.none")),
        ui.card(say("metrics.runs_on"), ui.code(data.runs_on)) if data.runs_on else None,
    ]
    user = ui.user_field(reader)
    if user is not None:
        go = ui.button(reader, "ask.show", None)
        body.insert(0, ui.asking_form(reader, "nav.metrics", user, button=go))
    lead = [say("metrics.lead"), " ", el("a", "/metrics", href="/metrics")]
    return ui.View(say("nav.metrics"), body, lead=lead)


def _usage(data: Usage, reader: Reader) -> Element:
    """A column for each day, and the same in numbers."""
    say, number = reader.say, reader.number
    if not data.days:
        return ui.card(say("usage.title"), ui.empty(say("usage.none"), say("calls.none_about")))
    shown = data.days[-_DAYS_SHOWN:]

    def point(day: Day) -> Point:
        label = say(
            "usage.point", day=day.day.isoformat(), calls=number(day.calls), tokens=number(day.tokens)
        )
        place = reader.asked.here(urls.SEARCH, since=day.day, until=day.day)
        return Point(day.tokens, None, place, label, f"{day.day:%m-%d}")

    columns = {
        "usage.day": "row when",
        **ui.numbers("usage.calls", "usage.tokens", "usage.mean", "usage.largest"),
    }
    columns |= ui.numbers("usage.fill", "traffic.latency")
    columns |= ui.numbers("traffic.price") if data.currency else {}

    def row(day: Day) -> tuple[ui.Value, ...]:
        latency = "–" if day.seconds is None else f"{day.seconds:.2f} s"
        price = (
            () if not data.currency else ("–" if day.price is None else ui.price(day.price, data.currency),)
        )
        mean = round(day.tokens / day.calls)
        counts = day.calls, day.tokens, mean, day.largest
        return day.day.isoformat(), *counts, reader.percent(day.ratio), latency, *price

    chart = costs([point(day) for day in shown], 0, say("usage.chart"))
    listed = ui.table(reader, say("usage.title"), columns, map(row, reversed(shown)))
    table = el("details", el("summary", say("usage.numbers")), listed, open=len(shown) <= _ROWS_OPEN)
    more = ui.soft(say("usage.more", n=number(MOST_CALLS))) if data.more else None
    scrolled = ui.scrolling(chart, say("usage.chart"), class_="scroll")
    return ui.card(say("usage.title"), ui.soft(say("usage.chart")), scrolled, table, more)


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
