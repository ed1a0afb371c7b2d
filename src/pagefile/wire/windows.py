"""A window as JSON, in the shape the caller's model takes."""

from typing import Annotated, Literal, cast

from pydantic import Field, JsonValue
from pydantic_core import to_json

from pagefile.window.candidates import Block, Message
from pagefile.window.receipt import Receipt, Verdict, Window
from pagefile.window.render import anthropic, plain
from pagefile.wire.requests import Format
from pagefile.wire.texts import Answer


class VerdictOut(Answer):
    """The decision on one candidate."""

    id: str
    block: Block
    kept: bool
    form: Annotated[str | None, Field(description="Which form was taken; null when dropped.")]
    tokens: int
    reason: str
    score: float | None
    note: Annotated[str, Field(description="Something worth knowing about it; mostly empty.")]

    @classmethod
    def of(cls, verdict: Verdict) -> "VerdictOut":
        return cls(
            id=verdict.id,
            block=verdict.block,
            kept=verdict.kept,
            form=verdict.form,
            tokens=verdict.tokens,
            reason=verdict.reason,
            score=verdict.score,
            note=verdict.note,
        )

    def record(self) -> Verdict:
        return Verdict(
            id=self.id,
            block=self.block,
            kept=self.kept,
            form=self.form,
            tokens=self.tokens,
            reason=self.reason,
            score=self.score,
            note=self.note,
        )


class ReceiptOut(Answer):
    """Every candidate exactly once, kept or dropped, and why."""

    budget: int
    framing: Annotated[int, Field(description="Tokens that belong to no candidate.")]
    counter: str
    exact: bool
    degraded: Annotated[tuple[str, ...], Field(description="What went wrong on the way.")]
    verdicts: tuple[VerdictOut, ...]

    @classmethod
    def of(cls, receipt: Receipt) -> "ReceiptOut":
        return cls(
            budget=receipt.budget,
            framing=receipt.framing,
            counter=receipt.counter,
            exact=receipt.exact,
            degraded=receipt.degraded,
            verdicts=tuple(VerdictOut.of(verdict) for verdict in receipt.verdicts),
        )

    def record(self) -> Receipt:
        return Receipt(
            verdicts=tuple(verdict.record() for verdict in self.verdicts),
            budget=self.budget,
            framing=self.framing,
            counter=self.counter,
            exact=self.exact,
            degraded=self.degraded,
        )


class WindowOut(Answer):
    """What to send to the model, and how it came about."""

    id: Annotated[str, Field(description="Its id in `GET /v1/calls`.")]
    format: Format
    messages: Annotated[
        tuple[dict[str, JsonValue], ...] | None,
        Field(description='OpenAI-style or Anthropic-style messages; null when the format is "text".'),
    ]
    system: Annotated[
        str | None, Field(description='Anthropic\'s system text; null unless the format is "anthropic".')
    ]
    text: Annotated[
        str | None, Field(description='The whole window as one text; null unless the format is "text".')
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
    def of(cls, window: Window, form: Format) -> "WindowOut":
        system, messages, text = _in_shape(window, form)
        # What was made here need not be looked at again, and there can be hundreds of messages.
        return cls.model_construct(
            id=window.id,
            format=form,
            messages=None if messages is None else cast("tuple[dict[str, JsonValue], ...]", tuple(messages)),
            system=system,
            text=text,
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
        """The window, whose messages are OpenAI-style: other formats are made from those."""
        return Window(
            messages=cast("list[Message]", list(self.messages or ())),
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
    """`WindowOut` as it is sent, written straight from the window: there can be hundreds of messages and verdicts."""
    system, messages, text = _in_shape(window, form)
    return to_json(
        {
            "id": window.id,
            "format": form,
            "messages": messages,
            "system": system,
            "text": text,
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
    """The system text, the messages and the text that stand in an answer of this format."""
    if form == "anthropic":
        return *anthropic(window.messages), None
    if form == "text":
        return None, None, plain(window.messages)
    return None, window.messages, None
