"""Import of an export: the whole file is checked, then written conversation by conversation, user by user.

An import keeps ids, order, times, checkpoints, sessions, recorded calls and the history of facts; existing data
is left as it is. A line that cannot be read is reported by its number. The schema of each line is in `export_lines`.
"""

import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
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
from pagefile.engine.log_queries import KINDS, entries_of
from pagefile.engine.snapshots import KEY
from pagefile.errors import (
    HandleNotFoundError,
    InvalidArgumentError,
    TransferError,
)
from pagefile.ports import NO_LABELS, KeptItem, Labels
from pagefile.shapes.skeleton import Filling, filled
from pagefile.stores.rules import check_whole, restoration
from pagefile.stores.sql.facts import restored
from pagefile.text.passages import split
from pagefile.tiers.facts import TIER

_BATCH = 500
#: Some editors put a byte order mark before the first line.
_ENCODING = "utf-8-sig"


# -- lines -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """The start of a conversation: the lines up to the next one belong to it."""

    scope: records.Scope
    agent: str | None
    labels: Labels = NO_LABELS


@dataclass(frozen=True, slots=True)
class Owned:
    owner: records.Scope
    item: KeptItem


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record of a kind that is newer than this reader."""

    what: str


#: Records of a conversation besides its log.
Beside: TypeAlias = lines.SessionLine | lines.WatermarkLine | lines.MediaLine
#: The content of a line: the start of a conversation, something in it, or something of a user.
Record: TypeAlias = (
    Begun
    | Beside
    | records.Entry
    | records.WindowRecord
    | records.Fact
    | records.Revision
    | Owned
    | Unknown
    | tuple[records.Page, str]
)


class Reader:
    """Turns lines into records; a line that cannot be read is reported by its number."""

    def __init__(self, tenant: str, name: str) -> None:
        self._tenant = tenant
        self._name = name
        self._scope: records.Scope | None = None
        #: Images and files of the current conversation.
        self._blobs: dict[str, bytes] = {}
        self.number = 0

    def read(self, line: str) -> Record | None:
        """The content of a line; None for informational ones: the header, and notes about missing bytes."""
        self.number += 1
        if self.number == 1:
            return _check_header(line)
        try:
            return self._record(lines.LINE.validate_json(line))
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

    def _record(self, line: lines.ExportLine) -> Record | None:
        match line:
            case lines.ConversationLine():
                self._scope = records.Scope(self._tenant, line.user_id, line.id)
                self._blobs = {}
                return Begun(self._scope, line.agent, line.labels())
            case lines.PageLine():
                return line.record(scope=self._of(line)), line.text
            case lines.FactLine() | lines.RevisionLine() | lines.ItemLine():
                self._scope = None  # no more conversations follow
                return self._owned(line)
            case lines.CallLine():
                return self._placed(line.record(scope=self._of(line)))
            case lines.SessionLine() | lines.WatermarkLine() | lines.MediaLine():
                return self._beside(line)
            case lines.TurnLine() | lines.CheckpointLine() | lines.ResetLine():
                return self._entry(line)
            case lines.MissingLine():
                return None
            case lines.HeaderLine():
                return Unknown(f"Line {self.number} is a record of the unknown type {lines.FORMAT!r}")

    def _of(self, line: lines.PageLine | lines.CallLine) -> records.Scope:
        return records.Scope(self._tenant, line.user_id, line.conversation_id)

    def _owned(
        self, line: lines.FactLine | lines.RevisionLine | lines.ItemLine
    ) -> records.Fact | records.Revision | Owned:
        """What belongs to a user rather than to a single conversation."""
        owner = records.Scope(self._tenant, line.user_id)
        return Owned(owner, line.kept()) if isinstance(line, lines.ItemLine) else line.of_user(owner)

    def _entry(self, line: lines.TurnLine | lines.CheckpointLine | lines.ResetLine) -> records.Entry:
        entry = line.record(scope=self._within(line.type))
        if isinstance(entry, records.Turn) and entry.layout is not None:
            _check_layout(entry.layout, entry.steps, self._blobs)
        return entry

    def _within(self, kind: str) -> records.Scope:
        """The conversation that an entry belongs to."""
        if self._scope is None:
            raise TransferError(
                f"The {kind} on line {self.number} comes before any conversation, or after them all: the file is damaged."
            )
        return self._scope

    def _beside(self, line: Beside) -> Beside:
        if self._scope is None or line.conversation_id != self._scope.conversation:
            raise self._astray(line.type)
        if isinstance(line, lines.MediaLine):
            self._blobs[line.hash] = line.data
        return line

    def _placed(self, call: records.WindowRecord) -> records.WindowRecord:
        """A call must follow its conversation, unless it refers to nothing in it: that conversation may be unwritten."""
        here = None if self._scope is None else self._scope.conversation
        if call.scope.conversation != here and (call.turn_id is not None or last_place(call)):
            raise self._astray("call")
        return call

    def _unknown(self, error: ValidationError) -> Unknown:
        """A record of a later version; raises for anything else that is not a valid line."""
        fault = lines.first_fault(error)
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
        raise self._damaged(lines.described(fault)) from error

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
    moment = cast("Mapping[str, Any] | None", call.options.get(KEY))
    return 0 if moment is None else moment["last_seq"]


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
            _check_given(message, Filling(whole, _own(message, blobs)), archived=whole != list(steps))


def _own(message: Message, blobs: Mapping[str, bytes]) -> dict[str, bytes]:
    """The bytes of a message's images and files; missing ones are not damage: they may be gone."""
    return {media.blob: blobs.get(media.blob, b"") for media in media_in([message]) if media.blob}


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

    scope: records.Scope
    agent: str | None
    labels: ports.Labels = ports.NO_LABELS
    session: records.JsonObject | None = None
    entries: list[records.Entry] = field(default_factory=list[records.Entry])
    calls: list[records.WindowRecord] = field(default_factory=list[records.WindowRecord])
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    #: How far it was read for facts.
    read: int = 0


