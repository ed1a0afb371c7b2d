"""Import of an export: the whole file is checked, then written conversation by conversation, user by user.

An import keeps ids, order, times, checkpoints, sessions, recorded calls and the history of facts; existing data
is left as it is. A line that cannot be read is reported by its number. The schema of each line is in `export_lines`.
"""

import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio
import anyio.to_thread
from pydantic import ValidationError

from pagefile import ports, records
from pagefile.content import Message, ToolCall, ToolResult, media_in
from pagefile.engine import export_lines as lines
from pagefile.engine.engine import Engine
from pagefile.engine.log_queries import KINDS, entries_of
from pagefile.engine.policy import Redactor
from pagefile.errors import HandleNotFoundError, InvalidArgumentError, TransferError
from pagefile.shapes.skeleton import Filling, filled
from pagefile.stores.restoration import check_whole, restoration
from pagefile.stores.sql.facts import restored
from pagefile.text.passages import split
from pagefile.tiers.facts import TIER

_BATCH = 500
#: Fields of lines that are ids, or made of ids and numbers; those that end in `_id` are, too.
_IDS = frozenset(
    {
        "id",
        "uuid",
        "seq",
        "tool",
        "page",
        "archive_refs",
        "namespace",
        "key",
        "agent",
        "project",
        "receipt",
        "source_turn",
        "supersedes",
    }
    | {"hash", "content_hash", "call_hash", "prefix_hash", "messages_hash", "data", "vectors"}
)
#: Some editors put a byte order mark before the first line.
_ENCODING = "utf-8-sig"


# -- what is written together -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Chat:
    """A conversation; the lines up to the next one belong to it."""

    scope: records.Scope
    agent: str | None
    labels: ports.Labels
    session: records.JsonObject | None = None
    entries: list[records.Entry] = field(default_factory=list[records.Entry])
    calls: list[records.WindowRecord] = field(default_factory=list[records.WindowRecord])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    #: How far it was read for facts.
    read: int = 0


@dataclass(slots=True)
class _Person:
    """What is held about a user: facts with the journal of their changes, or items."""

    owner: records.Scope
    facts: list[records.Fact] = field(default_factory=list[records.Fact])
    revisions: list[records.Revision] = field(default_factory=list[records.Revision])
    items: list[ports.KeptItem] = field(default_factory=list[ports.KeptItem])


#: A list is of windows of one conversation that had no owner.
_Batch: TypeAlias = _Chat | _Person | tuple[records.Page, str] | list[records.WindowRecord]


