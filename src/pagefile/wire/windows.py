"""A window as JSON, in the message format of the caller's model."""

from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue
from pydantic_core import to_json

from pagefile.schema import Mirror
from pagefile.window.budget import Beside
from pagefile.window.candidates import Block, Message
from pagefile.window.parts import parts_from, parts_json
from pagefile.window.receipt import Receipt, Verdict, Window
from pagefile.window.renderings import chat
from pagefile.wire.requests import Format
from pagefile.wire.texts import Answer


class VerdictOut(Mirror[Verdict]):
    """The decision on one candidate."""

    id: str
    block: Block
    kept: bool
    form: Annotated[str | None, Field(description="Which form was taken; null when dropped.")]
    tokens: int
    reason: str
    score: float | None
    note: Annotated[str, Field(description="Something worth knowing about it; mostly empty.")]


class ReceiptOut(Mirror[Receipt]):
    """Every candidate exactly once, kept or dropped, and why."""

    budget: int
    framing: Annotated[int, Field(description="Tokens that belong to no candidate.")]
    counter: str
    exact: bool
    degraded: Annotated[tuple[str, ...], Field(description="What went wrong on the way.")]
    reserved: Annotated[
        dict[Beside, int], Field(description="Tokens of the budget that are not for messages.")
    ]
    verdicts: tuple[VerdictOut, ...]


class ShownStepOut(Answer):
    """A tool call, and the text shown for its result."""

    tool: str
    input: JsonValue
    call_id: str
    result: str


class ShownTurnOut(Answer):
    """A turn, or the part of it that the window shows."""

    turn_id: Annotated[str, Field(description="Empty for a question that is not written yet.")]
    form: Annotated[str, Field(description='As the receipt has it; "current" for the running turn.')]
    user: str | None
    assistant: str | None
    steps: Annotated[dict[str, ShownStepOut], Field(description="By their number in the turn.")]
    layout: Annotated[
        tuple[dict[str, JsonValue], ...] | None,
        Field(description="The messages in their order, where they are more than the other fields tell."),
    ]


class MemoryPartOut(Answer):
    """What memory found for the question: the text of each candidate, by block."""

    sections: dict[Block, tuple[str, ...]]
    language: Literal["zh", "en"]
    note: Annotated[bool, Field(description="Whether the note is shown that says what memory is.")]


class PartsOut(Answer):
    """The parts of a window, from which messages in every format are rendered."""

    instructions: str
    guide: Annotated[str, Field(description="How to load archived results.")]
    profile: Annotated[str, Field(description="Safety data of the user.")]
    summary: str
    turns: Annotated[tuple[ShownTurnOut, ...], Field(description="Earlier turns, oldest first.")]
    memory: MemoryPartOut
    current: Annotated[ShownTurnOut | None, Field(description="The question, or the running turn.")]
    placement: Literal["tail", "head"]
    blobs: Annotated[dict[str, str], Field(description="Images and files in base64, by their SHA-256.")]


class WindowOut(Answer):
    """What to send to the model, and how it was chosen."""

    id: Annotated[str, Field(description="Its id in `GET /v1/calls`.")]
    format: Format
    messages: Annotated[
        tuple[dict[str, JsonValue], ...] | None,
        Field(description='Messages or input items; null when the format is "text" or "parts".'),
    ]
    system: Annotated[
        str | None,
        Field(description='The system text for "anthropic", the instructions for "responses"; else null.'),
    ]
    text: Annotated[
        str | None, Field(description='The whole window as one text; null unless the format is "text".')
    ]
    parts: Annotated[
        PartsOut | None,
        Field(description='What the messages are made of; null unless the format is "parts".'),
    ]
    tokens: Annotated[int, Field(description="Exact tokens of the OpenAI-style messages as a chat request.")]
    budget: int
    ratio: Annotated[float, Field(description="How full the window would be with every live turn in it.")]
    mode: Literal["FULL_HISTORY", "SUMMARY_N"]
    should_checkpoint: bool
    prefix_hash: Annotated[str, Field(description="Equal while a prompt cache can be reused.")]
    prefix_messages: Annotated[int, Field(description="How many OpenAI-style messages that prefix has.")]
    receipt: ReceiptOut

    @classmethod
    def of(cls, window: Window, form: Format, *, parts: bool = False) -> "WindowOut":
        """The window in a format, optionally with its parts."""
        system, messages, text = _in_shape(window, form)
        made_of = parts_json(window.parts) if parts or form == "parts" else None
        # Skip validation: the data is our own, and there can be hundreds of messages.
        return cls.model_construct(
            id=window.id,
            format=form,
            messages=None if messages is None else cast("tuple[dict[str, JsonValue], ...]", tuple(messages)),
            system=system,
            text=text,
            parts=None if made_of is None else PartsOut.model_validate(made_of),
            tokens=window.tokens,
            budget=window.budget,
            ratio=window.ratio,
            mode=cast("Literal['FULL_HISTORY', 'SUMMARY_N']", window.mode),
            should_checkpoint=window.should_checkpoint,
            prefix_hash=window.prefix_hash,
            prefix_messages=window.prefix_messages,
            receipt=ReceiptOut.of(window.receipt),
        )

    def record(self) -> Window:
        """The window, rendered from its parts; only for a response that includes them."""
        if self.parts is None:
            raise ValueError('Only a window in the format "parts" can be rendered again.')
        parts = parts_from(self.parts.model_dump())
        messages, _ = chat(parts)
        return Window(
            parts=parts,
            messages=messages,
            tokens=self.tokens,
            budget=self.budget,
            ratio=self.ratio,
            mode=self.mode,
            should_checkpoint=self.should_checkpoint,
            prefix_hash=self.prefix_hash,
            prefix_messages=self.prefix_messages,
            receipt=self.receipt.record(),
            id=self.id,
        )


def window_json(window: Window, form: Format) -> bytes:
    """`WindowOut` as JSON, serialized directly from the window: there can be hundreds of messages and verdicts."""
    system, messages, text = _in_shape(window, form)
    return to_json(
        {
            "id": window.id,
            "format": form,
            "messages": messages,
            "system": system,
            "text": text,
            "parts": parts_json(window.parts) if form == "parts" else None,
            "tokens": window.tokens,
            "budget": window.budget,
            "ratio": window.ratio,
            "mode": window.mode,
            "should_checkpoint": window.should_checkpoint,
            "prefix_hash": window.prefix_hash,
            "prefix_messages": window.prefix_messages,
            "receipt": window.receipt,
        }
    )


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
