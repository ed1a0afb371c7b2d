"""The frame of every page: header, navigation, language and theme switches, the link to the JSON."""

from dataclasses import dataclass, field

from pagefile.inspector import places
from pagefile.inspector.markup import Content, Element, document, el
from pagefile.inspector.reader import Reader

_NAVIGATION = (
    (places.CONVERSATIONS, "nav.conversations"),
    (places.RECALL, "nav.recall"),
    (places.ARCHIVE, "nav.archive"),
    (places.FACTS, "nav.facts"),
    (places.SESSIONS, "nav.sessions"),
    (places.CHAT, "nav.chat"),
    (places.METRICS, "nav.metrics"),
)
_CONVERSATION_TABS = (
    (places.CONVERSATION, "tab.timeline"),
    (places.CALLS, "tab.calls"),
    (places.ARCHIVE, "tab.archive"),
    (places.SESSIONS, "tab.session"),
    (places.RECALL, "tab.recall"),
    (places.CHAT, "tab.chat"),
    (places.ERASE, "tab.erase"),
)
#: Pages that belong to another one in the navigation.
_UNDER = {
    places.CONVERSATION: places.CONVERSATIONS,
    places.CALLS: places.CONVERSATIONS,
    places.CALL: places.CONVERSATIONS,
    places.REPLAY: places.CONVERSATIONS,
    places.PAGE: places.ARCHIVE,
}
_TAB_OF = {places.CALL: places.CALLS, places.REPLAY: places.CALLS, places.PAGE: places.ARCHIVE}


@dataclass(frozen=True, slots=True)
class View:
    """A page without its frame."""

    title: str
    body: Content
    #: One sentence under the title.
    lead: Content = None
    #: Breadcrumbs: (path with query, text).
    crumbs: tuple[tuple[str, str], ...] = ()
    #: Whether the page uses the script.
    script: bool = False
    #: Whether the conversation's tabs are shown above it.
    tabs: bool = False
    #: The query string of this page, for the JSON link and the switches.
    query: dict[str, str] = field(default_factory=dict[str, str])
    #: Without navigation, for readers who are not signed in.
    bare: bool = False
    #: Whether the page has a JSON twin: a problem has none.
    twin: bool = True


def page(view: View, reader: Reader) -> str:
    """The whole page."""
    here = reader.asked.here
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{view.title} · Pagefile" if view.title != "Pagefile" else view.title),
        el("link", rel="stylesheet", href=places.STYLE),
        el("link", rel="icon", href=places.ICON, type="image/svg+xml"),
        None
        if view.bare or not view.twin
        else el(
            "link",
            rel="alternate",
            type="application/json",
            href=here(places.twin(reader.path), **view.query),
        ),
        el("script", src=places.SCRIPT, defer=True) if view.script else None,
    )
    main = el(
        "main",
        _crumbs(view),
        el("h1", view.title, tabindex="-1"),
        el("p", view.lead, class_="lead") if view.lead else None,
        _tabs(reader) if view.tabs else None,
        view.body,
        id="main",
    )
    body = el(
        "body",
        el("a", reader.say("frame.skip"), href="#main", class_="skip"),
        _header(view, reader),
        main,
        _footer(view, reader),
    )
    language = "zh-CN" if reader.language == "zh" else "en"
    return document(el("html", head, body, lang=language, data_theme=reader.theme))


def _header(view: View, reader: Reader) -> Element:
    nav = None
    if not view.bare:
        current = _UNDER.get(reader.path, reader.path)
        links = [_link(reader.say(key), reader.asked.to(path), path == current) for path, key in _NAVIGATION]
        nav = el("nav", el("ul", links), aria_label=reader.say("frame.navigation"), class_="sections")
    brand = el("a", _mark(), el("span", "Pagefile"), href=reader.asked.to(places.HOME), class_="brand")
    return el("header", el("div", brand, nav, _switches(view, reader), class_="bar"))


def _link(text: str, place: str, current: bool, class_: str | None = None) -> Element:
    return el("li", el("a", text, href=place, aria_current="page" if current else None, class_=class_))


def _mark() -> Element:
    """The logo: three pages, the last one fading."""
    return el(
        "svg",
        el("rect", x=2, y=3, width=5, height=18, rx=1.5),
        el("rect", x=9.5, y=3, width=5, height=18, rx=1.5, opacity=".65"),
        el("rect", x=17, y=3, width=5, height=18, rx=1.5, opacity=".3"),
        viewBox="0 0 24 24",
        aria_hidden="true",
        class_="mark",
    )


