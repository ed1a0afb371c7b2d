"""What pages are made of: forms, tables, cards, figures, pagers, and how texts, JSON and prompt messages look."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any, TypeAlias, cast

from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import Reader
from pagefile.record_json import to_json

#: Characters of a text shown at once, and how many more can be expanded.
_SHOWN, _MORE = 2_000, 60_000
_ROLES = frozenset({"system", "user", "assistant", "tool"})

#: A value to show: whole numbers and times are formatted for the reader.
Value: TypeAlias = "Content | datetime"


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
    #: Without navigation, for readers who are not signed in.
    bare: bool = False
    #: After how many seconds it loads itself again; None for never.
    refresh_s: int | None = None
    #: Whether the page has a JSON twin, or which: problems and the sign-in have none.
    twin: bool | str = True


#: An id that nobody chose: of a conversation that was known by its history, or a UUID.
_MADE = re.compile(r"(?:gw-)?[0-9a-f]{32}(?![0-9a-f])|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MADE_CHARS = 11


def is_made(name: str) -> bool:
    return _MADE.match(name) is not None


def short(name: str) -> str:
    """A conversation's name, of a made id only its beginning: the rest of 35 letters tells nobody anything."""
    return f"{name[:_MADE_CHARS]}…" if is_made(name) else name


def some(name: str, *inside: Content, **attributes: object) -> Element | None:
    """An element, or None if there is nothing to put into it."""
    return el(name, *inside, **attributes) if any(inside) else None


def shown(value: Value, reader: Reader) -> Content:
    if isinstance(value, datetime):
        return reader.time(value)
    return reader.number(value) if isinstance(value, int) else value


def price(value: float, currency: str) -> str:
    """A price, with as many digits as it needs."""
    if value >= 1 or not value:
        return f"{value:,.2f} {currency}"
    return f"{value:.6f}".rstrip("0") + f" {currency}"


# -- boxes and lists -----------------------------------------------------------------------------------------------------


def card(title: str | None, *inside: Content, class_: str = "", **more: object) -> Element:
    return el("section", some("h2", title), *inside, class_=f"card {class_}".strip(), **more)


def empty(title: str, about: Content = None) -> Element:
    """A placeholder for an empty list, with what to do about it."""
    return el("div", el("p", title, class_="big"), some("p", about), class_="empty")


def notice(text: Content, kind: str = "note") -> Element:
    return el("p", text, class_=f"notice {kind}", role="status" if kind != "bad" else "alert")


def confirmation(reader: Reader) -> Content:
    """A confirmation of the action that led here, if there was one."""
    key = f"done.{reader.asked.text('done')}"
    text = reader.known(key, "")
    return notice(text, "bad" if key == "done.failed" else "good") if text else None


def badge(text: str, kind: str = "") -> Element:
    return el("span", text, class_=f"badge {kind}".strip())


def soft(text: Content, name: str = "p") -> Element:
    return el(name, text, class_="soft")


def figures(reader: Reader, values: Mapping[str, Value]) -> Element:
    """A few key figures, by the keys of their labels."""
    return _pairs([(reader.say(key), shown(value, reader)) for key, value in values.items()], "figures")


def definitions(*pairs: tuple[str, Content]) -> Element:
    """Terms and what they are; those without a value are left out."""
    return _pairs([(term, value) for term, value in pairs if value], "about")


def _pairs(pairs: Sequence[tuple[str, Content]], class_: str) -> Element:
    return el("dl", [el("div", el("dt", term), el("dd", value)) for term, value in pairs], class_=class_)


def numbers(*keys: str) -> dict[str, str]:
    return dict.fromkeys(keys, "num")


