"""Windows as JSON, in the message format of the caller's model; recorded ones with what they cost, and compared."""

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue
from pydantic_core import to_json
from typing_extensions import TypeAliasType

from pagefile.engine.replay import Cost, Explanation, Replay
from pagefile.record_json import CallOut
from pagefile.schema import Answer, Mirror
from pagefile.window.candidates import Block, Message
from pagefile.window.comparison import BlockBill, BlockChange, CandidateChange, Comparison, DiffLine
from pagefile.window.parts import chat, parts_from, parts_json
from pagefile.window.receipt import Receipt, Verdict, Window
from pagefile.wire.messages import AnthropicMessage, OpenAIMessage, ResponsesItem, ShownAs
from pagefile.wire.requests import Format


class VerdictOut(Mirror[Verdict]):
    """The decision on one candidate."""

    about = {
        "form": "Which form was taken; null when dropped.",
        "note": "Something worth knowing about it; mostly empty.",
    }


class ReceiptOut(Mirror[Receipt]):
    """Every candidate exactly once, kept or dropped, and why."""

    about = {
        "framing": "Tokens that belong to no candidate.",
        "degraded": "What went wrong on the way.",
        "reserved": "Tokens of the budget that are not for messages.",
    }


class ShownStepOut(Answer):
    """A tool call, and the text shown for its result."""

    tool: str
    input: JsonValue
    call_id: str
    result: str


class ShownTurnOut(Answer):
    """A turn, or the part of it that the window shows."""

    turn_id: str = Field(description="Empty for a question that is not written yet.")
    form: str = Field(description='As the receipt has it; "current" for the running turn.')
    user: str | None
    assistant: str | None
    steps: dict[str, ShownStepOut] = Field(description="By their number in the turn.")
    layout: tuple[dict[str, JsonValue], ...] | None
    """The messages in their order, where they are more than the other fields tell."""


class MemoryPartOut(Answer):
    """What memory found for the question: the text of each candidate, by block."""

    sections: dict[Block, tuple[str, ...]]
    language: Literal["zh", "en"]
    note: bool = Field(description="Whether the note is shown that says what memory is.")


class PartsOut(Answer):
    """The parts of a window, from which messages in every format are rendered."""

    instructions: str
    guide: str = Field(description="How to load archived results.")
    profile: str = Field(description="Safety data of the user.")
    summary: str
    today: str = Field(description="What day it is for the user.")
    turns: tuple[ShownTurnOut, ...] = Field(description="Earlier turns, oldest first.")
    memory: MemoryPartOut
    current: ShownTurnOut | None = Field(description="The question, or the running turn.")
    placement: Literal["tail", "head"]
    blobs: dict[str, str] = Field(description="Images and files in base64, by their SHA-256.")


class _Window(Mirror[Window]):
    """What every format has."""

    without = frozenset({"parts", "messages"})
    about = {
        "id": "Its id in `GET /v1/calls`.",
        "tokens": "Exact tokens of the OpenAI-style messages as a chat request.",
        "ratio": "How full the window would be with every live turn in it.",
        "prefix_hash": "Equal while a prompt cache can be reused.",
        "prefix_messages": "How many OpenAI-style messages that prefix has.",
    }
    mode: Literal["FULL_HISTORY", "SUMMARY_N"]


class WindowOut(_Window):
    """What to send to the model, and how it was chosen."""

    messages: Annotated[list[dict[str, JsonValue]] | None, ShownAs(list[OpenAIMessage] | None)]
    """Messages or input items; null when the format is "text" or "parts"."""
    parts: PartsOut | None
    """What the messages are made of; null unless the format is "parts"."""
    format: Format
    system: str | None
    """The system text for "anthropic", the instructions for "responses"; else null."""
    text: str | None = Field(description='The whole window as one text; null unless the format is "text".')

    @classmethod
    def of(cls, record: Window, form: Format = "openai", *, parts: bool = False) -> Self:
        """The window in a format, optionally with its parts."""
        shown = _fields(record, form, parts=parts)
        made_of = None if shown["parts"] is None else PartsOut.model_validate(shown["parts"])
        # Skip validation: the data is our own, and there can be hundreds of messages.
        shown |= {"parts": made_of, "receipt": ReceiptOut.of(record.receipt)}
        return cls.model_construct(**shown)

    def values(self) -> dict[str, Any]:
        """The window is rendered from its parts, which the response must include."""
        if self.parts is None:
            raise ValueError('Only a window in the format "parts" can be rendered again.')
        parts = parts_from(self.parts.model_dump())
        messages, _ = chat(parts)
        return {**super().values(), "parts": parts, "messages": messages}


Mirror.kinds[Window] = WindowOut


class OpenAIWindow(_Window):
    """A window for OpenAI's chat API."""

    format: Literal["openai"]
    messages: list[OpenAIMessage]
    system: None
    text: None
    parts: None