def _switches(view: View, reader: Reader) -> Element:
    def to(**change: str) -> str:
        return reader.asked.here(reader.path, **{**view.query, **change})

    chinese = reader.language == "zh"
    language = el(
        "a",
        "English" if chinese else "中文",
        href=to(lang="en" if chinese else "zh"),
        lang="en" if chinese else "zh-CN",
        hreflang="en" if chinese else "zh-CN",
    )
    other = {"auto": "dark", "dark": "light", "light": "auto"}[reader.theme]
    theme = el(
        "a",
        el("span", {"auto": "◐", "dark": "●", "light": "○"}[reader.theme], aria_hidden="true"),
        el("span", reader.say(f"theme.{reader.theme}"), class_="wide"),
        href=to(theme=other),
        aria_label=reader.say("frame.theme", now=reader.say(f"theme.{reader.theme}")),
        title=reader.say("frame.theme", now=reader.say(f"theme.{reader.theme}")),
    )
    out = None
    if reader.signed_in:
        out = form(reader, places.LOGOUT, el("button", reader.say("login.out"), class_="quiet"))
    return el("div", language, theme, out, class_="switches")


def _crumbs(view: View) -> Element | None:
    if not view.crumbs:
        return None
    steps = [el("li", el("a", text, href=place)) for place, text in view.crumbs]
    return el("nav", el("ol", steps), aria_label="Breadcrumb", class_="crumbs")


def _tabs(reader: Reader) -> Element:
    current = _TAB_OF.get(reader.path, reader.path)
    links = [
        _link(
            reader.say(key),
            reader.asked.here(path),
            path == current,
            "danger" if path == places.ERASE else None,
        )
        for path, key in _CONVERSATION_TABS
    ]
    return el("nav", el("ul", links), aria_label=reader.say("frame.tabs"), class_="tabs")


def _footer(view: View, reader: Reader) -> Element:
    links = [
        el("a", reader.say("frame.api"), href="/docs"),
        el("a", reader.say("frame.health"), href="/healthz"),
    ]
    if view.twin and not view.bare:
        twin = reader.asked.here(places.twin(reader.path), **view.query)
        links = [el("a", reader.say("frame.json"), href=twin), *links]
    return el("footer", el("p", *[part for link in links for part in (link, " · ")][:-1]))


# -- components shared by pages ----------------------------------------------------------------------------------------


def form(reader: Reader, place: str, *inside: Content, class_: str | None = None) -> Element:
    """A form that changes something; it carries a CSRF token."""
    token = el("input", type="hidden", name="token", value=reader.token)
    return el("form", token, *inside, method="post", action=place, class_=class_)


def asking_form(
    place: str, *inside: Content, hidden: dict[str, str | None] | None = None, label: str
) -> Element:
    """A form that only looks something up."""
    kept = [
        el("input", type="hidden", name=key, value=value) for key, value in (hidden or {}).items() if value
    ]
    return el(
        "form", kept, *inside, method="get", action=place, class_="ask", role="search", aria_label=label
    )


def field_of(
    label: str,
    name: str,
    value: str | None = None,
    *,
    kind: str = "text",
    hint: str | None = None,
    **more: object,
) -> Element:
    """A labelled input."""
    told = el("small", hint, class_="hint") if hint else None
    return el(
        "label",
        el("span", label),
        el("input", type=kind, name=name, value=value, **more),
        told,
        class_="field",
    )


def choice_of(label: str, name: str, chosen: str, options: list[tuple[str, str]]) -> Element:
    """A labelled select."""
    made = [el("option", text, value=value, selected=value == chosen) for value, text in options]
    return el("label", el("span", label), el("select", made, name=name), class_="field")


def card(*inside: Content, title: str | None = None, class_: str = "", **more: object) -> Element:
    """A box with a heading."""
    heading = el("h2", title) if title else None
    return el("section", heading, *inside, class_=f"card {class_}".strip(), **more)


def empty(title: str, *inside: Content) -> Element:
    """A placeholder for an empty list, with what to do about it."""
    return el("div", el("p", title, class_="big"), *inside, class_="empty")


def notice(text: Content, kind: str = "note") -> Element:
    """A notice above what it is about."""
    return el("p", text, class_=f"notice {kind}", role="status" if kind != "bad" else "alert")


def table(head: list[Content], rows: list[Content], *, caption: str, class_: str = "") -> Element:
    """A table that scrolls horizontally on narrow screens."""
    made = el(
        "table",
        el("caption", caption, class_="unseen"),
        el("thead", el("tr", head)),
        el("tbody", rows),
        class_=class_ or None,
    )
    return el("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)


def th(text: Content, *, number: bool = False, **more: object) -> Element:
    """A column header."""
    return el("th", text, scope="col", class_="num" if number else None, **more)


_NUMBER = "#"


def columns(reader: Reader, *keys: str) -> list[Content]:
    """Column headers, by their keys in `words.toml`."""
    return [th(reader.say(key.removeprefix(_NUMBER)), number=key.startswith(_NUMBER)) for key in keys]


def numbers(*keys: str) -> list[str]:
    """Headers of numeric columns."""
    return [_NUMBER + key for key in keys]


def num(text: Content) -> Element:
    """A numeric cell."""
    return el("td", text, class_="num")


def figures(*pairs: tuple[str, Content]) -> Element:
    """A few key figures."""
    return el("dl", [el("div", el("dt", label), el("dd", value)) for label, value in pairs], class_="figures")
