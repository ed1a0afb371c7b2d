"""Normalises whatever a tool returned into JSON values; `found.py` finds hits, pages and tables of contents in them.

Tools and frameworks return lists, mappings, JSON as text, pydantic models, dataclasses, content blocks,
bytes, nothing, and objects that raise when inspected. None of that is an error here: what can be read is
read.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import takewhile
from typing import NamedTuple, TypeAlias, TypeVar, cast

from pagefile.text.scores import number
from pagefile.text.tables import table

#: What is nested deeper, or comes after this many values, is ignored: results may be circular.
MAX_DEPTH = 40
MAX_VALUES = 200_000
#: Python refuses to print a number with more digits in decimal.
_TOO_LONG = 10**4_000

#: Under which keys tools return things.
KEYS: Mapping[str, Sequence[str]] = table("pagefile.tiers.workspace", "keys")

#: An error that a tool returns as text; a longer text that begins like one is about errors.
_MOST_ERROR_CHARS = 2_000
_ERROR = re.compile(
    rf"""(?:\W{{0,3}}(?:{"|".join(map(re.escape, table("pagefile.tiers.workspace", "tool_words")["failures"]))})
    (?:\s*[:：!！(（\[]|\s+\d{{3}}\b|[.。]?\Z)
    |(?:error|failure)\ (?:executing|calling|running|reading|fetching|loading|while)\b|(?:the\ )?(?:request|operation|call)\ (?:failed|timed\ out)
    |\w*(?:Error|Exception)\s*[:：(]|Traceback\ \(most\ recent|HTTP(?:/[\d.]+)?\ (?:error\ )?[45]\d\d|[45]\d\d\ [A-Z])""",
    re.IGNORECASE | re.VERBOSE,
)

_HTTP_ERRORS = range(400, 600)
_MEDIA_BLOCKS = ("image", "audio", "resource", "resource_link")

R = TypeVar("R")
#: Plain JSON as `json.loads` gives it.
Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"


def to_json(result: object) -> Plain:
    """The result as JSON values; content blocks are joined, and text that is JSON is parsed. Never raises."""
    value = _Reading().read(result, 0)
    if isinstance(value, dict) and _is_text_block(value):
        value = value["text"]
    return read_text(value) if isinstance(value, str) else value


def as_text(result: object, value: Plain) -> str:
    """The result as a model reads it: text as it came, anything else as JSON."""
    if isinstance(result, bytes | bytearray):
        result = bytes(result).decode("utf-8", "replace")
    if isinstance(result, str):
        return clean(result)
    text = "" if value is None else value
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def shows_media(result: object) -> bool:
    """Whether some of its content blocks are no text, so that its text alone is not all of it."""
    content = cast("Mapping[str, object]", result).get("content") if isinstance(result, Mapping) else result
    blocks = cast("Sequence[object]", content) if isinstance(content, list | tuple) else ()
    kinds = [cast("Mapping[str, object]", one).get("type") for one in blocks if isinstance(one, Mapping)]
    return any(kind in _MEDIA_BLOCKS for kind in kinds)


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


def read_text(text: str) -> Plain:
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


def failed(value: Plain) -> bool:
    """Whether a result is empty, or nothing but an error: in its fields, or as a short text that begins like one."""
    if value is None or value in ("", [], {}):
        return True
    if isinstance(value, str):
        return len(value) <= _MOST_ERROR_CHARS and _ERROR.match(value.strip()) is not None
    if not isinstance(value, dict):
        return False
    if any(value.get(key) in _HTTP_ERRORS for key in KEYS["http_status"]):
        return True
    if any(value.get(key) for key in (*KEYS["lists"], *KEYS["pages"])):
        return False
    # A program that failed and printed something still says what it found.
    if any(value.get(key) for key in KEYS["exit_code"]) and not value.get("stdout"):
        return True
    if any(value.get(key) in _HTTP_ERRORS for key in KEYS["code"]) and any(map(value.get, KEYS["message"])):
        return True
    refused = any(value.get(key) is False for key in ("ok", "success"))
    return bool(value.get("error")) or refused or value.get("status") in ("error", "failed", "fail")
