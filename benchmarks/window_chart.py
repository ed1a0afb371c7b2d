"""The picture of `pagefile bench window`: the share of the evidence that a window holds, by its size, beside finds packed into the same.

There is one for light pages and one for dark ones: a page may be dark where the reader's system is not.

.venv/bin/python -m benchmarks.window_chart docs/benchmarks/window.json docs/benchmarks/window.svg docs/benchmarks/window-dark.svg
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.window_evidence import BUDGETS
from benchmarks.window_parts import PLAIN, RECALL, WINDOW
from pagefile.inspector.markup import Element, el

_WIDTH, _HEIGHT, _LEFT, _TOP, _PLOT = 300, 250, 44, 34, 180
#: Each way has a colour that everybody can tell apart, on light and on dark, and dashes of its own.
WAYS = {
    f"{WINDOW}, new": ("#0072b2", "#56b4e9", ""),
    RECALL: ("#d55e00", "#e69f00", "6 3"),
    PLAIN: ("#666666", "#aaaaaa", "2 3"),
}


def evidence_chart(rows: Sequence[Mapping[str, Any]], *, dark: bool = False) -> str:
    """The curves of all sets that have some, as an SVG file."""
    sets = list(dict.fromkeys(row["set"] for row in rows if row["way"] in WAYS))
    panels = [
        el("g", list(_panel(name, rows)), transform=f"translate({n * _WIDTH} 0)")
        for n, name in enumerate(sets)
    ]
    legend = [
        el(
            "g",
            _line([(0, 0), (30, 0)], way),
            _text(way, 38, 4, "start"),
            transform=f"translate({60 + 220 * n} {_HEIGHT})",
        )
        for n, way in enumerate(WAYS)
    ]
    width, height = len(sets) * _WIDTH, _HEIGHT + 20
    title = el("title", "Share of the evidence in the window, by its size in tokens")
    paper = el("rect", class_="paper", x=0, y=0, width=width, height=height)
    style = el("style", _colours(int(dark)))
    box = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {width} {height}",
        "font-family": "sans-serif",
    }
    return f"{el('svg', title, style, paper, panels, legend, **box)}\n"


def _colours(dark: int) -> str:
    """The style sheet, light or dark."""
    paper, ink, grid = (("#ffffff", "#222222", "#dddddd"), ("#0d1117", "#e6edf3", "#30363d"))[dark]
    lines = "".join(f".way{n}{{stroke:{colours[dark]}}}" for n, colours in enumerate(WAYS.values()))
    return f".paper{{fill:{paper}}}text{{fill:{ink}}}.grid{{stroke:{grid}}}{lines}"


def _panel(name: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[Element]:
    yield _text(name, _LEFT, 20, "start")
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield el("line", x1=_LEFT, x2=_x(3), y1=_y(share), y2=_y(share), class_="grid")
        yield _text(f"{share:.0%}", _LEFT - 6, _y(share) + 4, "end")
    for number, budget in enumerate(BUDGETS):
        yield _text(f"{budget:,}", _x(number), _TOP + _PLOT + 18, "middle")
    for way in WAYS:
        found = {
            row["budget"]: row["figures"]["share"] for row in rows if (row["set"], row["way"]) == (name, way)
        }
        yield _line([(_x(n), _y(found[budget])) for n, budget in enumerate(BUDGETS) if budget in found], way)


def _line(points: Sequence[tuple[float, float]], way: str) -> Element:
    *_, dashes = WAYS[way]
    number = list(WAYS).index(way)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    more = {"stroke-width": 2.2, "stroke-dasharray": dashes} if dashes else {"stroke-width": 2.2}
    return el("polyline", points=path, fill="none", class_=f"way{number}", **more)


def _text(text: str, x: float, y: float, anchor: str) -> Element:
    return el("text", text, x=x, y=y, **{"text-anchor": anchor, "font-size": 12})


def _x(number: int) -> float:
    return _LEFT + 12 + number * (_WIDTH - _LEFT - 40) / 3


def _y(share: float) -> float:
    return _TOP + _PLOT * (1 - share)


if __name__ == "__main__":
    source, *targets = map(Path, sys.argv[1:4])
    for target, is_dark in zip(targets, (False, True), strict=True):
        target.write_text(
            evidence_chart(json.loads(source.read_text("utf-8"))["rows"], dark=is_dark), "utf-8"
        )
