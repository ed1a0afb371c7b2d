"""Messages in the order that providers take: every call is answered once and right behind it, and nothing is empty.

A turn is kept as it happened: it may have ended between a call and its result, or somebody may have spoken meanwhile. What cannot be
sent as it is, is sent in the nearest order that can.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from pagefile.content import Media, Message, Other, Part, Reasoning, Text, ToolCall, ToolResult
from pagefile.shapes.media import note


def prepared(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages as they can be sent: each run of the assistant's with the results of its calls right behind it.

    A call that was never answered is left out, a result whose call is not there gets one, and either comes only once. Blank texts
    are left out; an image that is not the user's is named. Messages that are prepared already come back equal.
    """
    given = list(_with_calls([message for one in messages if (message := _cleaned(one)) is not None]))
    results = {part.step: part for message in given for part in message.parts if isinstance(part, ToolResult)}
    waiting = set(results)
    found: list[Message] = []
    for asked, run in groupby(given, key=lambda message: message.role == "assistant"):
        if asked:
            found += _asked(list(run), waiting, results)
        else:
            found += _others(run)
    return tuple(found)


def calls_of(message: Message) -> set[int]:
    """The steps that a message calls."""
    return {part.step for part in message.parts if isinstance(part, ToolCall)}


def answered_steps(messages: Iterable[Message]) -> set[int]:
    """The steps that have a result."""
    return {part.step for message in messages for part in message.parts if isinstance(part, ToolResult)}


def _cleaned(message: Message) -> Message | None:
    """The message without what no provider takes, and without what it came as; None when nothing is left."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Media) and message.role not in {"user", "tool"}:
            parts.append(Text(note(part)))
        elif not isinstance(part, Text) or part.text.strip():
            parts.append(part)
    return Message(message.role, tuple(parts), message.shape) if parts else None


def _with_calls(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages, and a call before each result whose own is not there."""
    called = {step for message in messages if message.role == "assistant" for step in calls_of(message)}
    for message in messages:
        made = sorted(answered_steps([message]) - called)
        if made:
            called.update(made)
            yield Message("assistant", tuple(ToolCall(step) for step in made), message.shape)
        yield message


def _asked(run: Sequence[Message], waiting: set[int], results: Mapping[int, ToolResult]) -> Iterator[Message]:
    """What the assistant said and called in a row, and the results; they are not among those waiting any more."""
    calls: list[int] = []
    said: list[Message] = []
    for message in run:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall) and part.step in waiting:
                waiting.discard(part.step)
                calls.append(part.step)
                parts.append(part)
            elif not isinstance(part, (ToolCall, ToolResult)):
                parts.append(part)
        said.append(Message("assistant", tuple(parts), message.shape))
    # A thought that leads to nothing is refused by the provider that sealed it.
    while said and all(isinstance(part, Reasoning) for part in said[-1].parts):
        said.pop()
    yield from [_joined(said)] if calls else [message for message in said if message.parts]
    for step in calls:
        yield Message("tool", (results[step],), run[0].shape)


def _joined(said: Sequence[Message]) -> Message:
    """One message: nothing may come between a call and its result."""
    shape = said[0].shape
    parts = (
        part
        for message in said
        for part in message.parts
        if message.shape == shape or not isinstance(part, (Reasoning, Other))
    )
    return Message("assistant", tuple(parts), shape)


def _others(run: Iterable[Message]) -> Iterator[Message]:
    """What else was said between the assistant's messages."""
    for message in run:
        parts = tuple(part for part in message.parts if not isinstance(part, (ToolCall, ToolResult)))
        if parts:
            yield Message("user" if message.role == "tool" else message.role, parts, message.shape)
