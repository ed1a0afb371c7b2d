"""The request a model gets: the thread's own messages, as far as the window has room, with memory beside the question.

Pagefile's window decides what is shown: which turns, which results in full and which as placeholders, what is
remembered. The thread supplies the messages themselves, with everything in them that no log keeps: pictures, signatures, ids.
Nothing here changes a message it was given; what differs is a copy.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from pagefile.content import media_in
from pagefile.integrations.langchain.blocks import with_media_named
from pagefile.integrations.langchain.reading import MEMORY_NAME, Exchange, ToolUse, exchanges, tool_uses
from pagefile.integrations.recorder import step_of
from pagefile.records import Turn
from pagefile.text.clip import clip
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD
from pagefile.window.receipt import Window
from pagefile.window.renderings import chat_turn
from pagefile.window.shown import ShownTurn

Count = Callable[[str], int]

#: What a picture, a sound or a file is taken to cost; nobody can count it in words.
MEDIA_TOKENS = 1000
#: A result is not cut below this, when there is no page to stand for it.
_SMALLEST_RESULT_CHARS = 200


# -- what a window shows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier turn: as it is in the log, and as the window shows it."""

    turn: Turn
    shown: ShownTurn

    @property
    def slim(self) -> bool:
        """Its tools were left out."""
        return self.shown.form == "slim"

    @property
    def names_media(self) -> bool:
        """It has images or files, and the window has no room for any of them."""
        shown = media_in(self.shown.messages)
        return any(media_in(self.turn.messages)) and not any(media.blob or media.url for media in shown)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a window shows, as the middleware needs it."""

    system: str
    memory: str
    turns: list[Earlier]
    #: What is shown for each step of the running turn.
    results: Mapping[int, str]
    #: Bytes of images and files that the turns name.
    blobs: Mapping[str, bytes]


def shown_in(window: Window, turns: Mapping[str, Turn]) -> Shown:
    """What a window shows; raises `LookupError` when it has turns that are not among `turns`.

    The guide to archived results is left out: it is in every request of the middleware, so that the beginning of the prompt
    does not change when the first result is archived.
    """
    parts = window.parts
    return Shown(
        system=replace(parts, guide="").system,
        memory=parts.beside,
        turns=[Earlier(turns[shown.turn_id], shown) for shown in parts.turns],
        results={} if parts.current is None else results_in(parts.current),
        blobs=parts.blobs,
    )


def results_in(shown: ShownTurn) -> dict[int, str]:
    """What is shown for each step."""
    return {number: step.result for number, step in shown.steps.items()}


# -- from the thread's messages to the request's --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """A request in the making: what is given up last stands last in `fitted`."""

    system: SystemMessage | None
    preamble: tuple[BaseMessage, ...]
    #: Earlier turns, oldest first, each a group that stays or goes as one.
    history: tuple[tuple[BaseMessage, ...], ...]
    memory: str
    current: Exchange | None
    #: Messages after the last user message; all of them when a summary swallowed it.
    tail: tuple[BaseMessage, ...]
    turn_id: str = ""
    #: The memory of this very window, for when the one from the turn's beginning has become too large.
    less_memory: str = field(default="")

    def messages(self) -> list[BaseMessage]:
        """The messages in order, memory right before the user's last one."""
        memory = [memory_message(self.memory, self.turn_id)] if self.memory else []
        listed = [*self.preamble, *(message for group in self.history for message in group)]
        if self.current is None:
            return [*memory, *listed, *self.tail]
        return [*listed, *self.current.humans[:-1], *memory, self.current.humans[-1], *self.tail]

    def tokens(self, count: Count) -> int:
        """What the request costs as a chat, by the memory's own counter."""
        system = [self.system] if self.system is not None else []
        return request_tokens([*system, *self.messages()], count)


def plain_view(system: SystemMessage | None, messages: Sequence[BaseMessage]) -> View:
    """The request as it came, taken apart into what may have to go."""
    preamble, found = exchanges(messages)
    current = found[-1] if found else None
    return View(
        system=system,
        preamble=tuple(preamble) if current is not None else (),
        history=tuple(exchange.messages for exchange in found[:-1]),
        memory="",
        current=current,
        tail=current.rest if current is not None else tuple(preamble),
    )


