"""The lines of an export: how records become JSON, and what a line that comes in may be.

A line that cannot be read is named by its number. What a store is given must come back from it, so every field is held against
its kind.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from hashlib import sha256
from math import isfinite
from types import UnionType
from typing import Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from pagefile.content import Media, Message, Part, ToolCall, ToolResult, media_in, message_from, message_json
from pagefile.engine.asking import BESIDE, MAX_INT, Request
from pagefile.engine.drafts import checked_json, checked_labels
from pagefile.engine.moments import KEY, Moment, listed
from pagefile.errors import PagefileError, TransferError
from pagefile.ports import NO_LABELS, KeptItem, Labels, StoredItem, labels_of
from pagefile.records import (
    Call,
    Checkpoint,
    Entry,
    Fact,
    Head,
    JsonObject,
    JsonValue,
    Page,
    Reset,
    Revision,
    Scope,
    Step,
    Turn,
    checked_id,
    checked_text,
    utc,
)
from pagefile.shapes import Filling, note
from pagefile.shapes.skeleton import filled
from pagefile.tiers.facts_learning import TIER
from pagefile.tiers.page_text import checked_uuid
from pagefile.window.candidates import candidate_from
from pagefile.window.receipt import Receipt, Verdict, receipt_from

FORMAT = "pagefile-export"
VERSION = 1

#: Fields that came after the first exports: where they are empty they are left out, so that earlier versions read the line.
_LATER = frozenset({"project", "agent"})

R = TypeVar("R")


# -- out ----------------------------------------------------------------------------------------------------------


def dumped(kind: str, record: Entry | Fact | Page | Call) -> dict[str, JsonValue]:
    """A record of a conversation or a user."""
    given = cast("dict[str, object]", asdict(record))
    layout = given.pop("layout", None)
    if layout is not None and isinstance(record, Turn) and record.layout is not None:
        given["layout"] = [message_json(message) for message in record.layout]
    scope = cast("dict[str, str | None]", given.pop("scope"))
    given.pop("outcome", None)  # of the call that wrote a fact, not of the fact
    given = {name: value for name, value in given.items() if value is not None or name not in _LATER}
    given = {"type": kind, "user_id": scope["user"], "conversation_id": scope["conversation"]} | given
    return {key: _plain(value) for key, value in given.items()}


def dumped_conversation(head: Head) -> dict[str, JsonValue]:
    """A conversation begins."""
    labels = asdict(labels_of(head))
    return {
        "type": "conversation",
        "id": head.scope.conversation,
        "user_id": head.scope.user,
        "agent": head.agent,
        **{name: value for name, value in labels.items() if value is not None},
    }


def dumped_media(scope: Scope, media: Media, data: bytes) -> dict[str, JsonValue]:
    """The bytes of an image or a file that a turn of a conversation brought."""
    return {
        "type": "media",
        "user_id": scope.user,
        "conversation_id": scope.conversation,
        "hash": media.blob,
        "data": b64encode(data).decode(),
    }


def dumped_missing(scope: Scope, turn_id: str, media: Media) -> dict[str, JsonValue]:
    """An image or a file of a turn whose bytes the memory does not have."""
    return {
        "type": "missing",
        "user_id": scope.user,
        "conversation_id": scope.conversation,
        "turn_id": turn_id,
        "hash": media.blob,
        "what": note(media),
    }


def dumped_session(scope: Scope, value: JsonObject) -> dict[str, JsonValue]:
    """The session value of a conversation."""
    return {
        "type": "session",
        "user_id": scope.user,
        "conversation_id": scope.conversation,
        "value": value,
    }


def dumped_mark(scope: Scope, seq: int) -> dict[str, JsonValue]:
    """How far a conversation was read for facts."""
    return {
        "type": "watermark",
        "user_id": scope.user,
        "conversation_id": scope.conversation,
        "tier": TIER,
        "seq": seq,
    }


def dumped_revision(revision: Revision) -> dict[str, JsonValue]:
    """A change of a user's facts: each as it was, None for a new one, and as it became."""
    pairs = zip(revision.before, revision.after, strict=True)
    return {
        "type": "revision",
        "user_id": revision.scope.user,
        "number": revision.number,
        "at": revision.at.isoformat(),
        "action": revision.action,
        "facts": [{"before": was and _told(was), "after": _told(became)} for was, became in pairs],
    }


def _told(fact: Fact) -> dict[str, JsonValue]:
    """A fact within its revision: whose it is stands there."""
    return {key: value for key, value in dumped("fact", fact).items() if key not in {"type", "user_id"}}


