"""The frame of every page: header, navigation, language and theme switches, the link to the JSON."""

from collections.abc import Mapping

from pagefile.inspector import ui, urls
from pagefile.inspector.markup import Element, document, el
from pagefile.inspector.page_request import Reader
from pagefile.inspector.ui import View

MENU = (
    urls.CONVERSATIONS,
    urls.SEARCH,
    urls.LIVE,
    urls.RECALL,
    urls.FACTS,
    urls.ARCHIVE,
    urls.EXPERIMENTS,
    urls.CHAT,
    urls.GATEWAY,
    urls.METRICS,
    urls.SETTINGS,
)
_TABS = (urls.CONVERSATION, urls.CALLS, urls.ARCHIVE, urls.SESSIONS, urls.RECALL, urls.CHAT, urls.ERASE)
#: Pages that belong to another one in the navigation.
_UNDER = {
    **dict.fromkeys((urls.CONVERSATION, urls.CALLS, urls.CALL, urls.REPLAY, urls.TRACE), urls.CONVERSATIONS),
    urls.PAGE: urls.ARCHIVE,
    urls.EXPERIMENT: urls.EXPERIMENTS,
}
_TAB_OF = {
    urls.CALL: urls.CALLS,
    urls.REPLAY: urls.CALLS,
    urls.PAGE: urls.ARCHIVE,
    urls.TRACE: urls.CONVERSATION,
}


def page(view: View, reader: Reader) -> str:
    head = [
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{view.title} · Pagefile" if view.title != "Pagefile" else view.title),
        el("link", rel="stylesheet", href=urls.STYLE),
        el("link", rel="icon", href=urls.ICON, type="image/svg+xml"),
        el("link", rel="alternate", type="application/json", href=_twin(view, reader)) if view.twin else None,
        el("script", src=urls.SCRIPT, defer=True) if view.script else None,
    ]
    steps = [el("li", el("a", text, href=place)) for place, text in view.crumbs]
    crumbs = el("nav", el("ol", steps), aria_label="Breadcrumb", class_="crumbs") if steps else None
    top = crumbs, el("h1", view.title, tabindex="-1"), ui.some("p", view.lead, class_="lead")
    main = el("main", top, _tabs(reader), view.body, id="main")
    skip = el("a", reader.say("frame.skip"), href="#main", class_="skip")
    body = el("body", skip, _header(view, reader), main, _footer(view, reader))
    language = "zh-CN" if reader.language == "zh" else "en"
    return document(el("html", el("head", head), body, lang=language, data_theme=reader.theme))


def _twin(view: View, reader: Reader) -> str:
    if isinstance(view.twin, str):
        return view.twin
    return reader.asked.here(urls.twin(reader.path), **reader.asked.query)


def _header(view: View, reader: Reader) -> Element:
    nav = None
    if not view.bare:
        places, label = {path: reader.asked.to(path) for path in MENU}, reader.say("frame.navigation")
        current = _UNDER.get(reader.path, reader.path)
        nav = _nav("nav", places, current, reader, aria_label=label, class_="sections")
    # The logo: three pages, the last one fading.
    pages = [
        el("rect", x=x, y=3, width=5, height=18, rx=1.5, opacity=opacity)
        for x, opacity in ((2, None), (9.5, ".65"), (17, ".3"))
    ]
    logo = el("svg", pages, viewBox="0 0 24 24", aria_hidden="true", class_="mark")
    brand = el("a", logo, el("span", "Pagefile"), href=reader.asked.to(urls.HOME), class_="brand")
    return el("header", el("div", brand, nav, _switches(reader), class_="bar"))


def _nav(family: str, places: Mapping[str, str], current: str, reader: Reader, **more: object) -> Element:
    def link(path: str, place: str) -> Element:
        now, kind = "page" if path == current else None, "danger" if path == urls.ERASE else None
        name = reader.say(f"{family}.{urls.name(path)}")
        return el("li", el("a", name, href=place, aria_current=now, class_=kind))

    return el("nav", el("ul", [link(*one) for one in places.items()]), **more)


def _switches(reader: Reader) -> Element:
    def to(**change: str) -> str:
        return reader.asked.here(reader.path, **{**reader.asked.query, **change})

    name, code, tag = ("English", "en", "en") if reader.language == "zh" else ("中文", "zh", "zh-CN")
    language = el("a", name, href=to(lang=code), lang=tag, hreflang=tag)
    sign, other = {"auto": ("◐", "dark"), "dark": ("●", "light"), "light": ("○", "auto")}[reader.theme]
    now = reader.say(f"theme.{reader.theme}")
    about = reader.say("frame.theme", now=now)
    state = [el("span", sign, aria_hidden="true"), el("span", now, class_="wide")]
    theme = el("a", state, href=to(theme=other), aria_label=about, title=about)
    out = ui.form(reader, urls.LOGOUT, ui.button(reader, "login.out", "quiet"))
    return el("div", language, theme, out if reader.signed_in else None, class_="switches")


def _tabs(reader: Reader) -> Element | None:
    current = _TAB_OF.get(reader.path, reader.path)
    if reader.asked.conversation_id is None or current not in _TABS:
        return None
    places = {path: reader.asked.here(path) for path in _TABS}
    return _nav("tab", places, current, reader, aria_label=reader.say("frame.tabs"), class_="tabs")


def _footer(view: View, reader: Reader) -> Element:
    links = {"frame.api": urls.DOCS, "frame.health": "/healthz"}
    if view.twin:
        links = {"frame.json": _twin(view, reader), **links}
    made = [part for key, href in links.items() for part in (" · ", el("a", reader.say(key), href=href))]
    return el("footer", el("p", made[1:]))
