"""Reconciles the session value with the log: where they differ, the log is right."""

from collections.abc import Mapping, Sequence
from typing import cast

from pagefile.ports import LogView
from pagefile.records import JsonObject, JsonValue, Scope, Turn
from pagefile.standalone.history_text import summary_line
from pagefile.standalone.session import FULL_HISTORY, SUMMARY_N, Message, SessionValue

#: How many turns `window_messages` holds.
WINDOW_TURNS = 8


def present(scope: Scope, stored: JsonObject | None, view: LogView) -> SessionValue:
    """The session's current state: complete, and with nothing that contradicts the log."""
    session = SessionValue.of(stored if stored is not None else {"user_snapshot": view.profile})
    head = view.head
    session.meta.conversation_id = scope.conversation or ""
    session.meta.user_id = session.meta.user_id or head.scope.user or ""
    session.meta.updated_at = session.meta.updated_at or int(head.updated.timestamp())
    session.user_snapshot.user_id = session.user_snapshot.user_id or session.meta.user_id
    flow = session.flow_context
    # A session read before a turn and saved after it does not know of the turn.
    flow.turn_count = max(flow.turn_count, head.turns)
    if stored is None:
        flow.current_agent_key = head.agent or ""
        flow.last_bot_message = next((turn.assistant for turn in reversed(view.turns) if turn.assistant), "")
    if head.last_seq:
        session.message_context.window_messages = window_messages(view.turns)
    _put_checkpoint(session, view)
    return session


def _put_checkpoint(session: SessionValue, view: LogView) -> None:
    context, checkpoint = session.message_context, view.checkpoint
    if checkpoint is None:
        context.mode, context.checkpoint_message_id, context.cached_checkpoint = FULL_HISTORY, "", ""
        return
    # A caller who saved the full mode with this checkpoint in view chose it deliberately.
    chosen = context.mode == FULL_HISTORY and context.checkpoint_message_id == checkpoint.id
    context.mode = FULL_HISTORY if chosen else SUMMARY_N
    context.summary = checkpoint.summary
    context.checkpoint_message_id = checkpoint.id
    context.cached_checkpoint = summary_line(checkpoint.summary)


def merged(
    scope: Scope, stored: JsonObject | None, session: SessionValue, view: LogView, updated_at: int
) -> dict[str, JsonValue]:
    """What to store for a caller's session: their values, what the log knows better, and unknown keys already stored."""
    now = present(scope, stored, view)
    new = present(scope, session.to_json(), view)
    new.meta.user_id = scope.user or new.meta.user_id
    new.user_snapshot.user_id = new.user_snapshot.user_id or new.meta.user_id
    new.meta.updated_at = updated_at
    if session.flow_context.turn_count < now.flow_context.turn_count:
        new.flow_context = now.flow_context
    # Both are derived from the log, and would be outdated with the next turn.
    new.message_context.cached_checkpoint = ""
    if view.head.last_seq:
        new.message_context.window_messages = []
    kept = stored or {}
    return {**kept, **{name: _beside(kept.get(name), part) for name, part in new.to_json().items()}}


def _beside(stored: JsonValue, part: JsonValue) -> JsonValue:
    if not isinstance(stored, Mapping):
        return part
    return {**stored, **cast("Mapping[str, JsonValue]", part)}


def window_messages(turns: Sequence[Turn]) -> list[Message]:
    """The newest turns as messages."""
    return [
        Message(role, text)
        for turn in turns[-WINDOW_TURNS:]
        for role, text in (("user", turn.user), ("assistant", turn.assistant))
        if text
    ]
