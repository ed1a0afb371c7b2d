"""The lines of an export: converting records to JSON and back.

A line that cannot be read is reported by its number. The schema of each line is in `export_lines`.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias, cast

from pydantic import ValidationError

from pagefile.content import Message, ToolCall, ToolResult, media_in, message_json
from pagefile.engine.export_lines import (
    FORMAT,
    LINE,
    VERSION,
    CallLine,
    CheckpointLine,
    ConversationLine,
    ExportLine,
    FactLine,
    HeaderLine,
    ItemLine,
    MediaLine,
    MissingLine,
    PageLine,
    ResetLine,
    RevisionLine,
    SessionLine,
    TurnLine,
    WatermarkLine,
    described,
    first_fault,
)
from pagefile.engine.snapshots import KEY
from pagefile.errors import TransferError
from pagefile.ports import NO_LABELS, KeptItem, Labels, labels_of
from pagefile.records import (
    ConversationInfo,
    Entry,
    Fact,
    JsonValue,
    Page,
    Revision,
    Scope,
    Step,
    Turn,
    WindowRecord,
)
from pagefile.shapes import Filling
from pagefile.shapes.skeleton import filled

#: Fields added after the first exports: omitted if empty, so that earlier versions can read the line.
_LATER = frozenset({"project", "agent"})


# -- out ----------------------------------------------------------------------------------------------------------


def dumped(kind: str, record: Entry | Fact | Page | WindowRecord) -> dict[str, JsonValue]:
    """A record of a conversation or a user."""
    given = cast("dict[str, object]", asdict(record))
    layout = given.pop("layout", None)
    if layout is not None and isinstance(record, Turn) and record.layout is not None:
        given["layout"] = [message_json(message) for message in record.layout]
    del given["scope"]
    given.pop("outcome", None)  # belongs to the call that wrote the fact, not to the fact
    given = {name: value for name, value in given.items() if value is not None or name not in _LATER}
    values = {name: _plain(value) for name, value in given.items()}
    return dumped_beside(kind, record.scope, **values)


def dumped_conversation(head: ConversationInfo) -> dict[str, JsonValue]:
    """The line that starts a conversation."""
    labels = asdict(labels_of(head))
    return {
        "type": "conversation",
        "id": head.scope.conversation,
        "user_id": head.scope.user,
        "agent": head.agent,
        **{name: value for name, value in labels.items() if value is not None},
    }


def dumped_beside(kind: str, scope: Scope, **more: JsonValue) -> dict[str, JsonValue]:
    """Something of a conversation besides its log."""
    return {"type": kind, "user_id": scope.user, "conversation_id": scope.conversation, **more}


def dumped_revision(revision: Revision) -> dict[str, JsonValue]:
    """A change to a user's facts: each before (None for a new one) and after."""
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
    """A fact within its revision, which names the user."""
    return {key: value for key, value in dumped("fact", fact).items() if key not in {"type", "user_id"}}