class Reader:
    """Turns lines into what is written together; a line that cannot be read is reported by its number."""

    def __init__(self, tenant: str, name: str) -> None:
        self._tenant = tenant
        self._name = name
        self.number = 0
        #: The first line of a kind that is newer than this reader.
        self.unknown: str | None = None
        self._chat: _Chat | None = None
        self._people: dict[records.Scope, _Person] = {}
        #: The owner of each fact.
        self._fact_owners: dict[str, str | None] = {}
        self._items: _Person | None = None
        self._loose: list[records.WindowRecord] = []

    def read(self, line: str) -> list[_Batch]:
        """What is complete with this line."""
        self.number += 1
        if self.number == 1:
            _check_header(line)
            return []
        try:
            return list(self._taken(lines.LINE.validate_json(line)))
        except ValidationError as error:
            self._skip(self._unknown_kind(error))
            return []
        except TransferError:
            raise
        except (LookupError, TypeError, ValueError) as error:
            raise self._damaged(str(error)) from error

    def rest(self) -> Iterator[_Batch]:
        """What is complete with the end of the file."""
        yield from self._ended()
        yield from self._people.values()
        yield from filter(None, (self._items, self._loose))

    def _taken(self, line: lines.ExportLine) -> Iterator[_Batch]:
        match line:
            case lines.ConversationLine():
                yield from self._ended()
                scope = records.Scope(self._tenant, line.user_id, line.id)
                self._chat = _Chat(scope, line.agent, line.labels())
            case lines.PageLine():
                yield line.record(scope=self._of(line)), line.text
            case lines.TurnLine() | lines.CheckpointLine() | lines.ResetLine():
                self._take_entry(line)
            case lines.SessionLine():
                self._chat_of(line).session = line.value
            case lines.WatermarkLine():
                self._chat_of(line).read = line.seq
            case lines.MediaLine():
                self._chat_of(line).blobs[line.hash] = line.data
            case lines.CallLine():
                yield from self._take_call(line.record(scope=self._of(line)))
            case lines.FactLine() | lines.RevisionLine():
                # A fact follows the turn it was read in: if the turn is refused, the fact must not remain.
                yield from self._ended()
                yield from self._take_fact(line, records.Scope(self._tenant, line.user_id))
            case lines.ItemLine():
                yield from self._ended()
                yield from self._take_item(line.kept(), records.Scope(self._tenant, line.user_id))
            case lines.MissingLine():
                pass
            case lines.HeaderLine():
                self._skip(lines.FORMAT)

    def _of(self, line: lines.PageLine | lines.CallLine) -> records.Scope:
        return records.Scope(self._tenant, line.user_id, line.conversation_id)

    def _ended(self) -> Iterator[_Batch]:
        chat, self._chat = self._chat, None
        if chat is not None:
            yield chat

    def _take_entry(self, line: lines.EntryLine) -> None:
        chat = self._within(line.type)
        entry = line.record(scope=chat.scope)
        _check_times(entry)
        if isinstance(entry, records.Turn) and entry.layout is not None:
            _check_layout(entry.layout, entry.steps, chat.blobs)
        chat.entries.append(entry)

    def _within(self, kind: str) -> _Chat:
        if self._chat is None:
            raise TransferError(
                f"The {kind} on line {self.number} comes before any conversation, or after them all: the file is damaged."
            )
        return self._chat

    def _chat_of(self, line: lines.BesideLine) -> _Chat:
        if self._chat is None or line.conversation_id != self._chat.scope.conversation:
            raise self._astray(line.type)
        return self._chat

    def _take_call(self, call: records.WindowRecord) -> Iterator[_Batch]:
        """A call must follow its conversation, unless it refers to nothing in it: that conversation may be unwritten."""
        name = call.scope.conversation
        if self._chat is not None and name == self._chat.scope.conversation:
            self._chat.calls.append(call)
            return
        if call.turn_id is not None or last_place(call):
            raise self._astray("call")
        if self._loose and self._loose[0].scope.conversation != name:
            yield self._loose
            self._loose = []
        self._loose.append(call)

    def _take_fact(self, line: lines.FactLine | lines.RevisionLine, owner: records.Scope) -> Iterator[_Batch]:
        people, record = self._people, line.of_user(owner)
        for fact in record.after if isinstance(record, records.Revision) else (record,):
            if self._fact_owners.setdefault(fact.id, owner.user) != owner.user:
                raise TransferError(
                    f"The fact {fact.id!r} on line {self.number} of {self._name} is another user's above: the file is damaged; "
                    "nothing of it was imported."
                )
        if (
            owner not in people
            and sum(len(one.facts) + len(one.revisions) for one in people.values()) >= _BATCH
        ):
            yield from people.values()
            people.clear()
        person = people.setdefault(owner, _Person(owner))
        if isinstance(record, records.Fact):
            person.facts.append(record)
        else:
            person.revisions.append(record)

    def _take_item(self, item: ports.KeptItem, owner: records.Scope) -> Iterator[_Batch]:
        if self._items is not None and (self._items.owner != owner or len(self._items.items) >= _BATCH):
            yield self._items
            self._items = None
        self._items = self._items or _Person(owner)
        self._items.items.append(item)

    def _skip(self, kind: str) -> None:
        """An unknown kind of record is not damage."""
        self.unknown = self.unknown or f"Line {self.number} is a record of the unknown type {kind[:80]!r}"

    def _unknown_kind(self, error: ValidationError) -> str:
        """The kind of a record of a later version; raises for anything else that is not a valid line."""
        fault = lines.first_fault(error)
        if fault["type"] == "json_invalid":
            raise _not_json(self.number, fault["msg"]) from error
        given = fault["input"]
        if (
            fault["type"] == "union_tag_invalid"
            and not fault["loc"]
            and isinstance(kind := given["type"], str)
        ):
            return kind
        if not fault["loc"] and not isinstance(given, dict):
            raise TransferError(f"Line {self.number} is not a record of a Pagefile export.") from error
        if fault["loc"] and fault["loc"][0] in ("turn", "checkpoint", "reset"):
            self._within(str(fault["loc"][0]))
        raise self._damaged(lines.described(fault)) from error

    def _damaged(self, why: str) -> TransferError:
        return TransferError(
            f"Line {self.number} of {self._name} is damaged ({why[:300]}); nothing of the file was imported."
        )

    def _astray(self, kind: str) -> TransferError:
        return TransferError(
            f"The {kind} on line {self.number} of {self._name} is outside its conversation: the file is damaged; nothing of it "
            "was imported."
        )


