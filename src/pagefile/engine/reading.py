"""Read access to the log and what is stored beside it, for inspection: nothing here builds a window or writes."""

from typing import Literal, TypeAlias

from pagefile.engine.engine import Engine
from pagefile.errors import ConflictError, InvalidTurnError, NotFoundError
from pagefile.ports import EntryQuery, HeadQuery, SinceRequest
from pagefile.records import Checkpoint, Head, JsonObject, Listing, Reset, Scope, Turn, checked_text

#: The kinds of log entries.
Kind: TypeAlias = Literal["turn", "checkpoint", "reset"]
KINDS: tuple[Kind, ...] = ("turn", "checkpoint", "reset")

_HEADS = 1000
_MAX_DIGITS = 16


async def head_of(engine: Engine, scope: Scope) -> Head:
    """The conversation that a scope names."""
    found = await engine.store.reader.heads(HeadQuery(scope, 1))
    if not found:
        raise _nowhere()
    return found[0]


async def session_of(engine: Engine, scope: Scope) -> JsonObject | None:
    """A conversation's session value from the database, bypassing the cache."""
    try:
        value = await engine.store.sessions.get(scope)
    except ConflictError as error:
        # Do not reveal that it belongs to another user.
        raise _nowhere() from error
    if value is None:
        await head_of(engine, scope)
    return value


def _nowhere() -> NotFoundError:
    return NotFoundError("There is no such conversation: the list of conversations shows those there are.")


# -- one conversation --------------------------------------------------------------------------------------------------


def checked_kind(kind: object) -> Kind | None:
    """A kind of entry, or None for all of them."""
    # A tuple, because the value may be unhashable.
    if kind not in (None, *KINDS):
        raise InvalidTurnError(f"kind is {kind!r}: it must be one of {', '.join(map(repr, KINDS))}.")
    return kind


async def log_of(
    engine: Engine, scope: Scope, kind: Kind | None, *, after: int, limit: int, newest: bool
) -> Listing[Turn | Checkpoint | Reset]:
    """A slice of a log, reading nothing beyond it."""
    # Reading one more entry tells whether there is more. With a kind, the next match may be far away, so it
    # is not read.
    ahead = 1 if kind is None and not newest else 0
    kinds = frozenset(KINDS if kind is None else (kind,))
    query = EntryQuery(scope, kinds, after_seq=after, limit=limit + ahead, newest=newest)
    found = await engine.store.reader.entries(query)
    entries = found[:limit]
    more = len(found) == limit + ahead and not newest and entries[-1].seq is not None
    return Listing(entries, str(entries[-1].seq) if more else None)


# -- many --------------------------------------------------------------------------------------------------------------


async def done_turns(engine: Engine, scope: Scope, *, after: str | None, limit: int) -> Listing[Turn]:
    """Done turns of a scope by conversation id, then by `seq`."""
    known = {} if after is None else await _known(engine, scope, *_place(after))
    found = await engine.store.source.since(SinceRequest(scope, known, limit + 1))
    turns = found[:limit]
    more = len(found) > limit
    return Listing(turns, f"{turns[-1].seq} {turns[-1].scope.conversation}" if more else None)


def _place(after: str) -> tuple[str, int]:
    """The conversation and the `seq` at which a slice ended."""
    seq, _, conversation = checked_text(after, "after").partition(" ")
    if not (seq.isascii() and seq.isdecimal() and len(seq) <= _MAX_DIGITS and conversation):
        raise InvalidTurnError(f"after is {after[:80]!r}: give `next` of the slice before, as it is.")
    return conversation, int(seq)


async def _known(engine: Engine, scope: Scope, conversation: str, seq: int) -> dict[str, int]:
    """How far each conversation was read when a slice ended: those before its last one completely."""
    known = {conversation: seq}
    after: str | None = None
    while True:
        heads = await engine.store.reader.heads(HeadQuery(scope, _HEADS, after))
        for head in heads:
            name = head.scope.conversation or ""
            if name < conversation:
                known[name] = head.last_seq
        if len(heads) < _HEADS:
            return known
        after = heads[-1].scope.conversation
