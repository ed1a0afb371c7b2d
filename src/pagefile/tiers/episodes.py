"""The episodes tier: past turns come back when a question touches them (document 002), by word and time for now.

The index of a user lives in memory, is built from the log when first asked for, catches up before every recall, and is
dropped when others need the room: it can always be built again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.to_thread

from pagefile.ports import Meter, Neighbourhood, SinceRequest, TurnRef, TurnSource
from pagefile.records import Hit, Scope, Turn
from pagefile.text.extract import clip
from pagefile.text.turns import Found, Placed, TurnIndex
from pagefile.text.words import terms
from pagefile.tiers.base import Counter, Occasion, Tier
from pagefile.window.candidates import Candidate, Form
from pagefile.window.render import escape

_BATCH = 1000
#: From so many turns on, segmenting them would hold up the event loop.
_THREAD_FROM = 20
#: A hit enters a window by itself only if it has at least this share of the question's weight.
MIN_COVERAGE = 0.5
EPISODE_CHARS = 600


@dataclass(frozen=True, slots=True)
class _Key:
    conversation: str
    seq: int
    turn_id: str


@dataclass(slots=True)
class _Index:
    turns: TurnIndex[_Key] = field(default_factory=TurnIndex[_Key])
    known: dict[str, int] = field(default_factory=dict[str, int])
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def add(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            key = _Key(turn.scope.conversation or "", turn.seq or 0, turn.id)
            said, answered = terms(turn.user or ""), terms(turn.assistant or "")
            placed = Placed(key, key.conversation, turn.at, said or answered, answered if said else ())
            self.turns.add(placed)
            self.known[key.conversation] = key.seq


class Episodes(Tier):
    """Past turns of a user, found by their words, those of their neighbours, and the time a question names."""

    name = "episodes"

    def __init__(
        self, source: TurnSource, counter: Counter, meter: Meter, *, turns: int, max_postings: int
    ) -> None:
        self._source = source
        self._counter = counter
        self._meter = meter
        self._turns = turns
        self._max_postings = max_postings
        self._indexes: OrderedDict[Scope, _Index] = OrderedDict()

    async def recall(self, scope: Scope, query: str, limit: int) -> list[Hit]:
        """The turns that answer the query best, best first; in one conversation if the scope names one."""
        if not terms(query) or limit < 1:
            return []
        self._meter.count("pagefile_recalls_total")
        home = _home(scope)
        for _ in range(2):
            index = await self._caught_up(home)
            ranked = index.turns.search(query, limit, scope.conversation)
            found = await self._source.around(home, [TurnRef(r.key.conversation, r.key.seq) for r in ranked])
            if [near.turn.id for near in found] == [r.key.turn_id for r in ranked]:
                return [_hit(near, one) for near, one in zip(found, ranked, strict=True)]
            # Something was erased or written anew behind our back: build the index again from the log.
            self._indexes.pop(home, None)
        return []

    async def offer(self, occasion: Occasion) -> Sequence[Candidate]:
        """The few past turns that answer the question and do not stand in the window anyway."""
        if not occasion.query:
            return []
        seen = {turn.id for turn in occasion.view.turns}
        scope = (
            occasion.scope
            if occasion.scope.user is None
            else Scope(occasion.scope.tenant, occasion.scope.user)
        )
        # Turns beside a good one are found too, and do not pass: look at more than are wanted.
        hits = await self.recall(scope, occasion.query, 3 * self._turns + min(len(seen), 20))
        fresh = [hit for hit in hits if hit.id not in seen and hit.parts["coverage"] >= MIN_COVERAGE]
        return [self._candidate(hit, rank) for rank, hit in enumerate(fresh[: self._turns])]

    def forget(self, scope: Scope) -> None:
        """Drop every index that may hold something of the scope."""
        for home in [home for home in self._indexes if home.tenant == scope.tenant]:
            if scope.user is None or home.user in {None, scope.user}:
                self._indexes.pop(home)

    async def _caught_up(self, home: Scope) -> _Index:
        index = self._indexes.setdefault(home, _Index())
        self._indexes.move_to_end(home)
        async with index.lock:
            while True:
                turns = await self._source.since(SinceRequest(home, dict(index.known), _BATCH))
                if len(turns) < _THREAD_FROM:
                    index.add(turns)
                else:
                    await anyio.to_thread.run_sync(partial(index.add, turns))
                if len(turns) < _BATCH:
                    break
        self._make_room()
        return index

    def _make_room(self) -> None:
        """Let go of what was used longest ago; the one in use always stays."""
        held = sum(index.turns.postings for index in self._indexes.values())
        while held > self._max_postings and len(self._indexes) > 1:
            _, dropped = self._indexes.popitem(last=False)
            held -= dropped.turns.postings

    def _candidate(self, hit: Hit, rank: int) -> Candidate:
        shown = f"- [{hit.at:%Y-%m-%d}] {escape(clip(' '.join(hit.text.split()), EPISODE_CHARS))}"
        form = Form(self._counter.count(shown), text=shown)
        return Candidate(f"episode:{hit.id}", "episodes", (form,), rank, hit.score)


def _home(scope: Scope) -> Scope:
    """The index that serves a scope: the user's, or the conversation's own when nobody is named."""
    return scope if scope.user is None else Scope(scope.tenant, scope.user)


def _hit(near: Neighbourhood, found: Found[_Key]) -> Hit:
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
    )