def table(
    reader: Reader,
    caption: str,
    columns: Mapping[str, str],
    rows: Iterable[Sequence[Value]],
    *,
    class_: str | None = None,
    row_classes: Iterable[str | None] = (),
) -> Element:
    """A table that scrolls horizontally on narrow screens.

    A column is the key of its heading and the class of its cells; `row` makes them the headings of their rows.
    """

    def heading(column: str, kind: str) -> Element:
        name = reader.known(column, column)
        text = el("span", name, class_="unseen") if kind == "action" else name
        return el("th", text, scope="col", class_="num" if kind == "num" else None)

    def cell(value: Value, kind: str) -> Element:
        text = shown(value, reader)
        if kind.startswith("row"):
            return el("th", text, scope="row", class_=kind.removeprefix("row").strip() or None)
        return el("td", text, class_=None if kind == "action" else kind or None)

    kinds = columns.values()
    made = [[cell(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in rows]
    body = [el("tr", cells, class_=kind) for cells, kind in zip_longest(made, row_classes)]
    head = el("thead", el("tr", [*map(heading, columns, kinds)]))
    inner = el("table", el("caption", caption, class_="unseen"), head, el("tbody", body), class_=class_)
    return scrolling(inner, caption, class_="scroll")


def scrolling(inside: Content, label: str, *, class_: str) -> Element:
    """A region that scrolls on its own, also by keyboard."""
    return el("div", inside, class_=class_, tabindex="0", role="region", aria_label=label)


def key_of(block: str, reader: Reader) -> list[Content]:
    """A block of the window with its colour."""
    return [el("span", class_=f"key b-{block}"), reader.say(f"block.{block}")]


# -- forms ---------------------------------------------------------------------------------------------------------------


def form(
    reader: Reader, place: str, *inside: Content, class_: str | None = None, **hidden: object
) -> Element:
    """A form that changes something; it carries a CSRF token."""
    values = _hidden({"token": reader.token, **hidden})
    return el("form", values, *inside, method="post", action=place, class_=class_)


def asking_form(reader: Reader, key: str, *inside: Content, button: Content, **hidden: object) -> Element:
    """A form that asks the same page for something else, for the same tenant."""
    values = _hidden({**hidden, "tenant": hidden.get("tenant", reader.asked.tenant)})
    role = {"class_": "ask", "role": "search", "aria_label": reader.say(key)}
    return el("form", values, *inside, button, method="get", action=reader.path, **role)


def _hidden(values: Mapping[str, object]) -> list[Element]:
    """Values that a form sends along; those that are missing are left out."""
    return [el("input", type="hidden", name=name, value=value) for name, value in values.items() if value]


def button(reader: Reader, key: str, class_: str | None = "primary", **more: object) -> Element:
    return el("button", reader.say(key), class_=class_, **more)


def field_of(
    reader: Reader, key: str, name: str, value: str | None = None, *, kind: str = "text", **more: Any
) -> Element:
    """An input; `hint` is shown beneath it."""
    hint: str | None = more.pop("hint", None)
    field = el("input", type=kind, name=name, value=value, **more)
    return _labelled(reader, key, field, some("small", hint, class_="hint"))


def search_field(reader: Reader, key: str, value: str | None, **more: object) -> Element:
    return field_of(reader, key, "q", value, kind="search", **more)


def text_field(reader: Reader, key: str, name: str, text: str | None = None, **more: object) -> Element:
    given = {"rows": 2, "required": True, **more}
    return _labelled(reader, key, el("textarea", text, name=name, **given))


def choice_of(
    reader: Reader, key: str, name: str, chosen: str, options: Iterable[tuple[str, str]]
) -> Element:
    made = [el("option", text, value=value, selected=value == chosen) for value, text in options]
    return _labelled(reader, key, el("select", made, name=name))


def _labelled(reader: Reader, key: str, *inside: Content) -> Element:
    return el("label", el("span", reader.say(key)), *inside, class_="field")


def tick(reader: Reader, key: str, name: str, *, checked: bool = False) -> Element:
    box = el("input", type="checkbox", name=name, value="yes", checked=checked)
    return el("label", box, reader.say(key), class_="tick")


def user_field(
    reader: Reader,
    users: Sequence[str] | None = None,
    otherwise: str | None = None,
    *,
    required: bool = False,
) -> Content:
    """The user to look at, with suggestions; nothing if the reader's key decides that."""
    if "user_id" in reader.asked.bound:
        return None
    value, known = reader.asked.user_id or otherwise, None if users is None else "users"
    field = field_of(reader, "field.user", "user_id", value, list=known, required=required)
    if users is None:
        return field
    return [field, el("datalist", [el("option", value=user) for user in users], id="users")]


def scope_of(reader: Reader, user: Content = None) -> dict[str, str | None]:
    """What a form sends along to stay at its conversation, and at its user unless it has a field for one."""
    asked = reader.asked
    return {"conversation_id": asked.conversation_id, "user_id": asked.user_id if user is None else None}


# -- links ---------------------------------------------------------------------------------------------------------------


def step_to(text: str, href: str | None, **more: object) -> Element:
    """A link of a pager; plain text where it would lead beyond the ends."""
    return soft(text, "span") if href is None else el("a", text, href=href, **more)


def pager(reader: Reader, *steps: Content, below: bool = False) -> Element:
    """Links to the parts before and after; one below what it is about has a name of its own."""
    label = reader.say("pager.below" if below else "pager.label")
    return el("nav", *steps, aria_label=label, class_="pager")


def older(reader: Reader, href: str | None) -> Element | None:
    """A link to the rest of a list that is not shown whole."""
    return None if href is None else el("p", el("a", reader.say("slice.older"), href=href), class_="more")


# -- texts ---------------------------------------------------------------------------------------------------------------


def said(text: str, reader: Reader, *, shown: int = _SHOWN) -> Content:
    """Spoken text, line by line; long texts can be expanded."""
    if len(text) <= shown + 200:
        return el("div", text, class_="text")
    # Between words where there are any nearby: Chinese has none.
    shown = max(text.rfind(" ", shown - 30, shown), text.rfind("\n", shown - 30, shown)) + 1 or shown
    rest = text[shown : shown + _MORE]
    left = len(text) - shown - len(rest)
    more = el("summary", reader.say("text.more", n=reader.number(len(text) - shown)))
    cut = soft(reader.say("text.cut", n=reader.number(left))) if left else None
    return [el("div", text[:shown], class_="text"), el("details", more, el("div", rest, class_="text"), cut)]


def whole(text: str) -> Element:
    return el("div", text, class_="text whole", tabindex="0")


def code(value: object) -> Element:
    return el("pre", json.dumps(to_json(value), ensure_ascii=False, indent=2), tabindex="0")


def _tool_call(given: object) -> Element:
    """A call of a tool, as somebody would write it."""
    call = cast("Mapping[str, Any]", given)
    function = call.get("function", call)
    name, arguments = str(function.get("name", "")), function.get("arguments", "")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return el("p", el("code", f"{name}({shown[:_SHOWN]})"), class_="call")


def message(
    given: Mapping[str, object], reader: Reader, *, level: str = "h3", shown: int = _SHOWN
) -> Element:
    role, content, calls = str(given.get("role", "")), given.get("content"), given.get("tool_calls")
    spoken = said(content, reader, shown=shown) if isinstance(content, str) and content else None
    spoken_by = reader.say(f"role.{role}") if role in _ROLES else role
    title = el(level, f"{spoken_by} · {given['name']}" if given.get("name") else spoken_by, class_="role")
    data = [code(value) for value in (content if spoken is None else None,) if value]
    data += [_tool_call(one) for one in cast("Sequence[object]", calls or ())]
    return el("article", title, spoken, data, class_=f"message m-{role if role in _ROLES else 'other'}")
