"""Export and import: a memory as JSON lines, one record per line, readable without Pagefile.

The first line identifies the format. The lines of a conversation are consecutive and in order, and so are
those of a user. An import keeps ids, order, times, checkpoints, sessions, recorded calls and the history of
facts; existing data is left as it is.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Literal, TypeVar

import anyio
import anyio.to_thread

from pagefile.content import media_in
from pagefile.engine.export_lines import FORMAT, VERSION, MediaLine, SessionLine, WatermarkLine
from pagefile.engine.transfer_lines import (
    Begun,
    Beside,
    Owned,
    Reader,
    Record,
    Unknown,
    dumped,
    dumped_beside,
    dumped_conversation,
    dumped_item,
    dumped_revision,
    last_place,
    line_of,
)
from pagefile.errors import (
    HandleNotFoundError,
    InvalidArgumentError,
    NotFoundError,
    StoreCorruptError,
    StoreUnavailableError,
    TransferError,
)
from pagefile.ports import (
    NO_LABELS,
    UNREADABLE,
    Clock,
    ConversationQuery,
    EntryQuery,
    ItemKey,
    KeptItem,
    Labels,
    PageDraft,
    Store,
)
from pagefile.records import (
    Checkpoint,
    ConversationInfo,
    Entry,
    Fact,
    JsonObject,
    JsonValue,
    Page,
    Reset,
    Revision,
    Scope,
    Turn,
    WindowRecord,
)
from pagefile.shapes import note
from pagefile.stores.rules import check_whole, restoration
from pagefile.stores.sql.facts import restored
from pagefile.text.passages import split
from pagefile.tiers.facts import TIER

K = TypeVar("K")
T = TypeVar("T")

_BATCH = 500
#: More calls than are kept of any conversation.
_ALL = 1_000_000
#: How often a user's facts are read again because they changed meanwhile.
_MOST_ATTEMPTS = 16
#: Some editors put a byte order mark before the first line.
_ENCODING = "utf-8-sig"
_KINDS: frozenset[Literal["turn", "checkpoint", "reset"]] = frozenset({"turn", "checkpoint", "reset"})


# -- out ----------------------------------------------------------------------------------------------------------


async def export_to(store: Store, path: str | PathLike[str], scope: Scope, *, clock: Clock) -> dict[str, int]:
    """Write a scope to a file; returns how many records of each kind."""
    counts: Counter[str] = Counter()
    async with written_whole(Path(path)) as file:
        async for kind, line in export_lines(store, scope, clock=clock):
            counts[kind] += kind != FORMAT
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


async def export_lines(store: Store, scope: Scope, *, clock: Clock) -> AsyncGenerator[tuple[str, str]]:
    """The lines of an export, each with the kind of its record; the first identifies the format.

    A new kind does not change the version: an older reader imports what it knows, and then asks for an
    upgrade.
    """
    yield FORMAT, line_of({"type": FORMAT, "version": VERSION})
    async for record in _records(store, scope, clock):
        yield str(record["type"]), line_of(record)


async def _records(store: Store, scope: Scope, clock: Clock) -> AsyncIterator[dict[str, JsonValue]]:
    def heads(after: str | None) -> Awaitable[Sequence[ConversationInfo]]:
        return store.reader.heads(ConversationQuery(scope, _BATCH, after))

    async for head in _paged(heads, lambda head: head.scope.conversation):
        async for record in _conversation_records(store, head, alone=scope.conversation is not None):
            yield record
    if scope.conversation is None:
        async for record in _facts(store, scope):
            yield record
        async for record in _items(store, scope, clock):
            yield record
    async for record in _loose_calls(store, scope):
        yield record


async def _paged(
    fetch: Callable[[K | None], Awaitable[Sequence[T]]], place: Callable[[T], K | None]
) -> AsyncIterator[T]:
    """All items of a list that is read in batches; `place` is what the next batch comes after."""
    after: K | None = None
    while True:
        batch = await fetch(after)
        for one in batch:
            yield one
        if len(batch) < _BATCH or (after := place(batch[-1])) is None:
            return


async def _conversation_records(
    store: Store, head: ConversationInfo, *, alone: bool
) -> AsyncIterator[dict[str, JsonValue]]:
    """All lines of a conversation; with `alone`, the facts read in it are not exported."""
    scope = head.scope
    yield dumped_conversation(head)
    session, calls = await _beside(store, scope)
    if session is not None:
        yield dumped_beside("session", scope, value=session)
    async for page, text in _pages(store, scope):
        yield dumped("page", page) | {"text": text}
    shown: set[str] = set()
    async for entry in _entries(store, scope):
        async for media in _media(store, entry, shown):
            yield media
        yield dumped(type(entry).__name__.lower(), entry)
    for call in calls:
        yield dumped("call", replace(call, scope=scope))
    read = (await store.watermarks.known(scope, TIER)).get(scope.conversation or "", 0)
    if read and not alone:
        # Facts must not be extracted from the same turns again: a retracted one would come back.
        yield dumped_beside("watermark", scope, tier=TIER, seq=read)


async def _media(store: Store, entry: Entry, shown: set[str]) -> AsyncIterator[dict[str, JsonValue]]:
    """The images and files that first appear in this turn; those whose bytes are missing are named."""
    for media in media_in(entry.messages) if isinstance(entry, Turn) else ():
        if media.blob is not None and media.blob not in shown:
            shown.add(media.blob)
            try:
                data = b64encode(await store.media.load(entry.scope, media.blob)).decode()
                yield dumped_beside("media", entry.scope, hash=media.blob, data=data)
            except NotFoundError:
                # A turn may have been imported without them, which is no reason to withhold its text.
                about = {"turn_id": entry.id, "hash": media.blob, "what": note(media)}
                yield dumped_beside("missing", entry.scope, **about)


async def _beside(store: Store, scope: Scope) -> tuple[JsonObject | None, Sequence[WindowRecord]]:
    """What is stored beside a log: its session, and its owner's calls, oldest first."""
    try:
        calls = await store.calls.list(scope, limit=_ALL)
        return await store.sessions.get(scope), calls[::-1]
    except UNREADABLE as error:
        raise StoreCorruptError(
            f"What belongs to conversation {scope.conversation!r} cannot be read ({error!r}): `pagefile verify` says more."
        ) from error