def dumped_item(kept: KeptItem, owner: Scope) -> dict[str, JsonValue]:
    """An item with the vectors it is searched by."""
    rows = kept.vectors
    return {
        "type": "item",
        "user_id": owner.user,
        **{name: _plain(value) for name, value in asdict(kept.item).items()},
        "maker": kept.model,
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
    """The start of a conversation: the lines up to the next one belong to it."""

    scope: Scope
    agent: str | None
    labels: Labels = NO_LABELS


@dataclass(frozen=True, slots=True)
class Owned:
    """An item and its owner."""

    owner: Scope
    item: KeptItem


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record of a kind that is newer than this reader."""

    what: str


#: Records of a conversation besides its log.
Beside: TypeAlias = SessionLine | WatermarkLine | MediaLine
#: The content of a line: the start of a conversation, something in it, or something of a user.
Record: TypeAlias = (
    Begun | Beside | Entry | WindowRecord | Fact | Revision | Owned | Unknown | tuple[Page, str]
)


class Reader:
    """Turns lines into records; a line that cannot be read is reported by its number."""

    def __init__(self, tenant: str, name: str) -> None:
        self._tenant = tenant
        self._name = name
        self._scope: Scope | None = None
        #: Images and files of the current conversation.
        self._blobs: dict[str, bytes] = {}
        self.number = 0

    def read(self, line: str) -> Record | None:
        """The content of a line; None for informational ones: the header, and notes about missing bytes."""
        self.number += 1
        if self.number == 1:
            return _check_header(line)
        try:
            return self._record(LINE.validate_json(line))
        except ValidationError as error:
            return self._unknown(error)
        except TransferError:
            raise
        except (LookupError, TypeError, ValueError) as error:
            raise self._damaged(str(error)) from error

    def unreadable(self, error: OSError | UnicodeDecodeError) -> TransferError:
        """The error for a file that cannot be read at all."""
        if isinstance(error, OSError):
            return TransferError(f"Cannot read {self._name}: {error}.")
        return TransferError(
            f"{self._name} is not UTF-8 text near line {self.number + 1}: it is not a Pagefile export."
        )

    def _record(self, line: ExportLine) -> Record | None:
        match line:
            case ConversationLine():
                self._scope = Scope(self._tenant, line.user_id, line.id)
                self._blobs = {}
                return Begun(self._scope, line.agent, line.labels())
            case PageLine():
                return line.record(scope=self._of(line)), line.text
            case FactLine() | RevisionLine() | ItemLine():
                self._scope = None  # no more conversations follow
                return self._owned(line)
            case CallLine():
                return self._placed(line.record(scope=self._of(line)))
            case SessionLine() | WatermarkLine() | MediaLine():
                return self._beside(line)
            case TurnLine() | CheckpointLine() | ResetLine():
                return self._entry(line)
            case MissingLine():
                return None
            case HeaderLine():
                return Unknown(f"Line {self.number} is a record of the unknown type {FORMAT!r}")

    def _of(self, line: PageLine | CallLine) -> Scope:
        return Scope(self._tenant, line.user_id, line.conversation_id)

    def _owned(self, line: FactLine | RevisionLine | ItemLine) -> Fact | Revision | Owned:
        """What belongs to a user rather than to a single conversation."""
        owner = Scope(self._tenant, line.user_id)
        return Owned(owner, line.kept()) if isinstance(line, ItemLine) else line.of_user(owner)

    def _entry(self, line: TurnLine | CheckpointLine | ResetLine) -> Entry:
        entry = line.record(scope=self._within(line.type))
        if isinstance(entry, Turn) and entry.layout is not None:
            _check_layout(entry.layout, entry.steps, self._blobs)
        return entry

    def _within(self, kind: str) -> Scope:
        """The conversation that an entry belongs to."""
        if self._scope is None:
            raise TransferError(
                f"The {kind} on line {self.number} comes before any conversation, or after them all: the file is damaged."
            )
        return self._scope

    def _beside(self, line: Beside) -> Beside:
        if self._scope is None or line.conversation_id != self._scope.conversation:
            raise self._astray(line.type)
        if isinstance(line, MediaLine):
            self._blobs[line.hash] = line.data
        return line

    def _placed(self, call: WindowRecord) -> WindowRecord:
        """A call must follow its conversation, unless it refers to nothing in it: that conversation may be unwritten."""
        here = None if self._scope is None else self._scope.conversation
        if call.scope.conversation != here and (call.turn_id is not None or last_place(call)):
            raise self._astray("call")
        return call

    def _unknown(self, error: ValidationError) -> Unknown:
        """A record of a later version; raises for anything else that is not a valid line."""
        fault = first_fault(error)
        if fault["type"] == "json_invalid":
            raise _not_json(self.number, fault["msg"]) from error
        given = fault["input"]
        if (
            fault["type"] == "union_tag_invalid"
            and not fault["loc"]
            and isinstance(kind := given["type"], str)
        ):
            return Unknown(f"Line {self.number} is a record of the unknown type {kind[:80]!r}")
        if not fault["loc"] and not isinstance(given, dict):
            raise TransferError(f"Line {self.number} is not a record of a Pagefile export.") from error
        if fault["loc"] and fault["loc"][0] in ("turn", "checkpoint", "reset"):
            self._within(str(fault["loc"][0]))
        raise self._damaged(described(fault)) from error

    def _damaged(self, why: str) -> TransferError:
        return TransferError(
            f"Line {self.number} of {self._name} is damaged ({why[:300]}); nothing of the file was imported."
        )

    def _astray(self, kind: str) -> TransferError:
        """The error for a valid line in the wrong place."""
        return TransferError(
            f"The {kind} on line {self.number} of {self._name} is outside its conversation: the file is damaged; nothing of it "
            "was imported."
        )


def _check_header(line: str) -> None:
    try:
        HeaderLine.model_validate_json(line)
    except ValidationError as error:
        fault = first_fault(error)
        if fault["type"] == "json_invalid":
            raise _not_json(1, fault["msg"]) from error
        if fault["loc"] != ("version",):
            raise TransferError("Line 1 is not a record of a Pagefile export.") from error
        version = None if fault["type"] == "missing" else fault["input"]
        raise TransferError(
            f"Line 1: the export has version {str(version)[:80]!r}, this Pagefile reads {VERSION}: upgrade Pagefile."
        ) from error


def _not_json(number: int, why: str) -> TransferError:
    return TransferError(f"Line {number} is not JSON ({why}): the file is damaged or not a Pagefile export.")


def last_place(call: WindowRecord) -> int:
    """The last `seq` that the window of a call was built from; 0 if it does not say."""
    moment = cast("Mapping[str, Any] | None", call.options.get(KEY))
    return 0 if moment is None else moment["last_seq"]


# -- messages -----------------------------------------------------------------------------------------------------


def _check_layout(messages: Sequence[Message], steps: Sequence[Step], blobs: Mapping[str, bytes]) -> None:
    """Every reference in the messages of a turn resolves."""
    # An archived result is on the line of its page: a reference into it is checked only as far as its
    # placeholder goes.
    whole = [replace(step, whole=True, lost_chars=0) for step in steps]
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall | ToolResult) and part.step >= len(steps):
                raise ValueError(f"a message names step {part.step}, which is not there")
        if message.given is not None:
            _check_given(message, Filling(whole, _own(message, blobs)), archived=whole != list(steps))


def _own(message: Message, blobs: Mapping[str, bytes]) -> dict[str, bytes]:
    """The bytes of a message's images and files; missing ones are not damage: they may be gone."""
    return {media.blob: blobs.get(media.blob, b"") for media in media_in([message]) if media.blob}


def _check_given(message: Message, filling: Filling, *, archived: bool) -> None:
    """Resolve every reference of a message once: a broken one would otherwise surface only when the message is read."""

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
        raise ValueError(f"a message as it came is {str(message.given)[:80]}")  # noqa: TRY004 - damage, as the rest
