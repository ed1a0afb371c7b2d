"""The facts tier: lasting statements about a user, the relevant ones within their own token budget."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import numpy as np

from pagefile.errors import ErasedError, ModelError
from pagefile.lru import Lru
from pagefile.ports import Embedder
from pagefile.records import ErasureReceipt, Fact, JsonValue, Scope, Turn
from pagefile.text.clip import clip
from pagefile.text.facts import Floats, blended, diverse, forget_facts, scores
from pagefile.tiers.base import FAILED, Counter, Counts, Note, Occasion, Pace, Remembered, Tier, within
from pagefile.tiers.facts_book import FactBook, Held
from pagefile.tiers.facts_learning import TIER, FactLearner
from pagefile.tiers.past import PastWindow
from pagefile.window.budget import CORRECTIONS_TOKENS, share_of
from pagefile.window.candidates import Block, Candidate, Form
from pagefile.window.render import escape

#: Facts of this category are corrections, which have their own budget.
CORRECTION = "correction"
#: The dash and the line break around a fact in the memory block.
_LINE_TOKENS = 2
#: Facts offered beyond the budget, so that the receipt shows what would have come next.
_NEXT_IN_LINE = 10
#: More text from the last turns adds nothing about their topic.
_CONTEXT_CHARS = 20_000
#: Facts embedded per window, to limit the wait; the rest get a median similarity until they are embedded.
_EMBED_AT_ONCE = 64
#: The first and the longest pause after a model could not be reached.
FIRST_REST_S = 5.0
LONGEST_REST_S = 300.0
#: Vectors of facts cached in memory.
_MAX_VECTORS = 50_000


@dataclass(frozen=True, slots=True)
class FactRules:
    """How facts are chosen."""

    budget_tokens: int
    context_turns: int
    similarity_weight: float
    confidence_weight: float
    #: If False, facts are kept, but no window shows any.
    enabled: bool = True


class Facts(Tier):
    """What is known about a user."""

    name = "facts"
    reads_once = TIER

    def __init__(
        self,
        book: FactBook,
        counter: Counter,
        rules: FactRules,
        *,
        embedder: Embedder | None = None,
        learner: FactLearner | None = None,
    ) -> None:
        self.book = book
        self._learner = learner
        if learner is not None:
            self.pace = _pace(learner)
        self._counter = counter
        self._rules = rules
        self._embedder = embedder
        #: By the fact's scope and text.
        self._vectors: Lru[tuple[Scope, str], Floats] = Lru(_MAX_VECTORS)
        self._erasures = 0

    # -- reading them out of turns ------------------------------------------------------------------------------------

    async def absorb(self, turn: Turn) -> bool:
        return self._learner is not None and turn.status == "done"

    async def maintain(self, scope: Scope) -> None:
        if self._learner is not None:
            # Erased while it was read: there is nothing left to learn.
            with suppress(ErasedError):
                await self._learner.learn(scope)

    async def behind(self) -> Sequence[Scope]:
        return () if self._learner is None else await self._learner.behind()

    async def forget(self, scope: Scope) -> Counts:
        self.book.forget()
        forget_facts()
        self._erasures += 1
        for key in [key for key in self._vectors if within(key[0], scope)]:
            del self._vectors[key]
        return {}

    async def forget_part(self, receipt: ErasureReceipt) -> None:
        await self.forget(Scope(receipt.scope.tenant))

    # -- choosing those for a window ----------------------------------------------------------------------------------

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        return {
            "facts": share_of(window_tokens, self._rules.budget_tokens),
            "corrections": share_of(window_tokens, CORRECTIONS_TOKENS),
        }

    async def offer(self, occasion: Occasion) -> Sequence[Candidate]:
        """The user's facts, most relevant to the last turns first: as many as the budget may hold, and a few more."""
        if occasion.scope.user is None or not self._rules.enabled:
            return []
        held = await self.book.held(Scope(occasion.scope.tenant, occasion.scope.user))
        occasion.traces[self.name] = held.stamp[0]
        about = conversation_context(occasion.view.turns, occasion.query, self._rules.context_turns)
        ranked = await self.ranked(held, about, occasion.note)
        return self._within(ranked)

    async def ranked(self, held: Held, about: str, note: Note) -> list[tuple[Fact, float]]:
        """Everything held about a user with its score, best first; without a topic, by confidence."""
        facts = list(held.facts.values())
        if not facts:
            return []
        found = await self._similarities(held, facts, about, note) if about.strip() else None
        values = scores(
            found,
            [fact.confidence for fact in facts],
            similarity_weight=self._rules.similarity_weight,
            confidence_weight=self._rules.confidence_weight,
        )
        order = sorted(range(len(facts)), key=lambda i: (-values[i], facts[i].recorded, facts[i].id))
        if found is not None:
            order = [order[place] for place in diverse([facts[i].text for i in order])]
        return [(facts[i], float(values[i])) for i in order]

    async def _similarities(self, held: Held, facts: Sequence[Fact], about: str, note: Note) -> Floats:
        words = held.index.similarity_array(about, [fact.id for fact in facts])
        if self._embedder is None:
            return words
        try:
            dense = await self._dense(self._embedder, facts, about)
        except ModelError as error:
            note(f"facts were compared by words alone: {error}")
            return words
        return blended(words, dense)

    async def _dense(self, embedder: Embedder, facts: Sequence[Fact], about: str) -> Floats:
        """The cosine similarity of each fact to the topic; a text is embedded once."""
        erasures, keys = self._erasures, [(fact.scope, fact.text) for fact in facts]
        missing = sorted({key for key in keys if key not in self._vectors}, key=itemgetter(1))
        missing = missing[:_EMBED_AT_ONCE]
        asked, *vectors = await embedder.embed([about, *(text for _, text in missing)])
        made = {
            key: np.asarray(vector, dtype=np.float64) for key, vector in zip(missing, vectors, strict=True)
        }
        found = [made[key] if key in made else self._vectors.get(key) for key in keys]
        # Embedding takes a while: discard the vectors if something was erased meanwhile.
        if erasures == self._erasures:
            self._vectors.update(made)
        known = [float(vector @ asked) for vector in found if vector is not None]
        usual = float(np.median(known)) if known else 0.0
        return np.asarray([usual if vector is None else float(vector @ asked) for vector in found])

    def _within(self, ranked: Sequence[tuple[Fact, float]]) -> list[Candidate]:
        offered: list[Candidate] = []
        tokens, beyond = 0, 0
        for rank, (fact, score) in enumerate(ranked):
            correction = fact.category == CORRECTION
            if not correction and tokens > self._rules.budget_tokens and beyond >= _NEXT_IN_LINE:
                continue
            candidate = self.candidate(fact, score, rank)
            offered.append(candidate)
            if not correction:
                beyond += tokens > self._rules.budget_tokens
                tokens += candidate.tokens
        if len(offered) < len(ranked):
            offered.append(_rest(len(ranked) - len(offered), len(ranked)))
        return offered

    # -- replay
    # -------------------------------------------------------------------------------------------------------

    def trace(self, offered: Sequence[Candidate]) -> JsonValue:
        """Recorded by `offer`: the revision is enough, since the journal has the rest."""
        return None

    async def replay(self, past: PastWindow) -> Tier:
        """The facts in the order of the receipt, as long as the topic is the same."""
        if self.name not in past.traces or past.changed("query", "memory."):
            return self
        return Remembered(self, await self._replayed(past), partial(self._same_topic, past))

    async def _replayed(self, past: PastWindow) -> list[Candidate]:
        if past.traces[self.name] == FAILED or past.scope.user is None:
            return []
        owner = Scope(past.scope.tenant, past.scope.user)
        held = {f"fact:{fact.id}": fact for fact in (await self.book.held(owner)).facts.values()}
        offered: list[Candidate] = []
        for rank, verdict in enumerate(past.receipt):
            if verdict.block not in {"facts", "corrections"}:
                continue
            if verdict.id in held:
                offered.append(self.candidate(held[verdict.id], verdict.score, rank))
            elif not verdict.id.startswith("fact:"):
                offered.append(Candidate(verdict.id, verdict.block, (), rank, note=verdict.note))
        return offered

    def _same_topic(self, past: PastWindow, occasion: Occasion) -> bool:
        most = self._rules.context_turns
        return past.before is None or (
            conversation_context(occasion.view.turns, occasion.query, most)
            == conversation_context(past.before.turns, past.before.query, most)
        )

    def candidate(self, fact: Fact, score: float | None, rank: int) -> Candidate:
        """A fact as a candidate."""
        shown = escape(" ".join(fact.text.split()))
        stored = fact.tokens if shown == fact.text and fact.counter == self._counter.name else None
        tokens = _LINE_TOKENS + (self._counter.count(shown) if stored is None else stored)
        block = "corrections" if fact.category == CORRECTION else "facts"
        return Candidate(f"fact:{fact.id}", block, (Form(tokens, text=f"- {shown}"),), rank, score)


def _pace(learner: FactLearner) -> Pace:
    """A conversation is read after the quiet period the extractor asks for: each reading may cost a model call."""
    return Pace(
        quiet_s=learner.extractor.quiet_s,
        longest_wait_s=math.inf,
        first_sweep_s=1.0,
        first_rest_s=FIRST_REST_S,
        longest_rest_s=LONGEST_REST_S,
    )


def _rest(number: int, rank: int) -> Candidate:
    """Facts too low in rank for the budget: mentioned together, not one by one."""
    return Candidate("facts:rest", "facts", (), rank, note=f"{number} facts of lower rank")


def conversation_context(turns: Sequence[Turn], query: str | None, max_turns: int) -> str:
    """What the conversation is about: both sides of the last turns and the question, joined by spaces."""
    past = max(0, max_turns - 1) if query else max_turns
    sides = (
        [side for turn in turns[max(0, len(turns) - past) :] for side in (turn.user, turn.assistant)]
        if past
        else []
    )
    return " ".join(clip(side, _CONTEXT_CHARS) for side in (*sides, query) if side)