def dumped_item(kept: KeptItem, owner: Scope) -> dict[str, JsonValue]:
    """An item, with what it is found by."""
    rows = kept.vectors
    return {
        "type": "item",
        "user_id": owner.user,
        **{name: _plain(value) for name, value in asdict(kept.item).items()},
        "maker": kept.maker,
        "dimension": None if rows is None else rows.shape[1],
        "vectors": None if rows is None else b64encode(rows.astype("<f4").tobytes()).decode(),
    }


def _plain(value: object) -> JsonValue:
    return value.isoformat() if isinstance(value, datetime) else cast("JsonValue", value)


def line_of(record: Mapping[str, JsonValue]) -> str:
    """A line of the file."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


# -- in -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """A conversation begins: the lines up to the next one are its own."""

    scope: Scope
    agent: str | None
    labels: Labels = NO_LABELS


@dataclass(frozen=True, slots=True)
class SessionOf:
    """The session value of the conversation that has begun."""

    value: JsonObject


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the conversation that has begun was read for facts."""

    seq: int


@dataclass(frozen=True, slots=True)
class Bytes:
    """An image or a file that a turn of the conversation that has begun brought."""

    hash: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Owned:
    """An item of somebody's."""

    owner: Scope
    item: KeptItem


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record of a kind that came later than this reader."""

    what: str


#: What a line stands for: a conversation that begins, or something of it, or of a user.
Record: TypeAlias = (
    Begun | SessionOf | Mark | Bytes | Entry | Call | Fact | Revision | Owned | Unknown | tuple[Page, str]
)


class Reader:
    """From lines to records; a line that cannot be read is named."""

    def __init__(self, tenant: str, name: str) -> None:
        self._tenant = tenant
        self._name = name
        self._scope: Scope | None = None
        #: Images and files of the conversation that has begun.
        self._blobs: dict[str, bytes] = {}
        self.number = 0

    def read(self, line: str) -> Record | None:
        """What a line says; None for one that only tells: the first, and what the file does not have."""
        self.number += 1
        try:
            record = _parsed(line, self.number)
            return None if self.number == 1 else self._record(record)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            if isinstance(error, TransferError):
                raise
            said = str(error) if isinstance(error, PagefileError) else repr(error)
            raise TransferError(
                f"Line {self.number} of {self._name} is damaged ({said[:300]}); nothing of the file was imported."
            ) from error

    def unreadable(self, error: OSError | UnicodeDecodeError) -> TransferError:
        """The error for a file that cannot be read at all."""
        if isinstance(error, OSError):
            return TransferError(f"Cannot read {self._name}: {error}.")
        return TransferError(
            f"{self._name} is not UTF-8 text near line {self.number + 1}: it is not a Pagefile export."
        )

    def _record(self, record: dict[str, JsonValue]) -> Record | None:
        match record["type"]:
            case "missing":
                return None
            case "conversation":
                self._scope = Scope(self._tenant, _id_or_none(record["user_id"]), _id(record["id"]))
                self._blobs = {}
                labels = {name: record.get(name) for name in ("project", "language", "timezone")}
                return Begun(self._scope, _id_or_none(record["agent"]), checked_labels(**labels))
            case "page":
                return _page(record, self._tenant)
            case "fact" | "revision" | "item":
                self._scope = None  # the conversations are over
                return self._owned(record)
            case "call":
                return self._placed(_call(record, self._tenant))
            case "session" | "watermark" | "media":
                return self._beside(record)
            case "turn" | "checkpoint" | "reset":
                if self._scope is None:
                    raise TransferError(
                        f"The {record['type']} on line {self.number} stands before any conversation, or behind them all: the file is damaged."
                    )
                return _entry(record, self._scope, self._blobs)
            case str() as unknown:
                return Unknown(f"Line {self.number} is a record of the unknown type {unknown[:80]!r}")
            case other:
                raise ValueError(f"type is {str(other)[:80]}")

    def _owned(self, record: dict[str, JsonValue]) -> Fact | Revision | Owned:
        """What belongs to a user, and to no conversation alone."""
        match record["type"]:
            case "fact":
                return _fact(record, self._tenant)
            case "revision":
                return _revision(record, self._tenant)
            case _:
                return Owned(Scope(self._tenant, _id_or_none(record["user_id"])), _item(record))

    def _beside(self, record: dict[str, JsonValue]) -> SessionOf | Mark | Bytes:
        """What stands beside the log of the conversation that has begun."""
        if self._scope is None or _id(record["conversation_id"]) != self._scope.conversation:
            raise self._astray(str(record["type"]))
        _id_or_none(record["user_id"])
        if record["type"] == "session":
            return SessionOf(_session(record["value"]))
        if record["type"] == "media":
            found = _bytes(record)
            self._blobs[found.hash] = found.data
            return found
        if record["tier"] != TIER:
            raise ValueError(f"tier is {str(record['tier'])[:80]}")
        return Mark(_count(record["seq"], "seq"))

    def _placed(self, call: Call) -> Call:
        """A call stands in its conversation, unless it needs nothing of it: then nobody may have written to that one."""
        here = None if self._scope is None else self._scope.conversation
        if call.scope.conversation != here and (call.turn_id is not None or last_place(call)):
            raise self._astray("call")
        return call

    def _astray(self, kind: str) -> TransferError:
        """The error for a line that may be well made, and stands where it cannot."""
        return TransferError(
            f"The {kind} on line {self.number} of {self._name} stands outside its conversation: the file is damaged; nothing of it "
            "was imported."
        )


def _parsed(line: str, number: int) -> dict[str, JsonValue]:
    try:
        record: object = json.loads(line)
    except json.JSONDecodeError as error:
        raise TransferError(
            f"Line {number} is not JSON ({error}): the file is damaged or not a Pagefile export."
        ) from error
    if not isinstance(record, dict) or (
        number == 1 and cast("dict[str, object]", record).get("type") != FORMAT
    ):
        raise TransferError(f"Line {number} is not a record of a Pagefile export.")
    found = cast("dict[str, JsonValue]", record)
    if number == 1 and (found.get("version") != VERSION or found.get("version") is True):
        raise TransferError(
            f"Line 1: the export has version {str(found.get('version'))[:80]!r}, this Pagefile reads {VERSION}: upgrade Pagefile."
        )
    return found


def _entry(record: dict[str, JsonValue], scope: Scope, blobs: Mapping[str, bytes]) -> Entry:
    match record["type"]:
        case "turn":
            steps = [_checked(Step, step) for step in cast("list[dict[str, object]]", record["steps"])]
            layout = _layout(record.get("layout"), steps, blobs)
            return _checked(Turn, {**_fields(record, scope), "steps": tuple(steps), "layout": layout})
        case "checkpoint":
            return _checked(Checkpoint, _fields(record, scope))
        case _:
            return _checked(Reset, _fields(record, scope))


def _layout(
    value: JsonValue, steps: Sequence[Step], blobs: Mapping[str, bytes]
) -> tuple[Message, ...] | None:
    """The messages of a turn: every part is what it says, and every reference leads somewhere."""
    if value is None:
        return None
    found = cast("list[JsonObject]", checked_json(value, "layout"))
    messages = tuple(message_from(message) for message in found)
    # An archived result is on the line of its page: a reference into it is followed as far as its placeholder goes.
    whole = [replace(step, whole=True, lost_chars=0) for step in steps]
    for message in messages:
        _check_record(message)
        for part in (*message.parts, *media_in([message])):
            _check_record(part)
            if isinstance(part, ToolCall | ToolResult) and part.step >= len(steps):
                raise ValueError(f"a message names step {part.step}, which is not there")
        if message.given is not None:
            _check_given(message, Filling(whole, _own(message, blobs)), archived=whole != list(steps))
    return messages


def _own(message: Message, blobs: Mapping[str, bytes]) -> dict[str, bytes]:
    """The bytes of a message's images and files; those that are not in the file are no damage: they may be gone."""
    return {media.blob: blobs.get(media.blob, b"") for media in media_in([message]) if media.blob}