def _check_header(line: str) -> None:
    try:
        lines.HeaderLine.model_validate_json(line)
    except ValidationError as error:
        fault = lines.first_fault(error)
        if fault["type"] == "json_invalid":
            raise _not_json(1, fault["msg"]) from error
        if fault["loc"] != ("version",):
            raise TransferError("Line 1 is not a record of a Pagefile export.") from error
        version = None if fault["type"] == "missing" else fault["input"]
        raise TransferError(
            f"Line 1: the export has version {str(version)[:80]!r}, this Pagefile reads {lines.VERSION}: upgrade Pagefile."
        ) from error


def _not_json(number: int, why: str) -> TransferError:
    return TransferError(f"Line {number} is not JSON ({why}): the file is damaged or not a Pagefile export.")


def last_place(call: records.WindowRecord) -> int:
    """The last `seq` that the window of a call was built from; 0 if it does not say."""
    moment = cast("Mapping[str, Any] | None", call.options.get(records.SNAPSHOT_KEY))
    return 0 if moment is None else moment["last_seq"]


def _check_times(entry: records.Entry) -> None:
    times = [entry.created, entry.at] if isinstance(entry, records.Turn) else [entry.created]
    if any(time != records.within_time(time) for time in times):
        raise ValueError(f"it was written or said at the end of time: {records.BEYOND_TIME}")


# -- messages -----------------------------------------------------------------------------------------------------


def _check_layout(
    messages: Sequence[Message], steps: Sequence[records.Step], blobs: Mapping[str, bytes]
) -> None:
    """Every reference in the messages of a turn resolves."""
    # An archived result is on the line of its page: a reference into it is checked only as far as its
    # placeholder goes.
    whole = [replace(step, whole=True, lost_chars=0) for step in steps]
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall | ToolResult) and part.step >= len(steps):
                raise ValueError(f"a message names step {part.step}, which is not there")
        if message.given is not None:
            # Missing bytes of images and files are not damage: they may be gone.
            own = {media.blob: blobs.get(media.blob, b"") for media in media_in([message]) if media.blob}
            _check_given(message, Filling(whole, own), archived=whole != list(steps))


def _check_given(message: Message, filling: Filling, *, archived: bool) -> None:
    """Resolve every reference of a message once: a broken one would otherwise surface only when the message is read."""

    def follow(reference: str, value: object) -> object:
        try:
            return filling.as_given(replace(message, given={reference: cast("records.JsonValue", value)}))
        except (LookupError, TypeError, ValueError) as error:
            if reference == "$result_json" and archived and isinstance(error, json.JSONDecodeError):
                return None
            raise ValueError(
                f"a message refers to {reference} {str(value)[:80]}, which leads nowhere"
            ) from error

    if not isinstance(filled(message.given, follow), dict):
        raise ValueError(f"a message as it came is {str(message.given)[:80]}")  # noqa: TRY004 - damage, as the rest


# -- the file ----------------------------------------------------------------------------------------------------------


