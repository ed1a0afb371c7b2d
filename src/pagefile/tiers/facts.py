"""The facts tier: lasting statements about a user, the relevant ones within their own token budget (document 004)."""

import math
from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4

from pagefile.errors import InvalidTurnError
from pagefile.ports import Clock, FactStore
from pagefile.records import Fact, Scope, Turn, checked_text
from pagefile.text.ranking import tfidf_similarities
from pagefile.tiers.base import Counter, Occasion, Tier
from pagefile.window.candidates import Candidate, Form
from pagefile.window.render import escape

#: Facts of this category are corrections: they have a budget of their own.
CORRECTION = "correction"
MAX_FACT_CHARS = 10_000
#: The dash and the line break around a fact in the memory block.
_LINE_TOKENS = 2


class Facts(Tier):
    """What is known about a user."""

    name = "facts"

    def __init__(
        self,
        store: FactStore,
        counter: Counter,
        clock: Clock,
        *,
        context_turns: int,
        similarity_weight: float,
        confidence_weight: float,
    ) -> None:
        self._store = store
        self._counter = counter
        self._clock = clock
        self._context_turns = context_turns
        self._similarity_weight = similarity_weight
        self._confidence_weight = confidence_weight

    async def offer(self, occasion: Occasion) -> Sequence[Candidate]:
        """The user's facts, the most relevant to the last turns first."""
        if occasion.scope.user is None:
            return []
        facts = await self._store.list(Scope(occasion.scope.tenant, occasion.scope.user))
        if not facts:
            return []
        about = conversation_context(occasion.view.turns, occasion.query, self._context_turns)
        scores = self._scores(facts, about)
        ranked = sorted(
            zip(scores, facts, strict=True), key=lambda pair: (-pair[0], pair[1].recorded, pair[1].id)
        )
        return [self._candidate(fact, score, rank) for rank, (score, fact) in enumerate(ranked)]

    async def remember(
        self, scope: Scope, text: str, *, category: str | None, confidence: float | None, source: str | None
    ) -> Fact:
        """Write a fact about a user."""
        text = checked_text(text, "fact").strip()
        if not text:
            raise InvalidTurnError("The fact is empty: say something about the user.")
        if len(text) > MAX_FACT_CHARS:
            raise InvalidTurnError(
                f"The fact has {len(text)} characters, at most {MAX_FACT_CHARS} are allowed: split it."
            )
        now = self._clock.now()
        return await self._store.put(self._fact(scope, text, category, confidence, source, now))

    def _fact(
        self,
        scope: Scope,
        text: str,
        category: str | None,
        confidence: float | None,
        source: str | None,
        now: datetime,
    ) -> Fact:
        return Fact(
            id=str(uuid4()),
            scope=scope,
            text=text,
            category=category,
            confidence=coerced_confidence(confidence),
            valid_from=now,
            valid_to=None,
            recorded=now,
            retracted=None,
            source_turn=source,
            source_quote=None,
            tokens=self._counter.count(text),
            counter=self._counter.name,
        )

    def _scores(self, facts: Sequence[Fact], about: str) -> list[float]:
        confidences = [fact.confidence * self._confidence_weight for fact in facts]
        if not about:
            return confidences
        similarities = tfidf_similarities(about, [fact.text for fact in facts])
        best = max(similarities)
        if best <= 0:
            return confidences
        # Relative to the best, so that the two weights speak of the same range.
        return [
            self._similarity_weight * similarity / best + confidence
            for similarity, confidence in zip(similarities, confidences, strict=True)
        ]

    def _candidate(self, fact: Fact, score: float, rank: int) -> Candidate:
        shown = escape(" ".join(fact.text.split()))
        stored = fact.tokens if shown == fact.text and fact.counter == self._counter.name else None
        tokens = _LINE_TOKENS + (self._counter.count(shown) if stored is None else stored)
        block = "corrections" if fact.category == CORRECTION else "facts"
        return Candidate(f"fact:{fact.id}", block, (Form(tokens, text=f"- {shown}"),), rank, score)


def conversation_context(turns: Sequence[Turn], query: str | None, max_turns: int) -> str:
    """What the conversation is about: both sides of the last turns and the question, joined by spaces."""
    past = max(0, max_turns - 1) if query else max_turns
    sides = (
        [side for turn in turns[max(0, len(turns) - past) :] for side in (turn.user, turn.assistant)]
        if past
        else []
    )
    return " ".join(side for side in (*sides, query) if side)


def coerced_confidence(value: float | None) -> float:
    """A confidence in [0, 1]; what is no number counts as certain, as it was stated without doubt."""
    if value is None or not math.isfinite(value):
        return 1.0
    return min(1.0, max(0.0, float(value)))
