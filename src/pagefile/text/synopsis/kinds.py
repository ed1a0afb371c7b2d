"""Recognises what a tool returned: every kind is described in its own way, and rows are never cut."""

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from pagefile.records import JsonValue

Kind = Literal[
    "json", "jsonl", "csv", "tsv", "html", "markdown", "log", "code", "search", "xml", "yaml", "text"
]

#: How much of a text is examined to recognise it.
HEAD_CHARS = 32_000
#: Longer JSON is not parsed: a page of 20 MB would become half a gigabyte of objects.
MAX_JSON_CHARS = 8_000_000

_JSON_START = re.compile(r"[\[{]")
#: Text that begins like this but does not parse is truncated JSON.
_JSON_OBJECTS = re.compile(r"(?:\[\s*)?\{\s*\"[^\"\n]{0,200}\"\s*:")
_HTML = re.compile(r"<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_HTML_TAG = re.compile(
    r"<(?:p|div|span|a|ul|ol|li|table|tr|td|h[1-6]|img|br|section|article|nav|form|script|style)\b[^<>]*>",
    re.IGNORECASE,
)
_XML = re.compile(r"<\?xml\b|<[A-Za-z_][\w:.-]*(?:\s[^<>]*)?>")
#: Headings of reference lists: literal, because searching for these is cheap.
_REFERENCES = ("Reference Document List", "来源文档", "参考文档", "参考来源")
_HEADING = re.compile(r"[ \t]*+#{1,6} *\Z")
_NUMBERED_HIT = re.compile(r"^[ \t]*+\[\d{1,4}\][^\n]{0,600}?https?://", re.MULTILINE)
_LABELLED_HIT = re.compile(
    r"^[ \t>*-]*+(?:\[\d+\] *|\d+[.)] *)?+\**+(?:url|link|source|文档地址|链接|网址|来源)\**+[ \t]*+[:：]\**+[ \t]*+\S",
    re.MULTILINE | re.IGNORECASE,
)
_LINKED_HIT = re.compile(
    r"^[ \t]*+(?:[-*+]|\d{1,3}[.)]|#{1,6})[ \t]++\**+\[[^\[\]\n]++\]\(https?://", re.MULTILINE
)

LEVEL = re.compile(
    r"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|ERR|FATAL|CRITICAL|SEVERE|PANIC)\b"
    r"|\b(?i:level|lvl|severity)[=:] ?\"?([A-Za-z]+)"
    r"|\[(trace|debug|info|notice|warn(?:ing)?|error|fatal|critical)\]"
)
STAMP = re.compile(
    r"\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?"
    r"|\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2}"
    r"|[A-Z][a-z]{2} +\d{1,2} \d{2}:\d{2}:\d{2}"
    r"|\b\d{2}:\d{2}:\d{2}\b"
)
_YAML_KEY = re.compile(r"\s*(?:- +)?[\"']?[A-Za-z_][\w./-]*[\"']?:(?: |$)")
_YAML_LINE = re.compile(r"\s*(?:- |#|---|\.\.\.)")
_FENCED = re.compile(r"^ {0,3}```.*?(?:^ {0,3}```|\Z)", re.DOTALL | re.MULTILINE)
_CODE_LINE = re.compile(
    r"\s*(?:def|class|import|return|raise|async|await|function|const|let|var|public|private|protected|static|package|"
    r"func|fn|impl|struct|interface|enum|export|SELECT|CREATE|INSERT|UPDATE)\b"
    r"|\s*(?:if|elif|else|for|while|try|except|with|from|use|type|switch|case)\b(?:.* import .*|.*[:;{}()])\Z"
    r"|.*[{};]\Z|\s*[)}\]]+[;,)]*\Z|\s*(?://|/\*|\*|#include|#!|@\w)|\s*[\w.\[\]\"']+ (?:=|\+=|:=) \S|\s*[\w.]+\(.*\)\Z"
)
_CODE_MARK = re.compile(
    r"^[ \t]*+(?:(?:async +)?def \w+\(|class \w+|import \w|from [\w.]+ import |(?:export +)?(?:default +)?(?:async +)?function\b|"
    r"(?:const|let|var) \w+ *=|(?:public|private|protected) |package \w|func \w|(?:pub +)?fn \w|use \w+::|impl\b|#include|"
    r"(?:export +)?(?:interface|struct|enum) \w|(?:create table|insert into|select .* from)\b|#!/)",
    re.MULTILINE | re.IGNORECASE,
)
_MARKDOWN = (
    re.compile(r"^#{1,6} +\S", re.MULTILINE),
    re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE),
    re.compile(r"^[ \t]*+\|?+[ \t]*+:?+-++:?+[ \t]*+\|", re.MULTILINE),
    re.compile(r"\]\([^()\s]+\)"),
    re.compile(r"\*\*[^*\n]+\*\*"),
)


@dataclass(frozen=True, slots=True)
class Recognised:
    """A kind, and what was parsed on the way to it."""

    kind: Kind
    #: The parsed JSON; None if it cannot be parsed (truncated, too large, too deep).
    value: JsonValue = None


