"""The session value of a conversation: which keys it has and how turns change them.

A change sets single paths, as SQLite's `json_set` does: what an application stores next to them stays as it is, a missing
section is made, and a section that is not an object is left alone.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias, cast

from pagefile.ports import LogView
from pagefile.records import JsonObject, JsonValue, Scope, Turn
from pagefile.stores.erasure import without_words, words_of

FULL_HISTORY = "FULL_HISTORY"
SUMMARY_N = "SUMMARY_N"
#: How many turns `window_messages` holds.
WINDOW_TURNS = 8

SessionValue = dict[str, Any]
Role: TypeAlias = Literal["user", "assistant"]


def sides(turn: Turn) -> Iterator[tuple[Role, str]]:
    """Who said what in a turn, each of several messages of the user; a side without a text is left out."""
    said = [message.text for message in turn.layout or () if message.role == "user" and message.text.strip()]
    for text in said if len(said) > 1 else [turn.user or ""]:
        if text:
            yield "user", text
    if turn.assistant:
        yield "assistant", turn.assistant


def summary_line(summary: str) -> str:
    """The summary as a history shows it, and as the answer of the checkpoint's row."""
    return f"历史摘要: {summary}"


def blank(scope: Scope) -> SessionValue:
    """The default session value; domain fields such as allergies are added by the application."""
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
            "agent_slots": {},
            "current_intent": "",
            "pending_action": None,
        },
        "user_snapshot": {"user_id": user, "name": "", "preferences": []},
    }


def complete(scope: Scope, stored: JsonObject | None, view: LogView) -> SessionValue:
    """The session as it is now: what is stored, the newest turns, and nothing that contradicts the log."""
    head = view.head
    value: SessionValue = dict(stored or {})
    if stored is None:
        answers = (turn.assistant for turn in reversed(view.turns) if turn.assistant)
        flow = {"current_agent_key": head.agent or "", "last_bot_message": next(answers, "")}
        value = {"flow_context": flow, "user_snapshot": view.profile or {}}
    meta, flow, context, user = (
        _section(value, name) for name in ("meta", "flow_context", "message_context", "user_snapshot")
    )
    meta["conversation_id"] = scope.conversation or ""
    meta["user_id"] = meta.get("user_id") or head.scope.user or ""
    meta["updated_at"] = meta.get("updated_at") or seconds(head.updated)
    user["user_id"] = user.get("user_id") or meta["user_id"]
    # A session read before a turn and saved after it does not know of the turn.
    turns = flow.get("turn_count")
    flow["turn_count"] = max(turns if type(turns) is int else 0, head.turns)
    if head.last_seq:
        said = (said for turn in view.turns[-WINDOW_TURNS:] for said in sides(turn))
        context["window_messages"] = [{"role": role, "content": text} for role, text in said]
    _complete_checkpoint(context, view)
    return value


def _complete_checkpoint(context: SessionValue, view: LogView) -> None:
    checkpoint, known = view.checkpoint, context.pop("checkpoint_message_id", "")
    mode = context.pop("mode", FULL_HISTORY)
    context.pop("cached_checkpoint", None)
    context.setdefault("summary", "")
    context.setdefault("window_messages", [])
    if checkpoint is None:
        context["mode"] = FULL_HISTORY
        return
    # A caller who saved the full mode with this checkpoint in view chose it deliberately.
    chosen = mode == FULL_HISTORY and known == checkpoint.id
    context |= {
        "summary": checkpoint.summary,
        "mode": FULL_HISTORY if chosen else SUMMARY_N,
        "checkpoint_message_id": checkpoint.id,
        "cached_checkpoint": summary_line(checkpoint.summary),
    }


def _section(value: SessionValue, name: str) -> SessionValue:
    """A section, copied; empty where there is none."""
    found = value.get(name)
    value[name] = section = dict(cast("JsonObject", found)) if isinstance(found, Mapping) else {}
    return section


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
