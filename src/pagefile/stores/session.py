"""The session value of a conversation: which keys it has and how turns change them.

A change sets single paths, as SQLite's `json_set` does: what an application stores next to them stays as it is, a missing
section is made, and a section that is not an object is left alone.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from pagefile.records import JsonValue, Scope, Turn
from pagefile.stores.erasure import without_words, words_of

FULL_HISTORY = "FULL_HISTORY"
SUMMARY_N = "SUMMARY_N"

SessionValue = dict[str, Any]


def blank(scope: Scope) -> SessionValue:
    user = scope.user or ""
    return {
        "meta": {"conversation_id": scope.conversation, "user_id": user, "updated_at": 0},
        "flow_context": {"current_agent_key": "", "last_bot_message": "", "turn_count": 0},
        "message_context": {
            "summary": "",
            "window_messages": [],
            "mode": FULL_HISTORY,
            "checkpoint_message_id": "",
        },
        "global_state": {
            "shared": {},
            "entities": {},
            "agent_slots": {},
            "current_intent": "",
            "pending_action": None,
        },
        "user_snapshot": {
            "user_id": user,
            "name": "",
            "allergies": [],
            "history": [],
            "surgery_history": [],
            "preferences": [],
        },
    }


def seconds(moment: datetime) -> int:
    """The time as `updated_at` stores it."""
    return int(moment.timestamp())


def put_turn(
    value: SessionValue, user: str | None, agent: str | None, answer: str | None, at: datetime, turns: int = 1
) -> None:
    """Write what completed turns change: all but their number comes from the last of them. None leaves the old value."""
    before = _flow(value).get("turn_count")
    changes: dict[str, JsonValue] = {
        "meta.updated_at": seconds(at),
        "flow_context.turn_count": (before if type(before) is int else 0) + turns,
        "meta.user_id": user,
        "user_snapshot.user_id": user,
        "flow_context.current_agent_key": agent,
        "flow_context.last_bot_message": answer,
    }
    for path, new in changes.items():
        if new is not None:
            _put(value, path, new)


def put_reset(value: SessionValue, at: datetime) -> None:
    _put(value, "flow_context.turn_count", 0)
    put_summary(value, at=at)


def put_summary(
    value: SessionValue, summary: str = "", checkpoint_id: str = "", at: datetime | None = None
) -> None:
    """The current summary changed, or there is none any more."""
    if at is not None:
        _put(value, "meta.updated_at", seconds(at))
    _put(value, "message_context.summary", summary)
    _put(value, "message_context.mode", SUMMARY_N if checkpoint_id else FULL_HISTORY)
    _put(value, "message_context.checkpoint_message_id", checkpoint_id)


def put_erased(value: SessionValue, turn: Turn, answer: str | None, *, counted: bool) -> None:
    """A turn was erased: the session no longer contains its words, and `answer` is the last of the remaining ones."""
    last, count = (_flow(value).get(name) for name in ("last_bot_message", "turn_count"))
    value |= cast("SessionValue", without_words(value, words_of(turn)))
    if turn.assistant and last == turn.assistant:
        _put(value, "flow_context.last_bot_message", answer or "")
    if counted and type(count) is int and count > 0:
        _put(value, "flow_context.turn_count", count - 1)


def _flow(value: SessionValue) -> Mapping[str, object]:
    flow: object = value.get("flow_context")
    return cast("Mapping[str, object]", flow) if isinstance(flow, dict) else {}


def _put(value: SessionValue, path: str, new: JsonValue) -> None:
    section, key = path.split(".")
    fields = value.setdefault(section, {})
    if isinstance(fields, dict):
        fields[key] = new
