"""How a message of any vendor is parsed: into parts, into steps of its turn, and into what is left of its JSON."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias, cast

from pagefile.content import Media, Message, Other, Part, Reasoning, Role, Shape, Text, ToolCall, ToolResult
from pagefile.errors import InvalidArgumentError
from pagefile.json_values import MAX_JSON_DEPTH, is_shallow
from pagefile.records import JsonValue, Step
from pagefile.shapes.media import read_media
from pagefile.shapes.skeleton import Path, as_list, carved
from pagefile.shapes.tool_arguments import compact, read_arguments

#: The maximum length of a tool's name in a page's row; the message keeps the full name.
MAX_TOOL_CHARS = 100
#: The tool of a result whose call is not in the turn.
UNKNOWN_TOOL = "tool"
_LONG = 10**20
#: Blocks that Anthropic accepts in a result besides text and media.
_RESULT_BLOCKS = ("search_result", "tool_reference")
_TEXT_BLOCKS = ("text", "input_text", "output_text")


def step_tool(name: str) -> str:
    return name.strip()[:MAX_TOOL_CHARS].strip() or UNKNOWN_TOOL


def refused(index: int, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"messages[{index}] {what}")


@dataclass(slots=True)
class Book:
    """The steps of a turn while its messages are parsed: which calls there are, and which still wait for a result."""

    #: The steps the turn had before, then those of the messages.
    steps: list[Step]
    #: Steps without a result yet.
    waiting: set[int]
    made_id: Callable[[int], str]
    #: Counts the text of a document; if None, it is estimated.
    count: Callable[[str], int] | None = None
    #: Steps that waited for a result, and have now got it.
    answered: list[int] = field(default_factory=list[int])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def begin(self, tool: str, value: JsonValue, call_id: object) -> int:
        number = self._add(tool, value, call_id)
        self.waiting.add(number)
        return number

    def answer(self, call_id: object, tool: str | None, text: str) -> int:
        """Add a result to the last pending call with this id; without one, to the first, of this tool if named."""
        number = self._waiting_for(call_id, tool)
        if number is None:
            tools = (step.tool for step in self.steps if step.call_id == call_id)
            # Providers need a call before it, and accept only an object as arguments.
            return self._add(tool or next(tools, UNKNOWN_TOOL), {}, call_id, text)
        self.waiting.discard(number)
        self.answered.append(number)
        self.steps[number] = replace(self.steps[number], result=text)
        return number

    def _add(self, tool: str, value: JsonValue, call_id: object, text: str = "") -> int:
        number = len(self.steps)
        own = call_id if isinstance(call_id, str) and call_id else self.made_id(number)
        self.steps.append(Step(step_tool(tool), value, text, own))
        return number

    def _waiting_for(self, call_id: object, tool: str | None) -> int | None:
        steps = self.steps
        if call_id:
            return next((n for n in sorted(self.waiting, reverse=True) if steps[n].call_id == call_id), None)
        # Results come in the order of their calls, unless they name their tool.
        if tool is not None:
            return next((n for n in sorted(self.waiting) if steps[n].tool == tool), None)
        return next((n for n in sorted(self.waiting) if steps[n].call_id == self.made_id(n)), None)


class Reader:
    """Parses one message. Each thing found becomes a part, and leaves a hole in the JSON."""

    def __init__(self, raw: Mapping[str, Any], shape: Shape, book: Book, index: int) -> None:
        self.raw = raw
        self.shape: Shape = shape
        self.book = book
        self.index = index
        self.parts: list[Part] = []
        self._holes: dict[Path, Any] = {}

    def message(self, role: Role) -> Message:
        return Message(role, tuple(self.parts), self.shape, carved(self.raw, self._holes))

    def refuse(self, what: str) -> InvalidArgumentError:
        return refused(self.index, what)

    def role(self, roles: Mapping[str, Role]) -> Role:
        role = roles.get(str(self.raw.get("role")))
        if role is None:
            raise self.refuse(f"has the role {self.raw.get('role')!r}: known are {', '.join(roles)}.")
        return role

    def content(self, texts: Mapping[str, str], others: Mapping[str, "BlockReader"] | None = None) -> None:
        """Add the content; `texts` names the key of the text in each type of text block, `others` what reads further types."""
        content = self.raw.get("content")
        if content and isinstance(content, str):
            self.text(content, ("content",))
        elif content not in (None, "") and not isinstance(content, list):
            raise self.refuse(
                f"has a content that is {_kind(content)}: give a text, a list of blocks or None."
            )
        for place, block in enumerate(as_list(content) or ()):
            path, given = ("content", place), self.mapping(block)
            kind = str(given.get("type"))
            key = texts.get(kind)
            if key is not None and isinstance(given.get(key), str):
                self.text(given[key], (*path, key))
            elif others is not None and kind in others:
                others[kind](self, given, path)
            elif (media := self._media(given, path)) is not None:
                self.parts.append(media)
            else:
                self.other(block, path)

    def text(self, text: str, path: Path) -> None:
        self._part(Text(text), {path: {"$part": [len(self.parts)]}})

    def value(self, value: JsonValue, path: Path) -> None:
        """Add a structured answer, whose text is its JSON."""
        self._part(Text(compact(value)), {path: {"$part_json": len(self.parts)}})

    def reasoning(self, texts: Sequence[tuple[str, Path]], sealed: Mapping[str, JsonValue]) -> None:
        """Add reasoning, in one or more pieces, with the fields that sign it."""
        number, start = len(self.parts), 0
        for text, path in texts:
            whole = len(texts) == 1
            self._holes[path] = {"$part": [number] if whole else [number, start, start + len(text)]}
            start += len(text) + 1
        self.parts.append(Reasoning("\n".join(text for text, _ in texts), sealed))

    def sealed(self, key: str, path: Path) -> None:
        """A field of the last reasoning that is held in its `sealed`."""
        self._holes[path] = {"$sealed": [len(self.parts) - 1, key]}

    def call(self, tool: str, value: JsonValue, call_id: object, path: Path) -> None:
        number = self.book.begin(tool, value, call_id)
        self._part(ToolCall(number), {path: {"$input": number}})

    def spelled_call(self, tool: str, arguments: str, call_id: object, path: Path) -> None:
        value, spelling = read_arguments(arguments)
        number = self.book.begin(tool, value, call_id)
        hole = {} if spelling is None else {path: {"$arguments": [number, spelling]}}
        self._part(ToolCall(number), hole)

    def result(
        self, content: Any, path: Path, *, call_id: object, tool: str | None = None, error: bool = False
    ) -> None:
        """Add a tool result: a text, or blocks of texts, images and anything else."""
        if content is None or isinstance(content, str):
            number = self.book.answer(call_id, tool, content or "")
            self._part(ToolResult(number, (), error), {path: {"$result": [number]}} if content else {})
            return
        if (blocks := as_list(content)) is None:
            raise self.refuse(f"has a tool result that is {_kind(content)}: give a text or a list of blocks.")
        found = [self._result_block(block, (*path, place)) for place, block in enumerate(blocks)]
        media = tuple(one for one in found if isinstance(one, Media))
        pieces = [one for one in found if isinstance(one, _Piece)]
        number = self.book.answer(call_id, tool, "\n".join(piece.text for piece in pieces))
        ends = accumulate(len(piece.text) + 1 for piece in pieces)
        ranges = [(one, (end - 1 - len(one.text), end - 1)) for one, end in zip(pieces, ends, strict=True)]
        holes = {piece.path: {piece.reference: [number, *span]} for piece, span in ranges}
        whole = tuple(span for piece, span in ranges if piece.whole) if self.shape == "anthropic" else ()
        self._part(ToolResult(number, media, error, whole), holes)

    def _result_block(self, block: Any, path: Path) -> "Media | _Piece":
        given = self.mapping(block)
        if given.get("type") in _TEXT_BLOCKS and isinstance(given.get("text"), str):
            return _Piece(given["text"], (*path, "text"), "$result")
        if (media := self._media(given, path)) is not None:
            return media
        return _Piece(compact(block), path, "$result_json", whole=given.get("type") in _RESULT_BLOCKS)

    def other(self, value: JsonValue, path: Path) -> None:
        self._part(Other(value), {path: {"$other": len(self.parts)}})

    def mapping(self, value: Any) -> Mapping[str, Any]:
        """A block, or an error that says what is there instead."""
        if not isinstance(value, dict):
            raise self.refuse(
                f"has {_kind(value)} in its content: give blocks, such as {{'type': 'text', 'text': '…'}}."
            )
        return cast("Mapping[str, Any]", value)

    def _media(self, block: Mapping[str, Any], path: Path) -> Media | None:
        found = read_media(block, self.book.count)
        if found is None:
            return None
        self._holes.update({(*path, *inner): hole for inner, hole in found.holes.items()})
        if found.data is not None and found.media.blob is not None:
            self.book.blobs[found.media.blob] = found.data
        return found.media

    def _part(self, part: Part, holes: Mapping[Path, Any]) -> None:
        self.parts.append(part)
        self._holes.update(holes)


#: Reads a block of one type: adds its parts to the reader.
BlockReader: TypeAlias = Callable[[Reader, Mapping[str, Any], Path], None]


class _Piece(NamedTuple):
    text: str
    path: Path
    reference: str
    #: Whether the block is sent whole.
    whole: bool = False


def plain_json(message: object, index: int) -> dict[str, Any]:
    """A message as JSON: a mapping as it is, a vendor's object as its own JSON."""
    value = _dumped(message)
    if not isinstance(value, Mapping):
        raise refused(index, f"is {_kind(value)}: give a mapping such as {{'role': 'user', 'content': '…'}}.")
    try:
        copy = json.loads(json.dumps(_to_json(cast("object", value)), ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise refused(
            index, f"cannot be written as JSON ({error}): use texts, numbers, lists and mappings."
        ) from error
    if not is_shallow(copy):
        raise refused(index, f"is nested more than {MAX_JSON_DEPTH} deep: give what is that deep as a text.")
    return copy


def _dumped(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_unset=True, by_alias=True) if callable(dump) else value


def _to_json(given: object) -> object:
    """The value in lists and mappings; ordered iterables are expanded, as the vendors' clients do."""
    value = _dumped(given)
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return cast("object", value)
    if isinstance(value, Mapping):
        return {_key(key): _to_json(inner) for key, inner in cast("Mapping[object, object]", value).items()}
    if isinstance(value, (set, frozenset)):
        raise TypeError("a set has no order: give a list")
    if isinstance(value, Iterable):
        return [_to_json(inner) for inner in cast("Iterable[object]", value)]
    return value


def _key(key: object) -> str:
    """JSON would turn numbers into texts, so that the round trip would not be exact."""
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is not a text: give {str(key)!r}")
    return key


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, (int, float)):
        # Python refuses to print a number with thousands of digits.
        return f"the number {value!r}" if abs(value) < _LONG else "a number"
    return "a text" if isinstance(value, str) else f"a {type(value).__name__}"
