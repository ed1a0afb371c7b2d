"""Rows of the log become records."""

from collections.abc import Sequence
from typing import Any

from pagefile.records import Checkpoint, Entry, Head, Reset, Scope, Turn
from pagefile.stores.encoding import from_json, text_steps, text_time

Row = Sequence[Any]
Values = dict[str, Any]

#: How many columns the fragments `head` and `checkpoint` of log.sql have.
HEAD_COLUMNS = 10
CHECKPOINT_COLUMNS = 11


def keys(scope: Scope) -> Values:
    """The scope as the parameters that every statement calls alike."""
    return {"tenant": scope.tenant, "conversation": scope.conversation, "user": scope.user}


def head_of(row: Row, scope: Scope) -> Head:
    """The fragment `head`; the scope gets the conversation's owner."""
    owner, agent, created, updated, last, reset, covered, turns, live_turns, live_tokens = row
    owned = Scope(scope.tenant, owner, scope.conversation)
    times = text_time(created), text_time(updated)
    return Head(owned, agent, *times, last, reset, covered, turns, live_turns, live_tokens)


def turn_of(row: Row, scope: Scope) -> Turn:
    """The fragment `entry` of a row of kind `turn`."""
    (
        _,
        turn_id,
        seq,
        status,
        query,
        answer,
        steps,
        at,
        created,
        user_tokens,
        assistant_tokens,
        tokens,
        counter,
        extra,
    ) = row
    return Turn(
        turn_id,
        scope,
        seq,
        status,
        query,
        answer,
        text_steps(steps),
        text_time(at),
        text_time(created),
        user_tokens,
        assistant_tokens,
        tokens,
        counter,
        from_json(extra) or {},
    )


def entry_of(row: Row, scope: Scope) -> Entry:
    """The fragment `entry` of any row."""
    kind, entry_id, seq, created = row[0], row[1], row[2], row[8]
    if kind == "turn":
        return turn_of(row, scope)
    if kind == "reset":
        return Reset(entry_id, scope, seq, text_time(created))
    fields = from_json(row[13])
    return Checkpoint(
        id=entry_id,
        scope=scope,
        seq=seq,
        version=fields["version"],
        summary=fields["summary"],
        covered_through_seq=fields["covered_through_seq"],
        covered_turns=fields["covered_turns"],
        created=text_time(created),
        tokens=row[11],
        counter=row[12],
        anchors=tuple(fields["anchors"]),
        archive_refs=tuple(fields["archive_refs"]),
    )


def checkpoint_of(row: Row, scope: Scope) -> Checkpoint:
    """The columns of `conversation_summaries` in the statement `view`."""
    summary_id, seq, version, summary, covered, covered_turns, created, tokens, counter, anchors, refs = row
    return Checkpoint(
        id=summary_id,
        scope=scope,
        seq=seq,
        version=version,
        summary=summary,
        covered_through_seq=covered,
        covered_turns=covered_turns,
        created=text_time(created),
        tokens=tokens,
        counter=counter,
        anchors=tuple(from_json(anchors)),
        archive_refs=tuple(from_json(refs)),
    )
