"""The home page: what this is, what it holds, and a demo for an empty memory."""

from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.inspector import places
from pagefile.inspector.asking import Asked
from pagefile.inspector.frame import View, card, field_of, form, notice
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import Row, conversations_table, rows_of
from pagefile.inspector.reader import Reader, words
from pagefile.records import JsonObject

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class DemoState:
    """Progress of filling in the demo; all zero if it was not started."""

    done: int = 0
    total: int = 0
    running: bool = False
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """The data of the home page."""

    conversations: tuple[Row, ...]
    more: bool
    runs_on: JsonObject
    version: str
    base: str
    demo: DemoState


async def gather(memory: Memory, asked: Asked, *, version: str, base: str, demo: DemoState) -> Start:
    """The latest conversations and what the service runs on."""
    found = await memory.conversations(user_id=asked.user_id, tenant=asked.tenant, limit=_SHOWN)
    rows = await rows_of(memory, found)
    return Start(rows, found.next is not None, await memory.describe(), version, base, demo)


def show(data: Start, reader: Reader) -> View:
    """The page."""
    say = reader.say
    body: list[Content] = [_demo_state(data.demo, reader)]
    if data.conversations:
        more = (
            el("p", reader.link(places.CONVERSATIONS, say("start.all")), class_="more") if data.more else None
        )
        body.append(card(conversations_table(data.conversations, reader), more, title=say("start.latest")))
    elif not data.demo.running:
        body.append(_welcome(data, reader))
    body += [_ways(reader), _calling(data, reader)]
    return View("Pagefile", body, lead=say("start.lead"))


def _welcome(data: Start, reader: Reader) -> Element:
    say = reader.say
    button = None
    if not reader.asked.bound:
        button = form(reader, places.DEMO, el("button", say("start.fill"), class_="primary"), class_="inline")
    return card(
        el("p", say("start.empty")),
        button,
        el("p", say("start.or"), " ", el("code", "pagefile demo"), class_="soft"),
        title=say("start.empty_title"),
        class_="welcome",
    )


def _demo_state(demo: DemoState, reader: Reader) -> Content:
    if demo.failed is not None:
        return notice(reader.say("demo.failed", why=demo.failed), "bad")
    if not demo.running:
        return None
    label = reader.say("demo.begins")
    bar = el("progress", label, aria_label=label)
    if demo.total:
        label = reader.say("demo.running", done=reader.number(demo.done), total=reader.number(demo.total))
        bar = el("progress", label, value=demo.done, max=demo.total, aria_label=label)
    again = el("a", reader.say("demo.look"), href=reader.asked.to(places.HOME))
    return card(el("p", label), bar, el("p", again), class_="working", role="status")


def _ways(reader: Reader) -> Element:
    ways = (
        (places.CONVERSATIONS, "nav.conversations", "way.conversations"),
        (places.RECALL, "nav.recall", "way.recall"),
        (places.ARCHIVE, "nav.archive", "way.archive"),
        (places.FACTS, "nav.facts", "way.facts"),
        (places.CHAT, "nav.chat", "way.chat"),
        (places.METRICS, "nav.metrics", "way.metrics"),
    )
    items = [
        el(
            "li",
            el(
                "a", el("strong", reader.say(name)), el("span", reader.say(about)), href=reader.asked.to(path)
            ),
        )
        for path, name, about in ways
    ]
    return el("section", el("h2", reader.say("start.ways")), el("ul", items, class_="ways"))


def _calling(data: Start, reader: Reader) -> Element:
    say = reader.say
    links = [
        el("li", el("a", say("start.docs"), href="/docs"), " · ", el("a", "OpenAPI", href="/openapi.json")),
        el("li", el("a", say("start.health"), href="/healthz")),
        el("li", el("a", say("start.metrics"), href="/metrics")),
    ]
    return card(
        el("p", say("start.service", version=data.version)),
        el("pre", say("start.curl").replace("$base", data.base), tabindex="0"),
        el("ul", links),
        title=say("start.calling"),
    )


def sign_in(reader: Reader, *, onward: str, failed: bool = False) -> View:
    """The sign-in page."""
    say = reader.say
    wrong = notice(say("login.failed"), "bad") if failed else None
    asked = form(
        reader,
        places.LOGIN,
        el("input", type="hidden", name="next", value=onward),
        field_of(
            say("login.key"),
            "key",
            kind="password",
            required=True,
            autocomplete="current-password",
            spellcheck="false",
        ),
        el("button", say("login.in"), class_="primary"),
        class_="stacked-form",
    )
    made = el("p", say("login.how"), " ", el("code", "pagefile keys add NAME"), class_="soft")
    return View(
        "Pagefile",
        [wrong, card(asked, made, title=say("login.title"), class_="narrow")],
        lead=say("start.lead"),
        bare=True,
    )


def problem(title: str, detail: str, status: int, reader: Reader, *, code: str) -> View:
    """An error page with what to do."""
    say, known = reader.say, f"problem.{code}" in words()
    return View(
        say(f"problem.{code}") if known else title,
        [
            notice(detail, "bad"),
            el("p", say("problem.status", status=status, code=code), class_="soft"),
            el("p", el("a", say("problem.back"), href=reader.asked.to(places.HOME))),
        ],
        lead=say(f"problem.{code}.about") if known else None,
        twin=False,
    )
