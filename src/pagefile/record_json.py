"""Records as JSON: the one shape of each, wherever it is printed: over HTTP, in an export, by `--json`, in the inspector.

A scope is flat: `conversation_id`, `user_id`, `tenant`. Times are in UTC and end in `Z`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from math import isfinite
from typing import Annotated, Any, TypeAlias, cast

import pydantic
from pydantic import BeforeValidator, Field, WithJsonSchema, computed_field

from pagefile import records
from pagefile.content import JsonValue, Message, message_from, message_json
from pagefile.schema import Mirror, OfConversation, OfScope, OfUser

Json: TypeAlias = dict[str, pydantic.JsonValue]


def to_json(value: object) -> JsonValue:
    """Records, times and lists as plain JSON; NaN and infinity become null."""
    mirror = Mirror.kinds.get(type(value))
    if mirror is not None:
        return to_json(mirror.of(value).model_dump(mode="json"))
    if isinstance(value, pydantic.BaseModel):
        return to_json(value.model_dump(mode="json"))
    if isinstance(value, records.Scope):
        return {"conversation_id": value.conversation, "user_id": value.user, "tenant": value.tenant}
    if is_dataclass(value) and not isinstance(value, type):
        return {known.name: to_json(getattr(value, known.name)) for known in fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): to_json(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Sequence | frozenset | set) and not isinstance(value, str):
        return [to_json(inner) for inner in cast("Sequence[Any]", value)]
    return cast("JsonValue", value)


# -- conversations -----------------------------------------------------------------------------------------------------


class StepOut(Mirror[records.Step]):
    """A tool call and its result."""

    about = {
        "result": "The placeholder, when the result was archived.",
        "page": "The uuid to load the whole result with.",
        "whole": "False when `result` is only the placeholder of `page` (已存档).",
        "page_tokens": "Tokens of the whole result in `page`.",
        "page_chars": "Characters of the whole result in `page`.",
        "lost_chars": "Characters that are gone because the archive could not be written.",
        "input_pages": "The uuids to load large values of the input with, by JSON pointer.",
    }


def _as_json(message: object) -> object:
    return message_json(message) if isinstance(message, Message) else message


class TurnOut(OfConversation[records.Turn]):
    """A turn as it is stored: the fields of `records.Turn`, and the ids of its conversation."""

    about = {
        "seq": "Its place in the conversation; an open turn has none yet.",
        "at": "When it was said.",
        "created": "When it was written.",
        "tokens": "Of the whole turn as shown in a window.",
    }
    layout: list[Annotated[Json, BeforeValidator(_as_json)]] | None = None
    """Its messages in their order, with references to its steps; null where the short form says all."""

    def values(self) -> dict[str, Any]:
        messages = None if self.layout is None else tuple(message_from(one) for one in self.layout)
        return {**super().values(), "layout": messages}


class HitOut(Mirror[records.Hit]):
    """A past turn that matches the query."""

    about = {
        "parts": "What the score is made of.",
        "before": "The turn before it.",
        "after": "The turn after it.",
        "status": "`aborted` if no answer came.",
    }


class CheckpointOut(OfConversation[records.Checkpoint]):
    """A summary of the older turns, and the last turn it covers."""


class ResetOut(OfConversation[records.Reset]):
    """The point at which the conversation started over."""


class ConversationOut(OfConversation[records.ConversationInfo]):
    """A conversation in one row."""

    about = {"turns": "Done turns since the reset.", "live_turns": "Done turns that no checkpoint covers."}
    without = frozenset({"epoch"})


class CallOut(OfConversation[records.WindowRecord]):
    """A window that was built."""


# -- the archive -------------------------------------------------------------------------------------------------------


class PageOut(OfScope[records.Page]):
    """An archived tool result, without its text."""

    about = {
        "length": "Characters of the text.",
        "content_hash": "SHA-256 of the text.",
        "call_hash": "Equal for equal calls of a tool.",
        "loads": "How often it was loaded.",
        "stored_bytes": "What its text takes on disk, or took until it was purged.",
    }
    without = frozenset({"thread"})
    thread_id: str | None = Field(validation_alias="thread")
    purged: datetime | None = Field(default=None, description="When its text was purged.")

    @computed_field(description="Whether the text is there to be loaded (已存档); false once it was purged.")
    @property
    def archived(self) -> bool:
        return self.purged is None


class PageHitOut(Mirror[records.PageHit]):
    """An archived tool result that matches the query."""

    about = {"passage": "Its best passage.", "start": "The offset of the passage: an `offset` for /v1/load."}


# -- facts -------------------------------------------------------------------------------------------------------------


class FactOut(OfScope[records.Fact]):
    """A lasting statement about a user."""

    about = {
        "attribute": "What it is about; one fact is held for each.",
        "supersedes": "The fact that it replaced.",
        "outcome": "What became of it when it was given: only in the answer to that.",
    }


class RevisionOut(OfUser[records.Revision]):
    """One change to what is known about a user."""

    about = {
        "before": "The facts as they were, null for new ones.",
        "after": "The same facts as they are since.",
    }


# -- erasures ----------------------------------------------------------------------------------------------------------

#: A conversation's id and a place in its log. Described without `prefixItems`, which many generators of clients do not read.
_Place: TypeAlias = Annotated[
    tuple[str, int],
    WithJsonSchema({"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 2, "maxItems": 2}),
]


class ErasureOut(OfScope[records.ErasureReceipt]):
    """What an erasure removed."""

    about = {
        "counts": "Rows removed, table by table.",
        "pending": "What is still to be erased elsewhere, and until when.",
        "turn_id": "The turn that was erased alone.",
        "page": "The page that was erased alone.",
    }
    without = frozenset({"conversations"})
    places: tuple[_Place, ...] = ()
    """The conversations that contained it, forks too, and the turn's place in each log."""
    total: int
