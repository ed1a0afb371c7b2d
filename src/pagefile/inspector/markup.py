"""Injection-safe markup: elements are built, not written, and every text and attribute is escaped."""

import re
from collections.abc import Sequence  # noqa: TC003 - the alias below is a string that type checkers resolve here
from html import escape
from typing import TypeAlias

#: What an element may contain: another one, text, a number, nothing, or a sequence of these.
Content: TypeAlias = "Element | str | int | float | Sequence[Content] | None"

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
#: Characters HTML does not allow, and bidirectional controls: they are shown as escapes.
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
#: Where links and forms may lead: a path on this site, a fragment, or a query string.
_OUR_PLACE = re.compile(r"(?:/(?![/\\])|#|\?).*", re.DOTALL)
_PLACES = frozenset({"href", "src", "action"})


class Element:
    """An element with its content; `str()` gives its markup."""

    __slots__ = ("markup",)

    def __init__(self, markup: str) -> None:
        self.markup = markup

    def __str__(self) -> str:
        return self.markup


def el(name: str, /, *inside: Content, **attributes: object) -> Element:
    """An element. None and False omit an attribute, True gives one without a value; write `class_`, `for_` and `data_x`."""
    told = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Element(f"<{name}{told}>")
    return Element(f"<{name}{told}>{_markup(inside)}</{name}>")


def document(root: Element) -> str:
    return f"<!doctype html>\n{root}\n"


def _markup(content: Content) -> str:
    match content:
        case None:
            return ""
        case Element():
            return content.markup
        case str():
            return _escaped(content)
        case int() | float():
            return str(content)
        case _:
            return "".join(map(_markup, content))


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = str(value)
    if name in _PLACES and not _OUR_PLACE.fullmatch(text):
        raise ValueError(f"A page leads nowhere but to its own site, not to {text[:80]!r}.")
    return f' {name}="{_escaped(text)}"'


def _escaped(text: str) -> str:
    return escape(_ODD.sub(lambda found: f"\\u{ord(found.group()):04x}", text))
