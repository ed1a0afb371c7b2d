"""Markup that cannot be broken out of: elements are built, not written, and every text and attribute is escaped on the way.

There is no way to put text into a page unescaped, so nothing that a user or a tool said can become markup.
"""

import re
from collections.abc import Sequence  # noqa: TC003 - the alias below is a text that type checkers read here
from html import escape
from typing import TypeAlias

#: What may stand in an element: another one, text, a number, nothing, or several of these.
Content: TypeAlias = "Element | str | int | float | Sequence[Content] | None"

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
#: Characters that HTML does not allow, and those that turn the direction of what follows: shown, not obeyed.
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
#: Where links and forms may lead: on this site, to a place on this page, or by a query string.
_OUR_PLACE = re.compile(r"(?:/(?![/\\])|#|\?).*", re.DOTALL)
_PLACES = frozenset({"href", "src", "action"})


class Element:
    """One element and what is in it; its text is its markup."""

    __slots__ = ("markup",)

    def __init__(self, markup: str) -> None:
        self.markup = markup

    def __str__(self) -> str:
        return self.markup


def el(name: str, /, *inside: Content, **attributes: object) -> Element:
    """An element. An attribute that is None or False is left out, True stands alone; `class_`, `for_` and `data_x` are spelled so."""
    told = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Element(f"<{name}{told}>")
    return Element(f"<{name}{told}>{_markup(inside)}</{name}>")


def document(root: Element) -> str:
    """A whole page."""
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