@dataclass(slots=True)
class _Person:
    """A user whose facts are being read."""

    facts: list[records.Fact] = field(default_factory=list[records.Fact])
    revisions: list[records.Revision] = field(default_factory=list[records.Revision])


@dataclass(slots=True)
class _Incoming:
    """What was read but not written yet."""

    store: ports.Store
    clock: ports.Clock
    counts: Counter[str] = field(default_factory=Counter[str])
    chat: _Chat | None = None
    people: dict[records.Scope, _Person] = field(default_factory=dict[records.Scope, _Person])
    #: Items and their owner.
    owner: records.Scope | None = None
    items: list[ports.KeptItem] = field(default_factory=list[ports.KeptItem])
    #: Calls of one conversation that had no owner.
    loose: list[records.WindowRecord] = field(default_factory=list[records.WindowRecord])
    #: How far conversations were read for facts; written once the facts are.
    marks: list[tuple[records.Scope, int]] = field(default_factory=list[tuple[records.Scope, int]])
    #: The first line of an unknown kind.
    unknown: Unknown | None = None

    def count(self, kind: str, new: int) -> None:
        """Add to the count of new records; kinds without new ones are omitted."""
        if new:
            self.counts[kind] += new


async def import_from(
    store: ports.Store,
    path: str | PathLike[str],
    tenant: str,
    *,
    clock: ports.Clock,
    called: str | None = None,
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
    return dict(incoming.counts)


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
    entries: list[records.Entry] = field(default_factory=list[records.Entry])
    journals: dict[records.Scope, list[records.Revision]] = field(
        default_factory=dict[records.Scope, list[records.Revision]]
    )
    #: The owner of each fact.
    owners: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def take(self, record: Record | None, number: int) -> None:
        match record:
            case Begun():
                _check_whole(self.entries, self.name)
                self.entries = []
            case records.Turn() | records.Checkpoint() | records.Reset():
                self.entries.append(record)
            case records.Fact():
                self._own(record, number)
            case records.Revision():
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

    def _own(self, fact: records.Fact, number: int) -> None:
        if self.owners.setdefault(fact.id, fact.scope.user) != fact.scope.user:
            raise TransferError(
                f"The fact {fact.id!r} on line {number} of {self.name} is another user's above: the file is damaged; nothing of it "
                "was imported."
            )


def _check_whole(entries: Sequence[records.Entry], name: str) -> None:
    """A conversation in an export has all of its entries."""
    try:
        check_whole(restoration(entries).ended if entries else ())
    except InvalidArgumentError as error:
        scope = entries[0].scope
        raise TransferError(
            f"The conversation {scope.conversation!r} in {name} is damaged ({error}); nothing of the file was imported."
        ) from error


def _check_journals(journals: dict[records.Scope, list[records.Revision]], name: str) -> None:
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
        case records.Fact() | records.Revision():
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
        case records.WindowRecord() if chat is None or record.scope.conversation != chat.scope.conversation:
            await _take_loose(record, incoming)
        case _:
            assert chat is not None  # the reader refuses lines outside their conversation
            _add(record, chat)


def _add(record: Beside | records.Entry | records.WindowRecord, chat: _Chat) -> None:
    match record:
        case lines.SessionLine():
            chat.session = record.value
        case lines.WatermarkLine():
            chat.read = record.seq
        case lines.MediaLine():
            chat.blobs[record.hash] = record.data
        case records.WindowRecord():
            chat.calls.append(record)
        case _:
            chat.entries.append(record)


async def _take_page(page: records.Page, text: str, incoming: _Incoming) -> None:
    store = incoming.store
    try:
        await store.page_keeper.page(page.scope, page.uuid)
    except HandleNotFoundError:
        spans = tuple((passage.start, passage.end) for passage in split(text))
        await store.pages.put(ports.PageDraft(page, text, spans))
        incoming.count("page", 1)


async def _take_fact(record: records.Fact | records.Revision, incoming: _Incoming) -> None:
    owner, people = records.Scope(record.scope.tenant, record.scope.user), incoming.people
    if owner not in people and sum(len(one.facts) + len(one.revisions) for one in people.values()) >= _BATCH:
        await _write_facts(incoming)
    person = people.setdefault(owner, _Person())
    if isinstance(record, records.Fact):
        person.facts.append(record)
    else:
        person.revisions.append(record)


async def _take_item(record: Owned, incoming: _Incoming) -> None:
    if incoming.owner != record.owner or len(incoming.items) >= _BATCH:
        await _write_items(incoming)
    incoming.owner = record.owner
    incoming.items.append(record.item)


async def _take_loose(call: records.WindowRecord, incoming: _Incoming) -> None:
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
        incoming.counts["item"] += new
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
        counts["conversation"] += not there
        new = await store.log.restore(
            chat.entries, agent=chat.agent, session=session, labels=chat.labels, blobs=chat.blobs
        )
        counts["entry"] += new
    elif session is not None:
        counts["conversation"] += 1
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