#: The longest line of an upload, which is read as a whole.
MAX_LINE_BYTES = 64_000_000


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The lines of a body with their ends, each at most `MAX_LINE_BYTES` long. Only `\\n` ends one: texts may hold other characters that Python treats as line breaks."""
    rest: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *whole, last = chunk.split(b"\n")
        for line in whole:
            yield b"".join([*rest, line, b"\n"])
            rest = []
        rest.append(last)
        size = len(last) + (0 if whole else size)
        if size > MAX_LINE_BYTES:
            raise TransferError(
                f"A line of the upload has more than {MAX_LINE_BYTES:,} bytes: import the file with `pagefile import` instead."
            )
    if any(rest):
        yield b"".join(rest)


async def import_from(
    engine: Engine, path: str | PathLike[str], tenant: str, *, called: str | None = None
) -> dict[str, int]:
    """Read an export; each conversation is written atomically. `called` is the file's name in errors.

    An unknown kind of record is not damage: it is skipped, and reported at the end.
    """
    name = repr(str(path)) if called is None else called
    await anyio.to_thread.run_sync(_check, path, tenant, name)
    if engine.redactor.applies(tenant):
        await anyio.to_thread.run_sync(_check_redacted, engine.redactor, path, tenant, name)
    reader, writer = Reader(tenant, name), _Writer(engine.store, engine.clock)
    batches = _batches(reader, path, name)
    while (batch := await anyio.to_thread.run_sync(next, batches, None)) is not None:
        await writer.write(batch)
    await writer.write_marks()
    if reader.unknown is not None:
        raise TransferError(f"{reader.unknown}: upgrade Pagefile; all that is known was imported.")
    engine.worker.scan()
    return dict(writer.counts)


def _batches(reader: Reader, path: str | PathLike[str], name: str) -> Iterator[_Batch]:
    try:
        with Path(path).open(encoding=_ENCODING) as file:
            for line in file:
                yield from reader.read(line)
    except OSError as error:
        raise TransferError(f"Cannot read {name}: {error}.") from error
    except UnicodeDecodeError as error:
        what = f"{name} is not UTF-8 text near line {reader.number + 1}"
        raise TransferError(f"{what}: it is not a Pagefile export.") from error
    yield from reader.rest()


def _check(path: str | PathLike[str], tenant: str, name: str) -> None:
    """A conversation in an export has all of its entries, and a user's revisions follow from one another."""
    reader, what = Reader(tenant, name), ""
    try:
        for batch in _batches(reader, path, name):
            if isinstance(batch, _Chat):
                what = f"The conversation {batch.scope.conversation!r}"
                check_whole(restoration(batch.entries).ended if batch.entries else ())
            elif isinstance(batch, _Person) and not batch.items:
                what = f"The history of the facts of user {batch.owner.user!r}"
                restored(batch.owner, (), batch.revisions)
    except InvalidArgumentError as error:
        told = f"{what} in {name} is damaged ({error}); nothing of the file was imported."
        raise TransferError(told) from error
    if reader.number == 0:
        raise TransferError(f"{name} is empty: it is not a Pagefile export.")


def _check_redacted(redactor: Redactor, path: str | PathLike[str], tenant: str, name: str) -> None:
    with Path(path).open(encoding=_ENCODING) as file:
        for number, line in enumerate(file, 1):
            redactor.check(tenant, _texts_of(json.loads(line)), f"Line {number} of {name}")


def _texts_of(line: dict[str, Any]) -> dict[str, Any]:
    """A line without its ids and what quotes them, which a tenant's policy leaves as they are."""
    texts = {name: value for name, value in line.items() if name not in _IDS and not name.endswith("_id")}
    if isinstance(options := texts.get("options"), dict):
        texts["options"] = {"instructions": cast("dict[str, Any]", options).get("instructions")}
    if isinstance(changes := texts.get("facts"), list):
        changes = cast("list[dict[str, Any]]", changes)
        texts["facts"] = [_texts_of(fact) for change in changes for fact in change.values() if fact]
    if isinstance(steps := texts.get("steps"), list):
        texts["steps"] = [_texts_of(step) for step in cast("list[dict[str, Any]]", steps)]
    if line.get("type") == "session":
        sections = cast("dict[str, Any]", line.get("value") or {})
        texts["value"] = [
            _texts_of(cast("dict[str, Any]", one)) if isinstance(one, dict) else one
            for one in sections.values()
        ]
    return texts


