"""Calls and results in the order that providers take: every call is answered once, right after the message that makes it.

A turn is kept as it happened, and it may have ended between a call and its result, or somebody may have spoken meanwhile. What cannot be
sent as it is, is sent in the nearest order that can.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pagefile.content import Message, Part, Reasoning, ToolCall, ToolResult


def paired(layout: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with every call answered; the same ones when they are in order already."""
    if _in_order(layout):
        return layout
    waiting, found = deque(_single(_answered(layout))), list[Message]()
    pending: set[int] = set()
    later: list[Message] = []
    while waiting:
        message = waiting.popleft()
        results = results_of(message)
        if not pending or (results <= pending and results):
            found.append(message)
        elif message.role == "assistant" and found[-1].role == "assistant":
            found[-1] = _of_parts(message, (*found[-1].parts, *message.parts))
        else:
            later.append(message)
            continue
        pending = (pending | calls_of(message)) - results
        if not pending:
            waiting.extendleft(reversed(later))
            later.clear()
    return tuple(found)


def calls_of(message: Message) -> set[int]:
    """The steps that a message calls."""
    return {part.step for part in message.parts if isinstance(part, ToolCall)}


def results_of(message: Message) -> set[int]:
    """The steps whose results a message has."""
    return {part.step for part in message.parts if isinstance(part, ToolResult)}


def _in_order(layout: Iterable[Message]) -> bool:
    pending: set[int] = set()
    known: set[int] = set()
    for message in layout:
        calls, results = calls_of(message), results_of(message)
        named = [part for part in message.parts if isinstance(part, ToolCall | ToolResult)]
        if len(named) > len(calls) + len(results):
            return False
        if (pending and not results) or not results <= pending or calls & known or (calls and pending):
            return False
        known |= calls
        pending = (pending - results) | calls
    return not pending


def _answered(layout: Sequence[Message]) -> Iterator[Message]:
    """The messages without calls that have no result, results that have no call, and repetitions of either."""
    called: set[int] = set()
    answered: set[int] = set()
    for message in layout:
        called |= calls_of(message)
        answered |= results_of(message) & called
    left = {"call": set(answered), "result": set(answered)}
    made: set[int] = set()
    for message in layout:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                if part.step not in left["call"]:
                    continue
                left["call"].discard(part.step)
                made.add(part.step)
            elif isinstance(part, ToolResult):
                if part.step not in left["result"] or part.step not in made:
                    continue
                left["result"].discard(part.step)
            parts.append(part)
        if len(parts) == len(message.parts):
            yield message
        elif any(not isinstance(part, Reasoning) for part in parts):
            yield _of_parts(message, tuple(parts))


def _single(layout: Iterable[Message]) -> Iterator[Message]:
    """Each result as a message of its own, before whatever else its message says."""
    for message in layout:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if not results or len(message.parts) == 1:
            yield message
            continue
        yield from (Message("tool", (part,)) for part in results)
        rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        if rest:
            yield _of_parts(message, rest)


def _of_parts(message: Message, parts: tuple[Part, ...]) -> Message:
    # What it came as holds other parts than these.
    return replace(message, parts=parts, given=None)
