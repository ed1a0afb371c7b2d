"""The request a model gets: as many of the thread's own messages as fit, with memory beside the question.

Pagefile's window decides what is shown: which turns, which results in full and which as placeholders, and which memories. The
thread supplies the messages themselves, with everything that no log keeps: pictures, signatures, ids.
Messages are never modified here, only copied.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import convert_to_messages

from pagefile.content import media_in
from pagefile.edge.recorder import step_of
from pagefile.integrations.langchain.messages import (
    CALL_BLOCKS,
    Exchange,
    blocks_of,
    exchanges,
    tool_uses,
    with_media_named,
)
from pagefile.integrations.shortening import Count, shortened
from pagefile.records import Turn
from pagefile.shapes.steps import fitted_tool
from pagefile.standalone import MEMORY_NAME
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD
from pagefile.window.candidates import ShownTurn
from pagefile.window.parts import chat_turn
from pagefile.window.wording import Language

#: Messages that are kept or dropped together.
Group: TypeAlias = tuple[BaseMessage, ...]
#: Earlier turns, as logged and as the window shows them.
Pairs: TypeAlias = Sequence[tuple[Turn, ShownTurn]]

#: The assumed cost of a picture, a sound or a file, which no text tokenizer can count.
MEDIA_TOKENS = 1000


# -- from the thread's messages to the request's ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """A request under construction; `fitted` decides what is dropped, and in which order."""

    system: SystemMessage | None
    preamble: Group
    #: Earlier turns, oldest first, each kept or dropped as a group.
    history: tuple[Group, ...]
    memory: str
    current: Exchange | None
    #: Messages after the last user message; all of them if a summary replaced it.
    tail: Group
    turn_id: str = ""
    #: The memory of the current window, used when the one from the start of the turn has become too large.
    less_memory: str = ""
    #: The language of what was added; None if nothing was.
    language: Language | None = None

    def messages(self) -> list[BaseMessage]:
        """The messages in order, memory right before the user's last one."""
        # Its name distinguishes it from the user's own.
        known = HumanMessage(self.memory, name=MEMORY_NAME, id=f"memory-of-{self.turn_id}")
        memory = [known] if self.memory else []
        listed = [*self.preamble, *(message for group in self.history for message in group)]
        if self.current is None:
            return [*memory, *listed, *self.tail]
        return [*listed, *self.current.humans[:-1], *memory, self.current.humans[-1], *self.tail]

    def tokens(self, count: Count) -> int:
        return request_tokens(filter(None, (self.system, *self.messages())), count)


def plain_view(system: SystemMessage | None, messages: Sequence[BaseMessage]) -> View:
    """The original request, split into the parts that can be dropped."""
    preamble, found = exchanges(messages)
    if not found:
        return View(system, (), (), "", None, tuple(preamble))
    *earlier, current = found
    history = tuple(exchange.messages for exchange in earlier)
    return View(system, tuple(preamble), history, "", current, current.rest)


def native_history(earlier: Sequence[Exchange], done: Sequence[str | None], shown: Pairs) -> list[Group]:
    """The thread's own earlier turns that the window shows, with their results as the window shows them.

    `done` names the turn of each. One missing from the log (it was abandoned) stays unless a newer one was dropped.
    """
    by_id = {turn.id: (turn, one) for turn, one in shown}
    groups: list[Group] = []
    for exchange, turn_id in zip(reversed(earlier), reversed(done), strict=True):
        if turn_id is None:
            groups.append(_without_loose_ends(exchange.messages))
        elif turn_id in by_id:
            groups.append(_as_shown(exchange, *by_id[turn_id]))
        else:
            break
    return groups[::-1]


