"""The episodes tier: past turns come back when a question touches them, by word, by meaning and by time.

The word index of a user lives in memory, is built from the log on first use (from stored terms, if there are
any), catches up before every recall, and is evicted under memory pressure: it can always be rebuilt. Vectors
may be behind: a turn without one is found by its words.
"""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, islice
from types import MappingProxyType
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import anyio

from pagefile import ports
from pagefile.arrays import Keyed
from pagefile.lru import Lru
from pagefile.records import Hit, JsonObject, Scope, Turn, within_time
from pagefile.text import relevance
from pagefile.text.changes import change_terms, says_otherwise
from pagefile.text.recall_gate import (
    LITTLE_SIMILARITY,
    SOME_SIMILARITY,
    Gate,
    answers,
    asks_again,
    goes_on,
    names_another_day,
    names_only_a_time,
    tells,
)
from pagefile.text.repeats import asked_before, says_more
from pagefile.text.small_talk import is_small_talk
from pagefile.text.speech import in_first_person, said_terms
from pagefile.text.standing import is_task
from pagefile.text.times import forget_times
from pagefile.text.turn_ranking import Familiarity, Found, Placed, TurnIndex
from pagefile.text.words import forget_words, is_trivial, terms
from pagefile.tiers import base
from pagefile.tiers.derivation import Derivation
from pagefile.tiers.index_lag import IndexLag
from pagefile.tiers.named_times import nothing_then
from pagefile.tiers.page_in import unpaged_results
from pagefile.tiers.turn_index import ANALYZER, THREAD_FROM, TurnVectors, terms_of
from pagefile.tiers.turn_keys import TurnKey, TurnKeys
from pagefile.window import value
from pagefile.window.budget import MAX_SHARE, recall_room
from pagefile.window.candidates import Block, Candidate
from pagefile.window.recalled import about, recalled_forms
from pagefile.window.turn_notes import is_large, status_line

#: Turns read at once: many take memory that is not given back, and hold up everything else.
_BATCH = 4000
#: From this many turns on, a search takes long enough to be worth a thread.
SEARCH_THREAD_FROM = 20_000
#: How many turns are searched by meaning.
NEAREST = 1000
#: How many turns a window considers, and the fewest tokens a turn can take: a turn not worth that many is not read.
DEPTH = 120
_LEAST_TOKENS = 10
#: Forms are made of turns that fill what a window may have for them this many times over.
_ROOM = 1.5
#: The tokens of turns beside a message that only says something, in a conversation that goes on.
_TOLD_TOKENS = 600
#: Where nothing is asked, or about something that no turn names, turns come until so many of them are expected to help.
_ENOUGH = 1.0
#: How many turns are checked for a later, different statement, and with how many that may be one in other words.
_CHECKED = 3
_CHANGES = 24
#: A turn that asked the same has at least this share of the question's words.
_ASKED_AGAIN = 0.5
#: While an encoder of our own is being loaded, a question that words do not answer waits this many times as long for its
#: vector: not as long as what waits for a window.
_LOADING = 3
#: Minimum time a recall waits for the vector of its question; a window has its own limit.
TIMEOUT_S = 10.0
#: Said in receipts while an encoder of our own is not there yet, and while vectors of a predecessor are replaced.
_STILL_LOADING = "the encoder is still being loaded"
_MOVING = "vectors of turns are being made again by another encoder: those that have none yet were searched by word only"
#: Running turns whose selection is remembered, so that their windows stay the same through a tool loop.
_CHOICES = 1000
#: How far each conversation is visible, when a past window is rebuilt.
Horizon = Callable[[], Awaitable[Mapping[str, int]]]


#: Turns by conversation and seq: a fork keeps the ids of the turns it copies.
_Places: TypeAlias = Mapping[tuple[str, int], Turn]
_NO_PLACES: _Places = MappingProxyType({})
#: A turn as it was read, and why it was found.
_Read: TypeAlias = tuple[ports.Neighbourhood, Found[TurnKey]]


