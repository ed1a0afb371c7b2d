"""What a message is made of: an ordered list of parts, whatever provider's shape it came in.

A turn keeps its messages as they happened. Parts do not repeat tool calls and tool results: they refer to the
step of the turn that holds them, so that a result can leave the window, or come back, in one place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
#: The shape a message came in: OpenAI Chat Completions, OpenAI Responses or Anthropic Messages; "plain" for
#: the short form of `record`.
Shape: TypeAlias = Literal["plain", "openai", "responses", "anthropic"]

_NOTHING: JsonObject = {}


@dataclass(frozen=True, slots=True)
class Text:
    """Text said by either side."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's reasoning. Only the provider that signed it accepts it back."""

    text: str
    #: The provider's part without its text: signature, id, encrypted content.
    sealed: JsonObject = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call; the step has its name, input and call id."""

    step: int


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a sound or a file, stored as a blob or referenced by URL."""

    kind: Literal["image", "audio", "file"]
    media_type: str = ""
    #: SHA-256 of the bytes, if they are stored.
    blob: str | None = None
    #: Its URL or a provider's file id, if it was given that way.
    url: str | None = None
    name: str | None = None
    size: int = 0
    #: Estimated cost in a window: providers count pixels and pages, not words.
    tokens: int = 0
    #: OpenAI's image detail, if given: "low" or "high".
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool result; the step has the text. Attached images and files are here."""

    step: int
    media: tuple[Media, ...] = ()
    error: bool = False
    #: Ranges of the text that are JSON of blocks, other than text, that Anthropic accepts in a result.
    blocks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Other:
    """An unknown part, kept as it came."""

    value: JsonValue


Part: TypeAlias = Text | Reasoning | ToolCall | ToolResult | Media | Other


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a turn."""

    role: Role
    parts: tuple[Part, ...]
    shape: Shape = "plain"
    #: The message as it came, with references in place of what `parts` holds; None if the parts alone
    #: reproduce it.
    given: JsonValue = None

    @property
    def text(self) -> str:
        """Its text parts, one per line."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text) and part.text)


def media_in(messages: Iterable[Message]) -> Iterator[Media]:
    """The images, sounds and files of messages, including those attached to tool results."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, Media):
                yield part
            elif isinstance(part, ToolResult):
                yield from part.media


def with_media(messages: Iterable[Message], change: Callable[[Media], Media]) -> tuple[Message, ...]:
    """The messages with `change` applied to each image, sound and file."""
    return tuple(
        replace(message, parts=tuple(_with_media(part, change) for part in message.parts))
        for message in messages
    )


def _with_media(part: Part, change: Callable[[Media], Media]) -> Part:
    match part:
        case Media():
            return change(part)
        case ToolResult(_, media) if media:
            return replace(part, media=tuple(map(change, media)))
        case _:
            return part


# -- as JSON --------------------------------------------------------------------------------------------------------


def message_json(message: Message) -> JsonObject:
    """A message as it is stored and exported."""
    value: dict[str, JsonValue] = {"role": message.role, "parts": [part_json(part) for part in message.parts]}
    if message.shape != "plain":
        value["shape"] = message.shape
    if message.given is not None:
        value["given"] = message.given
    return value


def message_from(value: JsonObject) -> Message:
    """The inverse of `message_json`."""
    given = cast("Mapping[str, Any]", value)
    parts = tuple(part_from(part) for part in given["parts"])
    return Message(given["role"], parts, given.get("shape", "plain"), given.get("given"))


def part_json(part: Part) -> JsonObject:
    """A part with its type; empty fields are left out."""
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Reasoning(text, sealed):
            return {"type": "reasoning", "text": text, **({"sealed": sealed} if sealed else {})}
        case ToolCall(step):
            return {"type": "tool_call", "step": step}
        case ToolResult(step, media, error, blocks):
            rest: dict[str, JsonValue] = {"media": [part_json(one) for one in media]} if media else {}
            rest |= {"blocks": blocks} if blocks else {}
            return {"type": "tool_result", "step": step, **rest, **({"error": True} if error else {})}
        case Media():
            known = {name: getattr(part, name) for name in Media.__slots__}
            return {"type": "media", **{name: value for name, value in known.items() if value}}
        case Other(value):
            return {"type": "other", "value": value}


def part_from(value: JsonObject) -> Part:
    """The inverse of `part_json`."""
    given = {name: inner for name, inner in cast("Mapping[str, Any]", value).items() if name != "type"}
    if value["type"] == "tool_result":
        given["media"] = tuple(part_from(one) for one in given.get("media", ()))
        given["blocks"] = tuple((start, end) for start, end in given.get("blocks", ()))
    return _PARTS[str(value["type"])](**given)


_PARTS: Mapping[str, Any] = {
    "text": Text,
    "reasoning": Reasoning,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "media": Media,
    "other": Other,
}