class ResponsesWindow(_Window):
    """A window for OpenAI's Responses API."""

    format: Literal["responses"]
    messages: list[ResponsesItem]
    """The input."""
    system: str
    """The instructions."""
    text: None
    parts: None


class AnthropicWindow(_Window):
    """A window for Anthropic's API."""

    format: Literal["anthropic"]
    messages: list[AnthropicMessage]
    system: str
    text: None
    parts: None


class TextWindow(_Window):
    """A window as one text."""

    format: Literal["text"]
    messages: None
    system: None
    text: str
    parts: None


class PartsWindow(_Window):
    """What a window is made of, to be rendered by the caller."""

    format: Literal["parts"]
    messages: None
    system: None
    text: None
    parts: PartsOut


#: A window as the reference describes it: the format says what is in it.
AnyWindow = TypeAliasType(
    "AnyWindow",
    Annotated[
        OpenAIWindow | ResponsesWindow | AnthropicWindow | TextWindow | PartsWindow,
        Field(discriminator="format"),
    ],
)


def window_json(window: Window, form: Format) -> bytes:
    """The JSON of `WindowOut`, written without building the model: windows are the busiest response."""
    return to_json(_fields(window, form))


def _fields(window: Window, form: Format, *, parts: bool = False) -> dict[str, Any]:
    system, messages, text = _in_shape(window, form)
    return {
        **{name: getattr(window, name) for name in _SAME},
        "format": form,
        "messages": messages,
        "system": system,
        "text": text,
        "parts": parts_json(window.parts) if parts or form == "parts" else None,
    }


#: The fields of a window that are the same in every format.
_SAME = [name for name in Window.__slots__ if name not in {"parts", "messages"}]


def _in_shape(window: Window, form: Format) -> tuple[str | None, list[Message] | None, str | None]:
    """The system text, the messages and the text of a response in this format."""
    match form:
        case "openai":
            return None, window.messages, None
        case "anthropic":
            return *window.for_anthropic(), None
        case "responses":
            return *window.for_responses(), None
        case "text":
            return None, None, window.as_text()
        case "parts":
            return None, None, None


def _with_parts(window: object) -> object:
    return WindowOut.of(window, parts=True) if isinstance(window, Window) else window


_WholeWindow: TypeAlias = Annotated[WindowOut, BeforeValidator(_with_parts)]
_WITHOUT = "Every turn and every tool result in full, as an agent without Pagefile would send them; null when not known."
_WHY = "What is different, when not exact."


# -- a call explained --------------------------------------------------------------------------------------------------


class BlockBillOut(Mirror[BlockBill]):
    """What one block of a window costs, and how many of its candidates are in it."""


class ExplanationOut(Mirror[Explanation]):
    """One recorded call: the bill, the verdicts, and the messages as they were sent."""

    about = {
        "blocks": "The context bill in order of priority; with the receipt's framing it adds up to the call's tokens.",
        "exact": "Whether that is what was sent, byte for byte.",
        "why": _WHY,
        "previous": "The call before this one.",
        "shared_messages": "With how many of the same messages that one's prompt begins.",
        "shared_tokens": "And how many tokens those are.",
        "tokens_without": _WITHOUT,
    }
    call: CallOut
    window: _WholeWindow | None
    """The window made again, messages included; null when the call does not say from what."""
    saved: int | None = Field(description="Tokens that were left out: `tokens_without` less `tokens`.")


class CostOut(Mirror[Cost]):
    """What one call cost, and what it would have cost without Pagefile."""

    about = {"seq": "The last entry of the log at the time; null when not known.", "tokens_without": _WITHOUT}


# -- a call replayed ---------------------------------------------------------------------------------------------------


class BlockChangeOut(Mirror[BlockChange]):
    """The tokens of one block in both windows."""

    difference: int


class CandidateChangeOut(Mirror[CandidateChange]):
    """A candidate in both windows; null where it was not offered."""

    about = {"change": '"form": shown fuller or shorter; "block": the same text, counted elsewhere.'}
    difference: int = Field(description="Tokens that the change costs.")


class DiffLineOut(Mirror[DiffLine]):
    """A line of the text diff."""

    about = {"sign": 'In both, only before, only after; with "…" the text says how many were left out.'}


class ComparisonOut(Mirror[Comparison]):
    """How two windows differ. The differences by block add up to the difference in tokens."""

    about = {"candidates": "Every candidate of either window, those that changed first."}
    difference: int
    same: bool = Field(description="Whether both say the same, byte for byte.")


class ReplayOut(Mirror[Replay]):
    """A recorded window beside its replay, with the differences."""

    about = {
        "changes": "What was changed, by dotted name.",
        "exact": "Whether `before` is what was sent, byte for byte.",
        "why": _WHY,
    }
    call: CallOut
    before: _WholeWindow = Field(description="The window as it was, made again.")
    after: _WholeWindow = Field(description="What it would have been; it was never sent.")
