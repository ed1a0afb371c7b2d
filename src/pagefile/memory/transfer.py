"""Export and import: a memory as JSON lines, one record a line, readable without Pagefile.

The first line says what the file is. Lines of one conversation stand together, in order. An import keeps ids, order, times
and checkpoints; what is there already is left as it is.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from math import isfinite
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import anyio
import anyio.to_thread
import numpy as np

from pagefile.errors import (
    HandleNotFoundError,
    InvalidTurnError,
    PagefileError,
    StoreUnavailableError,
    TransferError,
)
from pagefile.memory.asking import MAX_INT
from pagefile.memory.drafts import checked_json
from pagefile.ports import (
    Clock,
    EntryQuery,
    HeadQuery,
    ItemKey,
    KeptItem,
    PageDraft,
    Store,
    StoredItem,
)
from pagefile.records import (
    Checkpoint,
    Entry,
    Fact,
    Head,
    JsonObject,
    JsonValue,
    Page,
    Reset,
    Scope,
    Step,
    Turn,
    checked_id,
    checked_text,
    utc,
)
from pagefile.stores.rules import check_whole, restoration
from pagefile.text.passages import split
from pagefile.tiers.archive import checked_uuid

FORMAT = "pagefile-export"
VERSION = 1

_BATCH = 500
#: Editors put a mark before the first line.
_ENCODING = "utf-8-sig"
R = TypeVar("R")
_KINDS: frozenset[Literal["turn", "checkpoint", "reset"]] = frozenset({"turn", "checkpoint", "reset"})


# -- out ----------------------------------------------------------------------------------------------------------


async def export_to(store: Store, path: str | PathLike[str], scope: Scope, *, clock: Clock) -> dict[str, int]:
    """Write everything of a scope beside the target first, then move it into place: a broken export leaves no half file."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    counts: dict[str, int] = {}
    try:
        async with await anyio.open_file(partial, "w", encoding="utf-8", newline="\n") as file:
            async for kind, line in export_lines(store, scope, clock=clock):
                if kind != FORMAT:
                    counts[kind] = counts.get(kind, 0) + 1
                await file.write(line)
        await anyio.to_thread.run_sync(partial.replace, target)
    except OSError as error:
        raise StoreUnavailableError(f"Cannot write the export to {str(target)!r}: {error}.") from error
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.Path(partial).unlink(missing_ok=True)
    return counts


async def export_lines(store: Store, scope: Scope, *, clock: Clock) -> AsyncGenerator[tuple[str, str]]:
    """The lines of an export, each with the kind of its record; the first says what it is.

    A new kind stands behind all others, and the version stays: whoever does not know it reads what they know, and then says
    that they must upgrade.
    """
    yield FORMAT, _line({"type": FORMAT, "version": VERSION})
    async for record in _records(store, scope):
        yield str(record["type"]), _line(record)
    if scope.conversation is None:
        async for record in _items(store, scope, clock):
            yield str(record["type"]), _line(record)


async def _records(store: Store, scope: Scope) -> AsyncIterator[dict[str, JsonValue]]:
    after: str | None = None
    while True:
        heads = await store.reader.heads(HeadQuery(scope, _BATCH, after))
        for head in heads:
            async for record in _conversation_records(store, head):
                yield record
        if len(heads) < _BATCH:
            break
        after = heads[-1].scope.conversation
    if scope.conversation is None:
        for fact in await store.facts.list(Scope(scope.tenant, scope.user), retracted=True):
            yield _dumped("fact", fact)


async def _conversation_records(store: Store, head: Head) -> AsyncIterator[dict[str, JsonValue]]:
    yield {
        "type": "conversation",
        "id": head.scope.conversation,
        "user_id": head.scope.user,
        "agent": head.agent,
    }
    async for page, text in _pages(store, head.scope):
        yield _dumped("page", page) | {"text": text}
    after, seen_open = 0, False
    while not seen_open:
        entries = await store.reader.entries(
            EntryQuery(head.scope, kinds=_KINDS, after_seq=after, limit=_BATCH)
        )
        for entry in entries:
            yield _dumped(type(entry).__name__.lower(), entry)
        if len(entries) < _BATCH:
            return
        last = entries[-1].seq
        seen_open = last is None
        after = last or after


async def _items(store: Store, scope: Scope, clock: Clock) -> AsyncIterator[dict[str, JsonValue]]:
    """What others keep here, of a user or of everybody in the tenant, with what it is found by."""
    for owner in await store.items.owners(scope.tenant):
        if scope.user not in (None, owner.user):
            continue
        after: ItemKey | None = None
        while items := await store.items.kept(owner, now=clock.now(), after=after, limit=_BATCH):
            for kept in items:
                yield _dumped_item(kept, owner)
            after = items[-1].item.place


def _dumped_item(kept: KeptItem, owner: Scope) -> dict[str, JsonValue]:
    rows = kept.vectors
    return {
        "type": "item",
        "user_id": owner.user,
        **{name: _plain(value) for name, value in asdict(kept.item).items()},
        "maker": kept.maker,
        "dimension": None if rows is None else rows.shape[1],
        "vectors": None if rows is None else b64encode(rows.astype("<f4").tobytes()).decode(),
    }


