"""The facts tier: lasting statements about a user, the relevant ones within their own token budget.

Completed turns are read once for what users said about themselves, and only the user's own words: not the
assistant's, no tool output, nothing that memory wrote. What an extractor returns is accepted only if its quote is
found in the turn. A watermark records how far a conversation was read, so that a crash loses nothing; reading a
turn twice changes nothing.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from operator import itemgetter

import numpy as np

from pagefile import ports
from pagefile.errors import ErasedError, FactRejectedError, InvalidArgumentError, ModelError, ModelOutputError
from pagefile.lru import Lru
from pagefile.records import Fact, Scope, Turn
from pagefile.text.fact_ranking import Floats, blended, diverse, forget_facts, scores
from pagefile.text.fact_rules import own_words
from pagefile.text.sentences import clip
from pagefile.text.words import TRIVIAL
from pagefile.tiers import base
from pagefile.tiers.fact_book import Draft, FactBook, Held, refuse_orders
from pagefile.window.budget import CORRECTIONS_TOKENS, share_of
from pagefile.window.candidates import Block, Candidate, Form
from pagefile.window.parts import escape

logger = logging.getLogger("pagefile")

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
FIRST_REST_S, LONGEST_REST_S = 5.0, 300.0
#: Vectors of facts cached in memory.
_MAX_VECTORS = 50_000
#: The name of the watermark.
TIER = "facts"
_BATCH = 20
_MOST = 10_000


@dataclass(eq=False, repr=False, slots=True)
class FactExtraction:
    """Runs an extractor over a conversation's log."""

    book: FactBook
    reader: ports.LogReader
    marks: ports.Watermarks
    meter: ports.Meter
    extractor: ports.FactExtractor
    #: Used if the extractor's answer is unusable.
    instead: ports.FactExtractor | None = None

    async def learn(self, scope: Scope) -> None:
        """Read a conversation from its watermark to its end."""
        assert scope.conversation is not None
        seq = (await self.marks.known(scope, TIER)).get(scope.conversation, 0)
        epoch = (await self.reader.view(ports.ViewRequest(scope, budget_tokens=0, min_turns=0))).head.epoch
        query = ports.EntryQuery(
            scope, frozenset({"turn", "checkpoint", "reset"}), frozenset({"done", "aborted"}), limit=_BATCH
        )
        while True:
            entries = await self.reader.entries(replace(query, after_seq=seq))
            batch = [entry for entry in entries if isinstance(entry, Turn) and entry.status == "done"]
            for proposal, turn in await self._proposals(batch):
                later = frozenset(one.id for one in batch if (one.seq or 0) > (turn.seq or 0))
                await self._keep(proposal, turn, later, epoch)
            last = max((entry.seq or 0 for entry in entries), default=seq)
            if last > seq:
                await self.marks.advance(scope, TIER, last, epoch=epoch)
            seq = last
            if len(entries) < _BATCH:
                return

    async def _proposals(self, turns: list[Turn]) -> list[tuple[ports.Proposal, Turn]]:
        by_id = {turn.id: turn for turn in turns}
        said = [
            ports.Said(turn.id, words, turn.at)
            for turn in turns
            if turn.scope.user is not None and turn.user and (words := own_words(turn.user).strip())
            if words.casefold().strip(" 。.!！~") not in TRIVIAL
        ]
        if not said:
            return []
        try:
            found = await self.extractor.extract(said)
        except ModelOutputError as error:
            if self.instead is None:
                raise
            logger.warning("facts are read by rules for this once: %s", error)
            self.meter.count("pagefile_degraded_total", tier="facts")
            found = await self.instead.extract(said)
        return [(one, by_id[one.turn_id]) for one in found if one.turn_id in by_id]

    async def _keep(self, proposal: ports.Proposal, turn: Turn, later: frozenset[str], epoch: int) -> None:
        draft = Draft(
            proposal.text,
            category=proposal.category,
            confidence=proposal.confidence,
            source_turn=turn.id,
            source_quote=proposal.quote,
            conversation=turn.scope.conversation,
            subject=proposal.subject,
            attribute=proposal.attribute,
            valid_from=turn.at,
            later=later,
            epoch=epoch,
        )
        try:
            _check(proposal, turn)
            outcome = (await self.book.remember(turn.scope, draft)).outcome or "stored"
        except ErasedError:
            return
        except (FactRejectedError, InvalidArgumentError) as error:
            logger.info("a proposed fact was refused: %s", error)
            outcome = "rejected"
        self.meter.count("pagefile_facts_total", outcome=outcome)


