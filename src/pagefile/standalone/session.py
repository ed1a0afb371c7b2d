"""Document 001's types: the session value with its exact JSON keys, the requests and the results.

Every type can be created, read and changed with our names (`conversation_id`) or the document's (`ConversationID`).
Where a session and the log differ, the log is right.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import wraps
from math import isfinite
from operator import attrgetter
from types import UnionType
from typing import Any, Final, TypeVar, cast, dataclass_transform, get_args, get_origin

from pagefile.errors import InvalidArgumentError
from pagefile.ports import LogView
from pagefile.records import JsonObject, JsonValue, Scope
from pagefile.stores.session import FULL_HISTORY, SUMMARY_N, Role, complete

#: 全量历史模式: the whole conversation, as far as it fits.
MemoryModeFullHistory = FULL_HISTORY
#: 摘要模式: a summary of the older turns, the others verbatim.
MemoryModeSummaryN = SUMMARY_N

#: The Redis key of a session.
SESSION_KEY = "short_term_memory:session:%s"

R = TypeVar("R")

#: How speakers are named in a prompt.
SPEAKERS: Final[dict[Role, str]] = {"user": "用户", "assistant": "AI"}
#: The words for a speaker that are understood.
_ROLES = {"user": "user", "human": "user", **dict.fromkeys(("assistant", "ai", "bot", "model"), "assistant")}


def spellings(name: str) -> set[str]:
    """The document's names for a field: `user_id` is `UserID` here and `UserId` there."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    return {camel, f"{camel[:-2]}ID"} if name.endswith("_id") else {camel}


@dataclass_transform(field_specifiers=(field,))
def record(cls: type[R]) -> type[R]:
    """A dataclass that can be created, read and changed with the document's names too."""
    made = dataclass(slots=True)(cls)
    names = {name: known.name for known in fields(cast("Any", made)) for name in spellings(known.name)}
    with_ours = cast("Callable[..., None]", made.__init__)

    @wraps(with_ours)
    def init(self: R, *args: Any, **given: Any) -> None:
        ours = {names.get(name, name): value for name, value in given.items()}
        if len(ours) < len(given):
            raise TypeError(f"{cls.__name__} got the same field under two names: {sorted(given)}.")
        with_ours(self, *args, **ours)

    cast("Any", made).__init__ = init
    for name, ours in names.items():
        setattr(made, name, property(attrgetter(ours), _setter(ours)))
    return made


def _setter(name: str) -> Callable[[Any, Any], None]:
    return lambda record, value: setattr(record, name, value)


# -- the session value -------------------------------------------------------------------------------------------------


@record
class MetaInfo:
    """元信息"""

    conversation_id: str = ""
    user_id: str = ""
    #: Seconds since 1970.
    updated_at: int = 0


@record
class FlowContext:
    """流程上下文"""

    current_agent_key: str = ""
    last_bot_message: str = ""
    turn_count: int = 0


@record
class Message:
    """One side of a turn; the role is `user` or `assistant`, and other words for the two are understood."""

    role: str
    content: str

    def __post_init__(self) -> None:
        role = _ROLES.get(self.role.strip().lower())
        if role is None:
            raise InvalidArgumentError(f"A message's role is 'user' or 'assistant', not {self.role!r}.")
        self.role = role

    @property
    def known_role(self) -> Role:
        return "user" if self.role == "user" else "assistant"


@record
class MessageContext:
    """消息上下文"""

    summary: str = ""
    window_messages: list[Message] = field(default_factory=list[Message])
    mode: str = field(default=FULL_HISTORY, metadata={"omitempty": True})
    checkpoint_message_id: str = field(default="", metadata={"omitempty": True})
    #: The text of the checkpoint's row, to save reading the row.
    cached_checkpoint: str = field(default="", metadata={"omitempty": True})


@record
class SharedEntities:
    """公共实体"""

    symptom_summary: str = ""
    disease: str = ""
    target_dept: str = ""
    target_doctor: str = ""
    intent_tag: str = ""


@record
class PendingAction:
    """挂起操作"""

    tool_name: str = ""
    tool_params: dict[str, Any] = field(default_factory=dict[str, Any])
    reason: str = ""


@record
class GlobalState:
    """全局状态; `shared` and `entities` are two names for one thing: setting one sets both."""

    shared: SharedEntities = field(default_factory=SharedEntities)
    entities: SharedEntities = cast("SharedEntities", None)
    agent_slots: dict[str, Any] = field(default_factory=dict[str, Any])
    current_intent: str = ""
    pending_action: PendingAction | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in {"shared", "entities", "Shared", "Entities"}:
            object.__setattr__(self, name, value)
        elif value is not None:
            object.__setattr__(self, "shared", value)
            object.__setattr__(self, "entities", value)