@dataclass(slots=True)
class _Index:
    turns: TurnIndex[TurnKey] = field(default_factory=lambda: TurnIndex[TurnKey](TurnKeys()))
    known: dict[str, int] = field(default_factory=dict[str, int])
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def add(self, rows: list[ports.TurnTerms]) -> None:
        """Take in rows, and empty their list: to let go of thousands takes long enough to be done by whoever adds them."""
        self.turns.add(*map(_placed, rows))
        self.known.update((row.conversation, row.seq) for row in rows)
        rows.clear()


def _placed(row: ports.TurnTerms) -> Placed[TurnKey]:
    key = TurnKey(row.conversation, row.seq, row.turn_id)
    said, answered = row.said or "", row.answered or ""
    return Placed(key, key.conversation, row.at, said or answered, answered if said else "")


class _Ranking(NamedTuple):
    """Turns ranked for a question, what is known of its words, and a note on how they were found."""

    found: Sequence[Found[TurnKey]]
    familiarity: Familiarity
    note: str | None = None


class _Chosen(NamedTuple):
    """A turn that a window may show, as a trace records it."""

    conversation: str
    seq: int
    turn_id: str
    score: float
    #: None for windows of before there were values.
    value: float | None = None


class _Choice(NamedTuple):
    """What a window may show of the past, and notes on how it was found."""

    turns: Sequence[_Chosen] = ()
    notes: Sequence[str] = ()
    #: Those that were read to choose.
    read: _Places = _NO_PLACES