def _check(proposal: ports.Proposal, turn: Turn) -> None:
    if proposal.quote.strip() == "" or proposal.quote not in own_words(turn.user or ""):
        raise FactRejectedError("its quote is not in its turn")
    refuse_orders(proposal.text, proposal.quote)


@dataclass(frozen=True, slots=True)
class FactRules:
    budget_tokens: int
    context_turns: int
    similarity_weight: float
    confidence_weight: float
    #: If False, facts are kept, but no window shows any.
    enabled: bool = True


@dataclass(eq=False, repr=False)
class Facts(base.OwnTier):
    """What is known about a user."""

    name = "facts"
    reads_once = TIER

    book: FactBook
    counter: base.Counter
    rules: FactRules
    _: KW_ONLY
    embedder: ports.Embedder | None = None
    extraction: FactExtraction | None = None

    def __post_init__(self) -> None:
        if self.extraction is not None:
            # Each reading may cost a model call: a conversation is read after the quiet period the extractor asks for.
            self.pace = base.Pace(
                quiet_s=self.extraction.extractor.quiet_s,
                longest_wait_s=math.inf,
                first_sweep_s=1.0,
                first_rest_s=FIRST_REST_S,
                longest_rest_s=LONGEST_REST_S,
            )
        #: By the fact's scope and text.
        self._vectors: Lru[tuple[Scope, str], Floats] = Lru(_MAX_VECTORS)
        self._erasures = 0

    # -- reading them out of turns ------------------------------------------------------------------------------------

    async def absorb(self, turn: Turn) -> bool:
        return self.extraction is not None and turn.status == "done"

    async def maintain(self, scope: Scope) -> None:
        if self.extraction is not None:
            # Erased while it was read: there is nothing left to learn.
            with suppress(ErasedError):
                await self.extraction.learn(scope)

    async def behind(self) -> Sequence[Scope]:
        if self.extraction is None:
            return ()
        return [one.scope for one in await self.extraction.marks.behind(TIER, limit=_MOST)]

    async def forget(self, scope: Scope) -> base.Counts:
        self.book.forget()
        forget_facts()
        self._erasures += 1
        self._vectors.drop(lambda key: base.within(key[0], scope))
        return {}

    # -- choosing those for a window ----------------------------------------------------------------------------------

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        return {
            "facts": share_of(window_tokens, self.rules.budget_tokens),
            "corrections": share_of(window_tokens, CORRECTIONS_TOKENS),
        }

    async def offer(self, request: base.WindowRequest) -> Sequence[Candidate]:
        """The user's facts, most relevant to the last turns first: as many as the budget may hold, and a few more."""
        if request.scope.user is None or not self.rules.enabled:
            return []
        held = await self.book.held(request.scope)
        request.traces[self.name] = held.stamp[0]
        return self._within(await self.ranked(held, self._topic(request), request.note))

    async def ranked(self, held: Held, about: str, note: base.Note) -> list[tuple[Fact, float]]:
        """Everything held about a user with its score, best first; without a topic, by confidence."""
        facts = list(held.facts.values())
        if not facts:
            return []
        found = await self._similarities(held, facts, about, note) if about.strip() else None
        values = scores(
            found,
            [fact.confidence for fact in facts],
            similarity_weight=self.rules.similarity_weight,
            confidence_weight=self.rules.confidence_weight,
        )
        order = sorted(range(len(facts)), key=lambda i: (-values[i], facts[i].recorded, facts[i].id))
        if found is not None:
            order = [order[place] for place in diverse([facts[i].text for i in order])]
        return [(facts[i], float(values[i])) for i in order]

    async def _similarities(self, held: Held, facts: Sequence[Fact], about: str, note: base.Note) -> Floats:
        words = held.index.similarity_array(about, [fact.id for fact in facts])
        if self.embedder is None:
            return words
        try:
            return blended(words, await self._dense(self.embedder, facts, about))
        except ModelError as error:
            note(f"facts were compared by words alone: {error}")
            return words

    async def _dense(self, embedder: ports.Embedder, facts: Sequence[Fact], about: str) -> Floats:
        """The cosine similarity of each fact to the topic; a text is embedded once."""
        erasures, keys = self._erasures, [(fact.scope, fact.text) for fact in facts]
        missing = sorted({key for key in keys if key not in self._vectors}, key=itemgetter(1))
        missing = missing[:_EMBED_AT_ONCE]
        asked, *vectors = await embedder.embed([about, *(text for _, text in missing)])
        made = dict(zip(missing, (np.asarray(one, dtype=np.float64) for one in vectors), strict=True))
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
            if not correction and tokens > self.rules.budget_tokens and beyond >= _NEXT_IN_LINE:
                continue
            candidate = self.candidate(fact, score, rank)
            offered.append(candidate)
            if not correction:
                beyond += tokens > self.rules.budget_tokens
                tokens += candidate.tokens
        if more := len(ranked) - len(offered):
            # Mentioned together, not one by one.
            note = f"{more} facts of lower rank"
            offered.append(Candidate("facts:rest", "facts", (), len(ranked), note=note))
        return offered

    # -- replay: `offer` records the revision, and the journal has the rest -------------------------------------------

    async def replay(self, past: base.PastWindow) -> base.Tier:
        """The facts in the order of the receipt, as long as the topic is the same."""
        if self.name not in past.traces or past.changed("query", "facts."):
            return self
        offered: list[Candidate] = []
        failed = past.traces[self.name] == base.FAILED or past.scope.user is None
        facts = () if failed else (await self.book.held(past.scope)).facts.values()
        held = {f"fact:{fact.id}": fact for fact in facts}
        for rank, verdict in enumerate(past.receipt):
            if failed or verdict.block not in {"facts", "corrections"}:
                continue
            if verdict.id in held:
                offered.append(self.candidate(held[verdict.id], verdict.score, rank))
            elif not verdict.id.startswith("fact:"):
                offered.append(Candidate(verdict.id, verdict.block, (), rank, note=verdict.note))
        then = None if past.before is None else self._topic(past.before)
        return base.Remembered(self, offered, lambda request: then in {None, self._topic(request)})

    def _topic(self, request: base.WindowRequest) -> str:
        return conversation_context(request.view.turns, request.query, self.rules.context_turns)

    def candidate(self, fact: Fact, score: float | None, rank: int) -> Candidate:
        shown = escape(" ".join(fact.text.split()))
        stored = fact.tokens if shown == fact.text and fact.counter == self.counter.name else None
        tokens = _LINE_TOKENS + (self.counter.count(shown) if stored is None else stored)
        block = "corrections" if fact.category == CORRECTION else "facts"
        return Candidate(f"fact:{fact.id}", block, (Form(tokens, text=f"- {shown}"),), rank, score)


def conversation_context(turns: Sequence[Turn], query: str | None, max_turns: int) -> str:
    """What the conversation is about: both sides of the last turns and the question, joined by spaces."""
    past = max(0, max_turns - 1) if query else max_turns
    last = turns[max(0, len(turns) - past) :] if past else ()
    sides = [side for turn in last for side in (turn.user, turn.assistant)]
    return " ".join(clip(side, _CONTEXT_CHARS) for side in (*sides, query) if side)