@record
class UserProfile:
    """用户快照; allergies and both histories are in every prompt."""

    user_id: str = ""
    name: str = ""
    allergies: list[str] = field(default_factory=list[str])
    chronic_diseases: list[str] = field(default_factory=list[str], metadata={"json": "history"})
    surgery_history: list[str] = field(default_factory=list[str])
    preferences: list[str] = field(default_factory=list[str])


@record
class SessionValue:
    """会话状态, as stored in Redis."""

    meta: MetaInfo = field(default_factory=MetaInfo)
    flow_context: FlowContext = field(default_factory=FlowContext)
    message_context: MessageContext = field(default_factory=MessageContext)
    global_state: GlobalState = field(default_factory=GlobalState)
    user_snapshot: UserProfile = field(default_factory=UserProfile)

    def to_json(self) -> dict[str, JsonValue]:
        return _json_of(self)

    @classmethod
    def of(cls, value: JsonObject | None) -> "SessionValue":
        """The session in a JSON value; missing parts, and those of another type, are as in a new session."""
        given = _part(value)
        state = _part(given.get("global_state"))
        named = [*_part(state.get("entities")).items(), *_part(state.get("shared")).items()]
        entities = {name: text for name, text in named if isinstance(text, str) and text}
        session = _read(cls, {**given, "global_state": {**state, "shared": entities, "entities": entities}})
        context = session.message_context
        # A session older than checkpoints may claim a mode without one.
        if context.mode != SUMMARY_N or not context.checkpoint_message_id:
            context.mode = FULL_HISTORY
        return session


def _read(kind: type[R], value: object) -> R:
    """The record in a JSON value, with the defaults of its fields for what is missing or of another type."""
    given, known = _part(value), fields(cast("Any", kind))
    found = {one.name: _fitting(one.type, given.get(one.metadata.get("json", one.name))) for one in known}
    return kind(**{name: value for name, value in found.items() if value is not None})


def _fitting(kind: Any, value: Any) -> Any:
    """A JSON value for a field of this type; None if it does not fit."""
    if kind is Message:
        said = _part(value)
        role, content = said.get("role"), said.get("content")
        known = isinstance(role, str) and role.strip().lower() in _ROLES
        return Message(str(role), content if isinstance(content, str) else "") if known else None
    if isinstance(kind, UnionType):
        return _fitting(get_args(kind)[0], value) if _part(value) else None
    if is_dataclass(kind):
        return _read(cast("type[Any]", kind), value)
    if get_origin(kind) is list:
        given = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
        return [item for item in (_fitting(get_args(kind)[0], item) for item in given) if item is not None]
    if get_origin(kind) is dict:
        return dict(_part(value))
    if kind is int:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
        return int(value) if is_number else None
    return value if isinstance(value, kind) else None


def _part(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


def _json_of(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_of(item) for item in cast("list[Any]", value)]
    if not is_dataclass(value):
        return value
    parts = [(known, getattr(value, known.name)) for known in fields(value)]
    shown = [(known, part) for known, part in parts if part or not known.metadata.get("omitempty")]
    return {known.metadata.get("json", known.name): _json_of(part) for known, part in shown}


# -- requests and results ----------------------------------------------------------------------------------------------


@record
class AgentRequest:
    """Begins a conversation."""

    conversation_id: str = ""
    user_id: str = ""


@record
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


@record
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
    #: How far the history goes: give it to `checkpoint_short_memory` with its summary.
    read_token: str = ""


@record
class MemoryWriteRequest:
    """A turn; without `user_query` it answers the last query."""

    conversation_id: str = ""
    user_id: str = ""
    agent_code: str = ""
    user_query: str = ""
    agent_response: str = ""


@record
class MemoryWriteResult:
    conversation_id: str
    mode: str
    #: Seconds since 1970.
    updated_at: int


@record
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


# -- the session beside the log ----------------------------------------------------------------------------------------


def present(scope: Scope, stored: JsonObject | None, view: LogView) -> SessionValue:
    """The session's current state: complete, and with nothing that contradicts the log."""
    return SessionValue.of(complete(scope, stored, view))


def has_entities(stored: JsonObject) -> bool:
    """Whether a session was ever saved by the document's functions: others leave out what belongs to its trade."""
    return "shared" in _part(stored.get("global_state"))


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
    parts: dict[str, JsonObject] = _json_of(new)
    return {**kept, **{name: {**_part(kept.get(name)), **part} for name, part in parts.items()}}
