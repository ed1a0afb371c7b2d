"""How a change is applied to a turn, and how a draft becomes an entry of the log: the same in every database."""

from dataclasses import replace
from datetime import datetime

from pagefile.content import Message, Text, ToolCall, ToolResult
from pagefile.ports import Abort, AddStep, CheckpointDraft, Complete, Extend, TurnChange, TurnDraft
from pagefile.records import Checkpoint, Scope, Turn, utc
from pagefile.shapes.call_order import answer
from pagefile.stores.encoding import stored_layout, stored_steps


def changed(turn: Turn, change: TurnChange) -> Turn:
    """The turn after a change; the store that writes it sets its position in the log."""
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
        layout = (*layout, Message("assistant", (ToolCall(number),)), Message("tool", (ToolResult(number),)))
    steps = (*turn.steps, *stored_steps([change.step]))
    return replace(turn, steps=steps, layout=layout, tokens=turn.tokens + change.tokens_added)


def _extended(turn: Turn, change: Extend) -> Turn:
    known = [change.results.get(number, step) for number, step in enumerate(turn.steps)]
    first = {"user": change.user, "user_tokens": change.user_tokens} if turn.user is None else {}
    steps, layout = [*known, *change.steps], (*turn.messages, *stored_layout(change.messages))
    tokens = turn.tokens + change.tokens_added
    return replace(turn, **first, steps=stored_steps(steps), layout=layout, tokens=tokens)


def _completed(turn: Turn, change: Complete) -> Turn:
    layout = turn.layout
    if layout is not None and change.assistant and change.assistant != answer(layout):
        layout = (*layout, Message("assistant", (Text(change.assistant),)))
    said = {"assistant": change.assistant, "assistant_tokens": change.assistant_tokens}
    tokens = turn.tokens + change.tokens_added
    return replace(turn, status="done", **said, layout=layout, tokens=tokens)


def turn_in_place(draft: TurnDraft, seq: int | None, created: datetime) -> Turn:
    """The turn at its position. Fields are named one by one: every `record()` calls this, and `replace` would double its cost."""
    place = draft.id, draft.scope, seq, draft.status
    said = draft.user, draft.assistant, draft.steps, utc(draft.at), created
    counted = draft.user_tokens, draft.assistant_tokens, draft.tokens, draft.counter
    return Turn(*place, *said, *counted, draft.metadata, draft.layout)


#: The fields that a checkpoint and its draft have in common, besides the scope.
_DRAFTED = ("id", "summary", "covered_through_seq", "tokens", "counter", "anchors", "archive_refs")


def checkpoint_in_place(
    draft: CheckpointDraft, scope: Scope, seq: int, version: int, created: datetime
) -> Checkpoint:
    """The checkpoint at its position; the store that writes it counts how many turns it covers."""
    given = {name: getattr(draft, name) for name in _DRAFTED}
    return Checkpoint(scope=scope, seq=seq, version=version, covered_turns=0, created=created, **given)
