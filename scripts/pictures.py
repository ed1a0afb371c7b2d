"""Make the pictures of the READMEs and of docs/: `make pictures`.

Each is taken from the inspector of a service that runs here, over the conversations of `pagefile demo`; none is drawn by hand.
Needs Chromium (`sudo apt-get install chromium`, or CHROMIUM names one) and Pillow, which is in no lock because only this script
uses it: `uv pip install pillow` (or pip). Look at what it made before you commit it.
"""

import base64
import io
import json
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx

sys.path.insert(0, str(Path(__file__).parents[1]))

from pagefile import Settings
from pagefile.inspector import urls
from pagefile.inspector.demo import fill_demo
from tests.acceptance.http_server import listening
from tests.integration.browser.chromium import Chromium, Tab, chromium, chromium_path

try:
    from PIL import Image
except ImportError:
    sys.exit(
        "Pillow is not installed here: run `uv pip install pillow` (or `pip install pillow`), then try again."
    )

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
#: The smaller window of the replay.
REPLAY_TOKENS = 4000
WIDTH, HEIGHT = 1000, 640
FRAME_MS = 3500
COLOURS = 96

#: How the browser hands over its own chart: every colour and size resolved, links taken out.
_CHART = """(() => {
  const chart = document.querySelector("svg.chart"), copy = chart.cloneNode(true);
  const from = [chart, ...chart.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  const properties = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "text-anchor"];
  from.forEach((one, index) => {
    const style = getComputedStyle(one);
    if (["A", "TITLE", "SVG"].includes(one.tagName.toUpperCase())) return;
    for (const name of properties) to[index].setAttribute(name, style.getPropertyValue(name));
    to[index].removeAttribute("class");
  });
  copy.querySelectorAll("title, .touch, [fill='rgba(0, 0, 0, 0)'][stroke='none']").forEach(one => one.remove());
  copy.querySelectorAll("a").forEach(one => one.replaceWith(...one.childNodes));
  const ink = getComputedStyle(document.body).color, paper = getComputedStyle(chart.closest(".card") ?? document.body).backgroundColor;
  return {drawn: copy.innerHTML, box: chart.viewBox.baseVal.height, ink, paper,
          bar: getComputedStyle(chart.querySelector(".with")).fill, line: getComputedStyle(chart.querySelector(".without")).stroke};
})()"""

#: A caption across the lower edge, as part of the page that is photographed.
_CAPTION = """((text) => {
  document.querySelectorAll("#caption").forEach(one => one.remove());
  const band = document.createElement("div");
  band.id = "caption";
  band.textContent = text;
  Object.assign(band.style, {position: "fixed", left: 0, right: 0, bottom: 0, padding: "14px 24px", zIndex: 99,
    font: "600 21px/1.35 system-ui, sans-serif", color: "#fff", background: "#0a5fb4"});
  document.body.append(band);
})"""


@dataclass(frozen=True, slots=True)
class Edition:
    """The pictures of one language: which conversations of the demo they show, and their words."""

    language: str
    suffix: str
    #: A long conversation, for the chart.
    long: dict[str, str]
    #: One in which a tool returns a long result at this turn, for the film.
    paged: dict[str, str]
    turn: int
    title: str
    subtitle: str
    legend: tuple[str, str, str]
    captions: tuple[str, str, str, str]


ENGLISH = Edition(
    "en",
    "",
    {"conversation_id": "demo-support", "user_id": "demo-marta"},
    {"conversation_id": "demo-coding", "user_id": "demo-jonas"},
    69,
    "Prompt tokens per model call, one long conversation",
    "{less:.0%} fewer tokens than sending the whole history; anything left out can be recalled or loaded",
    (
        "with Pagefile: {spent:,} tokens in {calls} calls",
        "the whole history in every call: {without:,}",
        "the window: {budget:,}",
    ),
    (
        "1  A tool returns a long log. It is archived; the window keeps a placeholder.",
        "2  Every call stays within its budget, however long the conversation gets.",
        "3  Each call has a bill: what was sent, what was left out, and why.",
        "4  Replay it with {replayed:,} tokens instead of {budget:,}, and see what changes.",
    ),
)
CHINESE = Edition(
    "zh",
    "-zh",
    {"conversation_id": "demo-clinic", "user_id": "demo-lin"},
    {"conversation_id": "demo-clinic", "user_id": "demo-lin"},
    53,
    "一段长会话中每次模型调用的提示词 token",
    "比每次发送完整历史少 {less:.0%}；舍去的内容随时可以召回或加载",
    ("用 Pagefile：{calls} 次调用共 {spent:,}", "每次都发送完整历史：{without:,}", "窗口：{budget:,}"),
    (
        "1  工具返回了很长的结果：存档，窗口里只留占位符。",
        "2  会话再长，每次调用都在预算之内。",
        "3  每次调用都有账单：发送了什么，舍去了什么，为什么。",
        "4  把窗口从 {budget:,} 改成 {replayed:,} 重放一次，看看有什么不同。",
    ),
)


