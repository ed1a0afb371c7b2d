"""HTML pages from template files made of named fragments. Values are escaped unless they are fragments themselves."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from fastapi import Response

#: No scripts and nothing from other origins; only our own style sheet.
CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

_FRAGMENT = re.compile(r"^<!-- fragment: (\w+) -->\n", re.MULTILINE)


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def read(name: str) -> str:
    return files("pagefile.service").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def fragments(name: str) -> Mapping[str, Template]:
    """The named fragments of a template; whatever precedes the first is called `page`."""
    page, *rest = _FRAGMENT.split(read(name))
    return {"page": Template(page)} | {
        key: Template(text) for key, text in zip(rest[::2], rest[1::2], strict=True)
    }


def fill(template: str, fragment: str, /, **values: object) -> Html:
    """A fragment with its placeholders filled in."""
    safe = {key: value if isinstance(value, Html) else escape(str(value)) for key, value in values.items()}
    return Html(fragments(template)[fragment].substitute(safe).strip("\n"))


def text(value: str) -> Html:
    return Html(escape(value))


def joined(parts: Iterable[Html]) -> Html:
    return Html("\n".join(parts))


def page(html: Html, *, language: str = "en") -> Response:
    headers = {"Content-Security-Policy": CONTENT_POLICY, "Content-Language": language}
    return Response(html, headers=headers, media_type="text/html; charset=utf-8")


def prefers_chinese(accept_language: str) -> bool:
    """Whether the reader prefers Chinese to English; False when they state neither."""
    weights = {"zh": 0.0, "en": 0.0}
    for part in accept_language.lower().split(","):
        tag, _, options = part.strip().partition(";")
        primary = tag.partition("-")[0].strip()
        if primary in weights:
            weights[primary] = max(weights[primary], _weight(options))
    return weights["zh"] > weights["en"]


def _weight(options: str) -> float:
    found = re.fullmatch(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", options)
    return float(found[1]) if found else 1.0
