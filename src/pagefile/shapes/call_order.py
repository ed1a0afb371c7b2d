"""Messages in an order that providers accept: every call is answered once and right after it, and nothing is empty.

A turn is stored as it happened: it may have ended between a call and its result, or the user may have spoken
in between. What cannot be sent as it is, is sent in the closest order that can.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from pagefile.content import Media, Message, Other, Part, Reasoning, Text, ToolCall, ToolResult
from pagefile.shapes.media import note


def prepared(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages as they can be sent: each run of assistant messages, directly followed by the results of its calls.

    A call that was never answered is left out, a result without a call gets one, and duplicates are dropped.
    Blank texts are left out; an image that is not the user's is named.
    """
    given = list(_answered_once(map(_cleaned, messages)))
    results = {part.step: part for message in given for part in message.parts if isinstance(part, ToolResult)}
    found: list[Message] = []
    for asked, group in groupby(given, key=lambda message: message.role == "assistant"):
        run = list(group)
        found += _calls_with_results(run, results) if asked else _others(run)
    return tuple(found)


def calls_of(message: Message) -> set[int]:
    return {part.step for part in message.parts if isinstance(part, ToolCall)}


def answered_steps(messages: Iterable[Message]) -> set[int]:
    return {part.step for message in messages for part in message.parts if isinstance(part, ToolResult)}


def waiting_steps(messages: Sequence[Message]) -> set[int]:
    return {step for message in messages for step in calls_of(message)} - answered_steps(messages)


def in_order(messages: Sequence[Message], *, one_by_one: bool) -> bool:
    """Whether every result follows its call; with `one_by_one`, without even an assistant message in between."""
    waiting: set[int] = set()
    for message in messages:
        asked = message.role == "assistant"
        if waiting and asked and one_by_one:
            return False
        for part in message.parts:
            if isinstance(part, ToolResult):
                if part.step not in waiting:
                    return False
                waiting.discard(part.step)
            elif waiting and not asked:
                return False
        waiting |= calls_of(message)
    return not waiting


def _cleaned(message: Message) -> Message:
    """The message without what no provider accepts, and without its original JSON."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Media) and message.role not in {"user", "tool"}:
            parts.append(Text(note(part)))
        elif isinstance(part, ToolCall):
            parts += [part] if message.role == "assistant" else []
        elif not isinstance(part, Text) or part.text.strip():
            parts.append(part)
    return Message(message.role, tuple(parts), message.shape)


def _answered_once(messages: Iterable[Message]) -> Iterator[Message]:
    """The non-empty messages, with one result per step, and with a call inserted before a result that lacks one."""
    called: set[int] = set()
    answered: set[int] = set()
    for message in messages:
        called |= calls_of(message)
        parts = tuple(p for p in message.parts if not isinstance(p, ToolResult) or p.step not in answered)
        answered |= answered_steps([message])
        if made := sorted(answered - called):
            called.update(made)
            yield Message("assistant", tuple(ToolCall(step) for step in made), message.shape)
        if parts:
            yield Message(message.role, parts, message.shape)


def _calls_with_results(run: Sequence[Message], results: dict[int, ToolResult]) -> Iterator[Message]:
    """What the assistant said and called in a row, and its results, which are taken out of `results`."""
    answers: list[ToolResult] = []
    said: list[Message] = []
    for message in run:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall) and part.step in results:
                answers.append(results.pop(part.step))
                parts.append(part)
            elif not isinstance(part, (ToolCall, ToolResult)):
                parts.append(part)
        said.append(Message("assistant", tuple(parts), message.shape))
    said = _without_last_thoughts(said)
    yield from [_joined(said)] if answers else (message for message in said if message.parts)
    yield from (Message("tool", (answer,), run[0].shape) for answer in answers)


def _without_last_thoughts(said: Sequence[Message]) -> list[Message]:
    """Reasoning that leads to nothing is refused by the provider that signed it."""
    found = list(said)
    while found:
        last = found.pop()
        parts = list(last.parts)
        while parts and isinstance(parts[-1], Reasoning):
            parts.pop()
        if parts:
            return [*found, Message(last.role, tuple(parts), last.shape)]
    return found


def _joined(said: Sequence[Message]) -> Message:
    """One message: nothing may come between a call and its result."""
    shape = said[0].shape
    given = [(part, message.shape) for message in said for part in message.parts]
    parts = (part for part, own in given if own == shape or not isinstance(part, (Reasoning, Other)))
    return Message("assistant", tuple(parts), shape)


def _others(run: Iterable[Message]) -> Iterator[Message]:
    for message in run:
        parts = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        if parts:
            yield Message("user" if message.role == "tool" else message.role, parts, message.shape)


# -- the question and the answer of a turn ----------------------------------------------------------------------------


def question(messages: Sequence[Message]) -> str | None:
    """The first thing the user said; anything shown with it, instead of it or right after it is named."""
    said: list[str] = []
    for message in messages:
        if said and (message.role != "user" or message.text.strip()):
            break
        if message.role == "user":
            named = " ".join(filter(None, map(_name, message.parts)))
            said += [text for text in (message.text, named) if text.strip()]
    return "\n".join(said) or None


def answer(messages: Sequence[Message]) -> str | None:
    """The last thing the assistant said, preferably after the last tool result."""
    last = max((place for place, message in enumerate(messages) if answered_steps([message])), default=-1)
    return _last_said(messages[last + 1 :]) or _last_said(messages[: last + 1])


def _last_said(messages: Sequence[Message]) -> str | None:
    said = (message.text for message in reversed(messages) if message.role == "assistant")
    return next((text for text in said if text.strip()), None)


def _name(part: Part) -> str | None:
    match part:
        case Media():
            return note(part)
        case Other({"type": str(kind)}):
            return f"[{kind}]"
        case _:
            return None