def _entries(store: Store, scope: Scope) -> AsyncIterator[Entry]:
    def entries(after: int | None) -> Awaitable[Sequence[Entry]]:
        query = EntryQuery(scope, kinds=_KINDS, after_seq=after or 0, limit=_BATCH)
        return store.reader.entries(query)

    # Open turns have no `seq`, and come last.
    return _paged(entries, lambda entry: entry.seq)


async def _facts(store: Store, scope: Scope) -> AsyncIterator[dict[str, JsonValue]]:
    """The facts of a user, or of everyone in the tenant, each user's with their journal."""
    for owner in await store.facts.owners(scope.tenant):
        if scope.user in (None, owner.user):
            facts, revisions = await _held(store, owner)
            for fact in facts:
                yield dumped("fact", fact)
            for revision in revisions:
                yield dumped_revision(revision)


async def _held(store: Store, owner: Scope) -> tuple[Sequence[Fact], Sequence[Revision]]:
    """What is held about a user and its journal, read consistently."""
    facts: Sequence[Fact] = ()
    revisions: Sequence[Revision] = ()
    for _ in range(_MOST_ATTEMPTS):
        stamp = await store.facts.changed(owner)
        facts = await store.facts.list(owner, retracted=True)
        revisions = await store.facts.revisions(owner)
        if await store.facts.changed(owner) == stamp:
            break
    return facts, revisions


async def _items(store: Store, scope: Scope, clock: Clock) -> AsyncIterator[dict[str, JsonValue]]:
    """Items of a user, or of everyone in the tenant, with the vectors they are searched by."""
    for owner in await store.items.owners(scope.tenant):
        if scope.user not in (None, owner.user):
            continue

        def items(after: ItemKey | None, owner: Scope = owner) -> Awaitable[Sequence[KeptItem]]:
            return store.items.kept(owner, now=clock.now(), after=after, limit=_BATCH)

        async for kept in _paged(items, lambda kept: kept.item.item_key):
            yield dumped_item(kept, owner)