def _check_given(message: Message, filling: Filling, *, archived: bool) -> None:
    """Follow every reference of a message once: one that leads nowhere would be found when the message is given back."""

    def follow(reference: str, value: object) -> object:
        try:
            return filling.as_given(replace(message, given={reference: cast("JsonValue", value)}))
        except (LookupError, TypeError, ValueError) as error:
            if reference == "$result_json" and archived and isinstance(error, json.JSONDecodeError):
                return None
            raise ValueError(
                f"a message refers to {reference} {str(value)[:80]}, which leads nowhere"
            ) from error

    if not isinstance(filled(message.given, follow), dict):
        raise TypeError(f"a message as it came is {str(message.given)[:80]}")


def _session(given: JsonValue) -> JsonObject:
    """The session value; what windows read of it is what they take it for."""
    value = _object(given, "value")
    if value.get("user_snapshot") is not None:
        _object(value["user_snapshot"], "user_snapshot")
    return value


def _bytes(record: dict[str, JsonValue]) -> Bytes:
    data = b64decode(checked_text(record["data"], "data"), validate=True)
    if sha256(data).hexdigest() != record["hash"]:
        raise ValueError("its bytes are not what its hash says")
    return Bytes(str(record["hash"]), data)


def _fact(record: dict[str, JsonValue], tenant: str) -> Fact:
    scope = Scope(tenant, _id(record["user_id"]), _id_or_none(record["conversation_id"]))
    return _checked(Fact, _fields(record, scope))