def _without_loose_ends(messages: Sequence[BaseMessage]) -> Group:
    """The messages of an abandoned turn, without unanswered calls: providers reject those."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    calls = [_call_ids(message) for message in messages]
    loose = {call for together in calls if together - answered for call in together}
    return tuple(message for message in messages if loose.isdisjoint(_call_ids(message)))


def _call_ids(message: BaseMessage) -> set[str]:
    if isinstance(message, ToolMessage):
        return {message.tool_call_id}
    return {str(call["id"]) for call in message.tool_calls} if isinstance(message, AIMessage) else set()


def logged_history(shown: Iterable[ShownTurn], blobs: Mapping[str, bytes]) -> list[Group]:
    """Earlier turns from the log, for a thread that has none."""
    return [tuple(convert_to_messages(cast("Any", chat_turn(turn, blobs)))) for turn in shown]


def _as_shown(exchange: Exchange, turn: Turn, shown: ShownTurn) -> Group:
    rest: Sequence[BaseMessage] = [AIMessage(turn.assistant)] if turn.assistant else []
    if shown.form != "slim":
        rest = as_window_shows(exchange.rest, turn, shown)
    elif exchange.answer is not None:
        rest = exchange.rest[-1:]
    messages = (*exchange.humans, *rest)
    # Without room for any of its images and files, the window names them.
    has_media = any(media.blob or media.url for media in media_in(shown.messages))
    if any(media_in(turn.messages)) and not has_media:
        return tuple(map(with_media_named, messages))
    return messages


def as_window_shows(
    messages: Sequence[BaseMessage], turn: Turn, shown: ShownTurn, *, placeholders_only: bool = False
) -> Group:
    """The messages with their results as the window shows them; those that are not plain text stay unchanged.

    With `placeholders_only`, all results stay in full except those that the thread itself holds as placeholders.
    """
    changed: dict[int, BaseMessage] = {}
    for use in tool_uses(messages):
        number = step_of(turn, use.returned)
        if number is None or number not in shown.steps or not use.is_plain:
            continue
        step = turn.steps[number]
        if not placeholders_only or (not step.whole and step.result == use.returned.text):
            changed[id(use.message)] = use.with_text(shown.steps[number].result)
    return tuple(changed.get(id(message), message) for message in messages)


def system_with(message: SystemMessage | None, text: str) -> SystemMessage | None:
    """The system message with a text appended; the original part stays byte-identical."""
    if not text:
        return message
    if message is None:
        return SystemMessage(text)
    content = cast("Any", message.content)
    if isinstance(content, str):
        return message.model_copy(update={"content": f"{content}\n\n{text}"})
    return message.model_copy(update={"content": [*content, {"type": "text", "text": f"\n\n{text}"}]})


# -- within the window ------------------------------------------------------------------------------------------------


def fitted(view: View, budget: int, count: Count) -> View:
    """The view within a budget: older turns are dropped first, then memory, then the middle of results.

    The user's message, the model's own words and the system message are never cut, even if they alone exceed the budget.
    """
    over = view.tokens(count) - budget
    if over > 0 and view.memory != view.less_memory:
        view = replace(view, memory=view.less_memory)
        over = view.tokens(count) - budget
    while over > 0 and view.history:
        over -= sum(message_tokens(message, count) for message in view.history[0])
        view = replace(view, history=view.history[1:])
    for smaller in (replace(view, preamble=()), replace(view, preamble=(), memory="")):
        if over > 0:
            view, over = smaller, smaller.tokens(count) - budget
    if over <= 0:
        return view
    results = {id(use.message): use for use in tool_uses(view.tail) if use.is_plain}
    cut = shortened({place: use.returned.text for place, use in results.items()}, over, count)
    changed = {place: results[place].with_text(text) for place, text in cut.items()}
    return replace(view, tail=tuple(changed.get(id(one), one) for one in view.tail))


def as_offered(messages: Sequence[BaseMessage], tools: Iterable[Any]) -> list[BaseMessage]:
    """With each tool under the name that the request offers it under: the log's history has names that every provider accepts."""
    names = {
        fitted: name for name in map(_tool_name, tools) if (fitted := fitted_tool(name, "openai")) != name
    }
    return [_renamed(message, names) for message in messages] if names else list(messages)


def _tool_name(tool: Any) -> str:
    if not isinstance(tool, Mapping):
        return str(tool.name)
    given = cast("Mapping[str, Any]", tool)
    return str(cast("Mapping[str, Any]", given.get("function") or given).get("name") or "")


def _renamed(message: BaseMessage, names: Mapping[str, str]) -> BaseMessage:
    if isinstance(message, ToolMessage) and message.name is not None:
        return message.model_copy(update={"name": names.get(message.name, message.name)})
    if isinstance(message, AIMessage) and any(call["name"] in names for call in message.tool_calls):
        calls = [{**call, "name": names.get(call["name"], call["name"])} for call in message.tool_calls]
        return message.model_copy(update={"tool_calls": calls})
    return message


def request_tokens(messages: Iterable[BaseMessage], count: Count) -> int:
    return REPLY_OVERHEAD + sum(message_tokens(message, count) for message in messages)


def message_tokens(message: BaseMessage, count: Count) -> int:
    tokens = MESSAGE_OVERHEAD + sum(_part_tokens(part, count) for part in blocks_of(message))
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            arguments = json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"), default=str)
            tokens += count(call["name"]) + count(arguments)
    return tokens


def _part_tokens(part: Any, count: Count) -> int:
    if isinstance(part, str):
        return count(part)
    block = cast("Mapping[str, Any]", part if isinstance(part, Mapping) else {})
    if isinstance(block.get("text"), str):
        return count(block["text"])
    # Calls are in `tool_calls` too, and counted there.
    return 0 if block.get("type") in CALL_BLOCKS else MEDIA_TOKENS