async def _loose_calls(store: Store, scope: Scope) -> AsyncIterator[dict[str, JsonValue]]:
    """Windows of conversations without an owner: they date from before asking for a window claimed the conversation."""
    for place in await store.calls.loose(scope.tenant):
        if place.within(scope):
            for call in reversed(await store.calls.list(place, limit=_ALL)):
                yield dumped("call", call)


async def _pages(store: Store, scope: Scope) -> AsyncIterator[tuple[Page, str]]:
    """The pages of a conversation; a purged one has no text, only the time of its purge."""

    def pages(after: str | None) -> Awaitable[Sequence[Page]]:
        return store.pages.list(scope, limit=_BATCH, after=after)

    async for page in _paged(pages, lambda page: page.uuid):
        yield (page, "") if page.purged is not None else await store.pages.load(scope, page.uuid)


# -- in -----------------------------------------------------------------------------------------------------------


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The lines of a body with their ends. Only `\\n` ends one: texts may hold other characters that Python treats as line breaks."""
    rest: list[bytes] = []
    async for chunk in chunks:
        *whole, last = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*rest, line, b"\n"])
            rest = []
        rest.append(last)
    if any(rest):
        yield b"".join(rest)


@dataclass(slots=True)
class _Chat:
    """A conversation whose lines are being read."""

    scope: Scope
    agent: str | None
    labels: Labels = NO_LABELS
    session: JsonObject | None = None
    entries: list[Entry] = field(default_factory=list[Entry])
    calls: list[WindowRecord] = field(default_factory=list[WindowRecord])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    #: How far it was read for facts.
    read: int = 0


@dataclass(slots=True)
class _Person:
    """A user whose facts are being read."""

    facts: list[Fact] = field(default_factory=list[Fact])
    revisions: list[Revision] = field(default_factory=list[Revision])


@dataclass(slots=True)
class _Incoming:
    """What was read but not written yet."""

    store: Store
    clock: Clock
    counts: dict[str, int] = field(default_factory=dict[str, int])
    chat: _Chat | None = None
    people: dict[Scope, _Person] = field(default_factory=dict[Scope, _Person])
    #: Items and their owner.
    owner: Scope | None = None
    items: list[KeptItem] = field(default_factory=list[KeptItem])
    #: Calls of one conversation that had no owner.
    loose: list[WindowRecord] = field(default_factory=list[WindowRecord])
    #: How far conversations were read for facts; written once the facts are.
    marks: list[tuple[Scope, int]] = field(default_factory=list[tuple[Scope, int]])
    #: The first line of an unknown kind.
    unknown: Unknown | None = None

    def count(self, kind: str, new: int) -> None:
        """Add to the count of new records; kinds without new ones are omitted."""
        if new:
            self.counts[kind] = self.counts.get(kind, 0) + new


async def import_from(
    store: Store, path: str | PathLike[str], tenant: str, *, clock: Clock, called: str | None = None
) -> dict[str, int]:
    """Read an export line by line; each conversation is written atomically. `called` is the file's name in errors.

    The file is read to its end first: if any line is damaged, nothing is written. An unknown kind of record
    is not damage: it is skipped, and reported at the end.
    """
    name = repr(str(path)) if called is None else called
    await anyio.to_thread.run_sync(_check, path, tenant, name)
    incoming, reader = _Incoming(store, clock), Reader(tenant, name)
    try:
        async with await anyio.open_file(path, encoding=_ENCODING) as file:
            async for line in file:
                await _take(reader.read(line), incoming)
            await _write_all(incoming)
    except (OSError, UnicodeDecodeError) as error:
        raise reader.unreadable(error) from error
    if incoming.unknown is not None:
        raise TransferError(f"{incoming.unknown.what}: upgrade Pagefile; all that is known was imported.")
    return incoming.counts


def _check(path: str | PathLike[str], tenant: str, name: str) -> None:
    reader, seen = Reader(tenant, name), _Seen(name)
    try:
        with Path(path).open(encoding=_ENCODING) as file:
            for line in file:
                seen.take(reader.read(line), reader.number)
        seen.end()
    except (OSError, UnicodeDecodeError) as error:
        raise reader.unreadable(error) from error
    if reader.number == 0:
        raise TransferError(f"{name} is empty: it is not a Pagefile export.")


@dataclass(slots=True)
class _Seen:
    """Checks consistency within a file, for each conversation and each user, while their lines are read."""

    name: str
    entries: list[Entry] = field(default_factory=list[Entry])
    journals: dict[Scope, list[Revision]] = field(default_factory=dict[Scope, list[Revision]])
    #: The owner of each fact.
    owners: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def take(self, record: Record | None, number: int) -> None:
        match record:
            case Begun():
                _check_whole(self.entries, self.name)
                self.entries = []
            case Turn() | Checkpoint() | Reset():
                self.entries.append(record)
            case Fact():
                self._own(record, number)
            case Revision():
                for fact in record.after:
                    self._own(fact, number)
                if record.scope not in self.journals:
                    _check_journals(self.journals, self.name)
                self.journals.setdefault(record.scope, []).append(record)
            case _:
                pass

    def end(self) -> None:
        _check_whole(self.entries, self.name)
        _check_journals(self.journals, self.name)

    def _own(self, fact: Fact, number: int) -> None:
        if self.owners.setdefault(fact.id, fact.scope.user) != fact.scope.user:
            raise TransferError(
                f"The fact {fact.id!r} on line {number} of {self.name} is another user's above: the file is damaged; nothing of it "
                "was imported."
            )


def _check_whole(entries: Sequence[Entry], name: str) -> None:
    """A conversation in an export has all of its entries."""
    try:
        check_whole(restoration(entries).ended if entries else ())
    except InvalidArgumentError as error:
        scope = entries[0].scope
        raise TransferError(
            f"The conversation {scope.conversation!r} in {name} is damaged ({error}); nothing of the file was imported."
        ) from error


def _check_journals(journals: dict[Scope, list[Revision]], name: str) -> None:
    """A user's revisions are consistent; checked journals are discarded."""
    for owner, revisions in journals.items():
        try:
            restored(owner, (), revisions)
        except InvalidArgumentError as error:
            raise TransferError(
                f"The history of the facts of user {owner.user!r} in {name} is damaged ({error}); nothing of the file was imported."
            ) from error
    journals.clear()