def _revision(record: dict[str, JsonValue], tenant: str) -> Revision:
    owner = Scope(tenant, _id(record["user_id"]))
    pairs = cast("list[dict[str, dict[str, JsonValue] | None]]", record["facts"])
    if not isinstance(cast("object", pairs), list) or not pairs:
        raise ValueError(f"facts is {str(pairs)[:80]}")
    before = [_fact_within(pair["before"], owner) for pair in pairs]
    after = [fact for pair in pairs if (fact := _fact_within(pair["after"], owner)) is not None]
    if len(after) < len(pairs):
        raise ValueError("it does not say what became of each fact")
    given = {key: value for key, value in record.items() if key not in {"type", "user_id", "facts"}}
    at = _moment(given.get("at"))
    both = {"before": tuple(before), "after": tuple(after)}
    return _checked(Revision, {**given, "at": at, "scope": owner, **both})


def _fact_within(given: dict[str, JsonValue] | None, owner: Scope) -> Fact | None:
    return None if given is None else _fact({**given, "user_id": owner.user}, owner.tenant)


def _call(record: dict[str, JsonValue], tenant: str) -> Call:
    scope = Scope(tenant, _id_or_none(record["user_id"]), _id(record["conversation_id"]))
    call = _checked(Call, _fields(record, scope))
    _id_or_none(call.turn_id)
    check_window(call.options, call.receipt)
    return call


def last_place(call: Call) -> int:
    """The last place of the log that the window of a call was made of; 0 where it does not tell."""
    moment = cast("Mapping[str, Any] | None", call.options.get(KEY))
    return 0 if moment is None else moment["last_seq"]


#: What `context()` was asked, as a recorded call tells it.
_ASKED = ("window_tokens", "threshold", "recent_turns", "load", "instructions", "placement")


def check_window(options: JsonObject, receipt: JsonObject) -> None:
    """Raise `ValueError` or its like for what no window can be explained by, or made again from."""
    given = cast("dict[str, Any]", dict(receipt))
    for verdict in given["verdicts"]:
        _check_fields(Verdict, verdict)
    _check_fields(Receipt, {**given, "verdicts": (), "degraded": _tuple(given["degraded"])})
    receipt_from(receipt)
    moment = cast("Mapping[str, Any] | None", options.get(KEY))
    if moment is None:
        return
    # The one field that older exports do not have.
    known = {one.name: moment[one.name] for one in fields(Moment) if one.name != "messages"}
    known["messages"] = moment.get("messages")
    _check_fields(Moment, {**known, "at": _moment(known["at"])})
    if (
        max(known["reset_seq"], known["covered_through_seq"], known["checkpoint_seq"] or 0)
        > known["last_seq"]
    ):
        raise ValueError("it was made of places behind the end of its log")
    asked = {name: cast("dict[str, Any]", options)[name] for name in _ASKED}
    beside = {name: options[name] for name in BESIDE if name in options}
    _check_fields(Request, {**asked, **beside, "load": _tuple(asked["load"])})
    traces = cast("Mapping[str, JsonValue]", moment["traces"])
    for conversation, seq, turn_id, score in listed(traces.get("episodes")):
        _id(conversation)
        _count(seq, "seq")
        _id(turn_id)
        _number(score)
    for chunk in listed(traces.get("workspace")):
        candidate_from(chunk)
    for uuid in listed(traces.get("pinned")):
        _id(uuid)


def _tuple(value: object) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{str(value)[:80]} is no list")
    return tuple(cast("list[object]", value))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{str(value)[:80]} is no number")
    return value


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_INT:
        raise ValueError(f"{name} is {str(value)[:80]}")
    return value


def _object(value: object, name: str) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {str(value)[:80]}")
    return cast("JsonObject", checked_json(cast("JsonObject", value), name))