@dataclass(frozen=True, slots=True)
class Shot:
    """What is photographed: a page, scrolled to an element (by default its top), with a caption or without."""

    address: str
    #: An expression for the element that comes to the top.
    to: str | None = None
    caption: str | None = None
    #: What is folded in that element is opened.
    opened: bool = False
    height: int = HEIGHT


class Site:
    """The service over the demo, and a browser in front of it."""

    def __init__(self, base: str, browser: Chromium) -> None:
        self._base = base
        self._browser = browser

    def address(self, path: str, **query: object) -> str:
        return f"{self._base}{path}?{urlencode(query)}"

    def data(self, path: str, **query: object) -> Any:
        """What a page's JSON twin has."""
        return httpx.get(self.address(urls.twin(path), **query)).json()

    def tab(self, *, dark: bool, height: int = HEIGHT, language: str = "en") -> Tab:
        return self._browser.tab(width=WIDTH, height=height, dark=dark, language=language)


def chart(site: Site, edition: Edition, *, dark: bool) -> str:
    """The chart of the calls page as a picture of its own: what each call cost, and what it would have cost."""
    tab = site.tab(dark=dark)
    tab.go(site.address(urls.CALLS, **edition.long))
    found = tab.run(_CHART)
    costs = [
        one for one in site.data(urls.CALLS, **edition.long)["costs"] if one["tokens_without"] is not None
    ]
    spent, without = (sum(one[name] for one in costs) for name in ("tokens", "tokens_without"))
    figures = {"spent": spent, "without": without, "calls": len(costs), "budget": costs[-1]["budget"]}
    top, height = 76, found["box"] + 76 + 42
    keys, at = [], 64
    for colour, text in zip((found["bar"], found["line"], None), edition.legend, strict=True):
        words = text.format(**figures)
        if colour:
            keys.append(f'<rect x="{at}" y="{height - 27}" width="12" height="12" rx="3" fill="{colour}"/>')
        else:
            dashes = f'stroke="{found["ink"]}" stroke-width="2" stroke-dasharray="5 4"'
            keys.append(f'<path d="M{at} {height - 21}h14" {dashes}/>')
        keys.append(f'<text x="{at + 20}" y="{height - 16}" font-size="14">{words}</text>')
        at += 46 + round(sum(14 if ord(letter) > 0x2E7F else 7.1 for letter in words))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 {height}" font-family="system-ui, sans-serif" '
        f'fill="{found["ink"]}"><rect width="960" height="{height}" rx="10" fill="{found["paper"]}"/>'
        f'<text x="24" y="36" font-size="20" font-weight="700">{edition.title}</text>'
        f'<text x="24" y="60" font-size="14">{edition.subtitle.format(less=1 - spent / without)}</text>'
        f'<g transform="translate(0 {top})">{found["drawn"]}</g>{"".join(keys)}</svg>\n'
    )


