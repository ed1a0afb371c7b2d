"""Calls and results that belong together, side by side: providers refuse a call without its result, and a result without its call."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from pagefile.content import Message, Part, ToolCall, ToolResult


def paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with every result right behind its call.

    A call that was never answered is left out; a result whose call is not there gets one. Messages that are in order already
    are returned as they are, so that they can be given back as they came.
    """
    if is_paired(messages):
        return tuple(messages)
    results = {part.step: part for part in _parts(messages) if isinstance(part, ToolResult)}
    called = {
        part.step
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall) and message.role == "assistant" and part.step in results
    }
    found: list[Message] = []
    for asked, run in _runs(messages):
        if asked:
            said = [_kept(message, lambda part: _is_said(part, called)) for message in run]
            found += [message for message in said if message is not None]
            calls = [part.step for part in _parts(said) if isinstance(part, ToolCall)]
            found += [Message("tool", (results[step],)) for step in calls]
            found += _orphans(run, called)
        else:
            found += _orphans(run, called)
            found += _rest(run)
    return tuple(found)


def is_paired(messages: Sequence[Message]) -> bool:
    """Whether each run of the assistant's messages is followed by the results of its calls, and by no others."""
    waiting: list[int] = []
    for asked, run in _runs(messages):
        parts = list(_parts(run))
        calls = [part.step for part in parts if isinstance(part, ToolCall)]
        given = [part.step for part in parts if isinstance(part, ToolResult)]
        first = [part.step for part in parts[: len(given)] if isinstance(part, ToolResult)]
        due = [] if asked else waiting
        if sorted(given) != sorted(due) or first != given or (waiting if asked else calls):
            return False
        waiting = calls
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


def _is_said(part: Part, called: set[int]) -> bool:
    """Whether a part belongs into a message of the assistant: no result does, and no call that was never answered."""
    return part.step in called if isinstance(part, ToolCall) else not isinstance(part, ToolResult)


def _kept(message: Message, keep: Callable[[Part], bool]) -> Message | None:
    """The message with some of its parts; None when none is left."""
    parts = tuple(part for part in message.parts if keep(part))
    if len(parts) == len(message.parts):
        return message
    return replace(message, parts=parts, given=None) if parts else None


def _orphans(run: Sequence[Message], called: set[int]) -> Iterator[Message]:
    """Results whose call is not there, each with one."""
    for part in _parts(run):
        if isinstance(part, ToolResult) and part.step not in called:
            yield Message("assistant", (ToolCall(part.step),))
            yield Message("tool", (part,))


def _rest(run: Sequence[Message]) -> Iterator[Message]:
    """What else was said between the assistant's messages."""
    for message in run:
        rest = _kept(message, lambda part: not isinstance(part, (ToolCall, ToolResult)))
        if rest is not None:
            yield replace(rest, role="user") if rest.role == "tool" else rest
