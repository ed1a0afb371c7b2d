"""The home page: what this is, what it holds, and a demo for an empty memory."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import TaskGroup

from pagefile.engine import Memory
from pagefile.errors import ConflictError, PagefileError
from pagefile.inspector import ui, urls
from pagefile.inspector.conversations import Row, conversations_table, rows_of
from pagefile.inspector.demo import fill_demo
from pagefile.inspector.frame import MENU
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader
from pagefile.records import JsonObject
from pagefile.settings import Settings

logger = logging.getLogger("pagefile")

_SHOWN = 8
_WAYS = MENU


@dataclass(frozen=True, slots=True)
class DemoState:
    """Progress of filling in the demo; all zero if it was not started."""

    done: int = 0
    total: int = 0
    running: bool = False
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    conversations: tuple[Row, ...]
    more: bool
    runs_on: JsonObject
    version: str
    base: str
    demo: DemoState


async def gather(memory: Memory, asked: PageRequest, *, version: str, base: str, demo: DemoState) -> Start:
    found = await memory.conversations(**asked.owner, limit=_SHOWN)
    rows = await rows_of(memory, found)
    return Start(rows, found.next is not None, await memory.describe(), version, base, demo)


def show(data: Start, reader: Reader) -> ui.View:
    say, latest = reader.say, None
    if data.conversations:
        link = el("p", reader.link(urls.CONVERSATIONS, say("start.all")), class_="more")
        table = conversations_table(data.conversations, reader)
        latest = ui.card(say("start.latest"), table, link if data.more else None)
    elif not data.demo.running:
        fill = ui.form(reader, urls.DEMO, ui.button(reader, "start.fill"), class_="inline")
        by_hand = ui.soft([say("start.or"), " ", el("code", "pagefile demo")])
        ways = el("p", say("start.empty")), None if reader.asked.bound else fill, by_hand
        latest = ui.card(say("start.empty_title"), *ways, class_="welcome")
    body = [_demo_state(data.demo, reader), latest, _ways(reader), _calling(data, reader)]
    return ui.View("Pagefile", body, lead=say("start.lead"), refresh_s=2 if data.demo.running else None)


def _demo_state(demo: DemoState, reader: Reader) -> Content:
    if demo.failed is not None:
        return ui.notice(reader.say("demo.failed", why=demo.failed), "bad")
    if not demo.running:
        return None
    label, progress = reader.say("demo.begins"), dict[str, int]()
    if demo.total:
        label = reader.say("demo.running", done=reader.number(demo.done), total=reader.number(demo.total))
        progress = {"value": demo.done, "max": demo.total}
    bar = el("progress", label, **progress, aria_label=label)
    again = el("p", reader.link(urls.HOME, reader.say("demo.look")))
    return ui.card(None, el("p", label), bar, again, class_="working", role="status")


def _ways(reader: Reader) -> Element:
    def way(path: str) -> Element:
        name, about = (reader.say(f"{family}.{urls.name(path)}") for family in ("nav", "way"))
        return el("li", reader.link(path, el("strong", name), el("span", about)))

    items = [way(path) for path in _WAYS]
    return el("section", el("h2", reader.say("start.ways")), el("ul", items, class_="ways"))


def _calling(data: Start, reader: Reader) -> Element:
    say = reader.say
    docs = el("a", say("start.docs"), href="/docs"), " · ", el("a", "OpenAPI", href="/openapi.json")
    others = {"start.health": "/healthz", "start.metrics": "/metrics"}
    links = [el("li", docs), *(el("li", el("a", say(key), href=href)) for key, href in others.items())]
    made = [
        (
            el("h3", say(f"start.{way}")),
            el("pre", say(f"start.{way}.how").replace("$base", data.base), tabindex="0"),
        )
        for way in ("gateway", "mcp", "python", "http")
    ]
    runs = ui.soft(say("start.service", version=data.version))
    return ui.card(say("start.calling"), *made, el("ul", links), runs)


def sign_in(reader: Reader, *, onward: str, failed: bool = False) -> ui.View:
    say = reader.say
    wrong = ui.notice(say("login.failed"), "bad") if failed else None
    secret: dict[str, Any] = {"kind": "password", "autocomplete": "current-password", "spellcheck": "false"}
    inside = ui.field_of(reader, "login.key", "key", required=True, **secret), ui.button(reader, "login.in")
    asked = ui.form(reader, urls.LOGIN, *inside, class_="stacked-form", next=onward)
    how = ui.soft([say("login.how"), " ", el("code", "pagefile keys add NAME")])
    body = [wrong, ui.card(say("login.title"), asked, how, class_="narrow")]
    return ui.View("Pagefile", body, lead=say("start.lead"), bare=True, twin=False)


def problem(title: str, detail: str, status: int, reader: Reader, *, code: str) -> ui.View:
    told = ui.notice(detail, "bad"), ui.soft(reader.say("problem.status", status=status, code=code))
    back = el("p", reader.link(urls.HOME, reader.say("problem.back")))
    title, lead = reader.known(f"problem.{code}", title), reader.known(f"problem.{code}.about", "")
    return ui.View(title, [*told, back], lead=lead, twin=False)


# -- the demo ------------------------------------------------------------------------------------------------------------


class Filling:
    """Fills in the demo while the service runs: one run at a time, with its progress visible to every reader."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self.state = DemoState()

    def start(self, settings: Settings) -> None:
        if self.state.running:
            raise ConflictError("The demo is already being filled in: reload in a moment.")
        self.state = DemoState(running=True)
        self._tasks.start_soon(self._fill, settings)

    async def _fill(self, settings: Settings) -> None:
        def report(done: int, total: int) -> None:
            self.state = DemoState(done, total, running=True)

        try:
            await fill_demo(settings, report)
        except PagefileError as error:
            logger.exception("the demo could not be filled in")
            self.state = DemoState(failed=str(error))
        else:
            self.state = DemoState()


@asynccontextmanager
async def filling() -> AsyncGenerator[Filling]:
    """Runs for as long as the service does; an interrupted run is completed by starting another."""
    async with anyio.create_task_group() as tasks:
        try:
            yield Filling(tasks)
        finally:
            tasks.cancel_scope.cancel()