def native_history(
    earlier: Sequence[Exchange], done: Sequence[str | None], shown: Sequence[Earlier]
) -> list[tuple[BaseMessage, ...]]:
    """The thread's own earlier turns that the window shows, with what it shows for their results.

    `done` names the turn of each. One that the log does not have (it was given up) stays as long as no newer one had to go.
    """
    by_id = {one.turn.id: one for one in shown}
    groups: list[tuple[BaseMessage, ...]] = []
    for exchange, turn_id in zip(reversed(earlier), reversed(done), strict=True):
        one = by_id.get(turn_id) if turn_id is not None else None
        if one is not None:
            groups.append(_as_shown(exchange, one))
        elif turn_id is None:
            groups.append(_without_loose_ends(exchange.messages))
        else:
            break
    return groups[::-1]


def _without_loose_ends(messages: Sequence[BaseMessage]) -> tuple[BaseMessage, ...]:
    """The messages of a turn that was given up, without calls that nobody answered: providers refuse those."""
    answered = {use.message.tool_call_id for use in tool_uses(messages)}
    loose = {
        str(call["id"])
        for message in messages
        if isinstance(message, AIMessage) and any(call["id"] not in answered for call in message.tool_calls)
        for call in message.tool_calls
    }
    return tuple(
        message
        for message in messages
        if not (isinstance(message, AIMessage) and any(call["id"] in loose for call in message.tool_calls))
        and not (isinstance(message, ToolMessage) and message.tool_call_id in loose)
    )


def logged_history(shown: Shown) -> list[tuple[BaseMessage, ...]]:
    """Earlier turns out of the log, for a thread that has none."""
    return [tuple(convert_to_messages(cast("Any", chat_turn(one.shown, shown.blobs)))) for one in shown.turns]


def running_tail(
    tail: Sequence[BaseMessage], turn: Turn, results: Mapping[int, str], *, tight: bool
) -> tuple[BaseMessage, ...]:
    """The running turn's messages, with its results in full; in a tight window, as the window shows them.

    A result that the thread itself holds as a placeholder is shown as the window has it either way.
    """
    away = {number for number, step in enumerate(turn.steps) if tight or not step.whole}
    kept_as_is = {id(use.message) for use in tool_uses(tail) if not tight and not _is_placeholder(use, turn)}
    shown = {number: text for number, text in results.items() if number in away}
    return tuple(
        before if id(before) in kept_as_is else after
        for before, after in zip(tail, _replaced(tail, turn, shown), strict=True)
    )


def _is_placeholder(use: ToolUse, turn: Turn) -> bool:
    number = step_of(turn, use.returned)
    return number is not None and not turn.steps[number].whole and turn.steps[number].result == use.text


def _as_shown(exchange: Exchange, one: Earlier) -> tuple[BaseMessage, ...]:
    messages = _with_tools_as_shown(exchange, one)
    return tuple(map(with_media_named, messages)) if one.names_media else messages


def _with_tools_as_shown(exchange: Exchange, one: Earlier) -> tuple[BaseMessage, ...]:
    if not one.slim:
        return (*exchange.humans, *_replaced(exchange.rest, one.turn, results_in(one.shown)))
    if exchange.answer is not None:
        return (*exchange.humans, exchange.rest[-1])
    answer = [AIMessage(one.turn.assistant)] if one.turn.assistant else []
    return (*exchange.humans, *answer)


def _replaced(messages: Sequence[BaseMessage], turn: Turn, results: Mapping[int, str]) -> list[BaseMessage]:
    """Copies of the tool messages whose text is shown in another form; what is no text stays as it is."""
    texts: dict[int, str] = {}
    for use in tool_uses(messages):
        number = step_of(turn, use.returned)
        if number is not None and isinstance(cast("Any", use.message.content), str) and number in results:
            texts[id(use.message)] = results[number]
    return [
        with_text(message, texts[id(message)])
        if isinstance(message, ToolMessage) and id(message) in texts
        else message
        for message in messages
    ]


