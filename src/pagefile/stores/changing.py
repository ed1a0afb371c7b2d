"""What a change makes of a turn, and what a checkpoint writes: the same in every database."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pagefile.ports import Abort, AddStep, TurnChange
from pagefile.records import CHECKPOINT_QUERY, Checkpoint, Turn
from pagefile.stores.encoding import plain, to_json


def changed(turn: Turn, change: TurnChange) -> Turn:
    """The turn after a change; its place in the log is given by whoever writes it."""
    if isinstance(change, AddStep):
        step = replace(change.step, input=plain(change.step.input))
        return replace(turn, steps=(*turn.steps, step), tokens=turn.tokens + change.tokens_added)
    if isinstance(change, Abort):
        return replace(turn, status="aborted")
    return replace(
        turn,
        status="done",
        assistant=change.assistant,
        assistant_tokens=change.assistant_tokens,
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
