"""How records become text in a database and come back equal.

Every store writes JSON and times in the same way, so that what one store returns another returns too: a tuple given as
a tool's input comes back as a list from all of them.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from pydantic_core import to_json as fast_json

from pagefile.content import Message, message_from, message_json
from pagefile.errors import InvalidArgumentError, StoreCorruptError
from pagefile.ports import Labels, TurnDraft
from pagefile.records import Fact, JsonObject, JsonValue, Page, Step, Turn, utc

R = TypeVar("R")


def _as_builtin(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return list(cast("Sequence[Any]", value))
    raise TypeError(f"{type(cast('object', value)).__name__} is not JSON")


_dumps = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_as_builtin
).encode


def to_json(value: JsonValue) -> str:
    """Compact JSON that every database can hold, or an error that says what is wrong with the value."""
    try:
        text = _dumps(value)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(
            f"This value cannot be stored as JSON ({error}): give only text, numbers, booleans, None, lists and "
            "dicts with text keys, no NaN and no infinity."
        ) from error
    return text


def own_json(value: JsonValue) -> str:
    """The same for values we made ourselves and write with every window: several times as fast, and read back as equal."""
    return own_json_bytes(value).decode()


def own_json_bytes(value: JsonValue) -> bytes:
    try:
        return fast_json(value)
    except ValueError:
        return to_json(value).encode()


def json_copy(value: JsonValue) -> Any:
    """The value as it would come back from a database."""
    return json.loads(to_json(value))


def from_json(text: str | None) -> Any:
    """The value that `to_json` was given; None if it was never written."""
    return None if text is None else json.loads(text)


_STEP_FIELDS = tuple(field.name for field in fields(Step) if field.name != "input_pages")
#: The fields of a step that describe the page of its result, with their values when there is none.
_PAGE_FIELDS: dict[str, Any] = {
    field.name: field.default for field in fields(Step)[_STEP_FIELDS.index("page") : len(_STEP_FIELDS)]
}


def steps_text(steps: Sequence[Step]) -> str | None:
    """JSON, with the fields of a page only where a step has one; None for the common case of a turn without tools."""
    said: list[JsonValue] = []
    for step in steps:
        has_page = any(getattr(step, name) != default for name, default in _PAGE_FIELDS.items())
        names = [name for name in _STEP_FIELDS if has_page or name not in _PAGE_FIELDS]
        inputs: dict[str, JsonValue] = {"input_pages": {**step.input_pages}} if step.input_pages else {}
        said.append({name: getattr(step, name) for name in names} | inputs)
    return to_json(said) if said else None


def text_steps(text: str | None) -> tuple[Step, ...]:
    return tuple(Step(**fields) for fields in json.loads(text)) if text else ()


def stored_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    return tuple(replace(step, input=json_copy(step.input)) for step in steps)


def stored_layout(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(message_from(json_copy(message_json(message))) for message in messages)


def messages_text(messages: Sequence[Message], query: str | None, answer: str | None) -> str:
    """Messages as JSON. Text that the row already holds is only referred to."""
    held = {answer: "answer", query: "query"}

    def pointed(part: dict[str, Any]) -> dict[str, Any]:
        if part["type"] != "text" or part["text"] not in held:
            return part
        return {"type": "text", "of": held[part["text"]]}

    written: list[Any] = [message_json(message) for message in messages]
    return to_json([{**one, "parts": [pointed(part) for part in one["parts"]]} for one in written])


def text_messages(text: str, query: str | None, answer: str | None) -> tuple[Message, ...]:
    held = {"query": query, "answer": answer}

    def spelled(part: dict[str, Any]) -> dict[str, Any]:
        return {"type": "text", "text": held[part["of"]]} if "of" in part else part

    written: list[Any] = json.loads(text)
    return tuple(message_from({**one, "parts": [spelled(part) for part in one["parts"]]}) for one in written)


def turn_texts(turn: Turn | TurnDraft) -> dict[str, str | None]:
    return {
        "steps": steps_text(turn.steps),
        "metadata": to_json(turn.metadata) if turn.metadata else None,
        "messages": None if turn.layout is None else messages_text(turn.layout, turn.user, turn.assistant),
    }


def label_values(labels: Labels) -> dict[str, str | None]:
    return {"project": labels.project, "language": labels.language, "timezone": labels.timezone}


def stored_draft(draft: TurnDraft) -> TurnDraft:
    """The draft with its JSON as it comes back from a database."""
    if not (draft.steps or draft.metadata or draft.layout):
        return draft
    steps, layout = stored_steps(draft.steps), None if draft.layout is None else stored_layout(draft.layout)
    return replace(draft, steps=steps, metadata=json_copy(draft.metadata), layout=layout)


def stored_page(page: Page, stored_bytes: int) -> Page:
    """The page as it comes back from a database; a tombstone holds no text, so it is not pinned and keeps its old size."""
    living = page.purged is None
    size = stored_bytes if living else page.stored_bytes
    return replace(stored(page), pinned=page.pinned and living, stored_bytes=size)


def time_text(moment: datetime) -> str:
    """UTC text of fixed width, which sorts in the order of time."""
    # Only UTC times are cached: two times of another zone that differ only in `fold` compare equal, yet are different.
    return _utc_text(utc(moment))


@lru_cache(maxsize=64)
def _utc_text(moment: datetime) -> str:
    """Cached, since a turn writes the same few times in each of its statements."""
    return moment.isoformat(" ", "microseconds")


def moment(stored: datetime | str) -> datetime:
    """The time that `time_text` was given, in UTC; some drivers give it as text."""
    return datetime.fromisoformat(stored) if isinstance(stored, str) else stored


# -- records, field by field ------------------------------------------------------------------------------------------


def _maybe(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


#: How fields that a database stores as another type are written and read.
_KINDS: dict[Any, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    datetime: (utc, moment),
    datetime | None: (_maybe(utc), _maybe(moment)),
    float: (float, float),
    float | None: (_maybe(float), _maybe(float)),
    bool: (bool, bool),
    tuple[str, ...]: (to_json, lambda text: tuple(from_json(text))),
    JsonValue: (to_json, from_json),
    JsonObject: (own_json, from_json),
}


@cache
def _kinds(record: type[Any]) -> tuple[tuple[int, str, Callable[[Any], Any], Callable[[Any], Any]], ...]:
    """The fields of a record that are stored as another type, with their positions."""
    others = [(place, field) for place, field in enumerate(fields(record)) if field.type in _KINDS]
    return tuple((place, field.name, *_KINDS[field.type]) for place, field in others)


def record_of(record: type[R], values: Sequence[Any]) -> R:
    """The record of a row whose columns are its fields, in their order."""
    given = list(values)
    for place, _, _, read in _kinds(record):
        given[place] = read(given[place])
    return record(*given)


def field_values(record: Any) -> dict[str, Any]:
    """The fields of a record as a database stores them, by name."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return values | {name: write(values[name]) for _, name, write, _ in _kinds(record.__class__)}


