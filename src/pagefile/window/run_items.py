"""What happened in a conversation, in order, as the rule for full windows (`window/eviction.py`) counts it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pagefile.content import JsonValue, Message, Reasoning, Text, ToolCall, ToolResult
from pagefile.records import Page, Step, Turn
from pagefile.shapes.tool_arguments import large_values
from pagefile.text.sentences import clip
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.window.measure import Count
from pagefile.window.placeholder import LOAD_TOOL, TURN_HANDLE, message_handle, step_note
from pagefile.window.wording import Wording

#: A turn, and the index of a step in it.
Place: TypeAlias = tuple[str, int]
#: What can leave: its turn, the index of the step, and which value of the call's arguments (a JSON pointer); "" is the result.
#: With `SPEECH` it is what the agent said in the message of this index.
Key: TypeAlias = tuple[str, int, str]
SPEECH = "#"
#: What the line of a result shows of its query, which the call above it has in full, and of its synopsis.
_LEFT_SHOWN = (20, 40)
#: How much of a large argument its line shows, and how much of a call is shown above its passages.
_ABOUT_CHARS, _ASKED_CHARS = 40, 60


class Said(NamedTuple):
    """What stays as it is: speech, a call, a result that has no page."""

    #: What it tells about the agent's interest.
    text: str
    tokens: int
    #: The turn and the index of the step, of a call and its result.
    step: Place | None = None
    #: What remains of a result without a page when its call is only named.
    note: str = ""

    @property
    def least_tokens(self) -> int:
        return MESSAGE_OVERHEAD + self.tokens


class Pageable(NamedTuple):
    """A result, a large value in the arguments of a call, or a long message of the agent, that can leave."""

    key: Key
    text: str
    tokens: int
    #: The line that remains of it, and its tokens.
    note: str
    note_tokens: int
    #: What its passages are introduced with.
    title: str

    @property
    def step(self) -> Place | None:
        """The turn and the index of the step, unless it is a message."""
        return None if self.key[2] == SPEECH else self.key[:2]

    @property
    def least_tokens(self) -> int:
        """What its line takes; that of an argument is in the message of its call."""
        return self.note_tokens if self.is_input else MESSAGE_OVERHEAD + self.note_tokens

    @property
    def is_own(self) -> bool:
        """Whether the agent wrote it."""
        return bool(self.key[2])

    @property
    def is_input(self) -> bool:
        """Whether it is an argument, which is in the message of its call."""
        return self.key[2] not in {"", SPEECH}


Item: TypeAlias = Said | Pageable


@dataclass(slots=True)
class Exchange:
    """A call and its result, as a window that has no room for more names them."""

    #: What they take at the least.
    tokens: int = 0
    lines: list[str] = field(default_factory=list[str])
    pages: list[Pageable] = field(default_factory=list[Pageable])
    is_answered: bool = False

    def add(self, item: Item) -> None:
        self.tokens += item.least_tokens
        if isinstance(item, Pageable):
            self.pages.append(item)
        if item.note:
            self.lines.append(item.note)
            self.is_answered = self.is_answered or not (isinstance(item, Pageable) and item.is_own)

    @property
    def name(self) -> str:
        return "\n".join(self.lines)


def is_speech(item: Item) -> bool:
    """Whether it tells what the agent is after."""
    return bool(item.text) and (isinstance(item, Said) or item.key[2] == SPEECH)


@dataclass(frozen=True, slots=True)
class Source:
    """How turns become items."""

    count: Count
    wording: Wording
    #: The full texts of archived results that are shown in full, by turn and step, with their tokens.
    loaded: Mapping[tuple[str, int], tuple[str, int]]
    #: Values of a call's arguments, and messages of the agent, with more characters than this can leave; 0: none.
    inputs_from: int = 0
    #: The pages that the turns name. An argument leaves only if its page can be loaded: nothing else leads back to it.
    known: Mapping[str, Page] = field(default_factory=dict[str, Page])

    def items(self, turns: Iterable[Turn], running: Turn | None) -> list[Item]:
        done = [item for turn in turns for item in self._of(turn, is_running=False)]
        return done if running is None else [*done, *self._of(running, is_running=True)]

    def _of(self, turn: Turn, *, is_running: bool) -> Iterator[Item]:
        if turn.layout is not None:
            for number, message in enumerate(turn.layout):
                text = long_speech(message, self.inputs_from) if self.inputs_from else ""
                if text:
                    yield self._speech(turn, number, text)
                yield from self._of_message(turn, message, is_running, leaves=bool(text))
            return
        # Counted when they were written.
        if turn.user:
            yield Said(turn.user, turn.user_tokens)
        for number, step in enumerate(turn.steps):
            yield from self._call((turn.id, number), step)
            yield self._result((turn.id, number), step)
        if turn.assistant:
            yield Said(turn.assistant, turn.assistant_tokens)

    def _of_message(self, turn: Turn, message: Message, is_running: bool, *, leaves: bool) -> Iterator[Item]:
        for part in message.parts:
            match part:
                case Text(text) if not leaves:
                    yield Said(text, self.count(text))
                case Reasoning(text) if is_running:
                    yield Said("", self.count(text))
                case ToolCall(step):
                    yield from self._call((turn.id, step), turn.steps[step])
                case ToolResult(step):
                    yield self._result((turn.id, step), turn.steps[step])
                case _:
                    pass

    def _call(self, place: tuple[str, int], step: Step) -> Iterator[Item]:
        said = "\n".join(strings(step.input))
        inputs = [*self._inputs(place, step)]
        yield Said(said, max(0, step.call_tokens - sum(item.tokens for item in inputs)), place)
        yield from inputs

    def _inputs(self, place: tuple[str, int], step: Step) -> Iterator[Pageable]:
        """The large values in the arguments that have a page."""
        for pointer, text in large_values(step.input, self.inputs_from).items() if self.inputs_from else ():
            page = self.known.get(uuid := step.input_pages.get(pointer, ""))
            if page is not None and not page.purged:
                note = input_note(uuid, text, self.wording)
                tokens, note_tokens = self.count(text), self.count(note)
                if note_tokens < tokens:
                    title = passage_title(uuid, step)
                    yield Pageable((*place, pointer), text, tokens, note, note_tokens, title)

    def _speech(self, turn: Turn, number: int, text: str) -> Pageable:
        handle = message_handle(turn.id, number)
        note, tokens = speech_note(handle, text, self.wording), self.count(text)
        return Pageable((turn.id, number, SPEECH), text, tokens, note, self.count(note), f"📎 {handle}")

    def _result(self, place: tuple[str, int], step: Step) -> Item:
        text, tokens = self.loaded.get(place, (step.result, step.result_tokens))
        if step.page and (step.whole or place in self.loaded):
            page, wording = self.known.get(step.page), self.wording
            note = step_note(step, wording, page, words=wording.left, shown=_LEFT_SHOWN)
            if (note_tokens := self.count(note)) < tokens:
                title = passage_title(step.page, step)
                return Pageable((*place, ""), text, tokens, note, note_tokens, title)
        if (loaded := _loaded_speech(step)) and (
            note_tokens := self.count(note := speech_note(loaded, text, self.wording))
        ) < tokens:
            return Pageable((*place, ""), text, tokens, note, note_tokens, passage_title(loaded, step))
        asked = clip(" ".join(" ".join(strings(step.input)).split()), _ASKED_CHARS)
        return Said("", tokens, place, f"- {step.tool}: {asked}")


def _loaded_speech(step: Step) -> str:
    """The handle of the message or turn that a step loaded; "" if it did something else."""
    asked = step.input.get("uuid") if step.tool == LOAD_TOOL and isinstance(step.input, Mapping) else None
    return asked if isinstance(asked, str) and asked.startswith(TURN_HANDLE) else ""


def input_note(uuid: str, text: str, wording: Wording) -> str:
    """What remains of a large argument in its place: the page, the length and how it begins."""
    return wording.left_input.format(uuid=uuid, chars=len(text), about=_beginning(text))


def long_speech(message: Message, chars: int) -> str:
    """What the agent says in a message, if it is longer; "" where a provider wants its reasoning back, which goes with the words."""
    if message.role != "assistant" or len(text := message.text) <= chars:
        return ""
    return "" if any(isinstance(part, Reasoning) for part in message.parts) else text


def speech_note(handle: str, text: str, wording: Wording) -> str:
    """What remains of a long message of the agent in its place."""
    return wording.left_speech.format(handle=handle, chars=len(text), about=_beginning(text))


def _beginning(text: str) -> str:
    return clip(" ".join(text[: 2 * _ABOUT_CHARS].split()), _ABOUT_CHARS)


def passage_title(uuid: str, step: Step) -> str:
    """Above passages of a page: the beginning of its uuid, and what was asked."""
    asked = clip(" ".join(" ".join(strings(step.input)).split()), _ASKED_CHARS)
    return f"📎 {uuid[:8]} {step.tool}: {asked}"


def strings(value: JsonValue) -> Iterator[str]:
    """The texts in the arguments of a call."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from strings(inner)