def _item(record: dict[str, JsonValue]) -> KeptItem:
    rows = {name: record.pop(name, None) for name in ("maker", "dimension", "vectors")}
    given = {key: value for key, value in record.items() if key not in {"type", "user_id"}}
    times = {key: _moment(value) for key, value in given.items() if key in {"created", "updated", "expires"}}
    namespace = given.get("namespace")
    place = {"namespace": tuple(namespace) if isinstance(namespace, list) else namespace}
    item = _checked(StoredItem, {**given, **times, **place})
    if rows["vectors"] is None:
        return KeptItem(item)
    data, dimension = b64decode(checked_text(rows["vectors"], "vectors"), validate=True), rows["dimension"]
    if not isinstance(dimension, int) or dimension < 1 or not data or len(data) % (4 * dimension):
        raise ValueError("its vectors need a dimension, and whole rows of it")
    vectors = np.frombuffer(data, dtype="<f4").reshape(-1, dimension).astype(np.float32)
    if not np.isfinite(vectors).all():
        raise ValueError("its vectors hold what is no number")
    return KeptItem(item, vectors, checked_text(rows["maker"], "maker"))


def _page(record: dict[str, JsonValue], tenant: str) -> tuple[Page, str]:
    text = checked_text(record.pop("text"), "text")
    scope = Scope(tenant, _id_or_none(record["user_id"]), _id_or_none(record["conversation_id"]))
    page = _checked(Page, _fields(record, scope))
    if checked_uuid(page.uuid) != page.uuid:
        raise ValueError(f"{page.uuid!r} is no uuid in small letters")
    return page, text


_TIMES = frozenset(
    {"at", "created", "valid_from", "valid_to", "recorded", "retracted", "last_load", "purged"}
)
_TUPLES = frozenset({"anchors", "archive_refs", "sources"})
#: A window may be fuller than full, a score may be anything, and framing less than nothing.
_ANY_NUMBER = frozenset({"ratio", "score", "framing"})


def _fields(record: dict[str, JsonValue], scope: Scope) -> dict[str, object]:
    left_out = {"type", "user_id", "conversation_id"}
    fields: dict[str, object] = {key: value for key, value in record.items() if key not in left_out}
    for key in fields.keys() & _TIMES:
        fields[key] = _moment(fields[key])
    for key in fields.keys() & _TUPLES:
        fields[key] = tuple(cast("list[str]", fields[key])) if isinstance(fields[key], list) else fields[key]
    return fields | {"scope": scope}


def _moment(value: object) -> datetime | None:
    return None if value is None else utc(datetime.fromisoformat(cast("str", value)))


def _checked(kind: type[R], given: Mapping[str, object]) -> R:
    """The record with these fields, each of the kind it should be: what a store is given must come back from it."""
    _check_fields(kind, given)
    record = kind(**given)
    if "id" in given:
        _id(given["id"])
    return record


def _check_record(record: Message | Part) -> None:
    _check_fields(type(record), {known.name: getattr(record, known.name) for known in fields(record)})


def _check_fields(kind: type[object], given: Mapping[str, object]) -> None:
    for known in fields(kind):  # pyright: ignore[reportArgumentType] - records are dataclasses
        if known.name in given and not _fits(known.type, given[known.name], known.name):
            raise ValueError(f"{known.name} is {repr(given[known.name])[:80]}")


def _fits(kind: object, value: object, name: str) -> bool:
    """Whether a value may stand in a field of this type."""
    if kind in (JsonValue, JsonObject):
        checked_json(value, name)
        return kind != JsonObject or isinstance(value, Mapping)
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(one, value, name) for one in get_args(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is Mapping:
        keys, values = get_args(kind)
        return isinstance(value, dict) and all(
            _fits(keys, key, name) and _fits(values, inner, name)
            for key, inner in cast("dict[object, object]", value).items()
        )
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(
            _fits(get_args(kind)[0], inner, name) for inner in cast("tuple[object, ...]", value)
        )
    if isinstance(value, str):
        checked_text(value, name)
    if isinstance(value, bool):
        return kind is bool
    if not isinstance(value, int | float):
        return isinstance(value, cast("type", kind))
    if name == "ttl_s":
        return value > 0 and isfinite(value)
    if name in _ANY_NUMBER:
        return isfinite(value) and (kind is float or isinstance(value, int))
    # Other numbers count something, or are a share: `confidence`, which a whole number may stand for.
    if kind is float:
        return 0 <= value <= 1
    return kind is int and isinstance(value, int) and 0 <= value <= MAX_INT


def _id(value: object) -> str:
    return checked_id(value, "id")


def _id_or_none(value: object) -> str | None:
    return None if value is None else _id(value)