def stored(record: R) -> R:
    """The record as it comes back from a database."""
    changed = {name: read(write(getattr(record, name))) for _, name, write, read in _kinds(record.__class__)}
    return replace(cast("Any", record), **changed)


# -- bytes of pages, images and files: compressed when that makes them smaller, under their hash -----------------------


Codec: TypeAlias = Literal["raw", "zlib"]

_LEVEL = 6


class Blob(NamedTuple):
    """A text or a file as it is on disk, once, under its hash; the parameters of the statement `blob_put`."""

    hash: str
    codec: Codec
    data: bytes


def packed(text: str) -> Blob:
    """The text as it is stored; equal texts are equal blobs."""
    return packed_bytes(text.encode())


def packed_bytes(raw: bytes) -> Blob:
    small = zlib.compress(raw, _LEVEL)
    key = hashlib.sha256(raw).hexdigest()
    return Blob(key, "zlib", small) if len(small) < len(raw) else Blob(key, "raw", raw)


def unpacked(codec: Codec | None, data: bytes | None) -> str:
    """The text that was packed; `StoreCorruptError` when it is missing or damaged."""
    if data is None:
        raise StoreCorruptError("The text of this page is gone from the database: restore a backup.")
    try:
        return unpacked_bytes(codec, data).decode()
    except UnicodeDecodeError as error:
        raise _damaged(error) from error


def unpacked_bytes(codec: Codec | None, data: bytes) -> bytes:
    try:
        return zlib.decompress(data) if codec == "zlib" else bytes(data)
    except zlib.error as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> StoreCorruptError:
    return StoreCorruptError(
        f"What is archived here is damaged ({error}): restore a backup, and let `pagefile verify` look for more."
    )


# -- digests: so that corruption or an edit made outside Pagefile is noticed -------------------------------------------
#
# A digest covers the fields of a row that never change once written, and none that do: a conversation's owner, pins and
# loads. A field added later is left out where it is empty, so that older rows keep their digest.

#: Fields of pages and facts that change, or that another tokenizer would count differently.
_LEFT_OUT = frozenset(
    {"scope", "tokens", "counter", "pinned", "loads", "last_load", "purged", "stored_bytes", "outcome"}
)


def turn_digest(turn: Turn | TurnDraft, texts: Mapping[str, str | None] | None = None) -> str | None:
    """The digest of what was said, by whom, when, with which tools; None while open. `texts` are its JSON columns, if known."""
    if turn.status == "open":
        return None
    texts = turn_texts(turn) if texts is None else texts
    place = "turn", turn.scope.tenant, turn.scope.conversation, turn.id, turn.status
    said = turn.user, turn.assistant, time_text(turn.at)
    return _digest((*place, *said, texts["steps"], texts["metadata"], texts["messages"]))


def record_digest(record: Page | Fact) -> str:
    """The digest of a tool result (its source, its summary, the hash of its text) or of a fact as it is now."""
    said: dict[str, JsonValue] = {"tenant": record.scope.tenant, "user": record.scope.user}
    said["conversation"] = record.scope.conversation
    for field in fields(record):
        if field.name not in _LEFT_OUT:
            value = getattr(record, field.name)
            said[field.name] = time_text(value) if isinstance(value, datetime) else value
    known = {name: value for name, value in said.items() if value not in (None, "")}
    return _digest((type(record).__name__.lower(), to_json(known)))


def _digest(parts: tuple[str | None, ...]) -> str:
    # Every recorded turn pays for this: of the unambiguous ways to write a list, this is the fastest.
    return hashlib.sha256(own_json_bytes(parts)).hexdigest()
