"""Export: a memory as JSON lines, one record per line, readable without Pagefile.

The first line identifies the format. The lines of a conversation are consecutive and in order, and so are
those of a user. The schema of each line is in `export_lines`.
"""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import anyio
import anyio.to_thread

from pagefile import ports, records
from pagefile.content import JsonValue, media_in
from pagefile.damage import kind_of, note_damage
from pagefile.engine import export_lines as lines
from pagefile.engine.engine import Engine
from pagefile.engine.log_queries import KINDS, all_items, all_pages, entries_of, facts_of, heads_of
from pagefile.errors import NotFoundError, StoreCorruptError, StoreUnavailableError
from pagefile.ports import KeptItem, labels_of
from pagefile.record_json import to_json
from pagefile.shapes.media import note
from pagefile.tiers.facts import TIER

Json: TypeAlias = dict[str, JsonValue]
T = TypeVar("T")

_BATCH = 500
#: More calls than are kept of any conversation.
_ALL = 1_000_000
#: Fields added after the first exports: omitted if empty, so that earlier versions can read the line.
_LATER = ("project", "agent", "layout", "thread_id")
#: The lines that have the fields of a record.
_LINES: Mapping[str, type[lines.Line[Any]]] = {
    "turn": lines.TurnLine,
    "checkpoint": lines.CheckpointLine,
    "reset": lines.ResetLine,
    "page": lines.PageLine,
    "call": lines.CallLine,
    "fact": lines.FactLine,
}


async def export_to(engine: Engine, path: str | PathLike[str], scope: records.Scope) -> dict[str, int]:
    """Write a scope to a file; returns how many records of each kind."""
    counts: Counter[str] = Counter()
    async with written_whole(Path(path)) as file:
        async for kind, line in export_lines(engine, scope):
            counts[kind] += kind != lines.FORMAT
            await file.write(line)
    return dict(+counts)


@asynccontextmanager
async def written_whole(target: Path) -> AsyncGenerator[anyio.AsyncFile[str]]:
    """A temporary file beside the target, moved into place when complete: a failed export leaves no partial file."""
    partial = target.with_name(target.name + ".partial")
    try:
        async with await anyio.open_file(partial, "w", encoding="utf-8", newline="\n") as file:
            yield file
        await anyio.to_thread.run_sync(partial.replace, target)
    except OSError as error:
        raise StoreUnavailableError(f"Cannot write the export to {str(target)!r}: {error}.") from error
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.Path(partial).unlink(missing_ok=True)


async def export_lines(engine: Engine, scope: records.Scope) -> AsyncGenerator[tuple[str, str]]:
    """The lines of an export, each with the kind of its record; the first identifies the format.

    A new kind does not change the version: older readers import what they know, and ask for an upgrade.
    """
    await engine.write_calls()
    # The command imports into the tenant that the file is from.
    whose = {} if scope.tenant == records.DEFAULT_TENANT else {"tenant": scope.tenant}
    yield lines.FORMAT, line_of({"type": lines.FORMAT, "version": lines.VERSION, **whose})
    async for record in _records(engine.store, scope, engine.clock):
        yield str(record["type"]), line_of(record)


async def _records(store: ports.Store, scope: records.Scope, clock: ports.Clock) -> AsyncIterator[Json]:
    alone = scope.conversation is not None
    async for head in heads_of(store.reader, scope):
        async for record in _conversation_records(store, head, alone=alone):
            yield record
    for owner in () if alone else await store.facts.owners(scope.tenant):
        if scope.user in (None, owner.user):
            facts, revisions, _ = await facts_of(store.facts, owner)
            for fact in facts:
                yield dumped("fact", fact)
            for revision in revisions:
                yield dumped_revision(revision)
    for owner in () if alone else await store.items.owners(scope.tenant):
        if scope.user in (None, owner.user):
            async for kept in all_items(store.items, owner, clock.now()):
                yield dumped_item(kept, owner)
    # Windows of conversations without an owner, from before asking for a window claimed the conversation.
    for place in await store.calls.loose(scope.tenant):
        if place.within(scope):
            for call in reversed(await store.calls.list(place, limit=_ALL)):
                yield dumped("call", call)


