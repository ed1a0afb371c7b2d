"""The turn log in several plain statements, for a database in which a statement costs no round trip."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pagefile import ports
from pagefile.records import ConversationInfo, Entry, Scope, Turn, utc
from pagefile.stores import rules, session
from pagefile.stores.encoding import Blob, label_values, stored_draft
from pagefile.stores.sql.log import SqlTurnLog, entry_by_id, state_of
from pagefile.stores.sql.pages import attach, packed_blobs
from pagefile.stores.sql.plays import Play, Values, count, each, row, rows
from pagefile.stores.sql.reader import SqlReader, check_writable, entry_values, epoch_now, owner_of
from pagefile.stores.sql.rows import (
    entry_of,
    head_and_checkpoint,
    keys,
    spoken_of,
    turn_columns,
    turn_of,
    turn_values,
)
from pagefile.stores.sql.sessions import profile, tell_session


class PlainTurnLog(SqlTurnLog):
    async def append(self, draft: ports.TurnDraft) -> Turn:
        rules.conversation_of(draft.scope)
        texts = turn_columns(draft)
        stored = stored_draft(draft)
        blobs = await packed_blobs(self._player, draft.blobs) if draft.blobs else {}
        return await self._player.write(lambda: self._append(stored, texts, blobs))

    async def advance(self, change: ports.TurnChange) -> Turn:
        rules.conversation_of(change.scope)
        blobs = await packed_blobs(self._player, change.blobs) if isinstance(change, ports.Extend) else {}
        return await self._player.write(lambda: self._advance(change, blobs))

    def _append(self, draft: ports.TurnDraft, texts: Values, blobs: Mapping[str, Blob]) -> Play[Turn]:
        if draft.epoch is not None:
            yield from check_writable(draft.epoch, [draft.scope])
        now, state = self._now(), (yield from state_of(draft.scope))
        seq = state.next_seq if draft.status == "done" else None
        turn = rules.turn_in_place(draft, seq, rules.stamp(now, state.last_created))
        values = _values(turn, now, texts)
        if not (yield "count", "turn_insert", values):
            return rules.check_repeat((yield from entry_by_id(draft.scope, draft.id)), draft)
        labels = None if state.knows(draft) else draft.labels
        yield from _tell(values, turn, draft.agent or state.agent, labels)
        if blobs:
            yield from attach(turn.scope, draft, turn.id, blobs)
        return turn

    def _advance(self, change: ports.TurnChange, blobs: Mapping[str, Blob]) -> Play[Turn]:
        yield from check_writable(ports.epoch_of(change), [change.scope])
        now, state = self._now(), (yield from state_of(change.scope))
        turn = yield from entry_by_id(change.scope, change.turn_id)
        if not isinstance(turn, Turn):
            raise rules.no_turn(change.turn_id)
        if rules.stays(turn, change):
            return turn
        turn = rules.changed(turn, change)
        if turn.status != "open":
            turn = replace(turn, seq=state.next_seq, created=rules.stamp(now, state.last_created))
        values = _values(turn, now, turn_columns(turn))
        yield from count("turn_update", values)
        yield from _tell(values, turn, state.agent)
        if isinstance(change, ports.Extend):
            yield from attach(turn.scope, change, turn.id, blobs)
        return turn

    def _put_turn(self, turn: Turn, now: datetime, *, restored: bool, agent: str | None) -> Play[None]:
        state = yield from state_of(turn.scope)
        if not restored:
            seq = None if turn.status == "open" else state.next_seq
            turn = replace(turn, seq=seq, created=rules.stamp(now, state.last_created))
        values = _values(turn, now, turn_columns(turn))
        yield from count("turn_insert", values)
        yield from _tell(values, turn, agent or state.agent)


def _values(turn: Turn, now: datetime, texts: Values) -> Values:
    values = turn_values(turn, now, texts)
    values["at"], values["created"], values["seq"] = utc(turn.at), turn.created, turn.seq
    return values


def _tell(
    values: Values, turn: Turn, agent: str | None, labels: ports.Labels | None = ports.NO_LABELS
) -> Play[None]:
    """Count the turn in its conversation and, when it is complete, in the session; `values` are its parameters.

    `labels` is None if the turn changes nothing else about the conversation, as is usual.
    """
    values["agent"] = agent
    if labels is not None:
        values |= label_values(labels)
    if turn.seq is None:
        yield from count("conversation_touch", values)
        return
    values["done_turns"], values["live_tokens"] = int(turn.counts), turn.tokens if turn.counts else 0
    yield "count", "conversation_goes_on" if labels is None else "conversation_turn", values
    if turn.status == "done":
        values["seconds"] = session.seconds(turn.created)
        yield from tell_session("session_turn", values, turn.scope)


class PlainReader(SqlReader):
    """Reads the log for windows, lists and indexes, in a database in which a statement costs no round trip."""

    async def view(self, request: ports.ViewRequest) -> ports.LogView:
        rules.conversation_of(request.scope)
        return await self._player.read(lambda: _view(request), often=(request.scope, request.budget_tokens))

    async def entries(self, query: ports.EntryQuery) -> list[Entry]:
        rules.conversation_of(query.scope)
        return await self._player.read(lambda: _entries(query))

    async def around(self, scope: Scope, refs: Sequence[ports.TurnRef]) -> list[ports.Neighbourhood]:
        return await self._player.read(lambda: _around(scope, refs))

    async def at(self, scope: Scope, refs: Sequence[ports.TurnRef]) -> list[Turn]:
        return await self._player.read(lambda: _at(scope, refs))


def _view(request: ports.ViewRequest) -> Play[ports.LogView]:
    """The head, the current checkpoint, the open turn, the profile, and as many turns as requested."""
    scope = request.scope
    found = yield from row("view", keys(scope))
    if found is None:
        if request.open_turn is not None:
            raise rules.no_turn(request.open_turn)
        return ports.LogView(rules.no_head(scope, (yield from epoch_now())), None, ())
    rules.check_owner(scope, found[0])
    head, checkpoint, rest = head_and_checkpoint(found, scope)
    turns = (yield from _live_turns(head, request)) if head.live_turns else ()
    most = rules.MOST_RUNNING + (request.open_turn is not None)
    asked = {**keys(scope), "open_turn": request.open_turn, "reset_seq": head.reset_seq, "limit": most}
    running = [turn_of(one, head.scope) for one in (yield "rows", "turns_running", asked)]
    return rules.view_of(request, head, checkpoint, turns, running[::-1], profile(rest, head.scope))


def _live_turns(head: ConversationInfo, request: ports.ViewRequest) -> Play[tuple[Turn, ...]]:
    # As many at once as would fit at average length, and one that does not.
    expected = request.budget_tokens * head.live_turns // max(1, head.live_tokens)
    limit = 1 + max(request.min_turns, min(expected, head.live_turns))
    after = max(head.reset_seq, head.covered_through_seq)
    values = {**keys(head.scope), "after_seq": after, "before_seq": head.last_seq + 1, "limit": limit}
    taken: list[Turn] = []
    tokens = 0
    while True:
        found = yield from rows("turns_back", values)
        for one in found:
            turn = turn_of(one, head.scope)
            tokens += turn.tokens
            if tokens > request.budget_tokens and len(taken) >= request.min_turns:
                return tuple(reversed(taken))
            taken.append(turn)
        if len(found) < values["limit"]:
            return tuple(reversed(taken))
        # They are shorter than average, so the average no longer predicts how many more fit.
        values["before_seq"], values["limit"] = found[-1][2], 2 * values["limit"]


def _entries(query: ports.EntryQuery) -> Play[list[Entry]]:
    scope = yield from owner_of(query.scope)
    if scope is None:
        return []
    rules.check_owner(query.scope, scope.user)
    values, limit = entry_values(query), max(0, query.limit)
    # Open turns come last, so the newest entries begin with them.
    order = ("entries_open_back", "entries_ended_back") if query.newest else ("entries_ended", "entries_open")
    found: list[Entry] = []
    for statement in order:
        values["limit"] = limit - len(found)
        found += yield from each(statement, values, lambda one: entry_of(one, scope))
    return found[::-1] if query.newest else found


def _homes(scope: Scope, refs: Sequence[ports.TurnRef]) -> Play[dict[str, Scope]]:
    """The conversations of turns that this scope sees: most turns found together come from a few."""
    homes: dict[str, Scope] = {}
    for name in dict.fromkeys(ref.conversation for ref in refs):
        if scope.conversation in {None, name}:
            home = yield from owner_of(replace(scope, conversation=name))
            if home is not None and rules.sees(scope, home.user):
                homes[name] = home
    return homes


def _at(scope: Scope, refs: Sequence[ports.TurnRef]) -> Play[list[Turn]]:
    there: dict[ports.TurnRef, Turn] = {}
    for name, home in (yield from _homes(scope, refs)).items():
        values = {**keys(home), "seqs": [ref.seq for ref in refs if ref.conversation == name]}
        for one in (yield "rows", "turns_at", values):
            there[ports.TurnRef(name, one[2])] = spoken_of(one, home)
    return [there[ref] for ref in refs if ref in there]


def _around(scope: Scope, refs: Sequence[ports.TurnRef]) -> Play[list[ports.Neighbourhood]]:
    homes = yield from _homes(scope, refs)
    near: list[ports.Neighbourhood] = []
    for ref in refs:
        home = homes.get(ref.conversation)
        if home is None:
            continue
        # Yielded as they are: every recall asks this for each of its hits.
        values = {**keys(home), "seq": ref.seq, "after_seq": ref.seq, "limit": 1}
        upto = [spoken_of(one, home) for one in (yield "rows", "turns_up_to", values)]
        if upto and upto[0].seq == ref.seq:
            after = [spoken_of(one, home) for one in (yield "rows", "turns_after", values)]
            near.append(
                ports.Neighbourhood(upto[0], upto[1] if len(upto) > 1 else None, after[0] if after else None)
            )
    return near
