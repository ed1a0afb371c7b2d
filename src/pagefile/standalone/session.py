"""Document 001's types: the session value with its exact JSON keys, the requests and the results.

Every type can be created, read and changed with our names (`conversation_id`) or the document's (`ConversationID`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import wraps
from math import isfinite
from operator import attrgetter
from typing import Any, TypeVar, cast

from pagefile.errors import InvalidTurnError
from pagefile.records import JsonObject, JsonValue

#: 全量历史模式: the whole conversation, as far as it fits.
FULL_HISTORY = "FULL_HISTORY"
#: 摘要模式: a summary of the older turns, the others verbatim.
SUMMARY_N = "SUMMARY_N"
MemoryModeFullHistory = FULL_HISTORY
MemoryModeSummaryN = SUMMARY_N

#: The Redis key of a session.
SESSION_KEY = "short_term_memory:session:%s"

R = TypeVar("R")

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
}


def spellings(name: str) -> set[str]:
    """The document's names for a field: `user_id` is `UserID` here and `UserId` there."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    return {camel, f"{camel[:-2]}ID"} if name.endswith("_id") else {camel}


def spelled(cls: type[R]) -> type[R]:
    """Lets a record be created, read and changed with the document's names too."""
    names = {name: known.name for known in fields(cast("Any", cls)) for name in spellings(known.name)}
    made = cast("Callable[..., None]", cls.__init__)

    @wraps(made)
    def init(self: R, *args: Any, **given: Any) -> None:
        ours = {names.get(name, name): value for name, value in given.items()}
        if len(ours) < len(given):
            raise TypeError(f"{cls.__name__} got the same field under two names: {sorted(given)}.")
        made(self, *args, **ours)

    cast("Any", cls).__init__ = init
    for name, ours in names.items():
        setattr(cls, name, property(attrgetter(ours), _setter(ours)))
    return cls


def _setter(name: str) -> Callable[[Any, Any], None]:
    return lambda record, value: setattr(record, name, value)


# -- the session value -------------------------------------------------------------------------------------------------


@spelled
@dataclass(slots=True)
class MetaInfo:
    """元信息"""

    conversation_id: str = ""
    user_id: str = ""
    #: Seconds since 1970.
    updated_at: int = 0


@spelled
@dataclass(slots=True)
class FlowContext:
    """流程上下文"""

    current_agent_key: str = ""
    last_bot_message: str = ""
    turn_count: int = 0


@spelled
@dataclass(slots=True)
class Message:
    """One side of a turn; the role is `user` or `assistant`, and other words for the two are understood."""

    role: str
    content: str

    def __post_init__(self) -> None:
        role = _ROLES.get(self.role.strip().lower())
        if role is None:
            raise InvalidTurnError(f"A message's role is 'user' or 'assistant', not {self.role!r}.")
        self.role = role


@spelled
@dataclass(slots=True)
class MessageContext:
    """消息上下文"""

    summary: str = ""
    window_messages: list[Message] = field(default_factory=list[Message])
    mode: str = field(default=FULL_HISTORY, metadata={"omitempty": True})
    checkpoint_message_id: str = field(default="", metadata={"omitempty": True})
    #: The text of the checkpoint's row, to save reading the row.
    cached_checkpoint: str = field(default="", metadata={"omitempty": True})


@spelled
@dataclass(slots=True)
class SharedEntities:
    """公共实体"""

    symptom_summary: str = ""
    disease: str = ""
    target_dept: str = ""
    target_doctor: str = ""
    intent_tag: str = ""


@spelled
@dataclass(slots=True)
class PendingAction:
    """挂起操作"""

    tool_name: str = ""
    tool_params: dict[str, Any] = field(default_factory=dict[str, Any])
    reason: str = ""


@spelled
@dataclass(slots=True)
class GlobalState:
    """全局状态; `shared` and `entities` are two names for one thing: setting one sets both."""

    shared: SharedEntities = field(default_factory=SharedEntities)
    entities: SharedEntities = cast("SharedEntities", None)  # noqa: RUF009 - None: the same as `shared`
    agent_slots: dict[str, Any] = field(default_factory=dict[str, Any])
    current_intent: str = ""
    pending_action: PendingAction | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in {"shared", "entities", "Shared", "Entities"}:
            object.__setattr__(self, name, value)
        elif value is not None:
            object.__setattr__(self, "shared", value)
            object.__setattr__(self, "entities", value)


@spelled
@dataclass(slots=True)
class UserProfile:
    """用户快照; allergies and both histories are in every prompt."""

    user_id: str = ""
    name: str = ""
    allergies: list[str] = field(default_factory=list[str])
    chronic_diseases: list[str] = field(default_factory=list[str], metadata={"json": "history"})
    surgery_history: list[str] = field(default_factory=list[str])
    preferences: list[str] = field(default_factory=list[str])


