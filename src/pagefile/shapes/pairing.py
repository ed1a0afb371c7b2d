"""Calls and results that belong together, side by side: providers refuse a call without its result, and a result without its call."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from pagefile.content import Message, Part, Role, ToolCall, ToolResult


def paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with every result right behind its call.

    A call that was never answered is left out; a result whose call is not there gets one. Messages that are in order already
    are returned as they are, so that they can be given back as they came.
    """
    if is_paired(messages):
        return tuple(messages)
    results = {part.step: part for part in _parts(messages) if isinstance(part, ToolResult)}
    called = {part.step for part in _parts(messages) if isinstance(part, ToolCall)}
    found: list[Message] = []
    for asked, run in _runs(messages):
        if asked:
            answered = [_kept(message, lambda part: _is_answered(part, results)) for message in run]
            found += [message for message in answered if message is not None]
            calls = [part.step for part in _parts(answered) if isinstance(part, ToolCall)]
            found += [Message("tool", (results[step],)) for step in calls]
        else:
            found += _without_results(run, called)
    return tuple(found)


def is_paired(messages: Sequence[Message]) -> bool:
    """Whether each run of the assistant's messages is followed by the results of its calls, and by no others."""
    waiting: list[int] = []
    for asked, run in _runs(messages):
        if asked:
            if waiting:
                return False
            waiting = [part.step for part in _parts(run) if isinstance(part, ToolCall)]
            continue
        parts = list(_parts(run))
        given = [part.step for part in parts if isinstance(part, ToolResult)]
        first = [part.step for part in parts[: len(given)] if isinstance(part, ToolResult)]
        if sorted(given) != sorted(waiting) or len(first) != len(given):
            return False
        waiting = []
    return not waiting


def answered_steps(messages: Sequence[Message]) -> set[int]:
    """The steps that have a result."""
    return {part.step for part in _parts(messages) if isinstance(part, ToolResult)}


def _runs(messages: Sequence[Message]) -> Iterator[tuple[bool, list[Message]]]:
    """The messages in groups: those of the assistant, those between them."""
    for asked, run in groupby(messages, key=lambda message: message.role == "assistant"):
        yield asked, list(run)


def _parts(messages: Sequence[Message | None]) -> Iterator[Part]:
    for message in messages:
        if message is not None:
            yield from message.parts


def _is_answered(part: Part, results: dict[int, ToolResult]) -> bool:
    return not isinstance(part, ToolCall) or part.step in results


def _kept(message: Message, keep: Callable[[Part], bool]) -> Message | None:
    """The message with some of its parts; None when none is left."""
    parts = tuple(part for part in message.parts if keep(part))
    if len(parts) == len(message.parts):
        return message
    return replace(message, parts=parts, given=None) if parts else None


def _without_results(run: Sequence[Message], called: set[int]) -> Iterator[Message]:
    """What else was said between the assistant's messages; a result without a call comes with one."""
    for message in run:
        for part in message.parts:
            if isinstance(part, ToolResult) and part.step not in called:
                assistant: Role = "assistant"
                yield Message(assistant, (ToolCall(part.step),))
                yield Message("tool", (part,))
        rest = _kept(message, lambda part: not isinstance(part, ToolResult))
        if rest is not None:
            yield replace(rest, role="user") if rest.role == "tool" else rest
