"""What a change makes of a turn, and what a checkpoint writes: the same in every database."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pagefile.content import Message, Text, ToolCall, ToolResult
from pagefile.ports import Abort, AddStep, Complete, Extend, TurnChange
from pagefile.records import CHECKPOINT_QUERY, Checkpoint, Turn
from pagefile.shapes import answer
from pagefile.stores.encoding import stored_layout, stored_steps, to_json


def changed(turn: Turn, change: TurnChange) -> Turn:
    """The turn after a change; its place in the log is given by whoever writes it."""
    match change:
        case AddStep():
            return _with_step(turn, change)
        case Extend():
            return _extended(turn, change)
        case Abort():
            return replace(turn, status="aborted")
        case Complete():
            return _completed(turn, change)


def _with_step(turn: Turn, change: AddStep) -> Turn:
    layout = turn.layout
    if layout is not None:
        number = len(turn.steps)
        layout = (
            *layout,
            Message("assistant", (ToolCall(number),)),
            Message("tool", (ToolResult(number),)),
        )
    steps = (*turn.steps, *stored_steps([change.step]))
    return replace(turn, steps=steps, layout=layout, tokens=turn.tokens + change.tokens_added)


def _extended(turn: Turn, change: Extend) -> Turn:
    known = [change.results.get(number, step) for number, step in enumerate(turn.steps)]
    first = {"user": change.user, "user_tokens": change.user_tokens} if turn.user is None else {}
    return replace(
        turn,
        **first,
        steps=stored_steps([*known, *change.steps]),
        layout=(*turn.messages, *stored_layout(change.messages)),
        tokens=turn.tokens + change.tokens_added,
    )


def _completed(turn: Turn, change: Complete) -> Turn:
    layout = turn.layout
    if layout is not None and change.assistant and change.assistant != answer(layout):
        layout = (*layout, Message("assistant", (Text(change.assistant),)))
    return replace(
        turn,
        status="done",
        assistant=change.assistant,
        assistant_tokens=change.assistant_tokens,
        layout=layout,
        tokens=turn.tokens + change.tokens_added,
    )


def checkpoint_values(checkpoint: Checkpoint, text: str, coverage: Sequence[int]) -> dict[str, Any]:
    """The parameters of the statement that writes a checkpoint; `coverage` is the row of the statement of that name."""
    _, covered_messages, live_turns, live_tokens = coverage
    fields: dict[str, Any] = {
        "version": checkpoint.version,
        "summary": checkpoint.summary,
        "covered_through_seq": checkpoint.covered_through_seq,
        "covered_turns": checkpoint.covered_turns,
        "anchors": checkpoint.anchors,
        "archive_refs": checkpoint.archive_refs,
    }
    return {
        **fields,
        "query": CHECKPOINT_QUERY,
        "answer": text,
        "kind": "checkpoint",
        "metadata": to_json(fields),
        "tokens": checkpoint.tokens,
        "counter": checkpoint.counter,
        "covered": checkpoint.covered_through_seq,
        "covered_messages": covered_messages,
        "live_turns": live_turns,
        "live_tokens": live_tokens,
        "anchors": to_json(checkpoint.anchors),
        "archive_refs": to_json(checkpoint.archive_refs),
    }