async def _take(record: Record | None, incoming: _Incoming) -> None:
    chat = incoming.chat
    match record:
        case None:
            pass
        case Begun(scope, agent, labels):
            await _write_chat(incoming)
            incoming.chat = _Chat(scope, agent, labels)
        case Fact() | Revision():
            # A fact follows the turn it was read in: if the turn is refused, the fact must not remain.
            await _write_chat(incoming)
            await _take_fact(record, incoming)
        case Owned():
            await _write_chat(incoming)
            await _take_item(record, incoming)
        case Unknown():
            incoming.unknown = incoming.unknown or record
        case (page, text):
            await _take_page(page, text, incoming)
        case WindowRecord() if chat is None or record.scope.conversation != chat.scope.conversation:
            await _take_loose(record, incoming)
        case _:
            assert chat is not None  # the reader refuses lines outside their conversation
            _add(record, chat)


def _add(record: Beside | Entry | WindowRecord, chat: _Chat) -> None:
    match record:
        case SessionLine():
            chat.session = record.value
        case WatermarkLine():
            chat.read = record.seq
        case MediaLine():
            chat.blobs[record.hash] = record.data
        case WindowRecord():
            chat.calls.append(record)
        case _:
            chat.entries.append(record)


async def _take_page(page: Page, text: str, incoming: _Incoming) -> None:
    store = incoming.store
    try:
        await store.page_keeper.page(page.scope, page.uuid)
    except HandleNotFoundError:
        spans = tuple((passage.start, passage.end) for passage in split(text))
        await store.pages.put(PageDraft(page, text, spans))
        incoming.count("page", 1)


async def _take_fact(record: Fact | Revision, incoming: _Incoming) -> None:
    owner, people = Scope(record.scope.tenant, record.scope.user), incoming.people
    if owner not in people and sum(len(one.facts) + len(one.revisions) for one in people.values()) >= _BATCH:
        await _write_facts(incoming)
    person = people.setdefault(owner, _Person())
    if isinstance(record, Fact):
        person.facts.append(record)
    else:
        person.revisions.append(record)


