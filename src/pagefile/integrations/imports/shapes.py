"""The records imported from another memory, and grouping messages into turns."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from pagefile.integrations.recorder import Called
from pagefile.records import MAX_ID_CHARS, JsonObject, JsonValue, utc

#: The confidence of a fact that another memory's model extracted without rating it.
EXTRACTED_CONFIDENCE = 0.8

_ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
}


@dataclass(frozen=True, slots=True)
class BroughtFact:
    text: str
    #: None: the user it is imported for.
    user_id: str | None = None
    at: datetime | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class BroughtTurn:
    """One exchange; either side may be missing, not both."""

    id: str
    user: str | None
    assistant: str | None
    #: None: the conversation it is imported into.
    conversation_id: str | None = None
    user_id: str | None = None
    steps: tuple[JsonObject, ...] = ()
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Brought:
    """The contents of a dump, and what could not be imported."""

    turns: tuple[BroughtTurn, ...] = ()
    facts: tuple[BroughtFact, ...] = ()
    #: What was left out and how often, in words: "system messages".
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])

    def __add__(self, other: "Brought") -> "Brought":
        left_out = Counter(self.left_out) + Counter(other.left_out)
        return Brought(self.turns + other.turns, self.facts + other.facts, dict(left_out))


@dataclass(frozen=True, slots=True)
class Said:
    role: str
    text: str
    id: str | None = None
    at: datetime | None = None
    calls: tuple[Called, ...] = ()
    #: For a tool's result: the call it answers, and the tool's name if given.
    call_id: str | None = None
    tool: str | None = None


@dataclass(slots=True)
class _Open:
    first: Said
    place: int
    user: str | None = None
    spoken: list[str] = field(default_factory=list[str])
    calls: dict[str | None, Called] = field(default_factory=dict[str | None, Called])
    steps: list[JsonObject] = field(default_factory=list[JsonObject])

    def hear(self, said: Said, role: str) -> None:
        if role == "tool":
            call = self.calls.get(said.call_id) or Called(said.tool or "tool", None, said.call_id)
            name = {"call_id": said.call_id} if said.call_id else {}
            self.steps.append(
                {
                    "tool": said.tool or call.tool,
                    "input": cast("JsonValue", call.input),
                    "result": said.text,
                    **name,
                }
            )
        elif said.text:
            self.spoken.append(said.text)
        self.calls |= {call.call_id: call for call in said.calls}


def turns_of(messages: Iterable[Said], conversation_id: str | None, user_id: str | None) -> Brought:
    """Groups messages into turns: each user message begins one, tool results become its steps, the rest its answer.

    A turn is named after its first message, or after its position, so that importing again gives the same turns.
    """
    turns: list[BroughtTurn] = []
    left_out: Counter[str] = Counter()
    running: _Open | None = None

    def close() -> None:
        if running is None:
            return
        answer = "\n\n".join(running.spoken) or None
        if running.user is None and answer is None:
            left_out["tool results without a message"] += len(running.steps)
            return
        name, steps = _turn_id(running, conversation_id), tuple(running.steps)
        turns.append(
            BroughtTurn(name, running.user, answer, conversation_id, user_id, steps, running.first.at)
        )

    for place, said in enumerate(messages):
        role = _ROLES.get(said.role.lower())
        if role is None:
            left_out[f"{said.role or 'nameless'} messages"] += 1
        elif role == "user":
            if not said.text:
                left_out["messages without text"] += 1
                continue
            close()
            running = _Open(said, place, user=said.text)
        else:
            running = running or _Open(said, place)
            running.hear(said, role)
    close()
    return Brought(turns=tuple(turns), left_out=dict(left_out))


def _turn_id(running: _Open, conversation_id: str | None) -> str:
    """The first message's id if it is valid; else a deterministic one, the same on every import."""
    given = running.first.id or f"{conversation_id}:{running.place}"
    kept = running.first.id is not None and len(given) <= MAX_ID_CHARS
    return given if kept else str(uuid5(NAMESPACE_URL, f"pagefile:moving:{given}"))


# -- reading arbitrary JSON -------------------------------------------------------------------------------------------


def mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def text(value: object) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() else None


def content_text(content: object) -> str:
    """The text of a message, which may consist of blocks including pictures."""
    if isinstance(content, str):
        return content
    blocks = (block if isinstance(block, str) else mapping(block).get("text") for block in items(content))
    return "\n".join(block for block in blocks if isinstance(block, str) and block)


def moment(value: object) -> datetime | None:
    """A time in ISO 8601 or in seconds since 1970; UTC if it has no time zone."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        return utc(datetime.fromisoformat(value)) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
