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
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import NamedTuple, cast

import anyio

from pagefile import ports
from pagefile.arrays import np
from pagefile.errors import ErasedError, FactRejectedError, InvalidArgumentError, ModelError, ModelOutputError
from pagefile.lru import Lru
from pagefile.records import Fact, Scope, Turn
from pagefile.text.fact_ranking import (
    Floats,
    diverse,
    forget_facts,
    overlap,
    says_nothing,
    scores,
    statement,
    weighed,
)
from pagefile.text.fact_relevance import (
    Message,
    Relevance,
    Similarities,
    forget_read_facts,
    relevance,
    sentences_of,
)
from pagefile.text.fact_rules import own_words
from pagefile.text.sentences import clip
from pagefile.text.words import terms
from pagefile.tiers import base
from pagefile.tiers.fact_book import THREAD_FROM_FACTS, USER, Draft, FactBook, Held, refuse_orders
from pagefile.tiers.loading import Loading
from pagefile.window.budget import CORRECTIONS_TOKENS, share_of
from pagefile.window.candidates import Block, Candidate, Form
from pagefile.window.parts import MemoryPart, escape
from pagefile.window.wording import WORDINGS

logger = logging.getLogger("pagefile")

#: Facts of this category are corrections, which have their own budget.
CORRECTION = "correction"
#: Facts of this category say how something is done.
HOWTO = "howto"
#: The dash and the line break around a fact in the memory block.
_LINE_TOKENS = 2
#: Facts are offered for this much of their budget, and then a few more, so that the receipt shows what would have come next.
_ROOM = 1.25
_NEXT_IN_LINE = 10
#: More text from the last turns adds nothing about their topic.
_CONTEXT_CHARS = 20_000
#: The most certain facts, for a window without a question or without vectors, and what one of the latter is worth.
TOP_BY_CONFIDENCE, _UNKNOWN_VALUE = 15, 0.02
#: The form of a fact that is shown with its date, and how similar two of different days are if they may disagree: by
#: meaning, and by the words they share.
_DATED, _SAME_THING, _SAME_WORDS = "dated", 0.45, 0.4
_DATED_AMONG = 40
#: The trace of what each fact was worth.
_VALUES = "fact values"
#: How long the first window waits for the embedder, which may have to be loaded, and how soon new facts are embedded.
_FIRST_WAIT_S, _EMBED_AFTER_S = 0.05, 0.5
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
        head = (await self.reader.view(ports.ViewRequest(scope, budget_tokens=0, min_turns=0))).head
        epoch = head.epoch
        query = ports.EntryQuery(scope, frozenset({"turn", "checkpoint", "reset"}), ports.ENDED, limit=_BATCH)
        while True:
            entries = await self.reader.entries(replace(query, after_seq=seq))
            batch = [entry.spoken for entry in entries if isinstance(entry, Turn) and entry.counts]
            for proposal, turn in await self._proposals(batch):
                later = frozenset(one.id for one in batch if (one.seq or 0) > (turn.seq or 0))
                await self._keep(proposal, turn, later, epoch, head.project)
            last = max((entry.seq or 0 for entry in entries), default=seq)
            if last > seq:
                await self.marks.advance(scope, TIER, last, epoch=epoch)
            seq = last
            if len(entries) < _BATCH:
                return

    async def _proposals(self, turns: list[Turn]) -> list[tuple[ports.Proposal, Turn]]:
        by_id = {turn.id: turn for turn in turns}
        said = [
            ports.Said(turn.id, words, turn.at, speaker)
            for turn in turns
            if turn.scope.user is not None
            for speaker, text in _speeches(turn)
            if (words := own_words(text).strip()) and not says_nothing(words)
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

    async def _keep(
        self, proposal: ports.Proposal, turn: Turn, later: frozenset[str], epoch: int, project: str | None
    ) -> None:
        draft = Draft(
            proposal.text,
            category=proposal.category,
            confidence=proposal.confidence,
            source_turn=turn.id,
            source_quote=proposal.quote,
            conversation=turn.scope.conversation,
            subject=proposal.subject,
            attribute=proposal.attribute,
            ends=proposal.ends,
            valid_from=turn.at,
            later=later,
            epoch=epoch,
            # Procedures belong to the project; facts about people apply in every project.
            project=project if proposal.category == HOWTO else None,
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


def _speeches(turn: Turn) -> list[tuple[str | None, str]]:
    """What each speaker says: by the `name` of a message, as OpenAI has it, or `speaker` in the turn's metadata; None is the user."""
    named = [
        (_speaker(message.given.get("name"), turn), message.text)
        for message in turn.layout or ()
        if message.role == "user" and isinstance(message.given, Mapping)
    ]
    if any(speaker is not None for speaker, _ in named):
        return named
    return [(_speaker((turn.metadata or {}).get("speaker"), turn), turn.user)] if turn.user else []


def _speaker(name: object, turn: Turn) -> str | None:
    if not isinstance(name, str) or not name.strip():
        return None
    return None if name.casefold() == (turn.scope.user or "").casefold() else name.strip()


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


class Topic(NamedTuple):
    """What facts are compared with: the question first, and the turns before it."""

    question: str
    context: tuple[str, ...]
    #: Whether anything was asked, if only "hi".
    asked: bool


class Ranked(NamedTuple):
    """A fact with its rank's score, and the probability that it helps; None if there is nothing to compare it with."""

    fact: Fact
    score: float
    value: float | None = None


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
    #: How long a window waits for vectors.
    timeout_s: float = 1.0
    loading: Loading = field(default_factory=Loading)

    def __post_init__(self) -> None:
        self.pace = base.Pace(quiet_s=_EMBED_AFTER_S)
        if self.extraction is not None:
            # Each reading may cost a model call: a conversation is read after the quiet period the extractor asks for.
            self.pace = base.Pace(
                quiet_s=self.extraction.extractor.quiet_s,
                longest_wait_s=math.inf,
                first_sweep_s=1.0,
                first_rest_s=FIRST_REST_S,
                longest_rest_s=LONGEST_REST_S,
            )
        #: By scope and text: of facts, and of the last turns. Scopes name the conversation: it is erased with its vectors.
        self._vectors: Lru[tuple[Scope, str], Floats] = Lru(_MAX_VECTORS)
        self._erasures = 0
        #: Whether a window has asked the embedder: the first one does not wait for it to load.
        self._asked = False

    # -- reading them out of turns ------------------------------------------------------------------------------------

    async def absorb(self, turn: Turn) -> bool:
        return self.extraction is not None and turn.counts

    async def maintain(self, scope: Scope) -> None:
        if self.extraction is not None and scope.conversation is not None:
            # Erased while it was read: there is nothing left to learn.
            with suppress(ErasedError):
                await self.extraction.learn(scope)
        if self.embedder is not None and scope.user is not None:
            facts = (await self.book.held(scope)).facts.values()
            await self._embedded(self.embedder, [_key(fact) for fact in facts])
            self._asked = True

    @property
    def drains(self) -> bool:
        # Vectors live in memory: closing need not wait for them.
        return self.extraction is not None

    async def behind(self) -> Sequence[Scope]:
        if self.extraction is None:
            return ()
        return [one.scope for one in await self.extraction.marks.behind(TIER, limit=_MOST)]

    async def forget(self, scope: Scope) -> base.Counts:
        self.book.forget()
        forget_facts()
        forget_read_facts()
        self._erasures += 1
        self._vectors.drop(lambda key: base.within(key[0], scope))
        return {}

    # -- choosing those for a window ----------------------------------------------------------------------------------

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        """Corrections and the text around both blocks count against the limit of facts too."""
        most = share_of(window_tokens, self.rules.budget_tokens)
        around = max(self.counter.count(MemoryPart({"facts": ("",)}, tongue).text) for tongue in WORDINGS)
        return {"facts": max(0, most - around), "corrections": min(most, CORRECTIONS_TOKENS)}

    async def offer(self, request: base.WindowRequest) -> Sequence[Candidate]:
        """The user's facts that may help with the question: all that are worth their tokens, and a few more."""
        if request.scope.user is None or not self.rules.enabled:
            return []
        held = await self.book.held(request.scope)
        request.traces[self.name] = held.stamp[0]
        known = list(held.facts.values())

        def chosen() -> list[Fact]:
            here = (fact for fact in known if fact.is_for(request.project, request.agent))
            return sorted(here, key=lambda fact: (fact.recorded, fact.id))

        facts = await base.off_loop(chosen, len(known), THREAD_FROM_FACTS)
        if not facts or not self.rules.budget_tokens:
            return []
        ranked = await self.ranked(
            held, facts, self._topic(request), request.scope, request.note, request.vectors
        )
        if any(one.value is not None for one in ranked):
            request.traces[_VALUES] = {one.fact.id: one.value for one in ranked if one.value}
        return await base.off_loop(partial(self._within, ranked), len(ranked), THREAD_FROM_FACTS)

    async def ranked(
        self,
        held: Held,
        facts: Sequence[Fact],
        topic: Topic,
        scope: Scope,
        note: base.Note,
        shared: base.Vectors | None = None,
    ) -> list[Ranked]:
        """These facts with their scores, best first; without a topic, the most certain ones."""
        found = None
        if topic.question or topic.context:
            found = await self._relevance(held, facts, topic, scope, note, {} if shared is None else shared)
        elif topic.asked:
            return []
        order = partial(self._in_order, facts, topic, found)
        return await base.off_loop(order, len(facts), THREAD_FROM_FACTS)

    def _in_order(self, facts: Sequence[Fact], topic: Topic, found: Relevance | None) -> list[Ranked]:
        weights = {name: getattr(self.rules, name) for name in ("similarity_weight", "confidence_weight")}
        sure = [fact.confidence for fact in facts]
        scored = scores(None if found is None else found.relevance, sure, **weights)
        order = sorted(range(len(facts)), key=lambda i: (-scored[i], facts[i].recorded, facts[i].id))
        if found is None:
            return [Ranked(facts[i], float(scored[i])) for i in order[:TOP_BY_CONFIDENCE]]
        helps = found.values * weighed(sure, **weights)
        if found.by_words and found.is_open and terms(topic.question or ""):
            # Words alone miss paraphrases: the most confident facts get a minimum value.
            helps[order[:TOP_BY_CONFIDENCE]] = np.maximum(_UNKNOWN_VALUE, helps[order[:TOP_BY_CONFIDENCE]])
        # Those without a value are not shown, so they are not compared.
        order = sorted(order, key=lambda i: helps[i] <= 0)
        valued = int(np.count_nonzero(helps > 0))
        first = [order[place] for place in diverse([facts[i].text for i in order[:valued]])]
        order = [*first, *order[valued:]]
        return [Ranked(facts[i], float(scored[i]), float(f"{helps[i]:.3g}")) for i in order]

    async def _relevance(
        self,
        held: Held,
        facts: Sequence[Fact],
        topic: Topic,
        scope: Scope,
        note: base.Note,
        shared: base.Vectors,
    ) -> Relevance:
        ids = [fact.id for fact in facts]
        texts = [text for text in (topic.question, *topic.context) if text]

        def compared() -> list[Floats]:
            return [held.index.similarity_array(text, ids) for text in texts]

        async with held.lock:
            words = await base.off_loop(compared, len(ids), THREAD_FROM_FACTS)
        parts = [[text, *(sentences_of(text) if text == topic.question else ())] for text in texts]
        named = [_key(fact) for fact in facts]
        known = await self._known(named, [(scope, text) for some in parts for text in some], note, shared)
        if known is None:
            each = words
        else:
            said, vectors = [fact.text for fact in facts], _filled([known.get(key) for key in named])
            each = [
                relevance(some[0], said, _similarities(row, [known[scope, text] for text in some], vectors))
                for some, row in zip(parts, words, strict=True)
            ]
        question = each[0] if topic.question else np.zeros(len(facts))
        context = each[1:] if topic.question else each
        message = Message.of(topic.question) if topic.question else Message()
        return Relevance.of(question, context, message, words[0], by_words=known is None)

    async def _known(
        self,
        facts: Sequence[tuple[Scope, str]],
        keys: Sequence[tuple[Scope, str]],
        note: base.Note,
        shared: base.Vectors,
    ) -> dict[tuple[Scope, str], Floats] | None:
        """The vectors of these texts, and of the facts as far as there are any; None if the embedder does not answer in time."""
        if self.embedder is None:
            return None
        wait_s, self._asked = self.timeout_s if self._asked else _FIRST_WAIT_S, True
        wait_s = self.loading.or_longer(wait_s)
        try:
            with anyio.fail_after(wait_s):
                self._vectors.update(
                    (key, np.asarray(shared[key[1]], dtype=np.float64)) for key in keys if key[1] in shared
                )
                known = await self._embedded(self.embedder, [*keys, *facts], _EMBED_AT_ONCE)
        except ModelError as error:
            note(f"facts were compared by words alone: {error}")
            return None
        except TimeoutError:
            note(f"facts were compared by words alone: the embedder did not answer within {wait_s:g} s")
            return None
        if any(key not in known for key in keys) or not any(key in known for key in facts):
            return None
        shared.update((text, known[scope, text].astype(np.float32)) for scope, text in keys)
        return known

    async def _embedded(
        self, embedder: ports.Embedder, keys: Sequence[tuple[Scope, str]], most: int | None = None
    ) -> dict[tuple[Scope, str], Floats]:
        """The vectors of texts, each embedded once; `most` limits how many are made now."""
        erasures = self._erasures
        found = {key: self._vectors.get(key) for key in keys}
        missing = [key for key, vector in found.items() if vector is None][:most]
        made = {key: vector for key, vector in found.items() if vector is not None}
        for start in range(0, len(missing), embedder.batch):
            part = missing[start : start + embedder.batch]
            rows = await embedder.embed([text for _, text in part])
            new = dict(zip(part, (np.asarray(row, dtype=np.float64) for row in rows), strict=True))
            made |= new
            # Embedding takes a while: discard the vectors if something was erased meanwhile.
            if erasures == self._erasures:
                self._vectors.update(new)
        return made

    def _within(self, ranked: Sequence[Ranked]) -> list[Candidate]:
        offered: list[Candidate] = []
        fitting, beyond = self._fitting(ranked), 0
        dated = self._in_conflict([one.fact for one in ranked[:_DATED_AMONG] if one.value != 0])
        for rank, one in enumerate(ranked):
            correction = one.fact.category == CORRECTION
            if not correction and one.fact.id not in fitting:
                beyond += 1
                if beyond > _NEXT_IN_LINE:
                    continue
            offered.append(self.candidate(one, rank, dated=one.fact.id in dated))
        if more := len(ranked) - len(offered):
            # Mentioned together, not one by one.
            note = f"{more} facts of lower rank"
            offered.append(Candidate("facts:rest", "facts", (), len(ranked), note=note))
        return offered

    def _fitting(self, ranked: Sequence[Ranked]) -> set[str]:
        """The facts that a window may have room for: by value per token, as it chooses, where a short one may fit behind a long one."""
        found: set[str] = set()
        left = int(_ROOM * self.rules.budget_tokens)
        for one in sorted(ranked, key=lambda one: -(one.value or 0.0) / max(1, one.fact.tokens)):
            if one.value != 0 and one.fact.tokens <= left:
                found.add(one.fact.id)
                left -= one.fact.tokens
        return found

    def _in_conflict(self, facts: Sequence[Fact]) -> set[str]:
        """Those that say something about the same thing as another one of a different day: a date tells which is newer."""
        found: set[str] = set()
        for place, fact in enumerate(facts):
            for other in facts[:place]:
                if fact.valid_from.date() != other.valid_from.date() and self._alike(fact, other):
                    found |= {fact.id, other.id}
        return found

    def _alike(self, fact: Fact, other: Fact) -> bool:
        own, theirs = self._vectors.get(_key(fact)), self._vectors.get(_key(other))
        if own is not None and theirs is not None:
            return float(own @ theirs) >= _SAME_THING
        return overlap(fact.text, other.text) >= _SAME_WORDS

    # -- replay: `offer` records the revision, and the journal has the rest -------------------------------------------

    async def replay(self, past: base.PastWindow) -> base.Tier:
        """The facts in the order of the receipt, as long as the topic is the same."""
        if self.name not in past.traces or past.changed("query", "facts."):
            return self
        offered: list[Candidate] = []
        failed = past.traces[self.name] == base.FAILED or past.scope.user is None
        values = cast("Mapping[str, float] | None", past.traces.get(_VALUES))
        facts = () if failed else (await self.book.held(past.scope)).facts.values()
        held = {f"fact:{fact.id}": fact for fact in facts}
        for rank, verdict in enumerate(past.receipt):
            if failed or verdict.block not in {"facts", "corrections"}:
                continue
            if verdict.id in held:
                fact = held[verdict.id]
                value = None if values is None else values.get(fact.id, 0.0)
                one = Ranked(fact, verdict.score or 0.0, value)
                offered.append(self.candidate(one, rank, dated=verdict.form == _DATED))
            elif not verdict.id.startswith("fact:"):
                offered.append(Candidate(verdict.id, verdict.block, (), rank, note=verdict.note))
        then = None if past.before is None else self._topic(past.before)
        return base.Remembered(self, offered, lambda request: then in {None, self._topic(request)})

    def _topic(self, request: base.WindowRequest) -> Topic:
        return topic_of(request.view.turns, request.searched, self.rules.context_turns)

    def candidate(self, one: Ranked, rank: int, *, dated: bool = False) -> Candidate:
        fact = one.fact
        shown = escape(" ".join(fact.text.split()))
        who = fact.subject or USER
        if who != USER and who.casefold() not in shown.casefold():
            shown = f"{escape(who)}: {shown}"
        if dated:
            shown = f"{shown} ({fact.valid_from.date().isoformat()})"
        stored = fact.tokens if shown == fact.text and fact.counter == self.counter.name else None
        tokens = _LINE_TOKENS + (self.counter.count(shown) if stored is None else stored)
        form = Form(tokens, text=f"- {shown}", name=_DATED if dated else "full")
        if fact.category == CORRECTION:
            return Candidate(f"fact:{fact.id}", "corrections", (form,), rank, one.score)
        return Candidate(f"fact:{fact.id}", "facts", (form,), rank, one.score, value=one.value)


def _key(fact: Fact) -> tuple[Scope, str]:
    return fact.scope, statement(fact.text)


def _filled(vectors: Sequence[Floats | None]) -> Floats:
    """A row for each fact; one that is not embedded yet has no number."""
    size = next(len(vector) for vector in vectors if vector is not None)
    nothing = np.full(size, np.nan)
    return np.asarray([nothing if vector is None else vector for vector in vectors])


def _similarities(words: Floats, asked: Sequence[Floats], vectors: Floats) -> Similarities:
    """The similarity of each fact to a text, to its most similar sentence and to the others; the median where there is no vector."""
    cosines = vectors @ np.asarray(asked).T
    if np.isnan(cosines).any():
        cosines = np.where(np.isnan(cosines), np.nanmedian(cosines, axis=0), cosines)
    sentence = cosines[:, 1:].max(axis=1) if len(asked) > 1 else cosines[:, 0]
    return Similarities(words, cosines[:, 0], sentence, np.nan_to_num(vectors))


def topic_of(turns: Sequence[Turn], query: str | None, max_turns: int) -> Topic:
    """The question, and both sides of the last turns, each on its own: an answer must not outvote the question."""
    past = max(0, max_turns - 1) if query else max_turns
    last = turns[max(0, len(turns) - past) :] if past else ()
    sides = [side for turn in last for side in (turn.user, turn.assistant)]
    context = tuple(clip(side, _CONTEXT_CHARS) for side in sides if side and not says_nothing(side))
    question = "" if says_nothing(query) else clip(query or "", _CONTEXT_CHARS)
    return Topic(question, context, asked=bool(query or turns))
