"""What may appear in a window: turns as they are shown, and candidates, each with one or more forms, by priority.

A tier offers candidates; only `compile` decides. A candidate's forms go from the fullest to the shortest, and
each knows its exact tokens, counted when the text was written and not when the window is built. Both are
tuples, which are twice as fast to create as frozen dataclasses: a window has hundreds of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from pagefile.content import Media, Text, with_media
from pagefile.content import Message as Said
from pagefile.records import JsonObject, JsonValue, Turn, plain_layout
from pagefile.shapes.call_order import prepared
from pagefile.shapes.media import named
from pagefile.shapes.openai import laid_out
from pagefile.shapes.steps import ShownStep, shown_steps

# -- a turn as a window shows it: which messages, and which text for each tool result ----------------------------------

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
    layout: tuple[Said, ...] | None = None

    @property
    def messages(self) -> tuple[Said, ...]:
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
    layout = laid_out(with_media(prepared(turn.layout), named))
    spoken = [message for message in layout if message.role in {"user", "assistant"}]
    said = [(one, tuple(part for part in one.parts if isinstance(part, (Text, Media)))) for one in spoken]
    shown = tuple(Said(one.role, parts) for one, parts in said if parts)
    return ShownTurn(turn.id, "slim", turn.user, turn.assistant, layout=shown)


def joined(pieces: Sequence[ShownTurn]) -> ShownTurn:
    """The visible pieces of a running turn, as one."""
    first, *rest = pieces
    if not rest:
        return first
    steps = {number: step for piece in pieces for number, step in piece.steps.items()}
    laid_out = any(piece.layout is not None for piece in pieces)
    layout = tuple(message for piece in pieces for message in piece.messages) if laid_out else None
    return first._replace(steps=steps, layout=layout)


# -- candidates --------------------------------------------------------------------------------------------------------

#: A chat message in the format of OpenAI's clients.
Message: TypeAlias = dict[str, JsonValue]

#: Highest priority first: the last are dropped first.
Block = Literal[
    "instructions",
    "safety",
    "current",
    "steps",
    "guide",
    "today",
    "now",
    "recent",
    "corrections",
    "summary",
    "loaded",
    "facts",
    "episodes",
    "chunks",
    "extra",
    "older",
]

PRIORITY: tuple[Block, ...] = get_args(Block)
RANK: dict[Block, int] = {block: rank for rank, block in enumerate(PRIORITY)}

#: Never cut: if these alone are too large, there is no window.
REQUIRED: frozenset[Block] = frozenset({"instructions", "safety", "current"})
#: Sections of the leading system message, in this order.
SYSTEM: tuple[Block, ...] = ("instructions", "guide", "safety", "summary", "today")
#: Those that need no tags: no user wrote any of it.
INSTRUCTIONS: tuple[Block, ...] = ("instructions", "guide", "today")
#: Those that only convey what memory knows, each in its own tags.
TAGGED: tuple[Block, ...] = ("safety", "summary")
#: Sections of the `<memory>` block, in this order.
MEMORY: tuple[Block, ...] = ("now", "corrections", "facts", "episodes", "loaded", "chunks", "extra")
#: Whole turns; together they form one run that ends with the newest, without gaps but for turns that stay.
TURNS: frozenset[Block] = frozenset({"recent", "older"})
#: The question, or the running turn with its steps.
RUNNING: frozenset[Block] = frozenset({"current", "steps"})


#: Tokens spent on a block also count against the limit of this one.
SHARED_CAPS: Mapping[Block, Block] = {"corrections": "facts"}


class Form(NamedTuple):
    """One way to show a candidate: as messages of a turn, or as text inside a shared message."""

    tokens: int
    shown: ShownTurn | None = None
    text: str = ""
    name: str = "full"
    #: How much of the candidate's value it carries.
    share: float = 1.0


class Candidate(NamedTuple):
    """Something that may appear in the window."""

    id: str
    block: Block
    #: From the fullest to the shortest; empty if it can only be mentioned (turns that were not read).
    forms: tuple[Form, ...]
    #: The order within the block: `seq` for turns (one without an answer may be between two), rank for the rest.
    position: float = 0
    score: float | None = None
    #: Tokens of a candidate without forms.
    unread_tokens: int = 0
    #: A note for the receipt.
    note: str = ""
    #: The probability that it helps with this message (`window/value.py`); None: its block's rank decides.
    value: float | None = None
    #: The heading that it shares with the candidates around it in its block, such as a day.
    heading: str = ""
    #: A turn that only windows can show: it was never answered, and neither a summary nor recall has what the user said.
    stays: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of the fullest form."""
        return self.forms[0].tokens if self.forms else self.unread_tokens


def candidate_json(candidate: Candidate) -> JsonObject:
    """A candidate of a shared message as plain JSON."""
    forms = [[form.name, form.text, form.tokens, form.share] for form in candidate.forms]
    shown = ("id", "block", "forms", "position", "score", "value", "heading")
    return {name: forms if name == "forms" else getattr(candidate, name) for name in shown}


def candidate_from(value: JsonObject) -> Candidate:
    given = cast("dict[str, Any]", value)
    forms = tuple(Form(tokens, None, text, name, *share) for name, text, tokens, *share in given["forms"])
    # Windows of earlier versions recorded neither values nor headings.
    place, later = (given["position"], given["score"]), (given.get("value"), given.get("heading", ""))
    return Candidate(given["id"], given["block"], forms, *place, 0, "", *later)
