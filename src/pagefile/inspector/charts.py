"""Charts as inline SVG, drawn without a script and without inline styles."""

from collections.abc import Sequence
from dataclasses import dataclass

from pagefile.inspector.markup import Content, Element, el

_WIDTH, _HEIGHT = 960, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 8, 12, 28
#: Marks on the vertical axis, above zero.
_MARKS = 4
#: Names below the horizontal axis, at most.
_TICKS = 10


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    value: int
    label: str


def stacked(parts: Sequence[Part], whole: int, label: str) -> Element:
    """Parts of a whole side by side; the remainder stays empty."""
    total = max(whole, sum(max(0, part.value) for part in parts), 1)
    at = 0.0
    pieces: list[Content] = []
    for part in parts:
        width = max(0, part.value) * 1000 / total
        if width > 0:
            # A gap separates neighbours for readers who cannot tell the colours apart.
            size, kind = f"{max(width - 1.5, 0.8):.2f}", f"b-{part.name}"
            pieces.append(_bar(el("title", part.label), x=f"{at:.2f}", width=size, height=28, class_=kind))
        at += width
    if whole and total > whole:
        pieces.append(_bar(x=f"{whole * 1000 / total:.2f}", width=2, height=28, class_="edge"))
    return _strip(pieces, "0 0 1000 28", "stack", role="img", aria_label=label)


def level(value: float, most: float, label: str) -> Element:
    share = min(1.0, value / most) if most else 0.0
    return gauge(share, "full" if share >= 0.75 else "fill", role="img", aria_label=label)


def gauge(share: float, class_: str, **more: object) -> Element:
    filled = _bar(x=0, width=f"{share * 100:.1f}", height=6, class_=class_)
    return _strip(filled, "0 0 100 6", "level", **more)


def span(start: float, width: float, label: str) -> Element:
    """A part of a whole: when something happened, and how long it took."""
    filled = _bar(x=f"{start * 100:.2f}", width=f"{max(width * 100, 0.4):.2f}", height=6, class_="fill")
    return _strip(filled, "0 0 100 6", "level span", role="img", aria_label=label)


def _bar(*inside: Content, **attributes: object) -> Element:
    return el("rect", *inside, y=0, **attributes)


def _strip(inside: Content, box: str, class_: str, **more: object) -> Element:
    return el("svg", inside, viewBox=box, preserveAspectRatio="none", class_=class_, **more)


@dataclass(frozen=True, slots=True)
class Point:
    tokens: int
    without: int | None
    href: str
    label: str
    #: What is written below it, if there is room.
    tick: str = ""


class _Scale:
    def __init__(self, points: int, most: int) -> None:
        self.top = _nice(most)
        self.step = (_WIDTH - _LEFT - _RIGHT) / max(points, 1)
        self.width = min(self.step * 0.7, 26)

    def x(self, index: int) -> float:
        return _LEFT + (index + 0.5) * self.step

    def y(self, value: int) -> float:
        return _HEIGHT - _BOTTOM - value / self.top * (_HEIGHT - _TOP - _BOTTOM)

    def line(self, value: int, class_: str) -> Element:
        y = f"{self.y(value):.1f}"
        return el("line", x1=f"{_LEFT:.1f}", y1=y, x2=f"{_WIDTH - _RIGHT:.1f}", y2=y, class_=class_)

    def mark(self, value: int) -> Element:
        y = f"{self.y(value) + 4:.1f}"
        return el("text", short(value), x=_LEFT - 8, y=y, class_="axis", text_anchor="end")

    def tick(self, index: int, text: str) -> Element:
        return el(
            "text",
            text,
            x=f"{self.x(index):.1f}",
            y=_HEIGHT - _BOTTOM + 18,
            class_="axis",
            text_anchor="middle",
        )

    def column(self, index: int, point: Point) -> Element:
        """A point's cost, with an area to touch that is as high as the chart."""
        x, y, height = self.x(index), self.y(point.tokens), _HEIGHT - _TOP - _BOTTOM

        def box(width: float, y: object, height: object, **more: object) -> Element:
            return el("rect", x=f"{x - width / 2:.1f}", y=y, width=f"{width:.1f}", height=height, **more)

        touch = box(self.step, _TOP, height, class_="touch")
        filled = box(self.width, f"{y:.1f}", f"{max(1.0, self.y(0) - y):.1f}", rx=2, class_="with")
        return el("a", el("title", point.label), touch, filled, href=point.href, aria_label=point.label)


def costs(points: Sequence[Point], budget: int, label: str) -> Element:
    """Each call's cost as a column, and its cost without Pagefile as a line."""
    most = max([budget, *(point.tokens for point in points), *(point.without or 0 for point in points)])
    scale = _Scale(len(points), most)
    marks = [scale.top * mark // _MARKS for mark in range(_MARKS + 1)]
    line = [
        (f"{scale.x(index):.1f}", f"{scale.y(point.without):.1f}")
        for index, point in enumerate(points)
        if point.without is not None
    ]
    drawn: list[Content] = [
        [scale.line(mark, "grid") for mark in marks],
        [scale.mark(mark) for mark in marks],
        [scale.tick(index, points[index].tick) for index in _ticked(points)],
        scale.line(budget, "budget") if budget else None,
        el("polyline", points=" ".join(f"{x},{y}" for x, y in line), class_="without") if line else None,
        [scale.column(index, point) for index, point in enumerate(points)],
        [el("circle", cx=x, cy=y, r=3, class_="without-dot") for x, y in line],
    ]
    size = f"0 0 {_WIDTH} {_HEIGHT}"
    return el("svg", drawn, viewBox=size, role="group", aria_label=label, class_="chart")


def _ticked(points: Sequence[Point]) -> Sequence[int]:
    """Which points are named: about as many as fit, evenly spaced."""
    every = -(-len(points) // _TICKS) or 1
    return range((every - 1) // 2, len(points), every)


def short(value: int) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= 1000 else str(value)


def _nice(most: int) -> int:
    """The next round number divisible by four."""
    unit = 4
    while unit * 10 < most:
        unit *= 10
    return next(unit * times for times in (1, 2, 3, 4, 5, 6, 8, 10) if unit * times >= most)
