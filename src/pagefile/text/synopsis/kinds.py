"""Recognises what a tool returned: every kind is described in its own way, and rows are never cut."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Literal, NamedTuple

from pagefile.records import JsonValue
from pagefile.text.code import code_language, is_settings, is_yaml
from pagefile.text.sources import references
from pagefile.text.tables import table

Kind = Literal[
    "json", "jsonl", "csv", "tsv", "html", "markdown", "log", "code", "search", "xml", "yaml", "text"
]

#: How much of a text is examined to recognise it.
HEAD_CHARS = 32_000
#: Longer JSON is not parsed: a page of 20 MB would become half a gigabyte of objects.
MAX_JSON_CHARS = 8_000_000


def _compiled(pattern: str | list[str]) -> re.Pattern[str]:
    return re.compile(pattern if isinstance(pattern, str) else "|".join(pattern))


TABLE = table("pagefile.text.synopsis", "kinds")
#: What results are recognised by, and what is looked for in them, by name.
PATTERNS: Mapping[str, re.Pattern[str]] = {
    name: _compiled(pattern) for name, pattern in TABLE["patterns"].items()
}
_MARKDOWN = [_compiled(pattern) for pattern in TABLE["markdown"].values()]


class Recognised(NamedTuple):
    """A kind, and what was parsed on the way to it."""

    kind: Kind
    #: The parsed JSON; None if it cannot be parsed (truncated, too large, too deep).
    value: JsonValue = None


def kind(text: str) -> Kind:
    """What the text is, judged by its beginning. Garbage is `text`."""
    return recognise(text).kind


def recognise(text: str) -> Recognised:
    start = text[: HEAD_CHARS * 2].lstrip("\ufeff \t\r\n")
    head = start[:HEAD_CHARS]
    if PATTERNS["json_start"].match(head) and (found := _json(text, head)) is not None:
        return found
    return Recognised(_markup(head) or _lines(text, head) or _source(text, head))


def rows_kind(text: str) -> Literal["csv", "tsv", "jsonl"] | None:
    """Whether a text consists of independent rows."""
    head = text[:HEAD_CHARS].lstrip("\ufeff \t\r\n")
    if PATTERNS["json_start"].match(head):
        return "jsonl" if _is_jsonl(text) else None
    lines = _whole_lines(head)
    return None if _has_entries(lines) else _delimited(lines)


def delimiter(text: str) -> str:
    lines = _whole_lines(text[:HEAD_CHARS].lstrip("\ufeff \t\r\n"))
    return next((mark for mark in "\t,;" if _is_delimited(lines, mark)), ",")


def hits(value: JsonValue) -> list[dict[str, JsonValue]]:
    """The search results in JSON: objects with a URL and a name, in a list at most two levels down."""
    for found in _lists(value, 2):
        objects = [item for item in found if isinstance(item, dict)]
        asked = objects[:100]
        named = [item for item in asked if _has(item, "url", "link", "href") and _has(item, "title", "name")]
        if named and len(named) * 2 >= len(asked):
            return objects
    return []


def _lists(value: JsonValue, depth: int) -> list[list[JsonValue]]:
    if isinstance(value, list):
        return [value]
    if isinstance(value, dict) and depth:
        return [found for inner in islice(value.values(), 100) for found in _lists(inner, depth - 1)]
    return []


def _has(item: dict[str, JsonValue], *keys: str) -> bool:
    return any(isinstance(item.get(key), str) for key in keys)


def _json(text: str, head: str) -> Recognised | None:
    if len(text) > MAX_JSON_CHARS:
        if _is_jsonl(text):
            return Recognised("jsonl")
        return Recognised("json") if text[-1000:].rstrip()[-1:] in ("]", "}") else None
    try:
        value: JsonValue = json.loads(text.lstrip("\ufeff"))
    except json.JSONDecodeError:
        if _is_jsonl(text):
            return Recognised("jsonl")
        return Recognised("json") if PATTERNS["json_objects"].match(head) else None
    except (ValueError, RecursionError):  # a number of 5,000 digits; a thousand brackets
        return Recognised("json")
    return Recognised("search" if len(hits(value)) > 1 else "json", value)


def _is_jsonl(text: str) -> bool:
    """Whether the first lines, at least two, are complete objects or arrays."""
    first = list(islice(rows(text), 3))
    return len(first) > 1 and all(_is_whole(line) for line in first)


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text, one by one: of twenty megabytes, only the first may be needed."""
    place = 0
    while place < len(text):
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        yield text[place:end]
        place = end + 1


