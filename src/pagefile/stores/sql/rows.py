"""Converts rows to records, and records to the values of a row."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from pagefile.damage import kind_of, note_damage
from pagefile.ports import UNREADABLE, TurnDraft
from pagefile.records import Checkpoint, ConversationInfo, Entry, Reset, Scope, Turn
from pagefile.stores import encoding
from pagefile.stores.sql.plays import Row, Values

#: How many columns the fragments `head` and `entry` of log.sql have, and a summary in the statement `view`.
_HEAD_COLUMNS = 14
ENTRY_COLUMNS = 15
_CHECKPOINT_COLUMNS = 12
_IN_METADATA = ("version", "summary", "covered_through_seq", "covered_turns", "anchors", "archive_refs")


R = TypeVar("R")

#: What a turn says that cannot be read.
DAMAGED = "[MEMORY_DAMAGED]"
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def keys(scope: Scope) -> Values:
    """The scope as parameters, named the same in every statement."""
    return {"tenant": scope.tenant, "conversation": scope.conversation, "user": scope.user}


def head_of(row: Row, scope: Scope) -> ConversationInfo:
    """The fragment `head`; the scope gets the conversation's owner."""
    owner, agent, created, updated, *rest = row
    owned = Scope(scope.tenant, owner, scope.conversation)
    return ConversationInfo(owned, agent, encoding.moment(created), encoding.moment(updated), *rest)


def turn_values(turn: Turn | TurnDraft, now: datetime, texts: Values) -> Values:
    """The columns of a turn that do not depend on its position; `texts` are those of `turn_columns`."""
    return {
        "id": turn.id,
        "tenant": turn.scope.tenant,
        "conversation": turn.scope.conversation,
        "user": turn.scope.user,
        "query": turn.user,
        "answer": turn.assistant,
        "now": now,
        "status": turn.status,
        "user_tokens": turn.user_tokens,
        "assistant_tokens": turn.assistant_tokens,
        "tokens": turn.tokens,
        "counter": turn.counter,
        **texts,
    }


def turn_columns(turn: Turn | TurnDraft) -> Values:
    """The JSON columns of a turn, and its digest."""
    texts = encoding.turn_texts(turn)
    return {**texts, "digest": encoding.turn_digest(turn, texts)}


def turn_of(row: Row, scope: Scope) -> Turn:
    """The fragment `entry` of a row of kind `turn`; a row that cannot be read is set apart."""
    try:
        return exact_turn(row, scope)
    except UNREADABLE as error:
        return _set_apart(row, scope, error)


def exact_turn(row: Row, scope: Scope) -> Turn:
    # There are hundreds of turns in a window, most of them without steps, metadata and messages:
    # one constructor call with everything in its place is the fastest.
    query, answer, steps = row[4], row[5], row[6]
    at = encoding.moment(row[7])
    return Turn(
        row[1],
        scope,
        row[2],
        row[3],
        query,
        answer,
        encoding.text_steps(steps) if steps else (),
        at,
        at if row[8] == row[7] else encoding.moment(row[8]),
        row[9],
        row[10],
        row[11],
        row[12],
        encoding.from_json(row[13]) if row[13] else {},
        None if row[14] is None else encoding.text_messages(row[14], query, answer),
    )


def spoken_of(row: Row, scope: Scope) -> Turn:
    """The same as windows, summaries and indexes see it."""
    return turn_of(row, scope).spoken


def entry_of(row: Row, scope: Scope) -> Entry:
    """The fragment `entry` of any row; a row that cannot be read is set apart."""
    try:
        return exact_entry(row, scope)
    except UNREADABLE as error:
        return _set_apart(row, scope, error)


def _set_apart(row: Row, scope: Scope, error: Exception) -> Turn:
    """A turn in the place of an entry that cannot be read: it keeps its place in the log, and no window contains it."""
    note_damage(str(row[0]), keys(scope) | {"id": row[1]}, kind_of(error))
    times = [_moment_or_none(row[place]) for place in (7, 8)]
    at, created = times[0] or times[1] or _LONG_AGO, times[1] or times[0] or _LONG_AGO
    status = "open" if row[2] is None else "aborted"
    return Turn(row[1], scope, row[2], status, DAMAGED, None, (), at, created, 0, 0, 0, "")


def _moment_or_none(stored: Any) -> datetime | None:
    try:
        return encoding.moment(stored)
    except UNREADABLE:
        return None


def exact_entry(row: Row, scope: Scope) -> Entry:
    kind, entry_id, seq, created = row[0], row[1], row[2], row[8]
    if kind == "turn":
        return exact_turn(row, scope)
    if kind == "reset":
        return Reset(entry_id, scope, seq, encoding.moment(created))
    said = encoding.from_json(row[13])
    said |= {name: tuple(said[name]) for name in ("anchors", "archive_refs")}
    said |= {"created": encoding.moment(created), "tokens": row[11], "counter": row[12]}
    return Checkpoint(entry_id, scope, seq, **said)


def checkpoint_metadata(checkpoint: Checkpoint) -> str:
    """The fields of a checkpoint that `entry_of` reads besides the columns that every entry has."""
    values = {name: getattr(checkpoint, name) for name in _IN_METADATA}
    if checkpoint.fallback_reason is not None:
        values["fallback_reason"] = checkpoint.fallback_reason
    return encoding.to_json(values)


def checkpoint_of(row: Row, scope: Scope) -> Checkpoint:
    """The columns of `conversation_summaries` in the statement `view`."""
    return encoding.record_of(Checkpoint, (row[0], scope, *row[1:]))


def head_and_checkpoint(row: Row, scope: Scope) -> tuple[ConversationInfo, Checkpoint | None, Row]:
    """The first columns of the statement `view`, and what follows them."""
    head, rest = head_of(row[:_HEAD_COLUMNS], scope), row[_HEAD_COLUMNS:]
    summary, rest = rest[:_CHECKPOINT_COLUMNS], rest[_CHECKPOINT_COLUMNS:]
    return head, None if summary[0] is None else checkpoint_of(summary, head.scope), rest


def of_tenant(record: type[R], tenant: str) -> Callable[[Row], R]:
    """Reads the fragment of a record: its fields in their order, with the user and the conversation in the place of the scope."""
    return lambda row: encoding.record_of(record, (row[0], Scope(tenant, row[1], row[2]), *row[3:]))


def values_of(record: Any) -> Values:
    """A record with a scope as the parameters of the statement that writes it."""
    return {**keys(record.scope), **encoding.field_values(record)}


def part_of(scope: Scope) -> str:
    """Which of the three statements of a list fits a scope."""
    if scope.conversation is not None:
        return "conversation"
    return "tenant" if scope.user is None else "user"