async def _take_item(record: Owned, incoming: _Incoming) -> None:
    if incoming.owner != record.owner or len(incoming.items) >= _BATCH:
        await _write_items(incoming)
    incoming.owner = record.owner
    incoming.items.append(record.item)


async def _take_loose(call: WindowRecord, incoming: _Incoming) -> None:
    if incoming.loose and incoming.loose[0].scope.conversation != call.scope.conversation:
        await _write_loose(incoming)
    incoming.loose.append(call)


async def _write_all(incoming: _Incoming) -> None:
    await _write_chat(incoming)
    await _write_facts(incoming)
    await _write_items(incoming)
    await _write_loose(incoming)
    for scope, seq in incoming.marks:
        known = await incoming.store.watermarks.known(scope, TIER)
        if known.get(scope.conversation or "", 0) < seq:
            await incoming.store.watermarks.advance(scope, TIER, seq, epoch=None)
            incoming.count("watermark", 1)


async def _write_facts(incoming: _Incoming) -> None:
    for owner, person in incoming.people.items():
        facts, revisions = await incoming.store.facts.restore(owner, person.facts, person.revisions)
        incoming.count("fact", facts)
        incoming.count("revision", revisions)
    incoming.people = {}


async def _write_items(incoming: _Incoming) -> None:
    if incoming.owner is not None and incoming.items:
        new = await incoming.store.items.restore(incoming.owner, incoming.items, now=incoming.clock.now())
        incoming.counts["item"] = incoming.counts.get("item", 0) + new
    incoming.items = []


async def _write_loose(incoming: _Incoming) -> None:
    """Windows of a conversation that had no owner: if it has one here, only that owner's are imported."""
    if incoming.loose:
        owned = await incoming.store.reader.owner(incoming.loose[0].scope)
        theirs = [call for call in incoming.loose if owned in (None, call.scope)]
        if owned is None:
            await incoming.store.log.claim(theirs[0].scope)
        incoming.count("call", await incoming.store.calls.restore(theirs))
    incoming.loose = []


async def _write_chat(incoming: _Incoming) -> None:
    """A conversation: its log and its session, then what refers to positions in that log."""
    chat, incoming.chat = incoming.chat, None
    if chat is None:
        return
    store, counts = incoming.store, incoming.counts
    there = await store.reader.owner(chat.scope) is not None
    session = None if there else chat.session
    if chat.entries:
        counts["conversation"] = counts.get("conversation", 0) + (not there)
        new = await store.log.restore(
            chat.entries, agent=chat.agent, session=session, labels=chat.labels, blobs=chat.blobs
        )
        counts["entry"] = counts.get("entry", 0) + new
    elif session is not None:
        counts["conversation"] = counts.get("conversation", 0) + 1
        await store.sessions.put(chat.scope, session)
    else:
        # A window was asked for but nothing was said: its owner still counts.
        await store.log.claim(chat.scope)
        incoming.count("conversation", not there)
    incoming.count("session", session is not None)
    if (chat.calls or chat.read) and (not there or await _is_same_log(store, chat)):
        incoming.count("call", await store.calls.restore(_fitting(chat)))
        incoming.marks += [(chat.scope, chat.read)] if 0 < chat.read <= _last(chat) else []


def _last(chat: _Chat) -> int:
    return max((entry.seq or 0 for entry in chat.entries), default=0)


def _fitting(chat: _Chat) -> list[WindowRecord]:
    """The calls built from what is in the file; later ones may have been added while it was written."""
    ids, last = {entry.id for entry in chat.entries}, _last(chat)
    return [
        replace(call, scope=chat.scope)
        for call in chat.calls
        if call.scope.user in (None, chat.scope.user)
        and last_place(call) <= last
        and (call.turn_id is None or call.turn_id in ids)
    ]


async def _is_same_log(store: Store, chat: _Chat) -> bool:
    """Whether every entry has the `seq` it has in the file: in a merged log, calls would point to wrong entries."""
    places = {entry.seq: entry.id for entry in chat.entries if entry.seq is not None}
    async for entry in _entries(store, chat.scope):
        if entry.seq is None or not places:
            break
        if places.pop(entry.seq, None) != entry.id:
            return False
    return not places
