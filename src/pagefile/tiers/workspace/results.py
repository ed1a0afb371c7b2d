"""Normalises whatever a tool returned: into JSON values first, then hits, pages and tables of contents.

Tools and frameworks return lists, mappings, JSON as text, pydantic models, dataclasses, content blocks,
bytes, nothing, and objects that raise when inspected. None of that is an error here: what can be read is
read.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import takewhile
from typing import NamedTuple, TypeAlias, TypeVar, cast

from pagefile.records import JsonValue
from pagefile.text.scores import number
from pagefile.text.tables import table

#: What is nested deeper, or comes after this many values, is ignored: results may be circular.
MAX_DEPTH = 40
MAX_VALUES = 200_000
#: Python refuses to print a number with more digits in decimal.
_TOO_LONG = 10**4_000

#: Under which keys tools return things.
KEYS: Mapping[str, Sequence[str]] = table("pagefile.tiers.workspace", "keys")

_MEDIA_BLOCKS = ("image", "audio", "resource", "resource_link")

R = TypeVar("R")
#: Plain JSON as `json.loads` gives it.
Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"


@dataclass(frozen=True, slots=True)
class FoundHit:
    """One search result as its tool gave it."""

    content: str
    source: str
    score: object
    table: bool
    #: Its other fields, without the text.
    extra: Mapping[str, JsonValue]


# -- anything to JSON -------------------------------------------------------------------------------------------------


def to_json(result: object) -> Plain:
    """The result as JSON values; content blocks are joined, and text that is JSON is parsed. Never raises."""
    value = _Reading().read(result, 0)
    if isinstance(value, dict) and _is_text_block(value):
        value = value["text"]
    return _read_text(value) if isinstance(value, str) else value


def as_text(result: object, value: Plain) -> str:
    """The result as a model reads it: text as it came, anything else as JSON."""
    if isinstance(result, bytes | bytearray):
        result = bytes(result).decode("utf-8", "replace")
    if isinstance(result, str):
        return clean(result)
    text = "" if value is None else value
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def clean(text: str) -> str:
    """Text that every store can hold."""
    return text.replace("\0", "␀").encode("utf-8", "replace").decode()


def canonical(value: object) -> str:
    """The same for equal inputs, whatever the order of their keys; no input is the same as an empty mapping."""
    read = to_json(value)
    return json.dumps(read if read not in (None, "", [], {}) else {}, ensure_ascii=False, sort_keys=True)


class _Reading:
    """Reads one result, and stops if it does not end."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def read(self, value: object, depth: int) -> Plain:
        self._left -= 1
        try:
            return self._read(value, depth)
        except Exception:
            # A third-party object may raise anything when inspected; then nothing is remembered of it.
            return None

    def _read(self, value: object, depth: int) -> Plain:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if abs(value) < _TOO_LONG else hex(value)
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, float):
            return number(value)
        if isinstance(value, bytes | bytearray | memoryview):
            # Images and other binary data, which a model cannot read, raise here.
            return clean(bytes(cast("bytes", value)).decode())
        if depth > MAX_DEPTH or self._left < 0:
            return None
        if isinstance(value, Mapping):
            items = self._while_room(cast("Mapping[object, object]", value).items())
            return _unwrapped({clean(str(key)): self.read(inner, depth + 1) for key, inner in items})
        if isinstance(value, list | tuple | set | frozenset):
            items = self._while_room(cast("Iterable[object]", value))
            return _joined([self.read(inner, depth + 1) for inner in items])
        dump = getattr(value, "model_dump", None)
        if callable(dump):
            return self.read(cast("Callable[[], object]", dump)(), depth + 1)
        if is_dataclass(value) and not isinstance(value, type):
            return self.read({known.name: getattr(value, known.name) for known in fields(value)}, depth + 1)
        for name in ("content", "text"):
            inner = cast("object", getattr(value, name, None))
            if inner is not None and not callable(inner):
                return self.read(inner, depth + 1)
        return clean(str(value))

    def _while_room(self, values: Iterable[R]) -> Iterator[R]:
        return takewhile(lambda _: self._left >= 0, values)


def _joined(values: list[Plain]) -> Plain:
    """The text of a list of content blocks; any other list as it is."""
    blocks = [value for value in values if isinstance(value, dict)]
    texts = [block["text"] for block in blocks if _is_text_block(block)]
    others = [block for block in blocks if block.get("type") in _MEDIA_BLOCKS]
    if texts and len(texts) + len(others) == len(values):
        return "\n".join(map(str, texts))
    return values


def _unwrapped(value: dict[str, Plain]) -> Plain:
    """The content of an MCP result or an Anthropic block."""
    structured = value.get("structuredContent") or value.get("structured_content")
    if structured is not None and "content" in value:
        return structured
    marked = "isError" in value or "is_error" in value or value.get("type") == "tool_result"
    if "content" in value and marked:
        return None if value.get("isError") or value.get("is_error") else value["content"]
    return value


def _is_text_block(value: Mapping[str, Plain]) -> bool:
    """Whether it is a content block, and not a search result that happens to have a text."""
    has_text = value.get("type") == "text" and isinstance(value.get("text"), str)
    return has_text and set(value) <= set(KEYS["block"])


def _read_text(text: str) -> Plain:
    """Parses text that is JSON; returns any other text as it is."""
    if text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return _Reading().read(json.loads(text), 0)
    except (ValueError, RecursionError):
        return text