async def _conversation_records(
    store: ports.Store, head: records.ConversationInfo, *, alone: bool
) -> AsyncIterator[Json]:
    """All lines of a conversation; with `alone`, the facts read in it are not exported."""
    scope = head.scope
    labels = {name: value for name, value in asdict(labels_of(head)).items() if value is not None}
    whose: Json = {"id": scope.conversation, "user_id": scope.user, "agent": head.agent}
    yield {"type": "conversation", **whose, **labels}
    session, calls = await _beside(store, scope)
    if session is not None:
        yield dumped_beside("session", scope, value=session)
    async for page in all_pages(store.pages, scope):
        # A purged one has no text, only the time of its purge.
        whole = (
            (page, "")
            if page.purged is not None
            else await _readable(scope, store.pages.load(scope, page.uuid))
        )
        if whole is not None:
            yield dumped("page", page) | {"text": whole[1]}
    shown: set[str] = set()
    entries = ports.EntryQuery(scope, frozenset(KINDS), limit=_BATCH)
    async for entry in entries_of(store.reader, entries):
        async for media in _media(store, entry, shown):
            yield media
        yield dumped(type(entry).__name__.lower(), entry)
    for call in calls:
        yield dumped("call", replace(call, scope=scope))
    read = (await store.watermarks.known(scope, TIER)).get(scope.conversation or "", 0)
    if read and not alone:
        # Facts must not be extracted from the same turns again: a retracted one would come back.
        yield dumped_beside("watermark", scope, tier=TIER, seq=read)


async def _media(store: ports.Store, entry: records.Entry, shown: set[str]) -> AsyncIterator[Json]:
    """The images and files that first appear in this turn; those whose bytes are missing are named."""
    for media in media_in(entry.messages) if isinstance(entry, records.Turn) else ():
        if media.blob is not None and media.blob not in shown:
            shown.add(media.blob)
            try:
                data = b64encode(await store.media.load(entry.scope, media.blob)).decode()
                yield dumped_beside("media", entry.scope, hash=media.blob, data=data)
            except NotFoundError:
                # A turn may have been imported without them, which is no reason to withhold its text.
                about = {"turn_id": entry.id, "hash": media.blob, "what": note(media)}
                yield dumped_beside("missing", entry.scope, **about)


async def _beside(
    store: ports.Store, scope: records.Scope
) -> tuple[records.JsonObject | None, Sequence[records.WindowRecord]]:
    """What is stored beside a log: its session, and its owner's calls, oldest first."""
    calls = await _readable(scope, store.calls.list(scope, limit=_ALL)) or []
    return await _readable(scope, store.sessions.get(scope)), calls[::-1]


async def _readable(scope: records.Scope, work: Awaitable[T]) -> T | None:
    """What was read; None if it is damaged, which is noted: the rest is exported."""
    try:
        return await work
    except (*ports.UNREADABLE, StoreCorruptError) as error:
        where = {"tenant": scope.tenant, "user": scope.user, "conversation": scope.conversation}
        note_damage("export", where, kind_of(error))
        return None


# -- lines -------------------------------------------------------------------------------------------------------------


def dumped(kind: str, record: records.Entry | records.Fact | records.Page | records.WindowRecord) -> Json:
    """The fields of its line, as the record has them everywhere."""
    given = cast("Json", to_json(record))
    known = {name: given[name] for name in _LINES[kind].model_fields if name in given}
    # The outcome belongs to the call that wrote a fact, not to the fact.
    absent = {"outcome", *(name for name in _LATER if known.get(name) is None)}
    return {"type": kind, **{name: value for name, value in known.items() if name not in absent}}


def dumped_beside(kind: str, scope: records.Scope, **more: JsonValue) -> Json:
    return {"type": kind, "user_id": scope.user, "conversation_id": scope.conversation, **more}


def dumped_revision(revision: records.Revision) -> Json:
    pairs = zip(revision.before, revision.after, strict=True)
    given = cast("Json", to_json(revision))
    return {
        "type": "revision",
        **{name: given[name] for name in ("user_id", "number", "at", "action")},
        "facts": [{"before": was and _fact_json(was), "after": _fact_json(became)} for was, became in pairs],
    }


def _fact_json(fact: records.Fact) -> Json:
    """A fact within its revision, which names the user."""
    return {key: value for key, value in dumped("fact", fact).items() if key not in {"type", "user_id"}}


def dumped_item(kept: KeptItem, owner: records.Scope) -> Json:
    rows = kept.vectors
    return {
        "type": "item",
        "user_id": owner.user,
        **cast("Json", to_json(kept.item)),
        "maker": kept.model,
        "dimension": None if rows is None else rows.shape[1],
        "vectors": None if rows is None else b64encode(rows.astype("<f4").tobytes()).decode(),
    }


def line_of(record: Mapping[str, JsonValue]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