def with_text(message: ToolMessage, text: str) -> ToolMessage:
    """The message with another text; itself when it says that already."""
    return message if message.content == text else message.model_copy(update={"content": text})


def memory_message(text: str, turn_id: str) -> HumanMessage:
    """The message that carries memory; its name keeps it from being taken for the user's words."""
    return HumanMessage(text, name=MEMORY_NAME, id=f"memory-of-{turn_id}")


def system_with(message: SystemMessage | None, text: str) -> SystemMessage | None:
    """The system message with a text behind its own; what was there keeps its bytes."""
    if not text:
        return message
    if message is None:
        return SystemMessage(text)
    content = cast("Any", message.content)
    if isinstance(content, str):
        return message.model_copy(update={"content": f"{content}\n\n{text}"})
    return message.model_copy(update={"content": [*content, {"type": "text", "text": f"\n\n{text}"}]})


# -- within the window ----------------------------------------------------------------------------------------------------


def fitted(view: View, budget: int, count: Count) -> View:
    """The view within a budget: older turns go first, then what memory added, then the middle of results.

    The user's message, the model's own words and the system message are never cut: when they alone are too large, they go as they are.
    """
    over = view.tokens(count) - budget
    if over > 0 and view.memory != view.less_memory:
        view = replace(view, memory=view.less_memory)
        over = view.tokens(count) - budget
    while over > 0 and view.history:
        over -= sum(message_tokens(message, count) for message in view.history[0])
        view = replace(view, history=view.history[1:])
    if over > 0 and view.preamble:
        view = replace(view, preamble=())
        over = view.tokens(count) - budget
    if over > 0 and view.memory:
        view = replace(view, memory="", less_memory="")
        over = view.tokens(count) - budget
    return replace(view, tail=_shortened(view.tail, over, count)) if over > 0 else view


def _shortened(tail: Sequence[BaseMessage], over: int, count: Count) -> tuple[BaseMessage, ...]:
    """The longest results first, each cut in its middle, until enough is gone."""
    messages = list(tail)
    lengths = {
        number: count(str(message.content))
        for number, message in enumerate(messages)
        if isinstance(message, ToolMessage) and isinstance(cast("Any", message.content), str)
    }
    for number in sorted(lengths, key=lambda n: -lengths[n]):
        if over <= 0:
            break
        message = cast("ToolMessage", messages[number])
        text = cut_to(str(message.content), max(0, lengths[number] - over), count)
        over -= lengths[number] - count(text)
        messages[number] = with_text(message, text)
    return tuple(messages)


def cut_to(text: str, tokens: int, count: Count) -> str:
    """A text with its middle left out, of at most so many tokens where that leaves anything to read."""
    chars = len(text)
    while chars > _SMALLEST_RESULT_CHARS and (cost := count(clip(text, chars))) > tokens:
        chars = max(_SMALLEST_RESULT_CHARS, min(chars - 1, chars * tokens // max(cost, 1)))
    return clip(text, chars)


def request_tokens(messages: Iterable[BaseMessage], count: Count) -> int:
    """What messages cost as a chat request."""
    return REPLY_OVERHEAD + sum(message_tokens(message, count) for message in messages)


def message_tokens(message: BaseMessage, count: Count) -> int:
    """What one message costs, its tool calls included."""
    content = cast("Any", message.content)
    parts: list[Any] = [content] if isinstance(content, str) else content
    tokens = MESSAGE_OVERHEAD + sum(_part_tokens(part, count) for part in parts)
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            arguments = json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"), default=str)
            tokens += count(call["name"]) + count(arguments)
    return tokens


def _part_tokens(part: Any, count: Count) -> int:
    if isinstance(part, str):
        return count(part)
    text = part.get("text") if isinstance(part, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - blocks are whatever a provider takes
    if isinstance(text, str):
        return count(text)
    # Calls stand in `tool_calls` too, and are counted there.
    calls = {"tool_use", "tool_call", "input_json_delta", "function_call"}
    return 0 if isinstance(part, Mapping) and part.get("type") in calls else MEDIA_TOKENS  # pyright: ignore[reportUnknownMemberType] - as above
