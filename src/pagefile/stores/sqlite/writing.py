"""What the verbs of the log write, row by row, in the transaction they are given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pagefile.ports import NO_LABELS, Labels, TurnDraft
from pagefile.records import RESET_QUERY, Checkpoint, Entry, Head, Reset, Scope, Turn, utc
from pagefile.stores import rules, session
from pagefile.stores.changing import checkpoint_values
from pagefile.stores.digests import turn_digest
from pagefile.stores.encoding import label_values, text_time, time_text, to_json, turn_texts
from pagefile.stores.packing import Blob
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.media import attach
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import COUNTED_COLUMNS, Row, Values, entry_of, head_of, keys


@dataclass(frozen=True, slots=True)
class State:
    """A conversation as a write finds it. Most writes need only a little of it: the rest is made when asked for."""

    scope: Scope
    #: The statement `state`; None when nobody wrote to the conversation yet.
    row: Row | None
    next_seq: int
    last_created: datetime | None

    @property
    def head(self) -> Head:
        return (
            rules.no_head(self.scope) if self.row is None else head_of(self.row[:COUNTED_COLUMNS], self.scope)
        )

    @property
    def agent(self) -> str | None:
        return None if self.row is None else self.row[1]

    @property
    def versions(self) -> int:
        """How many checkpoints there were."""
        return 0 if self.row is None else self.row[COUNTED_COLUMNS + 1]

    @property
    def version(self) -> int:
        """The checkpoint in force, 0 when there is none."""
        return self.versions if self.row is not None and self.row[COUNTED_COLUMNS + 2] else 0

    def knows(self, draft: TurnDraft) -> bool:
        """Whether a done turn tells nothing new of the conversation itself."""
        row = self.row
        return (
            row is not None
            and draft.status == "done"
            and draft.agent in (None, row[1])
            and draft.labels == NO_LABELS
        )


def restore_turn(connection: Connection, turn: Turn, now: datetime, agent: str | None) -> None:
    values = turn_values(turn, now, texts_of(turn))
    connection.execute(sql("turn_insert"), values)
    tell_conversation(connection, values, turn, agent)


def attach_restored(
    connection: Connection, scope: Scope, turns: Sequence[Turn], blobs: Mapping[str, Blob]
) -> None:
    for turn in turns if blobs else ():
        attach(connection, scope, turn.id, rules.attached(turn, blobs), blobs)


def state_of(connection: Connection, scope: Scope) -> State:
    row: Any = connection.execute(sql("state"), keys(scope)).fetchone()
    if row is None:
        return State(scope, None, 1, None)
    rules.check_owner(scope, row[0])
    last_created = row[COUNTED_COLUMNS]
    return State(scope, row, row[4] + 1, None if last_created is None else text_time(last_created))


def check_owner(connection: Connection, scope: Scope) -> None:
    """A conversation that is there is this scope's."""
    row: Any = connection.execute(sql("owner"), keys(scope)).fetchone()
    if row is not None:
        rules.check_owner(scope, row[0])


def entry_by_id(connection: Connection, scope: Scope, entry_id: str, state: State) -> Entry | None:
    row: Any = connection.execute(sql("entry_by_id"), {**keys(scope), "id": entry_id}).fetchone()
    return None if row is None else entry_of(row, state.head.scope)


def texts_of(turn: Turn | TurnDraft) -> Values:
    """The JSON columns of a turn, its time, and the digest of all it says."""
    texts, at = turn_texts(turn), time_text(turn.at)
    return {**texts, "at": at, "digest": turn_digest(turn, texts, at)}


def turn_in_place(draft: TurnDraft, state: State, created: datetime) -> Turn:
    """The turn in its place. Named one by one: `record()` makes one, and `replace` would double what that costs."""
    return Turn(
        draft.id,
        state.scope,
        state.next_seq if draft.status == "done" else None,
        draft.status,
        draft.user,
        draft.assistant,
        draft.steps,
        utc(draft.at),
        created,
        draft.user_tokens,
        draft.assistant_tokens,
        draft.tokens,
        draft.counter,
        draft.metadata,
        draft.layout,
    )