class Result(NamedTuple):
    """An incoming tool result in every form that is needed."""

    tool: str
    given: Plain
    value: Plain
    text: str

    @classmethod
    def of(cls, tool: object, given: object, result: object) -> "Result":
        value = to_json(result)
        return cls(clean(str(tool)), to_json(given), value, as_text(result, value))

    @property
    def failed(self) -> bool:
        return failed(self.value)


# -- JSON to what is remembered -----------------------------------------------------------------------------------------


def failed(value: Plain) -> bool:
    """Whether a result is empty, or nothing but an error."""
    if value is None or value in ("", [], {}):
        return True
    if not isinstance(value, dict):
        return False
    return bool(value.get("error")) and not any(value.get(key) for key in (*KEYS["lists"], *KEYS["pages"]))


def hits(value: Plain, tool: str = "search") -> list[FoundHit]:
    """The search results in it that have a text, in order."""
    found = (_hit(item, tool) for item in _listed(value, 0))
    return [hit for hit in found if hit is not None]


def _listed(value: Plain, depth: int) -> Sequence[Plain]:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict) or depth > 3:
        return []
    for key in KEYS["lists"]:
        inner = value.get(key)
        if isinstance(inner, str):
            inner = _read_text(inner)
        if isinstance(inner, list | dict) and (listed := _listed(inner, depth + 1)):
            return listed
    return [value] if _first_text(value, KEYS["content"]) else []


def _hit(item: Plain, tool: str) -> FoundHit | None:
    if isinstance(item, str):
        item = _read_text(item)
    if isinstance(item, str):
        item = {"content": item}
    content = _first_text(item, KEYS["content"]) if isinstance(item, dict) else ""
    if not isinstance(item, dict) or not content:
        return None
    extra = {key: inner for key, inner in item.items() if _is_small(inner) and inner != content}
    source = source_of(item) or f"{tool}: {content[:24]}"
    scores = (place.get(name) for place in _places(item) for name in KEYS["score"])
    score = next((found for found in scores if number(found) is not None), None)
    is_table = bool(item.get("table_id")) or "table" in (item.get(name) for name in KEYS["kind"])
    return FoundHit(content, source, score, is_table, extra)


def _places(item: Mapping[str, Plain]) -> list[Mapping[str, Plain]]:
    """Where a result tells about itself: in its own fields, and in its metadata."""
    inner = item.get("metadata")
    return [item, inner] if isinstance(inner, dict) else [item]


def source_of(item: Mapping[str, Plain]) -> str:
    """Where a result comes from, such as `angui_2024 P85`; empty if it does not say."""
    for place in _places(item):
        page = next((place[key] for key in KEYS["page"] if isinstance(place.get(key), int | str)), None)
        document = _first_text(place, KEYS["document"])
        if named := _first_text(place, KEYS["source"]):
            return " ".join(named.split())
        if document and page not in (None, ""):
            return f"{document} P{str(page).removeprefix('P')}"
        if document or page not in (None, ""):
            title = _first_text(place, ("title", "name", "chapter", "section"))
            return f"{document or title} {title if page in (None, '') else f'P{page}'}".strip()
    return next((title for place in _places(item) if (title := _first_text(place, ("title", "name")))), "")


def page_text(value: Plain) -> str:
    """The text of one or more pages, joined."""

    def told(value: Plain, depth: int) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, list) and depth <= 4:
            return "\n\n".join(filter(None, (told(inner, depth + 1) for inner in value)))
        inside = (value.get(key) for key in KEYS["pages"]) if isinstance(value, dict) and depth <= 4 else ()
        return next(filter(None, (told(inner, depth + 1) for inner in inside)), "")

    return told(value, 0).strip()


def page_source(value: Plain, given: Plain) -> str:
    """Where a page comes from, according to the tool's result, or else its input."""
    for known in (value, given):
        if isinstance(known, dict):
            document = _first_text(known, KEYS["document"])
            pages = page_range(known, KEYS["first_page"], KEYS["last_page"])
            if document and pages:
                return f"{document} {pages}"
            section = _first_text(known, KEYS["section"])
            if document or section:
                return " ".join(part for part in (document, section or pages) if part)
            if found := source_of(known):
                return found
    return ""


def page_range(known: Mapping[str, Plain], first: Sequence[str], last: Sequence[str]) -> str:
    """The pages named under some keys, such as `P3` or `P3-5`; empty if there are none."""
    start = next((known[key] for key in first if is_whole(known.get(key))), None)
    end = next((known[key] for key in last if is_whole(known.get(key))), None)
    if start is None:
        return ""
    return f"P{start}" if end is None or end == start else f"P{start}-{end}"


def document_of(value: Plain, given: Plain) -> str:
    """The id of the document a table of contents belongs to; empty if unknown."""
    names = (*KEYS["document"], *KEYS["source"], "title", "name")
    told = (_first_text(known, names) for known in (given, value) if isinstance(known, dict))
    return next(filter(None, told), given.strip() if isinstance(given, str) else "")


def toc_of(value: Plain) -> dict[str, Plain]:
    """A table of contents as a mapping, whatever form it came in."""
    if isinstance(value, dict):
        return value
    return {"items": value} if isinstance(value, list) else {"text": value}


def _first_text(item: Mapping[str, Plain], names: Sequence[str]) -> str:
    for name in names:
        found = item.get(name)
        if isinstance(found, str) and found.strip():
            return found.strip()
        if name in KEYS["document"] and is_whole(found):
            return str(found)
    return ""


def _is_small(value: Plain) -> bool:
    return len(value) <= 200 if isinstance(value, str) else not isinstance(value, list | dict)


def is_whole(value: Plain) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
