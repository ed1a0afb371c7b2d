"""What people and providers say about turns and calls: notes with labels, and which model answered, how fast, at what price.

They are items of the conversation's owner and are erased with the user, the conversation, the turn or the call they are about.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from pagefile.engine.arguments import moment
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.ports import OWN_NAMESPACE, ItemKey, ItemWrite, Namespace, StoredItem
from pagefile.records import JsonObject, Scope, checked_id, checked_text

if TYPE_CHECKING:
    from pagefile.engine.engine import Engine
    from pagefile.engine.memory import Memory

#: What a note is about.
Subject = Literal["turn", "call"]

MOST_LABELS, MOST_LABEL_CHARS, MOST_NOTE_CHARS = 10, 40, 4_000
#: Notes of a conversation that are read at once, and users whose notes a search looks at.
_READ, _OWNERS = 1_000, 500
#: Of calls that long ago, the windows are gone too.
_MODEL_CALLS_KEPT_S = 90 * 24 * 3600.0
_ABOUT: Namespace = (OWN_NAMESPACE, "annotations")
_NOTES, _CALLS = "notes", "model calls"
#: Where experiments are kept, those of a tenant under no user.
EXPERIMENTS: Namespace = (OWN_NAMESPACE, "experiments")


@dataclass(frozen=True, slots=True)
class Note:
    #: The conversation, with its owner.
    scope: Scope
    subject: Subject
    #: The id of the turn or of the call.
    id: str
    labels: tuple[str, ...]
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ModelCall:
    """How a model answered a window."""

    model: str
    seconds: float
    #: As the provider counted them; None if it did not.
    tokens_in: int | None
    tokens_out: int | None
    #: None without a price of the model.
    price: float | None
    currency: str
    at: datetime


# -- notes ---------------------------------------------------------------------------------------------------------------


async def write_note(
    memory: "Memory", scope: Scope, subject: Subject, subject_id: str, *, labels: Iterable[str], text: str
) -> None:
    """Write down what somebody thinks of a turn or a call of a conversation; nothing at all removes the note."""
    marked = checked_labels(labels)
    said = checked_text(text, "note").strip()
    if len(said) > MOST_NOTE_CHARS:
        raise InvalidArgumentError(
            f"A note has at most {MOST_NOTE_CHARS} characters, this one has {len(said)}."
        )
    value: JsonObject | None = {"labels": list(marked), "text": said} if marked or said else None
    key = f"{subject} {checked_id(subject_id, f'{subject} id')}"
    await _write(memory.engine, scope, [ItemWrite(_namespace(scope, _NOTES), key, value)])


def checked_labels(labels: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(one.strip() for one in labels if one.strip()))
    if len(found) > MOST_LABELS or any(len(one) > MOST_LABEL_CHARS for one in found):
        raise InvalidArgumentError(
            f"At most {MOST_LABELS} labels of {MOST_LABEL_CHARS} characters each: remove or shorten some."
        )
    return tuple(checked_text(one, "label") for one in found)


async def notes_of(memory: "Memory", scope: Scope) -> dict[tuple[Subject, str], Note]:
    """The notes of a conversation, by what they are about."""
    found = await _under(memory.engine, scope, _namespace(scope, _NOTES), _READ)
    notes = [_note(item, scope) for item in found]
    return {(note.subject, note.id): note for note in notes}


async def search_notes(
    memory: "Memory",
    *,
    tenant: str,
    user_id: str | None,
    words: Sequence[str] = (),
    label: str | None = None,
    limit: int = 50,
) -> list[Note]:
    """Notes of a user, or of a tenant's users, newest first: with a label, and with every word in them."""
    engine = memory.engine
    owners = [Scope(tenant, user_id)] if user_id else await engine.store.items.owners(tenant)
    found: list[Note] = []
    for owner in owners[:_OWNERS]:
        items = await _under(engine, owner, _ABOUT, _READ)
        found += [
            _note(item, Scope(owner.tenant, owner.user, item.namespace[len(_ABOUT)]))
            for item in items
            if item.namespace[-1] == _NOTES
        ]
    folded = [word.casefold() for word in words]
    chosen = [
        note
        for note in found
        if (label is None or label in note.labels)
        and all(word in f"{note.text} {' '.join(note.labels)}".casefold() for word in folded)
    ]
    return sorted(chosen, key=lambda note: note.at, reverse=True)[:limit]


def _note(item: StoredItem, scope: Scope) -> Note:
    subject, _, subject_id = item.key.partition(" ")
    value = cast("dict[str, list[str]]", item.value)
    labels, text = tuple(value["labels"]), str(value["text"])
    return Note(scope, "call" if subject == "call" else "turn", subject_id, labels, text, item.updated)