def kind(text: str) -> Kind:
    """What the text is, judged by its beginning. Garbage is `text`."""
    return recognise(text).kind


def recognise(text: str) -> Recognised:
    """The kind, with the parsed value if it is JSON."""
    start = text[: HEAD_CHARS * 2].lstrip("\ufeff \t\r\n")
    head = start[:HEAD_CHARS]
    if _JSON_START.match(head):
        found = _json(text, head)
        if found is not None:
            return found
    return Recognised(_markup(head) or _lines(text, head) or _source(head))


def rows_kind(text: str) -> Literal["csv", "tsv", "jsonl"] | None:
    """Whether a text consists of independent rows."""
    head = text[:HEAD_CHARS].lstrip("\ufeff \t\r\n")
    if _JSON_START.match(head):
        return "jsonl" if _is_jsonl(text) else None
    lines = _whole_lines(head)
    if _share(lines, lambda line: LEVEL.search(line, 0, 80) is not None) >= 0.6:
        return None
    return _delimited(lines)


def delimiter(text: str) -> str:
    """The delimiter of a CSV."""
    lines = _whole_lines(text[:HEAD_CHARS].lstrip("\ufeff \t\r\n"))
    return next((mark for mark in "\t,;" if _is_delimited(lines, mark)), ",")


def references(text: str) -> list[tuple[int, int]]:
    """Where the headings of reference lists begin and end; LightRAG writes its own without `##`."""
    found: list[tuple[int, int]] = []
    for name in _REFERENCES:
        place = text.find(name)
        while place >= 0 and len(found) < 10:
            line = text.rfind("\n", max(0, place - 20), place) + 1 or max(0, place - 20)
            bare = name.isascii() and line == place
            if bare or _HEADING.match(text, line, place):
                end = text.find("\n", place)
                found.append((line, end if end >= 0 else len(text)))
            place = text.find(name, place + 1)
    return sorted(found)


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
        return Recognised("json") if _JSON_OBJECTS.match(head) else None
    except (ValueError, RecursionError):  # a number of 5,000 digits; a thousand brackets
        return Recognised("json")
    return Recognised("search" if len(hits(value)) > 1 else "json", value)


def _is_jsonl(text: str) -> bool:
    """Whether the first lines, at least two, are complete objects or arrays."""
    place = whole = 0
    while place < len(text) and whole < 3:
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        line = text[place:end].strip("\ufeff \t\r")
        place = end + 1
        if line:
            if not _is_whole(line):
                return False
            whole += 1
    return whole > 1


def _is_whole(line: str) -> bool:
    try:
        value: JsonValue = json.loads(line) if line[0] in "{[" else None
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


def _markup(head: str) -> Kind | None:
    if _HTML.match(head):
        return "html"
    if len(_HTML_TAG.findall(head)) >= 5 and head.startswith("<"):
        return "html"
    if _XML.match(head) and "</" in head:
        return "html" if _HTML.search(head) else "xml"
    return None


def _lines(text: str, head: str) -> Kind | None:
    if references(text) or _counts(head):
        return "search"
    lines = _whole_lines(head)
    if _share(lines, lambda line: LEVEL.search(line, 0, 80) is not None) >= 0.6:
        return "log"
    delimited = _delimited(lines)
    if delimited:
        return delimited
    return "log" if _share(lines, lambda line: STAMP.search(line, 0, 50) is not None) >= 0.6 else None


def _counts(head: str) -> bool:
    """Whether the text reads like a list of hits."""
    return (
        len(_NUMBERED_HIT.findall(head)) > 1
        or len(_LABELLED_HIT.findall(head)) > 1
        # Links are hits if there is little else: a page that begins with its title is a page.
        or (not head.startswith("# ") and len(_LINKED_HIT.findall(head)) * 3 > len(head.split("\n")) > 3)
    )


def _source(head: str) -> Kind:
    lines = [line for line in head.splitlines() if line.strip()]
    keys = _share(lines, lambda line: _YAML_KEY.match(line) is not None)
    listed = _share(lines, lambda line: _YAML_LINE.match(line) is not None)
    if keys >= 0.4 and keys + listed >= 0.8 and len(lines) > 2:
        return "yaml"
    bare = _FENCED.sub("", head)
    code = _share(bare.splitlines(), lambda line: _CODE_LINE.match(line.rstrip()) is not None)
    if code >= 0.4 and len(_CODE_MARK.findall(bare)) > 1:
        return "code"
    marks = [len(mark.findall(head)) for mark in _MARKDOWN]
    return "markdown" if any(marks[:3]) or sum(marks) > 2 else "text"


def _whole_lines(head: str) -> list[str]:
    """The first non-empty lines; the last of many may be truncated and is left out."""
    lines = [line for line in head.splitlines(keepends=True)[:60] if line.strip()]
    return lines[:-1] if len(head) >= HEAD_CHARS - 4 and len(lines) > 1 else lines


def _share(lines: Sequence[str], test: Callable[[str], bool]) -> float:
    sample = [line for line in lines if line.strip()][:60]
    return sum(test(line[:400]) for line in sample) / len(sample) if sample else 0.0


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