@spelled
@dataclass(slots=True)
class SessionValue:
    """会话状态, as stored in Redis."""

    meta: MetaInfo = field(default_factory=MetaInfo)
    flow_context: FlowContext = field(default_factory=FlowContext)
    message_context: MessageContext = field(default_factory=MessageContext)
    global_state: GlobalState = field(default_factory=GlobalState)
    user_snapshot: UserProfile = field(default_factory=UserProfile)

    def to_json(self) -> dict[str, JsonValue]:
        """The document's JSON."""
        return _json_of(self)

    @classmethod
    def of(cls, value: JsonObject | None) -> "SessionValue":
        """The session in a JSON value; missing parts, and those of another type, are as in a new session."""
        found = _part({"session": value or {}}, "session")
        meta, flow = _part(found, "meta"), _part(found, "flow_context")
        user = _part(found, "user_snapshot")
        return cls(
            meta=MetaInfo(
                _text(meta, "conversation_id"), _text(meta, "user_id"), _number(meta, "updated_at")
            ),
            flow_context=FlowContext(
                _text(flow, "current_agent_key"), _text(flow, "last_bot_message"), _number(flow, "turn_count")
            ),
            message_context=_message_context(_part(found, "message_context")),
            global_state=_global_state(_part(found, "global_state")),
            user_snapshot=UserProfile(
                user_id=_text(user, "user_id"),
                name=_text(user, "name"),
                allergies=_texts(user, "allergies"),
                chronic_diseases=_texts(user, "history"),
                surgery_history=_texts(user, "surgery_history"),
                preferences=_texts(user, "preferences"),
            ),
        )


def _message_context(part: Mapping[str, object]) -> MessageContext:
    checkpoint = _text(part, "checkpoint_message_id")
    # A session older than checkpoints may claim a mode without one.
    mode = SUMMARY_N if checkpoint and part.get("mode") == SUMMARY_N else FULL_HISTORY
    given = part.get("window_messages")
    messages = cast("Sequence[object]", given) if isinstance(given, list | tuple) else ()
    said = [_part({"message": message}, "message") for message in messages]
    return MessageContext(
        summary=_text(part, "summary"),
        window_messages=[
            Message(_text(message, "role"), _text(message, "content"))
            for message in said
            if _text(message, "role").strip().lower() in _ROLES
        ],
        mode=mode,
        checkpoint_message_id=checkpoint,
        cached_checkpoint=_text(part, "cached_checkpoint"),
    )


def _global_state(part: Mapping[str, object]) -> GlobalState:
    entities = {**_said(part, "entities"), **_said(part, "shared")}
    pending = _part(part, "pending_action")
    return GlobalState(
        shared=SharedEntities(
            **{known.name: entities.get(known.name, "") for known in fields(SharedEntities)}
        ),
        agent_slots=dict(_part(part, "agent_slots")),
        current_intent=_text(part, "current_intent"),
        pending_action=PendingAction(
            _text(pending, "tool_name"), dict(_part(pending, "tool_params")), _text(pending, "reason")
        )
        if pending
        else None,
    )


def _said(part: Mapping[str, object], key: str) -> dict[str, str]:
    """The non-blank texts of a section."""
    return {name: value for name, value in _part(part, key).items() if isinstance(value, str) and value}


def _part(part: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = part.get(key)
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _text(part: Mapping[str, object], key: str) -> str:
    value = part.get(key)
    return value if isinstance(value, str) else ""


def _number(part: Mapping[str, object], key: str) -> int:
    value = part.get(key)
    found = isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
    return int(cast("float", value)) if found else 0


def _texts(part: Mapping[str, object], key: str) -> list[str]:
    value = part.get(key)
    return (
        [item for item in cast("list[object]", value) if isinstance(item, str)]
        if isinstance(value, list)
        else []
    )


def _json_of(record: Any) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for known in fields(record):
        value = getattr(record, known.name)
        if value or not known.metadata.get("omitempty"):
            found[known.metadata.get("json", known.name)] = _plain(value)
    return found


def _plain(value: Any) -> JsonValue:
    if is_dataclass(value):
        return _json_of(value)
    return [_plain(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


# -- requests and results ----------------------------------------------------------------------------------------------


@spelled
@dataclass(slots=True)
class AgentRequest:
    """Begins a conversation."""

    conversation_id: str = ""
    user_id: str = ""


@spelled
@dataclass(slots=True)
class MemoryQueryRequest:
    """Asks for the history of a conversation; numbers of zero or less mean the default."""

    conversation_id: str = ""
    #: For the caller's own records: a conversation is found by its id alone.
    enterprise_id: str = ""
    patient_id: str = ""
    query: str = ""
    token_threshold_ratio: float = 0.0
    recent_turns: int = 0
    model_context_window: int = 0


@spelled
@dataclass(slots=True)
class MemoryContext:
    """What a model needs to know before it answers."""

    conversation_id: str
    mode: str
    session: SessionValue
    #: For the prompt: the summary, the safety data and the live turns that fit.
    history: str
    #: For the next summary: the same with every live turn.
    full_history: str
    #: Of the history and the query together.
    estimated_tokens: int
    token_ratio: float
    should_checkpoint_summary: bool
    query: str = ""


@spelled
@dataclass(slots=True)
class MemoryWriteRequest:
    """A turn; without `user_query` it answers the last query."""

    conversation_id: str = ""
    user_id: str = ""
    agent_code: str = ""
    user_query: str = ""
    agent_response: str = ""


@spelled
@dataclass(slots=True)
class MemoryWriteResult:
    """The result of writing a turn."""

    conversation_id: str
    mode: str
    #: Seconds since 1970.
    updated_at: int


@spelled
@dataclass(slots=True)
class AIMessage:
    """One row of `ai_message`, with the document's columns."""

    message_id: str
    conversation_id: str
    query: str
    answer: str
    create_time: datetime
    create_by: str
    update_time: datetime
    update_by: str