# -- model calls -----------------------------------------------------------------------------------------------------------


async def note_model_call(engine: "Engine", scope: Scope, call_id: str, made: ModelCall) -> None:
    value: JsonObject = {
        "model": made.model,
        "seconds": made.seconds,
        "tokens_in": made.tokens_in,
        "tokens_out": made.tokens_out,
        "price": made.price,
        "currency": made.currency,
        "at": made.at.isoformat(),
    }
    write = ItemWrite(_namespace(scope, _CALLS), call_id, value, ttl_s=_MODEL_CALLS_KEPT_S)
    await _write(engine, scope, [write])


async def model_calls(memory: "Memory", scope: Scope, call_ids: Sequence[str]) -> dict[str, ModelCall]:
    """How the model answered each of these windows of a conversation, where that is known."""
    engine, namespace = memory.engine, _namespace(scope, _CALLS)
    keys: list[ItemKey] = [(namespace, call_id) for call_id in call_ids]
    found = await engine.store.items.get(_owner(scope), keys, now=engine.clock.now())
    return {item.key: _model_call(item) for item in found if item is not None}


def _model_call(item: StoredItem) -> ModelCall:
    value = cast("dict[str, object]", item.value)
    at = moment(datetime.fromisoformat(str(value["at"])))
    return ModelCall(**{**value, "at": at})  # pyright: ignore[reportArgumentType] - written above


# -- erasure ---------------------------------------------------------------------------------------------------------------


async def forget_annotations(engine: "Engine", scope: Scope) -> int:
    """Remove what is known about a conversation; a user's and a tenant's are erased with their other items."""
    if scope.conversation is None:
        return 0
    place = (*_ABOUT, scope.conversation)
    found = await _under(engine, scope, place, None)
    await _write(engine, scope, [ItemWrite(item.namespace, item.key, None) for item in found])
    return len(found)


async def forget_lost(engine: "Engine", scope: Scope, turn_id: str | None) -> None:
    """Remove what is known about a turn that was erased, and about calls that are gone."""
    found = await _under(engine, scope, (*_ABOUT, scope.conversation or ""), None)
    lost = [item for item in found if await _is_lost(engine, scope, item, turn_id)]
    await _write(engine, scope, [ItemWrite(item.namespace, item.key, None) for item in lost])


async def _is_lost(engine: "Engine", scope: Scope, item: StoredItem, turn_id: str | None) -> bool:
    if item.namespace[-1] == _NOTES:
        note = _note(item, scope)
        if note.subject == "turn":
            return note.id == turn_id
        return not await _exists(engine, scope, note.id)
    return not await _exists(engine, scope, item.key)


async def forget_rows(engine: "Engine", scope: Scope) -> None:
    """Remove a user's or a conversation's rows from the experiments of the tenant and of the user."""
    if scope.user is None and scope.conversation is None:
        return
    now = engine.clock.now()
    for owner in {Scope(scope.tenant), _owner(scope)}:
        writes: list[ItemWrite] = []
        for item in await engine.store.items.under(owner, EXPERIMENTS, now=now):
            value = cast("dict[str, Any]", item.value)
            rows = [row for row in value["rows"] if not _home(scope.tenant, row).within(scope)]
            if gone := len(value["rows"]) - len(rows):
                left: JsonObject = {**value, "rows": rows, "total": value["total"] - gone}
                writes.append(ItemWrite(EXPERIMENTS, item.key, left))
        await _write(engine, owner, writes)


def _home(tenant: str, row: dict[str, str]) -> Scope:
    return Scope(tenant, row["user_id"], row["conversation_id"])


async def _exists(engine: "Engine", scope: Scope, call_id: str) -> bool:
    try:
        await engine.store.calls.get(Scope(scope.tenant), call_id)
    except NotFoundError:
        return False
    return True


# -- items -----------------------------------------------------------------------------------------------------------------


def _owner(scope: Scope) -> Scope:
    return Scope(scope.tenant, scope.user)


def _namespace(scope: Scope, kind: str) -> Namespace:
    return (*_ABOUT, checked_id(scope.conversation, "conversation id"), kind)


async def _under(engine: "Engine", scope: Scope, prefix: Namespace, limit: int | None) -> list[StoredItem]:
    now = engine.clock.now()
    return await engine.store.items.under(_owner(scope), prefix, now=now, limit=limit)


async def _write(engine: "Engine", scope: Scope, writes: Sequence[ItemWrite]) -> None:
    if writes:
        await engine.store.items.write(_owner(scope), writes, now=engine.clock.now())