def film(site: Site, edition: Edition, *, dark: bool) -> bytes:
    """A tool result is paged out, the call has its bill, and the call is replayed with a smaller window."""
    paged = edition.paged
    calls = [one for one in site.data(urls.CALLS, **paged)["costs"] if one["seq"] > edition.turn]
    call = next(one for one in calls if one["tokens"] > REPLAY_TOKENS)
    replayed = {"call_id": call["call_id"], "set.window_tokens": REPLAY_TOKENS}
    shown = [one.format(budget=call["budget"], replayed=REPLAY_TOKENS) for one in edition.captions]
    chart_card, compared = (
        "document.querySelector('svg.chart').closest('.card')",
        "document.querySelectorAll('.card')[1]",
    )
    shots = [
        _turn(site, edition, shown[0]),
        Shot(site.address(urls.CALLS, **paged), chart_card, shown[1]),
        Shot(site.address(urls.CALL, call_id=call["call_id"]), caption=shown[2]),
        Shot(site.address(urls.REPLAY, **replayed), compared, shown[3]),
    ]
    tab = site.tab(dark=dark, language=edition.language)
    frames = [_photographed(tab, shot) for shot in shots]
    size = (WIDTH * 86 // 100, HEIGHT * 86 // 100)
    few = [
        one.resize(size, Image.Resampling.LANCZOS).quantize(COLOURS, dither=Image.Dither.NONE)
        for one in frames
    ]
    made = io.BytesIO()
    few[0].save(made, "GIF", save_all=True, append_images=few[1:], duration=FRAME_MS, loop=0, optimize=True)
    return made.getvalue()


def _turn(site: Site, edition: Edition, caption: str | None = None) -> Shot:
    """The turn in which a tool returned a long result, with what the model sees in its place."""
    address = site.address(urls.CONVERSATION, **edition.paged, after=edition.turn - 3)
    return Shot(address, f"document.querySelector('#seq-{edition.turn}')", caption, opened=True)


def _photographed(tab: Tab, shot: Shot) -> Image.Image:
    tab.go(shot.address)
    if shot.caption:
        tab.run(f"{_CAPTION}({json.dumps(shot.caption)})")
    if shot.opened:
        tab.run(f"{shot.to}.querySelectorAll('details').forEach(one => one.open = true)")
    if shot.to:
        tab.run(f"scrollTo(0, {shot.to}.getBoundingClientRect().top + scrollY - 24)")
    taken = tab.ask("Page.captureScreenshot", format="png")
    return Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")


def page(site: Site, shot: Shot, *, dark: bool) -> bytes:
    """One page as a picture."""
    made = io.BytesIO()
    taken = _photographed(site.tab(dark=dark, height=shot.height), shot)
    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return made.getvalue()


def _pages(site: Site) -> dict[str, Shot]:
    """What How it works shows."""
    call = site.data(urls.CALLS, **ENGLISH.long)["costs"][-6]["call_id"]
    user = {"user_id": ENGLISH.long["user_id"]}
    return {
        "timeline": _turn(site, ENGLISH),
        "bill": Shot(site.address(urls.CALL, call_id=call), height=760),
        "recall": Shot(site.address(urls.RECALL, **user, q="What was wrong on the labels?"), height=760),
        "facts": Shot(site.address(urls.FACTS, **user), height=620),
    }


def badges() -> dict[str, str]:
    """What pyproject.toml says, and that there is no telemetry, as the small plates at the top of the README."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = {
        "python": ("Python", f"{project['requires-python'].removeprefix('>=')}+"),
        "licence": ("licence", project["license"]),
        "telemetry": ("telemetry", "none"),
        "types": ("types", "pyright strict"),
    }
    return {name: _badge(*words) for name, words in said.items()}


def _badge(label: str, value: str) -> str:
    left, right = (round(len(words) * 6.6) + 14 for words in (label, value))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {value}" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11" fill="#fff" '
        f'text-anchor="middle"><rect width="{left + right}" height="20" rx="4" fill="#4a5560"/>'
        f'<path d="M{left} 0h{right - 4}a4 4 0 0 1 4 4v12a4 4 0 0 1-4 4h-{right - 4}z" fill="#0a5fb4"/>'
        f'<text x="{left / 2}" y="14">{label}</text><text x="{left + right / 2}" y="14">{value}</text></svg>\n'
    )


def _written(name: str, content: bytes) -> None:
    (IMAGES / name).write_bytes(content)
    sys.stdout.write(f"docs/images/{name}: {len(content):,} bytes\n")


def main() -> None:
    """Fill a database, serve it, and take every picture in light and dark."""
    for name, badge in badges().items():
        _written(f"badge-{name}.svg", badge.encode())
    path = chromium_path()
    if path is None:
        sys.exit(
            "Chromium is not installed here: `sudo apt-get install chromium`, or set CHROMIUM to its path."
        )
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(url=f"sqlite:///{folder}/demo.db")
        anyio.run(fill_demo, settings)
        with listening(settings) as base, chromium(path) as browser:
            site = Site(base, browser)
            schemes: dict[str, bool] = {"light": False, "dark": True}
            for scheme, dark in schemes.items():
                for edition in (ENGLISH, CHINESE):
                    made = chart(site, edition, dark=dark)
                    _written(f"costs{edition.suffix}-{scheme}.svg", made.encode())
                    _written(f"film{edition.suffix}-{scheme}.gif", film(site, edition, dark=dark))
                for name, shot in _pages(site).items():
                    _written(f"{name}-{scheme}.png", page(site, shot, dark=dark))


if __name__ == "__main__":
    main()