@dataclass(slots=True)
class _Writer:
    store: ports.Store
    clock: ports.Clock
    counts: Counter[str] = field(default_factory=Counter[str])
    #: How far conversations were read for facts; written once the facts are.
    marks: list[tuple[records.Scope, int]] = field(default_factory=list[tuple[records.Scope, int]])

    async def write(self, batch: _Batch) -> None:
        match batch:
            case _Chat():
                await self._write_chat(batch)
            case _Person(owner, items=[]):
                facts, revisions = await self.store.facts.restore(owner, batch.facts, batch.revisions)
                self._count("fact", facts)
                self._count("revision", revisions)
            case _Person(owner, items=items):
                self.counts["item"] += await self.store.items.restore(owner, items, now=self.clock.now())
            case list():
                # If the conversation has an owner here, only that owner's windows are imported.
                owned = await self.store.reader.owner(batch[0].scope)
                theirs = [call for call in batch if owned in (None, call.scope)]
                if owned is None:
                    await self.store.log.claim(theirs[0].scope)
                self._count("call", await self.store.calls.restore(theirs))
            case (page, text):
                try:
                    await self.store.page_keeper.page(page.scope, page.uuid)
                except HandleNotFoundError:
                    spans = tuple((passage.start, passage.end) for passage in split(text))
                    await self.store.pages.put(ports.PageDraft(page, text, spans))
                    self._count("page", 1)

    async def write_marks(self) -> None:
        for scope, seq in self.marks:
            known = await self.store.watermarks.known(scope, TIER)
            if known.get(scope.conversation or "", 0) < seq:
                await self.store.watermarks.advance(scope, TIER, seq, epoch=None)
                self._count("watermark", 1)

    def _count(self, kind: str, new: int) -> None:
        """Kinds without new records are omitted."""
        if new:
            self.counts[kind] += new

    async def _write_chat(self, chat: _Chat) -> None:
        """A conversation: its log and its session, then what refers to positions in that log."""
        store, counts = self.store, self.counts
        there = await store.reader.owner(chat.scope) is not None
        session = None if there else chat.session
        if chat.entries:
            counts["conversation"] += not there
            beside = ports.Beside(agent=chat.agent, session=session, labels=chat.labels, blobs=chat.blobs)
            counts["entry"] += await store.log.restore(chat.entries, **beside)
        elif session is not None:
            counts["conversation"] += 1
            await store.sessions.put(chat.scope, session)
        else:
            # A window was asked for but nothing was said: its owner still counts.
            await store.log.claim(chat.scope)
            self._count("conversation", not there)
        self._count("session", session is not None)
        if (chat.calls or chat.read) and (not there or await _is_same_log(store, chat)):
            self._count("call", await store.calls.restore(_fitting(chat)))
            self.marks += [(chat.scope, chat.read)] if 0 < chat.read <= _last(chat) else []


def _last(chat: _Chat) -> int:
    return max((entry.seq or 0 for entry in chat.entries), default=0)


def _fitting(chat: _Chat) -> list[records.WindowRecord]:
    """The calls built from what is in the file; later ones may have been added while it was written."""
    ids, last = {entry.id for entry in chat.entries}, _last(chat)
    return [
        replace(call, scope=chat.scope)
        for call in chat.calls
        if call.scope.user in (None, chat.scope.user)
        and last_place(call) <= last
        and (call.turn_id is None or call.turn_id in ids)
    ]


async def _is_same_log(store: ports.Store, chat: _Chat) -> bool:
    """Whether every entry has the `seq` it has in the file: in a merged log, calls would point to wrong entries."""
    places = {entry.seq: entry.id for entry in chat.entries if entry.seq is not None}
    query = ports.EntryQuery(chat.scope, frozenset(KINDS), limit=_BATCH)
    async for entry in entries_of(store.reader, query):
        if entry.seq is None or not places:
            break
        if places.pop(entry.seq, None) != entry.id:
            return False
    return not places
