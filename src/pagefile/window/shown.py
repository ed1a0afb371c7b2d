"""A turn as a window shows it: which messages, and which text for each tool result."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pagefile.content import Media, Message, Text, with_media
from pagefile.records import Turn, plain_layout
from pagefile.shapes import ShownStep, laid_out, named, prepared, shown_steps

_NO_STEPS: Mapping[int, ShownStep] = {}


class ShownTurn(NamedTuple):
    """A turn, or as much of it as the window shows."""

    turn_id: str
    #: "full", "slim" …, as in the receipt; "current" for the running turn.
    form: str
    user: str | None
    assistant: str | None = None
    #: The steps that are shown, by their index in the turn.
    steps: Mapping[int, ShownStep] = _NO_STEPS
    #: The messages in the order in which they are sent, if they are more than `user`, `steps` and
    #: `assistant`.
    layout: tuple[Message, ...] | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is shown, in order; calls and results refer to their step."""
        if self.layout is not None:
            return self.layout
        return plain_layout(self.user, self.steps, self.assistant)


def shown_turn(turn: Turn, form: str, results: Mapping[int, str]) -> ShownTurn:
    """A turn with all its steps; `results` replaces the texts of some."""
    if not turn.steps and turn.layout is None:
        return ShownTurn(turn.id, form, turn.user, turn.assistant)
    steps = shown_steps(turn.steps, results)
    layout = None if turn.layout is None else prepared(turn.layout)
    return ShownTurn(turn.id, form, turn.user, turn.assistant, steps, layout)


def slim_turn(turn: Turn) -> ShownTurn:
    """A turn without its tools: only what user and assistant said, with images and files named, those of tools too."""
    if turn.layout is None:
        return ShownTurn(turn.id, "slim", turn.user, turn.assistant)
    said = tuple(_said(laid_out(with_media(prepared(turn.layout), named))))
    return ShownTurn(turn.id, "slim", turn.user, turn.assistant, layout=said)


def _said(layout: Sequence[Message]) -> Iterator[Message]:
    for message in layout:
        parts = tuple(part for part in message.parts if isinstance(part, (Text, Media)))
        if parts and message.role in {"user", "assistant"}:
            yield Message(message.role, parts)


def joined(pieces: Sequence[ShownTurn]) -> ShownTurn:
    """The visible pieces of a running turn, as one."""
    first, *rest = pieces
    if not rest:
        return first
    steps = {number: step for piece in pieces for number, step in piece.steps.items()}
    laid_out = any(piece.layout is not None for piece in pieces)
    layout = tuple(message for piece in pieces for message in piece.messages) if laid_out else None
    return first._replace(steps=steps, layout=layout)
