"""Read access to the log and what is stored beside it: nothing here builds a window or writes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias, TypeVar, get_args

from pagefile import ports, records
from pagefile.engine.arguments import at_least, cursor, moment
from pagefile.engine.engine import Engine
from pagefile.errors import InvalidArgumentError
from pagefile.text.queries import searched
from pagefile.tiers.archive import Archive
from pagefile.tiers.episodes import Episodes

#: The kinds of log entries.
Kind: TypeAlias = Literal["turn", "checkpoint", "reset"]
KINDS: tuple[Kind, ...] = get_args(Kind)
P = TypeVar("P")
T = TypeVar("T")

_SLICE = 500
#: How often a user's facts are read again because they changed meanwhile.
_MOST_ATTEMPTS = 16
_MAX_DIGITS = 16


def listing(found: Sequence[T], limit: int, place: Callable[[T], str | None]) -> records.Listing[T]:
    """A slice, given the rows and one more if there is one; the place of its last row is where the next one starts."""
    rows = found[:limit]
    return records.Listing(rows, place(rows[-1]) if len(found) > limit else None)


async def pages_of(
    engine: Engine, scope: records.Scope, *, limit: int, after: str | None
) -> records.Listing[records.Page]:
    count = at_least(1, limit, "limit")
    found = await engine.store.pages.list(scope, limit=count + 1, after=cursor(after))
    return listing(found, count, lambda page: page.uuid)


async def pages_about(engine: Engine, scope: records.Scope, query: str, limit: int) -> list[records.PageHit]:
    text = searched(records.checked_text(query, "query"))
    return await engine.tier(Archive).search(scope, text, at_least(1, limit, "limit"))


async def recalled(
    engine: Engine,
    scope: records.Scope,
    query: str,
    limit: int,
    at: datetime | None,
    timezone: str | None = None,
) -> list[records.Hit]:
    text, count = searched(records.checked_text(query, "query")), at_least(1, limit, "limit")
    # A time with an offset says where the user is.
    asked = None if at is None else moment(at).astimezone(at.tzinfo or UTC)
    heads = (
        ()
        if scope.conversation is None
        else await engine.store.reader.heads(ports.ConversationQuery(scope, 1))
    )
    timezone = timezone or (heads[0].timezone if heads else None)
    return await engine.tier(Episodes).recall(scope, text, count, asked, timezone)


async def done_turns(
    engine: Engine, scope: records.Scope, *, after: str | None, limit: int
) -> records.Listing[records.Turn]:
    """Done turns of a scope by conversation id, then by `seq`."""
    known = {} if after is None else await _read_before(engine.store.reader, scope, after)
    found = await engine.store.source.since(ports.SinceRequest(scope, known, limit + 1))
    return listing(found, limit, lambda turn: f"{turn.seq} {turn.scope.conversation}")


async def _read_before(reader: ports.LogReader, scope: records.Scope, after: str) -> dict[str, int]:
    """How far each conversation was read when a slice ended: those before its last one completely."""
    seq, _, last = records.checked_text(after, "after").partition(" ")
    if not (seq.isascii() and seq.isdecimal() and len(seq) <= _MAX_DIGITS and last):
        raise InvalidArgumentError(f"after is {after[:80]!r}: give `next` of the slice before, as it is.")
    ends = {head.scope.conversation or "": head.last_seq async for head in heads_of(reader, scope)}
    return {name: end for name, end in ends.items() if name < last} | {last: int(seq)}


async def facts_of(
    facts: ports.FactStore, owner: records.Scope
) -> tuple[Sequence[records.Fact], Sequence[records.Revision], bool]:
    """All that was ever held about a user, the journal of its changes, and whether they belong together."""
    held: Sequence[records.Fact] = ()
    revisions: Sequence[records.Revision] = ()
    for _ in range(_MOST_ATTEMPTS):
        stamp = await facts.changed(owner)
        held, revisions = await facts.list(owner, retracted=True), await facts.revisions(owner)
        if await facts.changed(owner) == stamp:
            return held, revisions, True
    return held, revisions, False


# -- all, in slices ----------------------------------------------------------------------------------------------------


async def paged(
    read: Callable[[P | None], Awaitable[Sequence[T]]], place: Callable[[T], P | None], limit: int
) -> AsyncIterator[T]:
    """Every row of a list, slice by slice: `place` is what the next one comes after, None if there is none."""
    after: P | None = None
    while rows := await read(after):
        for row in rows:
            yield row
        if len(rows) < limit or (after := place(rows[-1])) is None:
            return


def entries_of(reader: ports.LogReader, query: ports.EntryQuery) -> AsyncIterator[records.Entry]:
    """Every entry of a log from there on, read in slices of the query's limit; open turns come last."""
    return paged(
        lambda seq: reader.entries(query if seq is None else replace(query, after_seq=seq)),
        lambda entry: entry.seq,
        query.limit,
    )


async def turn_in(reader: ports.LogReader, query: ports.EntryQuery, turn_id: str) -> records.Turn | None:
    async for entry in entries_of(reader, query):
        if entry.id == turn_id and isinstance(entry, records.Turn):
            return entry
    return None


def heads_of(reader: ports.LogReader, scope: records.Scope) -> AsyncIterator[records.ConversationInfo]:
    return paged(
        lambda after: reader.heads(ports.ConversationQuery(scope, _SLICE, after)),
        lambda head: head.scope.conversation,
        _SLICE,
    )


def all_pages(pages: ports.PageStore, scope: records.Scope) -> AsyncIterator[records.Page]:
    return paged(lambda after: pages.list(scope, limit=_SLICE, after=after), lambda page: page.uuid, _SLICE)


def all_items(items: ports.ItemStore, owner: records.Scope, now: datetime) -> AsyncIterator[ports.KeptItem]:
    """What a user holds in the item store, with the vectors it is searched by."""
    return paged(
        lambda after: items.kept(owner, now=now, after=after, limit=_SLICE),
        lambda kept: kept.item.item_key,
        _SLICE,
    )