@dataclass(eq=False, repr=False)
class Episodes(base.OwnTier):
    """Past turns of a user, found by their words, their meaning, their neighbours, and the time a question names."""

    name = "episodes"
    pace = base.Pace(quiet_s=0.2, longest_wait_s=5.0, first_sweep_s=1.0, sweep_every_s=600.0, together=True)

    source: ports.TurnSource
    kept: ports.TermStore
    #: Computes what recall needs.
    derivation: Derivation
    counter: base.Counter
    meter: ports.Meter
    clock: ports.Clock
    _: KW_ONLY
    gate: Gate
    max_postings: int
    timeout_s: float
    timezone: str = "UTC"
    #: The share of a window that recalled turns may take while the conversation wants the room.
    max_share: float = MAX_SHARE
    by_itself: bool = True
    horizon: Horizon | None = None
    #: How far vectors may be behind before those who record wait.
    max_lag_s: float = 0.0

    def __post_init__(self) -> None:
        self._indexes: Lru[Scope, _Index] = Lru(self.max_postings, lambda index: index.turns.postings)
        self._choices: Lru[tuple[Scope, str], _Choice] = Lru(_CHOICES)
        #: Known where `lag.watch` runs: in the service.
        self.lag = IndexLag(self._without_vectors, self.max_lag_s)

    async def recall(
        self,
        scope: Scope,
        query: str,
        limit: int,
        at: datetime | None = None,
        timezone: str | None = None,
    ) -> list[Hit]:
        """The turns that best answer the query asked `at` a time, best first; in one conversation if the scope names one.

        The user's days begin where `at` says, if it is not in UTC; else in the `timezone`; else in that of the settings.
        """
        if not terms(query) or limit < 1:
            return []
        self.meter.count("pagefile_recalls_total")
        home, asked = _home(scope), self._local(at, timezone)
        for _ in range(2):
            index = await self._caught_up(home)
            timeout_s = max(TIMEOUT_S, self.timeout_s)
            ranking = await self._ranked(index, scope, query, limit, asked, timeout_s)
            # A fork keeps the ids of the turns it copies: this many may be duplicates.
            if copies := len(ranking.found) - len({one.key.turn_id for one in ranking.found}):
                ranking = await self._ranked(index, scope, query, limit * (1 + copies), asked, timeout_s)
            if (found := await self._read(home, ranking.found)) is not None:
                pairs = _each_once(zip(found, ranking.found, strict=True))
                return [_hit(near, one) for near, one in pairs][:limit]
            # Something was erased or rewritten meanwhile: rebuild the index from the log.
            self._indexes.pop(home, None)
        return []

    async def offer(self, request: base.WindowRequest) -> Sequence[Candidate]:
        """The past turns that help with the message and are not in the window anyway, each with what it is worth."""
        query = request.searched
        if not query or self.gate == "never" or is_trivial(query) or not terms(query):
            return []
        if self.gate == "auto" and is_small_talk(query):
            return []
        scope = _home(request.scope)
        for _ in range(2):
            choice = await self._chosen(scope, request)
            for note in choice.notes:
                request.note(note)
            if (turns := await self._turns(scope, choice.turns, choice.read)) is not None:
                request.traces[self.name] = [[*one] for one in choice.turns]
                return self.candidates(request, list(zip(choice.turns, turns, strict=True)))
            self._drop(scope)
        return []

    # -- catching up with the log ---------------------------------------------------------------------------------------

    async def absorb(self, turn: Turn) -> bool:
        if turn.counts:
            await self.lag.slow_down(turn.scope.tenant)
        return self.by_itself and turn.counts

    async def maintain_all(self, backlog: base.Backlog) -> None:
        if self.by_itself:
            await self.derivation.catch_up(backlog)

    async def behind(self) -> Sequence[Scope]:
        return await self.derivation.behind() if self.by_itself else ()

    async def _without_vectors(self) -> Sequence[ports.Behind]:
        await self.derivation.warm_up()
        return await self.derivation.without_vectors() if self.by_itself else ()

    @property
    def drains(self) -> bool:
        return self.derivation.warm

    async def forget(self, scope: Scope) -> base.Counts:
        self._let_go(scope)
        await self.derivation.erased()
        # A concurrent query may have read it again.
        self._let_go(scope)
        return {}

    def _let_go(self, scope: Scope) -> None:
        """Discard everything cached that may contain what was said there."""
        self._drop(scope)
        forget_words()
        forget_times()
        if self.derivation.vectors is not None:
            self.derivation.vectors.forget()

    def _drop(self, scope: Scope) -> None:
        owner = Scope(scope.tenant, scope.user)
        self._indexes.drop(lambda home: base.within(home, owner))
        self._choices.clear()

    async def describe(self) -> JsonObject:
        return {"recall": await self.derivation.describe()}

    # -- windows, and their replay: `offer` records positions, and the log has the texts ------------------------------

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        return {}

    async def replay(self, past: base.PastWindow) -> base.Tier:
        """The turns that were chosen, as long as the window is built from the same turns."""
        if self.name not in past.traces or past.changed("query", "recall", "timezone"):
            return self
        rows = [_Chosen(*row) for row in base.traced_rows(past.traces[self.name])]
        return _Replayed(self, past, rows)

    # -- ranking ------------------------------------------------------------------------------------------------------

    async def _chosen(self, scope: Scope, request: base.WindowRequest) -> _Choice:
        """What to show: the same for every window of a running turn."""
        running = request.view.open_turn
        if running is None:
            return await self._choose(scope, request, None)
        # Callers choose ids: another conversation's turn may have the same.
        known = (request.scope, running.id)
        if known not in self._choices:
            choice = await self._choose(scope, request, running.at)
            # They are read again for the next window: they may be erased or changed until then.
            self._choices[known] = choice._replace(read=_NO_PLACES)
            return choice
        return self._choices[known]

    async def _choose(self, scope: Scope, request: base.WindowRequest, at: datetime | None) -> _Choice:
        query = request.searched
        # One that is too large to be shown in full may be found for what is not shown.
        seen = {turn.id for turn in request.view.turns if not is_large(turn, request.window_tokens)}
        index = await self._caught_up(scope)
        if len(index.turns) <= len(seen):
            # The window holds everything there is.
            return _Choice()
        self.meter.count("pagefile_recalls_total")
        asked = request.at or self._local(at, request.view.head.timezone)
        depth = DEPTH + min(len(seen), DEPTH)
        rank = partial(self._ranked, index, scope, query, depth, asked, least=LITTLE_SIMILARITY)
        # A conversation that was reset starts over: what came before it is found when it is searched for, and by itself never.
        here, reset = request.scope.conversation, request.view.head.reset_seq

        def may_show(one: TurnKey | _Chosen) -> bool:
            return one.turn_id not in seen and (one.conversation != here or one.seq > reset)

        async def valued(ranking: _Ranking) -> list[_Chosen]:
            fresh = [one for one in ranking.found if may_show(one.key)][:DEPTH]
            asked = await self._asked_before(scope, query, fresh)
            return self._valued(query, fresh, asked, ranking.familiarity, in_talk=bool(seen))

        # What words alone find need not wait for the encoder.
        ranking = await rank(
            timeout_s=None if self._loading(index) else self.timeout_s, vectors=request.vectors
        )
        if not (chosen := await valued(ranking)) and self._loading(index):
            ranking = await rank(timeout_s=self.timeout_s, vectors=request.vectors)
            chosen = await valued(ranking)
        notes = [note for note in (ranking.note, self.lag.note(scope)) if note]
        # More do not fit, whatever they are worth.
        chosen = chosen[: max(1, request.window_tokens // _LEAST_TOKENS)]
        if request.project is not None:
            chosen = await self._of_project(scope, request.project, chosen)
        read = _by_place(await self._turns(scope, chosen) or ())
        newer = [*_newer(index, chosen, read), *await self._changed(scope, index, chosen, read)]
        newer = [one for one in newer if may_show(one)]
        if request.project is not None:
            newer = await self._of_project(scope, request.project, newer)
        return _Choice(_with(chosen, newer), notes, read)

    async def _changed(
        self, scope: Scope, index: _Index, chosen: Sequence[_Chosen], read: _Places
    ) -> list[_Chosen]:
        """The last turn that says, in other words, that the best of them no longer hold."""
        best = [one for one in _best(chosen) if one[:2] in read]
        later = {one: index.turns.later(TurnKey(*one[:3]), change_terms(), _CHANGES) for one in best}
        refs = [ports.TurnRef(*place) for place in {key[:2] for keys in later.values() for key in keys}]
        there = _by_place(await self.source.at(scope, refs) if refs else ())
        found: list[_Chosen] = []
        for one, keys in later.items():
            old = read[one[:2]].text
            newer = (
                key
                for key in keys
                if (turn := there.get(key[:2])) and says_otherwise(old, turn.user or "", turn.assistant or "")
            )
            found += [_Chosen(*key, one.score, one.value) for key in islice(newer, 1)]
        return found

    async def _of_project(self, scope: Scope, project: str, chosen: Sequence[_Chosen]) -> list[_Chosen]:
        """Without turns of other projects: how things are done there is found when it is searched for, and by itself never."""
        other: set[str] = set()
        for name in {one.conversation for one in chosen}:
            heads = await self.derivation.log.heads(
                ports.ConversationQuery(replace(scope, conversation=name), 1)
            )
            other |= {name for head in heads if head.project not in {None, project}}
        return [one for one in chosen if one.conversation not in other]

    async def _asked_before(
        self, scope: Scope, query: str, fresh: Sequence[Found[TurnKey]]
    ) -> Mapping[TurnKey, bool]:
        """Those of the turns that asked the same, and whether their answers say anything."""
        alike = [one for one in fresh if one.parts["coverage"] >= _ASKED_AGAIN]
        refs = [ports.TurnRef(one.key.conversation, one.key.seq) for one in alike]
        there = _by_place(await self.source.at(scope, refs) if refs else ())
        turns = {one.key: there[one.key[:2]] for one in alike if one.key[:2] in there}
        return {
            key: says_more(query, turn.assistant or "")
            for key, turn in turns.items()
            if asked_before(query, turn.user or "")
        }

    def _valued(
        self,
        query: str,
        found: Sequence[Found[TurnKey]],
        asked: Mapping[TurnKey, bool],
        familiarity: Familiarity,
        *,
        in_talk: bool,
    ) -> list[_Chosen]:
        """Those that are worth the fewest tokens a turn may take; none if the message does not need memory."""
        fresh = [one for one in found if asked.get(one.key, True)]
        # A question about a time alone asks for everything said then.
        if names_only_a_time(query) and (then := [one for one in fresh if one.parts["inside"]]):
            return [_Chosen(*one.key, one.score, 1.0) for one in then]
        # What was said right before a message is in the window anyway, and may be all that it leans on, however small the memory.
        leans = in_talk and goes_on(query)
        known = familiarity._replace(turns=relevance.FEW_TURNS) if leans else familiarity
        need = relevance.needs(query, fresh, known) if self.gate == "auto" else 1.0
        if need < _opening(query, fresh, familiarity, leans=leans):
            return []
        # Beside an earlier answer to the same question, what was said since counts as much as it would alone.
        others = [one for one in fresh if one.key not in asked]
        chances = {one.key: chance for one, chance in zip(fresh, relevance.helps(fresh), strict=True)}
        for one, chance in zip(others, relevance.helps(others), strict=True):
            chances[one.key] = max(chance, chances[one.key])
        valued = [(one, need * chances[one.key]) for one in fresh]
        if self.gate == "auto" and in_talk and (familiarity.names_unknown or tells(query)):
            valued = _enough(valued)
        least = 0.0
        if self.gate == "auto" and relevance.by_meaning(fresh):
            least = value.least_beside([worth for _, worth in valued], familiarity.turns)
        return [
            _Chosen(*one.key, one.score, round(worth, 6))
            for one, worth in valued
            if value.worth(worth, _LEAST_TOKENS) and worth >= least
        ]

    async def _ranked(
        self,
        index: _Index,
        scope: Scope,
        query: str,
        limit: int,
        asked: datetime,
        timeout_s: float | None,
        vectors: base.Vectors | None = None,
        least: float = SOME_SIMILARITY,
    ) -> _Ranking:
        """The turns that answer a question; by words alone if there is no time for its vector."""
        # People refer to themselves as "I": their name would be similar to everything they say.
        meant = in_first_person(query, index.turns.speakers)
        meaning, note = None, None
        if len(index.turns) and timeout_s is not None:
            meaning, note = await self._meaning(index, scope, meant, timeout_s, vectors)
        familiarity = index.turns.familiarity(query)
        search = partial(
            index.turns.search,
            query,
            limit,
            scope.conversation,
            meaning=meaning,
            today=asked.date(),
            zone=asked.tzinfo or UTC,
        )
        found = await base.off_loop(search, len(index.turns), SEARCH_THREAD_FROM)
        found = [one for one in found if answers(one.parts, foreign=familiarity.foreign, least=least)]
        return _Ranking(found, familiarity, note)

    def _local(self, at: datetime | None, timezone: str | None) -> datetime:
        """The time of a question by the user's clock."""
        if at is not None and at.utcoffset():
            return at
        return (at or self.clock.now()).astimezone(ZoneInfo(timezone or self.timezone))

    async def _meaning(
        self, index: _Index, scope: Scope, question: str, timeout_s: float, shared: base.Vectors | None
    ) -> tuple[Keyed | None, str | None]:
        """How similar the turns closest in meaning are, by `TurnKey`, and a note for the receipt, if any. It never fails."""
        vectors, health = self.derivation.vectors, self.derivation.health
        if vectors is None:
            return None, None
        loading = self._loading(index)
        timeout_s = max(timeout_s, _LOADING * self.timeout_s) if loading else timeout_s
        timeout_s = self.derivation.loading.or_longer(timeout_s)
        if not health.resting:
            # Whatever an embedder or a vector store raises: recall by word still works.
            with base.guarded(health.failed):
                try:
                    with anyio.fail_after(timeout_s):
                        found = await self._similarities(vectors, scope, question, shared)
                        found = await self._with_fresh(found, vectors, index, scope, question, shared)
                except TimeoutError as error:
                    if loading:
                        # It goes on in its thread, and the next question may find it.
                        return None, f"past turns were searched by word only: {_STILL_LOADING}"
                    raise TimeoutError(
                        f"the question's vector was not ready within {timeout_s:g} s (embedder.query_timeout_s)"
                    ) from error
                health.well()
                return found, _MOVING if vectors.replaced else None
        return None, f"past turns were searched by word only: {health.trouble}"

    def _loading(self, index: _Index) -> bool:
        """Whether an encoder of our own is not loaded yet, in a memory of a few turns: words alone know little of those."""
        vectors = self.derivation.vectors
        mine = vectors is not None and vectors.embedder.local and not vectors.answered
        return mine and len(index.turns) <= relevance.FEW_TURNS

    async def _similarities(
        self, vectors: TurnVectors, scope: Scope, question: str, shared: base.Vectors | None
    ) -> Keyed:
        if self.horizon is None:
            return await vectors.similarities(scope, question, NEAREST, shared)
        # For a past window twice as many, since some of them did not exist yet.
        found = await vectors.near(scope, question, 2 * NEAREST, shared)
        ends = await self.horizon()
        there = [one for one in found if one.seq <= ends.get(one.conversation, 0)]
        return Keyed.of({one[:3]: one.similarity for one in there[:NEAREST]})

    async def _with_fresh(
        self,
        found: Keyed,
        vectors: TurnVectors,
        index: _Index,
        scope: Scope,
        question: str,
        shared: base.Vectors | None,
    ) -> Keyed:
        """With turns that are not indexed yet, in a memory of a few: the first question may come before the first vector."""
        if len(index.turns) > relevance.FEW_TURNS or not self.by_itself or not vectors.embedder.local:
            return found
        fresh = index.turns.without(found.hashes)
        if not fresh or self.horizon is not None:
            return found
        read = await self.source.at(_home(scope), [ports.TurnRef(*key[:2]) for key in fresh])
        keys = [(turn.scope.conversation or "", turn.seq or 0, turn.id) for turn in read]
        similar = Keyed.of(dict(zip(keys, await vectors.similar(question, read, shared), strict=True)))
        return found.joined(similar)

    async def _read(self, home: Scope, found: Sequence[Found[TurnKey]]) -> list[ports.Neighbourhood] | None:
        """The turns themselves; None if one of them is no longer what was ranked."""
        if not found:
            return []
        refs = [ports.TurnRef(one.key.conversation, one.key.seq) for one in found]
        read = await self.source.around(home, refs)
        return read if [near.turn.id for near in read] == [one.key.turn_id for one in found] else None

    async def _turns(
        self, home: Scope, chosen: Sequence[_Chosen], known: _Places = _NO_PLACES
    ) -> list[Turn] | None:
        """The same for turns that a window may show, some of which were read just now."""
        refs = [ports.TurnRef(*one[:2]) for one in chosen if one[:2] not in known]
        read = await self.source.at(home, refs) if refs else []
        there = {**known, **_by_place(read)}
        turns = [there[one[:2]] for one in chosen if one[:2] in there]
        return turns if [turn.id for turn in turns] == [one.turn_id for one in chosen] else None

    # -- the index ----------------------------------------------------------------------------------------------------

    async def _caught_up(self, home: Scope) -> _Index:
        index = self._indexes.setdefault(home, _Index())
        async with index.lock:
            # A new process reads stored terms; later, new turns have none yet.
            cold = not index.known
            # Usually there is a turn, or none.
            limit = _BATCH if cold else ports.FEW_TURNS
            while True:
                request = ports.SinceRequest(home, dict(index.known), limit)
                rows = await self._kept_rows(request) if cold else await self._new_rows(request)
                if count := len(rows):
                    await base.off_loop(partial(index.add, rows), count, THREAD_FROM)
                if count < limit:
                    break
                limit = _BATCH
        self._indexes.trim()
        return index

    async def _kept_rows(self, request: ports.SinceRequest) -> list[ports.TurnTerms]:
        """The terms of turns, computed where none are stored."""
        rows = await self.kept.since(request, ANALYZER)
        missing = {(row.conversation, row.seq) for row in rows if row.said is None}
        if not missing:
            return rows
        made = await self._new_rows(request, missing)
        worked_out = {(row.conversation, row.seq): row for row in made}
        return [worked_out.get((row.conversation, row.seq), row) for row in rows]

    async def _new_rows(
        self, request: ports.SinceRequest, only: Container[tuple[str | None, int | None]] | None = None
    ) -> list[ports.TurnTerms]:
        turns = await self.source.since(request)
        if only is not None:
            turns = [turn for turn in turns if (turn.scope.conversation, turn.seq) in only]
        return await base.off_loop(partial(terms_of, turns), len(turns), THREAD_FROM)

    def candidates(
        self, request: base.WindowRequest, found: Sequence[tuple[_Chosen, Turn]]
    ) -> list[Candidate]:
        """Each text once, in the order of time, under the user's days."""
        now = self._local(None, request.view.head.timezone)
        zone = now.tzinfo
        told = self.gate == "auto" and bool(request.view.turns) and tells(request.searched)
        # Beside a message that only says something a turn is as short as in a window that has no more room.
        window_tokens = min(request.window_tokens, _TOLD_TOKENS) if told else request.window_tokens
        asked = tuple(dict.fromkeys(terms(request.searched)))
        said: dict[str, tuple[_Chosen, Turn, str]] = {}
        for chosen, turn in found:
            fetched = unpaged_results(turn) if turn.steps else status_line(turn, request.wording)
            said.setdefault(_wording(turn, fetched), (chosen, turn, fetched))
        ordered = sorted(said.values(), key=lambda one: (one[1].at, one[0].conversation, one[0].seq))
        names = _distinct_names(turn for _, turn, _ in ordered)
        sizes = [about(turn, window_tokens, fetched) for _, turn, fetched in ordered]
        within = self._within(request, [chosen.value or 1.0 for chosen, _, _ in ordered], sizes, told=told)
        count = self.counter.count
        nothing = nothing_then(request, request.at or now, (turn for _, turn in found))
        return nothing + [
            Candidate(
                name,
                "episodes",
                recalled_forms(turn, chosen.value or 1.0, asked, window_tokens, count, fetched)[
                    -1 if told else 0 :
                ]
                if fits
                else (),
                position,
                chosen.score,
                0 if fits else size,
                value=chosen.value,
                heading=f"{within_time(turn.at).astimezone(zone):%Y-%m-%d}",
            )
            for position, (name, (chosen, turn, fetched), (size, _), fits) in enumerate(
                zip(names, ordered, sizes, within, strict=True)
            )
        ]

    def _within(
        self,
        request: base.WindowRequest,
        values: Sequence[float],
        sizes: Sequence[tuple[int, float]],
        *,
        told: bool,
    ) -> list[bool]:
        """Which turns the window may have room for, by what they are worth per token, and a few more: others need no forms."""
        taken = min(request.view.head.live_tokens, request.window_tokens)
        room = _ROOM * max(request.window_tokens - taken, recall_room(request.window_tokens, self.max_share))
        if told:
            room = min(room, _TOLD_TOKENS)
        density = [value * share / tokens for value, (tokens, share) in zip(values, sizes, strict=True)]
        within = [False] * len(sizes)
        for place in sorted(range(len(sizes)), key=lambda place: -density[place]):
            within[place] = room > 0
            room -= sizes[place][0]
        return within


@dataclass(eq=False, repr=False)
class _Replayed(base.Tier):
    """Offers the turns that were chosen for a past window, if it is built from the same turns; else what is chosen now."""

    tier: Episodes
    past: base.PastWindow
    rows: Sequence[_Chosen]
    name = Episodes.name

    async def offer(self, request: base.WindowRequest) -> Sequence[Candidate]:
        before = request if self.past.before is None else self.past.before
        if [turn.id for turn in before.view.turns] != [turn.id for turn in request.view.turns]:
            return await self.tier.offer(request)
        refs = [ports.TurnRef(one.conversation, one.seq) for one in self.rows]
        read = await self.tier.source.at(_home(self.past.scope), refs) if refs else ()
        there = _by_place(read)
        held = [(one, turn) for one in self.rows if (turn := there.get(one[:2])) and turn.id == one.turn_id]
        return self.tier.candidates(request, held)

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        return {}


def _opening(query: str, fresh: Sequence[Found[TurnKey]], familiarity: Familiarity, *, leans: bool) -> float:
    """How likely it must be that a message needs memory, by how it is put, and whether meaning was compared."""
    meant = relevance.by_meaning(fresh)
    if leans:
        return value.OPENING_IN_TALK if meant else value.OPENING_IN_TALK_BY_WORDS
    then = any(one.parts["inside"] for one in fresh) and names_another_day(query)
    if asks_again(query) or then:
        return value.OPENING_AGAIN
    of_world = relevance.is_of_world(query) and not familiarity.names_known
    if of_world:
        return value.OPENING_OF_WORLD
    if not meant:
        return value.OPENING_BY_WORDS
    return value.OPENING_FOR_TASK if is_task(query) else value.OPENING


def _enough(valued: Iterable[tuple[Found[TurnKey], float]]) -> list[tuple[Found[TurnKey], float]]:
    """The best of them, until `_ENOUGH` are expected to help."""
    best = sorted(valued, key=lambda one: -one[1])
    return best[: 1 + bisect_left([*accumulate(worth for _, worth in best)], _ENOUGH)]


def _by_place(turns: Iterable[Turn]) -> dict[tuple[str, int], Turn]:
    return {(turn.scope.conversation or "", turn.seq or 0): turn for turn in turns}


def _best(chosen: Sequence[_Chosen]) -> list[_Chosen]:
    """Those that are checked for a later, different statement."""
    return sorted(chosen, key=lambda one: -(one.value or 0.0))[:_CHECKED]


def _newer(index: _Index, chosen: Sequence[_Chosen], read: _Places) -> list[_Chosen]:
    """What was said later about the same as the best of them, which must not be shown without it."""
    pairs = [
        (one, index.turns.newer(TurnKey(*one[:3]), said_terms(read[one[:2]].user or "")))
        for one in _best(chosen)
        if one[:2] in read
    ]
    return [_Chosen(*key, one.score, one.value) for one, key in pairs if key is not None]


def _with(chosen: Sequence[_Chosen], newer: Sequence[_Chosen]) -> list[_Chosen]:
    """Each turn once, with the most that it is worth."""
    best: dict[tuple[str, int], _Chosen] = {}
    for one in (*chosen, *newer):
        known = best.setdefault(one[:2], one)
        if (one.value or 0.0) > (known.value or 0.0):
            best[one[:2]] = one
    return list(best.values())


def _distinct_names(turns: Iterable[Turn]) -> list[str]:
    """A name for each candidate: callers choose ids, so turns of several conversations may have the same one."""
    names: dict[str, None] = {}
    for turn in turns:
        name = f"episode:{turn.id}"
        while name in names:
            name += f"@{turn.scope.conversation}"
        names[name] = None
    return list(names)


def _wording(turn: Turn, fetched: str) -> str:
    """The same for turns that say the same."""
    return " ".join(f"{turn.user or ''} → {turn.assistant or ''} {fetched}".casefold().split())


def _home(scope: Scope) -> Scope:
    """The index that serves a scope: the user's, or the conversation's own if there is no user."""
    return scope if scope.user is None else Scope(scope.tenant, scope.user)


def _each_once(pairs: Iterable[_Read]) -> list[_Read]:
    """Each turn once, at its best rank. Callers choose ids, so turns are equal only if their texts are too."""
    seen: dict[object, _Read] = {}
    for near, one in pairs:
        turn = near.turn
        seen.setdefault((turn.id, turn.at, turn.user, turn.assistant), (near, one))
    return list(seen.values())


def _hit(near: ports.Neighbourhood, found: Found[TurnKey]) -> Hit:
    turn = near.turn
    return Hit(
        id=turn.id,
        conversation_id=turn.scope.conversation or "",
        text=turn.text,
        score=found.score,
        parts=found.parts,
        at=turn.at,
        metadata=turn.metadata,
        before=near.before,
        after=near.after,
        status=turn.status,
    )