def rows(text: str) -> Iterator[str]:
    """The rows of JSON lines that are not blank."""
    return filter(None, (line.strip("\ufeff \t\r") for line in lines_of(text)))


def parsed_lines(text: str) -> Iterator[JsonValue]:
    """The values of JSON lines; broken rows are passed over."""
    for line in rows(text):
        with suppress(ValueError, RecursionError):
            yield json.loads(line)


def line_count(text: str) -> int:
    """The number of lines; the last one need not be ended."""
    return text.count("\n") + (not text.endswith("\n"))


def _is_whole(line: str) -> bool:
    try:
        value: JsonValue = json.loads(line) if line[0] in "{[" else None
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


def _markup(head: str) -> Kind | None:
    declared = PATTERNS["declared_xml"].match(head) is not None
    tagged = PATTERNS["html_tag"].match(head) or len(PATTERNS["html_tag"].findall(head)) >= 5
    if (tagged and head.startswith("<") and not declared) or PATTERNS["html"].match(head):
        return "html"
    if PATTERNS["xml"].match(head) and ("</" in head or "/>" in head):
        return "html" if PATTERNS["html"].search(head) else "xml"
    return None


def _lines(text: str, head: str) -> Kind | None:
    # A program has fields called `url` and `source` too.
    if references(text) or (_counts(head) and not is_yaml(head) and not _is_program(text)):
        return "search"
    lines = _whole_lines(head)
    if _has_entries(lines):
        return "log"
    # A header has no time in it.
    if lines and "\t" in lines[0] and all(_is_log(some, "stamp", 80) for some in (lines[:1], lines)):
        return "log"
    return _delimited(lines) or ("log" if _is_log(lines, "stamp", 50) else None)


def _is_program(text: str) -> bool:
    return is_settings(text) or bool(code_language(text))


def _has_entries(lines: Sequence[str]) -> bool:
    """Whether most lines are entries of a log, whatever their commas."""
    return _is_log(lines, "level", 80) or _is_log(lines, "fraction", 40)


def _is_log(lines: Sequence[str], mark: str, within: int) -> bool:
    """Whether most lines have a level, or a time, among their first characters."""
    return _share(lines, lambda line: PATTERNS[mark].search(line, 0, within)) >= 0.6


def _counts(head: str) -> bool:
    """Whether the text reads like a list of hits."""
    kinds = ("numbered_hit", "labelled_hit", "linked_hit")
    numbered, labelled, linked = (len(PATTERNS[kind].findall(head)) for kind in kinds)
    return (
        numbered > 1
        or labelled > 1
        # Links are hits if there is little else: a page that begins with its title is a page.
        or (not head.startswith("# ") and linked * 3 > len(head.split("\n")) > 3)
    )


def _source(text: str, head: str) -> Kind:
    if is_yaml(head) and code_language(text) != "Python":
        return "yaml"
    if _is_program(text):
        return "code"
    marks = [len(mark.findall(head)) for mark in _MARKDOWN]
    return "markdown" if any(marks[:3]) or sum(marks) > 2 else "text"


def _whole_lines(head: str) -> list[str]:
    """The first non-empty lines; the last of many may be truncated and is left out."""
    lines = [line for line in head.splitlines(keepends=True)[:60] if line.strip()]
    return lines[:-1] if len(head) >= HEAD_CHARS - 4 and len(lines) > 1 else lines


def _share(lines: Sequence[str], test: Callable[[str], object]) -> float:
    sample = [line for line in lines if line.strip()][:60]
    return sum(bool(test(line[:400])) for line in sample) / len(sample) if sample else 0.0


def _delimited(lines: Sequence[str]) -> Literal["csv", "tsv"] | None:
    if _is_delimited(lines, "\t"):
        return "tsv"
    return "csv" if _is_delimited(lines, ",") or _is_delimited(lines, ";") else None


def _is_delimited(lines: Sequence[str], mark: str) -> bool:
    """Whether nearly all rows have as many fields as the first, and do not read like sentences."""
    try:
        rows = [row for row in csv.reader(lines[:40], delimiter=mark) if row]
    except csv.Error:
        return False
    if len(rows) < 2 or len(rows[0]) < 2 or any(len(name) > 80 or not name.strip() for name in rows[0]):
        return False
    width = len(rows[0])
    even = sum(len(row) == width for row in rows) / len(rows)
    spaced = sum(field.startswith(" ") for row in rows for field in row[1:])
    fields = sum(len(row) - 1 for row in rows)
    enough = width > 2 or len(rows) > 3 or mark == "\t"
    return even >= 0.9 and spaced * 2 < fields and enough
