"""Export and import: a memory as JSON lines, one record a line, readable without Pagefile.

The first line says what the file is. Lines of one conversation stand together, in order. An import keeps ids, order, times
and checkpoints; what is there already is left as it is.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Literal, cast

import anyio
import anyio.to_thread

from pagefile.errors import HandleNotFoundError, PagefileError, StoreUnavailableError, TransferError
from pagefile.ports import EntryQuery, HeadQuery, PageDraft, Store
from pagefile.records import Checkpoint, Entry, Fact, Head, JsonValue, Page, Reset, Scope, Step, Turn, utc
from pagefile.text.passages import split

FORMAT = "pagefile-export"
VERSION = 1

_BATCH = 500
_KINDS: frozenset[Literal["turn", "checkpoint", "reset"]] = frozenset({"turn", "checkpoint", "reset"})


# -- out ----------------------------------------------------------------------------------------------------------


async def export_to(store: Store, path: str | PathLike[str], scope: Scope) -> dict[str, int]:
    """Write everything of a scope beside the target first, then move it into place: a broken export leaves no half file."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    counts: dict[str, int] = {}
    try:
        async with await anyio.open_file(partial, "w", encoding="utf-8", newline="\n") as file:
            async for kind, line in export_lines(store, scope):
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


async def export_lines(store: Store, scope: Scope) -> AsyncGenerator[tuple[str, str]]:
    """The lines of an export, each with the kind of its record; the first says what it is."""
    yield FORMAT, _line({"type": FORMAT, "version": VERSION})
    async for record in _records(store, scope):
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


async def _pages(store: Store, scope: Scope) -> AsyncIterator[tuple[Page, str]]:
    after: str | None = None
    while True:
        pages = await store.pages.list(scope, limit=_BATCH, after=after)
        for page in pages:
            if page.purged is None:
                yield await store.pages.load(scope, page.uuid)
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


@dataclass(slots=True)
class _Incoming:
    """The conversation whose lines are being read."""

    scope: Scope | None = None
    entries: list[Entry] = field(default_factory=list[Entry])
    #: Ids of the facts that were there, by user.
    facts: dict[Scope, set[str]] = field(default_factory=dict[Scope, set[str]])


async def import_from(
    store: Store, path: str | PathLike[str], tenant: str, *, called: str | None = None
) -> dict[str, int]:
    """Read an export line by line; each conversation is written in one piece. `called` is what errors call the file."""
    name = repr(str(path)) if called is None else called
    counts: dict[str, int] = {}
    incoming = _Incoming()
    number = 0
    try:
        async with await anyio.open_file(path, encoding="utf-8") as file:
            async for line in file:
                number += 1
                record = _parsed(line, number)
                if number > 1:
                    await _take(store, tenant, record, incoming, counts)
            await _write(store, incoming, counts)
    except UnicodeDecodeError as error:
        raise TransferError(
            f"{name} is not UTF-8 text near line {number + 1}: it is not a Pagefile export."
        ) from error
    except OSError as error:
        raise TransferError(f"Cannot read {name}: {error}.") from error
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, PagefileError):
            raise
        raise TransferError(
            f"Line {number} of {name} is damaged ({error!r}); lines before it were imported."
        ) from error
    if number == 0:
        raise TransferError(f"{name} is empty: it is not a Pagefile export.")
    return counts


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
    if number == 1 and found.get("version") != VERSION:
        raise TransferError(
            f"The export has version {found.get('version')!r}, this Pagefile reads {VERSION}: upgrade Pagefile."
        )
    return found


async def _take(
    store: Store, tenant: str, record: dict[str, JsonValue], incoming: _Incoming, counts: dict[str, int]
) -> None:
    match record["type"]:
        case "conversation":
            await _write(store, incoming, counts)
            incoming.scope = Scope(tenant, _text_or_none(record["user_id"]), str(record["id"]))
        case "page":
            await _take_page(store, *_page(record, tenant), counts)
        case "fact":
            await _take_fact(store, _fact(record, tenant), incoming, counts)
        case "turn" | "checkpoint" | "reset":
            if incoming.scope is None:
                raise TransferError(
                    f"A {record['type']} stands before any conversation: the file is damaged."
                )
            incoming.entries.append(_entry(record, incoming.scope))
        case unknown:
            raise TransferError(f"The export has a record of the unknown type {unknown!r}: upgrade Pagefile.")


async def _take_page(store: Store, page: Page, text: str, counts: dict[str, int]) -> None:
    try:
        await store.page_keeper.page(page.scope, page.uuid)
    except HandleNotFoundError:
        spans = tuple((passage.start, passage.end) for passage in split(text))
        await store.pages.put(PageDraft(page, text, spans))
        counts["page"] = counts.get("page", 0) + 1


async def _take_fact(store: Store, fact: Fact, incoming: _Incoming, counts: dict[str, int]) -> None:
    known = incoming.facts.get(fact.scope)
    if known is None:
        known = {held.id for held in await store.facts.list(fact.scope, retracted=True)}
        incoming.facts[fact.scope] = known
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
    fields = _fields(record, scope)
    match record["type"]:
        case "turn":
            steps = cast("list[dict[str, JsonValue]]", record["steps"])
            fields["steps"] = tuple(Step(**step) for step in steps)  # pyright: ignore[reportArgumentType] - likewise
            return Turn(**fields)  # pyright: ignore[reportArgumentType] - a wrong field raises, and the line is reported
        case "checkpoint":
            return Checkpoint(**fields)  # pyright: ignore[reportArgumentType] - likewise
        case _:
            return Reset(**fields)  # pyright: ignore[reportArgumentType] - likewise


def _fact(record: dict[str, JsonValue], tenant: str) -> Fact:
    fields = _fields(record, Scope(tenant, _text_or_none(record["user_id"])))
    return Fact(**fields)  # pyright: ignore[reportArgumentType] - a wrong field raises, and the line is reported


def _page(record: dict[str, JsonValue], tenant: str) -> tuple[Page, str]:
    text = str(record.pop("text"))
    scope = Scope(tenant, _text_or_none(record["user_id"]), _text_or_none(record["conversation_id"]))
    return Page(**_fields(record, scope)), text  # pyright: ignore[reportArgumentType] - likewise


_TIMES = frozenset(
    {"at", "created", "valid_from", "valid_to", "recorded", "retracted", "last_load", "purged"}
)
_TUPLES = frozenset({"anchors", "archive_refs", "sources"})


def _fields(record: dict[str, JsonValue], scope: Scope) -> dict[str, object]:
    left_out = {"type", "user_id", "conversation_id"}
    fields: dict[str, object] = {key: value for key, value in record.items() if key not in left_out}
    for key in fields.keys() & _TIMES:
        fields[key] = None if fields[key] is None else utc(datetime.fromisoformat(str(fields[key])))
    for key in fields.keys() & _TUPLES:
        fields[key] = tuple(cast("list[str]", fields[key]))
    return fields | {"scope": scope}


def _text_or_none(value: JsonValue) -> str | None:
    return None if value is None else str(value)
