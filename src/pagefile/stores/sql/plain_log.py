"""Writes turns in several plain statements, for a database in which a statement costs no round trip."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from pagefile.ports import NO_LABELS, Extend, Labels, TurnChange, TurnDraft, epoch_of
from pagefile.records import Turn, utc
from pagefile.stores import rules, session
from pagefile.stores.changing import changed
from pagefile.stores.digests import turn_digest
from pagefile.stores.encoding import label_values, stored_draft, turn_texts
from pagefile.stores.packing import Blob
from pagefile.stores.sql.epochs import check_writable
from pagefile.stores.sql.log import SqlTurnLog, entry_by_id, turn_in_place
from pagefile.stores.sql.media import attach, packed_blobs
from pagefile.stores.sql.plays import Play, Values, count
from pagefile.stores.sql.sessions import tell_session
from pagefile.stores.sql.state import state_of


class PlainTurnLog(SqlTurnLog):
    """The turn log in `ai_message`, with its counters in `conversations`."""

    async def append(self, draft: TurnDraft) -> Turn:
        rules.conversation_of(draft.scope)
        texts = _texts(draft)
        stored, blobs = (
            stored_draft(draft),
            await packed_blobs(self._player, draft.blobs) if draft.blobs else {},
        )
        return await self._player.write(lambda: self._append(stored, texts, blobs))

    async def advance(self, change: TurnChange) -> Turn:
        rules.conversation_of(change.scope)
        blobs = await packed_blobs(self._player, change.blobs) if isinstance(change, Extend) else {}
        return await self._player.write(lambda: self._advance(change, blobs))

    def _append(self, draft: TurnDraft, texts: Values, blobs: Mapping[str, Blob]) -> Play[Turn]:
        if draft.epoch is not None:
            yield from check_writable(draft.epoch, [draft.scope])
        now, state = self._now(), (yield from state_of(draft.scope))
        seq = state.next_seq if draft.status == "done" else None
        turn = turn_in_place(draft, seq, rules.stamp(now, state.last_created))
        values = _values(turn, now, texts)
        if not (yield "count", "turn_insert", values):
            return rules.check_repeat((yield from entry_by_id(draft.scope, draft.id)), draft)
        agent, known = draft.agent or state.agent, state.knows(draft)
        yield from _tell(values, turn, agent, draft.labels, known=known)
        if blobs:
            yield from attach(turn.scope, draft, turn.id, blobs)
        return turn

    def _advance(self, change: TurnChange, blobs: Mapping[str, Blob]) -> Play[Turn]:
        yield from check_writable(epoch_of(change), [change.scope])
        now, state = self._now(), (yield from state_of(change.scope))
        turn = yield from entry_by_id(change.scope, change.turn_id)
        if not isinstance(turn, Turn):
            raise rules.no_turn(change.turn_id)
        if turn.status != "open":
            return rules.check_ended(turn, change)
        if rules.is_there(turn, change):
            return turn
        turn = changed(turn, change)
        if turn.status != "open":
            turn = replace(turn, seq=state.next_seq, created=rules.stamp(now, state.last_created))
        values = _values(turn, now, _texts(turn))
        yield from count("turn_update", values)
        yield from _tell(values, turn, state.agent)
        if isinstance(change, Extend):
            yield from attach(turn.scope, change, turn.id, blobs)
        return turn

    def _put_turn(self, turn: Turn, now: datetime, *, restored: bool, agent: str | None) -> Play[None]:
        state = yield from state_of(turn.scope)
        if not restored:
            seq = None if turn.status == "open" else state.next_seq
            turn = replace(turn, seq=seq, created=rules.stamp(now, state.last_created))
        values = _values(turn, now, _texts(turn))
        yield from count("turn_insert", values)
        yield from _tell(values, turn, agent or state.agent)


def _texts(turn: Turn | TurnDraft) -> Values:
    """The JSON columns of a turn, and the digest of all it says."""
    texts = turn_texts(turn)
    return {**texts, "digest": turn_digest(turn, texts)}


def _values(turn: Turn, now: datetime, texts: Values) -> Values:
    return {
        "id": turn.id,
        "tenant": turn.scope.tenant,
        "conversation": turn.scope.conversation,
        "user": turn.scope.user,
        "query": turn.user,
        "answer": turn.assistant,
        "at": utc(turn.at),
        "created": turn.created,
        "now": now,
        "seq": turn.seq,
        "status": turn.status,
        "user_tokens": turn.user_tokens,
        "assistant_tokens": turn.assistant_tokens,
        "tokens": turn.tokens,
        "counter": turn.counter,
        **texts,
    }


def _tell(
    values: Values, turn: Turn, agent: str | None, labels: Labels = NO_LABELS, *, known: bool = False
) -> Play[None]:
    """Count the turn in its conversation and, when it is done, in the session; `values` are its own.

    `known`: the turn says nothing new of the conversation, as most do.
    """
    values["agent"] = agent
    if not known:
        values |= label_values(labels)
    if turn.seq is None:
        yield from count("conversation_touch", values)
        return
    done = turn.status == "done"
    values["done_turns"], values["live_tokens"] = int(done), turn.tokens if done else 0
    yield "count", "conversation_goes_on" if known else "conversation_turn", values
    if done:
        values["seconds"] = session.seconds(turn.created)
        yield from tell_session("session_turn", values, turn.scope)
