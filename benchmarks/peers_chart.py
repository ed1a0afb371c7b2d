"""The picture of `pagefile bench peers`: how times, memory and disk grow with the conversation, on scales of powers of ten."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagefile.inspector.markup import Content, Element, el

_PANEL_WIDTH, _PANEL_HEIGHT = 460, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 28, 34, 34
_COLUMNS = 2
_LEGEND_ROW = 18
#: Told apart by those who see no difference between red and green; each line has its own dashes besides.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#8c6d00", "#666666", "#b22222")
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4", "4 2 1 2", "3 6")


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    what: str
    unit: str
    times: float = 1.0


_PANELS = (
    _Panel("Record a turn", "record_ms", "ms"),
    _Panel("Make a prompt", "context_ms", "ms"),
    _Panel("Recall", "recall_ms", "ms"),
    _Panel("Memory of the process, at most", "peak_mb", "MB"),
    _Panel("Disk", "disk_bytes", "MB", 1e-6),
    _Panel("Said details found", "said_share", "%", 100.0),
)

Point = tuple[float, float]


def growth_chart(made: Mapping[str, Any]) -> str:
    """The curves of a report as an SVG file."""
    curves = [peer for peer in made["peers"] if peer["status"] == "measured"]
    rows = math.ceil(len(_PANELS) / _COLUMNS)
    legend = math.ceil(len(curves) / _COLUMNS) * _LEGEND_ROW + 10
    width, height = _COLUMNS * _PANEL_WIDTH, rows * _PANEL_HEIGHT + legend
    panels = [
        el(
            "g",
            _panel(panel, curves),
            transform=f"translate({number % _COLUMNS * _PANEL_WIDTH} {number // _COLUMNS * _PANEL_HEIGHT})",
        )
        for number, panel in enumerate(_PANELS)
    ]
    svg = el(
        "svg",
        el("title", "Pagefile beside others as a conversation grows"),
        el("rect", x=0, y=0, width=width, height=height, fill="#ffffff"),
        panels,
        el("g", list(_legend(curves)), transform=f"translate(0 {rows * _PANEL_HEIGHT})"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        font_family="sans-serif",
        font_size=11,
    )
    return f"{svg}\n"


def _panel(panel: _Panel, curves: Sequence[Mapping[str, Any]]) -> list[Content]:
    drawn = [(number, list(_points(panel, curve))) for number, curve in enumerate(curves)]
    every = [point for _, points in drawn for point in points]
    heading = el("text", f"{panel.title} ({panel.unit})", x=_LEFT, y=18, font_size=13, fill="#111111")
    if not every:
        return [heading]
    across = _Scale([x for x, _ in every], _LEFT, _PANEL_WIDTH - _RIGHT)
    up = _Scale([y for _, y in every], _PANEL_HEIGHT - _BOTTOM, _TOP)
    return [
        heading,
        [_grid(up.at(value), f"{value:g}") for value in up.marks],
        [_mark(across.at(value), f"{value:,g}") for value in across.marks],
        el("text", "turns", x=_PANEL_WIDTH - _RIGHT, y=_PANEL_HEIGHT - 6, text_anchor="end", fill="#555555"),
        # Pagefile comes first and is drawn last, on top.
        [_curve(number, [(across.at(x), up.at(y)) for x, y in points]) for number, points in reversed(drawn)],
    ]


def _points(panel: _Panel, curve: Mapping[str, Any]) -> Iterator[Point]:
    """Turns and value; what is nothing has no place on a scale of powers of ten."""
    for point in curve["growth"]["points"]:
        if point[panel.what]:
            yield point["turns"], point[panel.what] * panel.times


class _Scale:
    """Powers of ten from one end to the other."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self._low = math.floor(math.log10(min(values)))
        self._high = max(self._low + 1, math.ceil(math.log10(max(values))))
        self._start, self._end = start, end
        self.marks = [10.0**power for power in range(self._low, self._high + 1)]

    def at(self, value: float) -> float:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)


def _grid(y: float, label: str) -> list[Content]:
    return [
        el("line", x1=_LEFT, y1=f"{y:.1f}", x2=_PANEL_WIDTH - _RIGHT, y2=f"{y:.1f}", stroke="#dddddd"),
        el("text", label, x=_LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end", fill="#555555"),
    ]


def _mark(x: float, label: str) -> Element:
    return el(
        "text", label, x=f"{x:.1f}", y=_PANEL_HEIGHT - _BOTTOM + 15, text_anchor="middle", fill="#555555"
    )


def _curve(number: int, points: Sequence[Point]) -> list[Content]:
    colour = _COLOURS[number % len(_COLOURS)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [
        el("polyline", points=line, **_stroke(number)) if len(points) > 1 else None,
        [el("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=3, fill=colour) for x, y in points],
    ]


def _stroke(number: int) -> dict[str, object]:
    return {
        "fill": "none",
        "stroke": _COLOURS[number % len(_COLOURS)],
        "stroke_width": 3 if number == 0 else 1.5,
        "stroke_dasharray": _DASHES[number % len(_DASHES)] or None,
    }


def _legend(curves: Sequence[Mapping[str, Any]]) -> Iterator[Content]:
    for number, curve in enumerate(curves):
        x = _LEFT + number % _COLUMNS * _PANEL_WIDTH
        y = 14 + number // _COLUMNS * _LEGEND_ROW
        stopped = curve["growth"]["stopped"]
        told = f"{curve['name']} {curve['version']}" + (f", stopped at {stopped:,} turns" if stopped else "")
        yield el("line", x1=x, y1=y - 4, x2=x + 28, y2=y - 4, **_stroke(number))
        yield el("text", told, x=x + 36, y=y, fill="#111111")