def turn_values(turn: Turn, now: datetime, texts: Values) -> Values:
    created = time_text(turn.created)
    return {
        "id": turn.id,
        "tenant": turn.scope.tenant,
        "conversation": turn.scope.conversation,
        "user": turn.scope.user,
        "query": turn.user,
        "answer": turn.assistant,
        "create_time": created,
        "now": created if turn.created == now else time_text(now),
        "seq": turn.seq,
        "kind": "turn",
        "status": turn.status,
        "user_tokens": turn.user_tokens,
        "assistant_tokens": turn.assistant_tokens,
        "tokens": turn.tokens,
        "counter": turn.counter,
        **texts,
    }


def _marker_values(marker: Checkpoint | Reset, now: datetime) -> Values:
    created = time_text(marker.created)
    return {
        **keys(marker.scope),
        "id": marker.id,
        "create_time": created,
        "now": time_text(now),
        "seq": marker.seq,
        "status": "done",
        "at": created,
        "steps": None,
        "metadata": None,
        "messages": None,
        "digest": None,
        "user_tokens": 0,
        "assistant_tokens": 0,
        "tokens": 0,
        "counter": "",
        "seconds": session.seconds(marker.created),
    }


def write_checkpoint(
    connection: Connection, checkpoint: Checkpoint, text: str, now: datetime, reset_seq: int
) -> Checkpoint:
    covered = checkpoint.covered_through_seq
    coverage: Any = connection.execute(
        sql("coverage"), {**keys(checkpoint.scope), "covered": covered, "reset_seq": reset_seq}
    ).fetchone()
    checkpoint = replace(checkpoint, covered_turns=coverage[0])
    values = {
        **_marker_values(checkpoint, now),
        **checkpoint_values(checkpoint, text, coverage),
        "turn_count": None,
        "mode": session.SUMMARY_N,
        "checkpoint": checkpoint.id,
    }
    for statement in ("turn_insert", "summary_put", "conversation_checkpoint"):
        connection.execute(sql(statement), values)
    _update_session(connection, "session_marker", values, checkpoint.scope)
    return checkpoint


def write_reset(connection: Connection, reset: Reset, now: datetime) -> None:
    values = {
        **_marker_values(reset, now),
        "query": RESET_QUERY,
        "answer": None,
        "kind": "reset",
        "turn_count": 0,
        "summary": "",
        "mode": session.FULL_HISTORY,
        "checkpoint": "",
    }
    for statement in ("turn_insert", "conversation_reset", "summary_drop"):
        connection.execute(sql(statement), values)
    _update_session(connection, "session_marker", values, reset.scope)


def tell_conversation(
    connection: Connection,
    values: Values,
    turn: Turn,
    agent: str | None,
    labels: Labels = NO_LABELS,
    *,
    known: bool = False,
) -> None:
    """Count the turn in its conversation and, when it is done, in the session; `values` are its own.

    `known`: the turn says nothing new of the conversation, as most do.
    """
    values["agent"] = agent
    if not known:
        values |= label_values(labels)
    if turn.seq is None:
        connection.execute(sql("conversation_touch"), values)
        return
    done = turn.status == "done"
    values["done"], values["live_tokens"] = int(done), turn.tokens if done else 0
    connection.execute(sql("conversation_goes_on" if known else "conversation_turn"), values)
    if done:
        values["seconds"] = session.seconds(turn.created)
        _update_session(connection, "session_turn", values, turn.scope)


def _update_session(connection: Connection, statement: str, values: Values, scope: Scope) -> None:
    connection.execute(sql(statement), values)
    if not connection.changes():
        blank = to_json(session.blank(scope))
        connection.execute(sql("session_put"), {**keys(scope), "value": blank})
        connection.execute(sql(statement), values)