async def _pages(store: Store, scope: Scope) -> AsyncIterator[tuple[Page, str]]:
    """The pages of a conversation; a purged one has no text, and says when that went."""
    after: str | None = None
    while True:
        pages = await store.pages.list(scope, limit=_BATCH, after=after)
        for page in pages:
            yield (page, "") if page.purged is not None else await store.pages.load(scope, page.uuid)
        if len(pages) < _BATCH:
            return
        after = pages[-1].uuid


def _dumped(kind: str, record: Entry | Fact | Page) -> dict[str, JsonValue]:
    fields = cast("dict[str, object]", asdict(record))
    scope = cast("dict[str, str | None]", fields.pop("scope"))
    fields.pop("outcome", None)  # of the call that wrote a fact, not of the fact
    fields = {"type": kind, "user_id": scope["user"], "conversation_id": scope["conversation"]} | fields
    return {key: _plain(value) for key, value in fields.items()}


def _plain(value: object) -> JsonValue:
    return value.isoformat() if isinstance(value, datetime) else cast("JsonValue", value)


def _line(record: Mapping[str, JsonValue]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


# -- in -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Owned:
    """An item of somebody's."""

    owner: Scope
    item: KeptItem


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A record of a kind that came later than this reader."""

    what: str


#: What a line stands for: a conversation that begins, or something of it, or of a user.
_Record: TypeAlias = Scope | Entry | Fact | _Owned | _Unknown | tuple[Page, str]


@dataclass(slots=True)
class _Incoming:
    """The conversation whose lines are being read."""

    clock: Clock
    scope: Scope | None = None
    entries: list[Entry] = field(default_factory=list[Entry])
    #: Ids of the facts that were there, by user.
    facts: dict[Scope, set[str]] = field(default_factory=dict[Scope, set[str]])
    #: Items that wait to be written, and whose they are.
    owner: Scope | None = None
    items: list[KeptItem] = field(default_factory=list[KeptItem])
    #: The first line that could not be understood.
    unknown: _Unknown | None = None


async def import_from(
    store: Store, path: str | PathLike[str], tenant: str, *, clock: Clock, called: str | None = None
) -> dict[str, int]:
    """Read an export line by line; each conversation is written in one piece. `called` is what errors call the file.

    It is read to its end first: nothing of a file is written that has a damaged line. A kind of record that is not known yet
    is no damage: it is passed over, and told in the end.
    """
    name = repr(str(path)) if called is None else called
    await anyio.to_thread.run_sync(_check, path, tenant, name)
    counts: dict[str, int] = {}
    incoming, reader = _Incoming(clock), _Reader(tenant, name)
    try:
        async with await anyio.open_file(path, encoding=_ENCODING) as file:
            async for line in file:
                await _take(store, reader.read(line), incoming, counts)
            await _write(store, incoming, counts)
            await _write_items(store, incoming, counts)
    except (OSError, UnicodeDecodeError) as error:
        raise reader.unreadable(error) from error
    if incoming.unknown is not None:
        raise TransferError(f"{incoming.unknown.what}: upgrade Pagefile; all that is known was imported.")
    return counts


def _check(path: str | PathLike[str], tenant: str, name: str) -> None:
    reader = _Reader(tenant, name)
    entries: list[Entry] = []
    try:
        with Path(path).open(encoding=_ENCODING) as file:
            for line in file:
                record = reader.read(line)
                if isinstance(record, Scope):
                    _check_whole(entries, name)
                    entries = []
                elif isinstance(record, Entry):
                    entries.append(record)
        _check_whole(entries, name)
    except (OSError, UnicodeDecodeError) as error:
        raise reader.unreadable(error) from error
    if reader.number == 0:
        raise TransferError(f"{name} is empty: it is not a Pagefile export.")


def _check_whole(entries: Sequence[Entry], name: str) -> None:
    """A conversation in an export has all of its entries."""
    try:
        check_whole(restoration(entries).ended if entries else ())
    except InvalidTurnError as error:
        scope = entries[0].scope
        raise TransferError(
            f"The conversation {scope.conversation!r} in {name} is damaged ({error}); nothing of the file was imported."
        ) from error


class _Reader:
    """From lines to records; a line that cannot be read is named."""

    def __init__(self, tenant: str, name: str) -> None:
        self._tenant = tenant
        self._name = name
        self._scope: Scope | None = None
        self.number = 0

    def read(self, line: str) -> _Record | None:
        """What a line says; None for the first, which only says what the file is."""
        self.number += 1
        try:
            record = _parsed(line, self.number)
            return None if self.number == 1 else self._record(record)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
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

    def _record(self, record: dict[str, JsonValue]) -> _Record:
        match record["type"]:
            case "conversation":
                self._scope = Scope(self._tenant, _id_or_none(record["user_id"]), _id(record["id"]))
                return self._scope
            case "page":
                return _page(record, self._tenant)
            case "fact":
                return _fact(record, self._tenant)
            case "item":
                return _Owned(Scope(self._tenant, _id_or_none(record["user_id"])), _item(record))
            case "turn" | "checkpoint" | "reset":
                if self._scope is None:
                    raise TransferError(
                        f"A {record['type']} stands before any conversation: the file is damaged."
                    )
                return _entry(record, self._scope)
            case str() as unknown:
                return _Unknown(f"Line {self.number} is a record of the unknown type {unknown[:80]!r}")
            case other:
                raise ValueError(f"type is {str(other)[:80]}")


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


async def _take(store: Store, record: _Record | None, incoming: _Incoming, counts: dict[str, int]) -> None:
    match record:
        case None:
            pass
        case Scope():
            await _write(store, incoming, counts)
            incoming.scope = record
        case Fact():
            # A fact comes behind the turn it was read in: one that is refused must not leave the fact behind.
            await _write(store, incoming, counts)
            await _take_fact(store, record, incoming, counts)
        case _Owned():
            await _write(store, incoming, counts)
            await _take_item(store, record, incoming, counts)
        case _Unknown():
            incoming.unknown = incoming.unknown or record
        case (page, text):
            await _take_page(store, page, text, counts)
        case _:
            incoming.entries.append(record)


async def _take_page(store: Store, page: Page, text: str, counts: dict[str, int]) -> None:
    try:
        await store.page_keeper.page(page.scope, page.uuid)
    except HandleNotFoundError:
        spans = tuple((passage.start, passage.end) for passage in split(text))
        await store.pages.put(PageDraft(page, text, spans))
        counts["page"] = counts.get("page", 0) + 1


async def _take_item(store: Store, record: _Owned, incoming: _Incoming, counts: dict[str, int]) -> None:
    if incoming.owner != record.owner or len(incoming.items) >= _BATCH:
        await _write_items(store, incoming, counts)
    incoming.owner = record.owner
    incoming.items.append(record.item)


async def _write_items(store: Store, incoming: _Incoming, counts: dict[str, int]) -> None:
    if incoming.owner is not None and incoming.items:
        new = await store.items.restore(incoming.owner, incoming.items, now=incoming.clock.now())
        counts["item"] = counts.get("item", 0) + new
    incoming.items = []


async def _take_fact(store: Store, fact: Fact, incoming: _Incoming, counts: dict[str, int]) -> None:
    owner = Scope(fact.scope.tenant, fact.scope.user)
    known = incoming.facts.get(owner)
    if known is None:
        known = {held.id for held in await store.facts.list(owner, retracted=True)}
        incoming.facts[owner] = known
    if fact.id not in known:
        await store.facts.put(fact)
        known.add(fact.id)
        counts["fact"] = counts.get("fact", 0) + 1


async def _write(store: Store, incoming: _Incoming, counts: dict[str, int]) -> None:
    if incoming.scope is not None and incoming.entries:
        there = await store.reader.heads(
            HeadQuery(Scope(incoming.scope.tenant, None, incoming.scope.conversation), 1)
        )
        counts["conversation"] = counts.get("conversation", 0) + (not there)
        counts["entry"] = counts.get("entry", 0) + await store.log.restore(incoming.entries)
    incoming.scope, incoming.entries = None, []


def _entry(record: dict[str, JsonValue], scope: Scope) -> Entry:
    match record["type"]:
        case "turn":
            steps = [_checked(Step, step) for step in cast("list[dict[str, object]]", record["steps"])]
            return _checked(Turn, {**_fields(record, scope), "steps": tuple(steps)})
        case "checkpoint":
            return _checked(Checkpoint, _fields(record, scope))
        case _:
            return _checked(Reset, _fields(record, scope))


def _fact(record: dict[str, JsonValue], tenant: str) -> Fact:
    scope = Scope(tenant, _id(record["user_id"]), _id_or_none(record["conversation_id"]))
    return _checked(Fact, _fields(record, scope))


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
    for known in fields(kind):  # pyright: ignore[reportArgumentType] - records are dataclasses
        if known.name in given and not _fits(known.type, given[known.name], known.name):
            raise ValueError(f"{known.name} is {repr(given[known.name])[:80]}")
    return kind(**given)


def _fits(kind: object, value: object, name: str) -> bool:
    """Whether a value may stand in a field of this type."""
    if kind in (JsonValue, JsonObject):
        checked_json(value, name)
        return kind is not JsonObject or isinstance(value, Mapping)
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(one, value, name) for one in get_args(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(
            _fits(get_args(kind)[0], inner, name) for inner in cast("tuple[object, ...]", value)
        )
    if isinstance(value, str):
        _id(value) if name == "id" else checked_text(value, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return isinstance(value, cast("type", kind))
    if name == "ttl_s":
        return value > 0 and isfinite(value)
    # Other numbers count something, or are a share: `confidence`, which a whole number may stand for.
    if kind is float:
        return 0 <= value <= 1
    return kind is int and isinstance(value, int) and 0 <= value <= MAX_INT


def _id(value: object) -> str:
    return checked_id(value, "id")


def _id_or_none(value: object) -> str | None:
    return None if value is None else _id(value)
