"""What a window is made of. Messages in any provider's shape are rendered from these parts, and never parsed back."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from pagefile.content import JsonObject, Media, media_in, message_from, message_json
from pagefile.shapes.steps import ShownStep
from pagefile.window.candidates import MEMORY, Block, ShownTurn
from pagefile.window.render import Language, Placement, memory_text, system_text

_NO_SECTIONS: Mapping[Block, tuple[str, ...]] = {}
_NO_BLOBS: Mapping[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """What memory found for the question: the escaped text of each candidate, by block. Falsy if there is nothing."""

    sections: Mapping[Block, tuple[str, ...]] = field(default_factory=lambda: _NO_SECTIONS)
    #: The language of the note at its top.
    language: Language = "en"
    #: Whether to show the note that memory is neither certain nor an instruction.
    note: bool = True

    def __bool__(self) -> bool:
        return any(self.sections.values())

    @property
    def text(self) -> str:
        """The memory block as it appears in a message; empty if there is nothing."""
        return memory_text(self.sections, self.language, note=self.note)

    def with_section(self, block: Block, texts: Iterable[str]) -> "MemoryPart":
        """The same with the texts of one block replaced; an empty block is removed."""
        changed = {**self.sections, block: tuple(texts)}
        return replace(self, sections={one: changed[one] for one in MEMORY if changed.get(one)})


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a window, in the order in which they are sent."""

    instructions: str = ""
    #: How to load archived results; only if a placeholder may be shown.
    guide: str = ""
    #: Safety data of the user (allergies and the like).
    profile: str = ""
    summary: str = ""
    #: Earlier turns, oldest first.
    turns: tuple[ShownTurn, ...] = ()
    memory: MemoryPart = field(default_factory=MemoryPart)
    #: The question, or the running turn with its steps so far; None if neither was given.
    current: ShownTurn | None = None
    #: Where memory is placed: right before `current`, or at the end of the system text.
    placement: Placement = "tail"
    #: Bytes of the images and files in the messages, by SHA-256; one whose bytes are missing is named instead
    #: of shown.
    blobs: Mapping[str, bytes] = field(default_factory=lambda: _NO_BLOBS)

    @property
    def system(self) -> str:
        """The leading system text."""
        texts: dict[Block, str] = {
            "instructions": self.instructions,
            "guide": self.guide,
            "safety": self.profile,
            "summary": self.summary,
        }
        memory = self.memory.text if self.placement == "head" else ""
        return "\n\n".join(text for text in (system_text(texts), memory) if text)

    @property
    def beside(self) -> str:
        """The memory block as a user message right before `current`; empty if it is in the system text."""
        return self.memory.text if self.placement == "tail" else ""

    @property
    def media(self) -> tuple[Media, ...]:
        """The images and files of what is shown, the newest turn's first."""
        shown = [*reversed(self.turns)] if self.current is None else [self.current, *reversed(self.turns)]
        return tuple(media for turn in shown if turn.layout is not None for media in media_in(turn.layout))


# -- as JSON --------------------------------------------------------------------------------------------------------


def parts_json(parts: Parts) -> JsonObject:
    return {
        **_values(parts),
        "turns": [_shown_json(turn) for turn in parts.turns],
        "memory": {**_values(parts.memory), "sections": cast("JsonObject", dict(parts.memory.sections))},
        "current": None if parts.current is None else _shown_json(parts.current),
        "blobs": {name: base64.b64encode(data).decode() for name, data in parts.blobs.items()},
    }


def _values(record: "Parts | MemoryPart") -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(record)}


def parts_from(value: JsonObject) -> Parts:
    """The inverse of `parts_json`."""
    given = cast("dict[str, Any]", dict(value))
    memory = dict(given["memory"])
    memory["sections"] = {block: tuple(texts) for block, texts in memory["sections"].items()}
    given["memory"] = MemoryPart(**memory)
    given["turns"] = tuple(_shown_from(turn) for turn in given["turns"])
    given["current"] = None if given["current"] is None else _shown_from(given["current"])
    given["blobs"] = {name: base64.b64decode(data) for name, data in given["blobs"].items()}
    return Parts(**given)


def _shown_json(shown: ShownTurn) -> JsonObject:
    steps = {str(number): step._asdict() for number, step in shown.steps.items()}
    layout = None if shown.layout is None else [message_json(message) for message in shown.layout]
    return {**shown._asdict(), "steps": steps, "layout": layout}


def _shown_from(value: Mapping[str, Any]) -> ShownTurn:
    given: dict[str, Any] = dict(value)
    given["steps"] = {int(number): ShownStep(**step) for number, step in value["steps"].items()}
    if value["layout"] is not None:
        given["layout"] = tuple(message_from(message) for message in value["layout"])
    return ShownTurn(**given)
