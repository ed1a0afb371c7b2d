"""Charts as inline SVG, drawn without a script and without inline styles."""

from collections.abc import Sequence
from dataclasses import dataclass

from pagefile.inspector.markup import Content, Element, el

_WIDTH, _HEIGHT = 960, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 8, 12, 28


@dataclass(frozen=True, slots=True)
class Part:
    """A segment of a stacked bar."""

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
            shown = max(width - 1.5, 0.8)
            title = el("title", part.label)
            pieces.append(
                el(
                    "rect",
                    title,
                    x=f"{at:.2f}",
                    y=0,
                    width=f"{shown:.2f}",
                    height=28,
                    class_=f"b-{part.name}",
                )
            )
        at += width
    if whole and total > whole:
        edge = whole * 1000 / total
        pieces.append(el("rect", x=f"{edge:.2f}", y=0, width=2, height=28, class_="edge"))
    return el(
        "svg",
        pieces,
        viewBox="0 0 1000 28",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        class_="stack",
    )


def level(value: float, most: float, label: str) -> Element:
    """A level gauge."""
    share = min(1.0, value / most) if most else 0.0
    filled = el(
        "rect", x=0, y=0, width=f"{share * 100:.1f}", height=6, class_="full" if share >= 0.75 else "fill"
    )
    return el(
        "svg",
        filled,
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        class_="level",
    )


@dataclass(frozen=True, slots=True)
class Point:
    """One call in the chart."""

    tokens: int
    without: int | None
    href: str
    label: str


def costs(points: Sequence[Point], budget: int, label: str) -> Element:
    """Each call's cost as a column, and its cost without Pagefile as a line."""
    most = max([budget, *(point.tokens for point in points), *(point.without or 0 for point in points)])
    top = _nice(most)
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(points), 1)
    width = min(step * 0.7, 26)

    def y(value: int) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)

    def x(index: int) -> float:
        return _LEFT + (index + 0.5) * step

    grid = [
        _line(_LEFT, y(top * part // 4), _WIDTH - _RIGHT, y(top * part // 4), "grid") for part in range(5)
    ]
    marks = [
        el(
            "text",
            short(top * part // 4),
            x=_LEFT - 8,
            y=f"{y(top * part // 4) + 4:.1f}",
            class_="axis",
            text_anchor="end",
        )
        for part in range(5)
    ]
    columns = [
        el(
            "a",
            el("title", point.label),
            el(
                "rect",
                x=f"{x(index) - step / 2:.1f}",
                y=_TOP,
                width=f"{step:.1f}",
                height=_HEIGHT - _TOP - _BOTTOM,
                class_="touch",
            ),
            el(
                "rect",
                x=f"{x(index) - width / 2:.1f}",
                y=f"{y(point.tokens):.1f}",
                width=f"{width:.1f}",
                height=f"{max(1.0, y(0) - y(point.tokens)):.1f}",
                rx=2,
                class_="with",
            ),
            href=point.href,
            aria_label=point.label,
        )
        for index, point in enumerate(points)
    ]
    line = [f"{x(i):.1f},{y(one.without):.1f}" for i, one in enumerate(points) if one.without is not None]
    dots = [
        el("circle", cx=f"{x(i):.1f}", cy=f"{y(one.without):.1f}", r=3, class_="without-dot")
        for i, one in enumerate(points)
        if one.without is not None
    ]
    return el(
        "svg",
        grid,
        marks,
        _line(_LEFT, y(budget), _WIDTH - _RIGHT, y(budget), "budget") if budget else None,
        el("polyline", points=" ".join(line), class_="without") if line else None,
        columns,
        dots,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="group",
        aria_label=label,
        class_="chart",
    )


def short(value: int) -> str:
    """A number abbreviated for an axis."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= 1000 else str(value)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    return el("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)


def _nice(most: int) -> int:
    """The next round number divisible by four."""
    unit = 4
    while unit * 10 < most:
        unit *= 10
    return next(unit * times for times in (1, 2, 3, 4, 5, 6, 8, 10) if unit * times >= most)
