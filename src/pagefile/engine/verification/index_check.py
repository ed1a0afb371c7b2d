"""The terms and vectors of turns, checked against the turns themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from pagefile.engine.verification.findings import Check, Finding, at_entry
from pagefile.errors import ErasedError, PagefileError
from pagefile.ports import UNREADABLE, KeptConversation, SinceRequest
from pagefile.records import Turn
from pagefile.text.speech import blended, embedded_texts
from pagefile.tiers.turn_index import ANALYZER, TurnVectors, terms_of
from pagefile.tiers.turn_index import Terms as DerivedTerms


class Terms(Check):
    """Checks that every done turn up to the watermark has its terms, and that they match its text.

    Missing terms are recomputed. Different terms are evidence that the text was different when they were
    computed: they carry the version of the analyzer, so only a manual change explains the difference, and
    they are never overwritten here.
    """

    async def look(
        self, kept: KeptConversation, after: int, turns: Sequence[Turn], epoch: int
    ) -> list[Finding]:
        """What is wrong with the terms of these turns, which follow `after` in the log."""
        derived = DerivedTerms(self.engine.store.terms)
        request = SinceRequest(kept.scope, {kept.scope.conversation or "": after}, len(turns))
        try:
            rows = await self.engine.store.terms.since(request, ANALYZER)
        except UNREADABLE:
            return []  # an unreadable turn, reported with the log
        known = {row.seq: (row.said, row.answered) for row in rows if row.said is not None}
        self.tally.checked["terms"] += len(known)
        lacking = {row.seq for row in rows if row.said is None and row.seq <= kept.marks.get(derived.tier, 0)}
        missing = [turn for turn in turns if turn.seq in lacking]
        sample = [turn for turn in turns if self.sampled(turn.seq or 0)]
        made = await anyio.to_thread.run_sync(partial(terms_of, sample))
        own = {row.seq: (row.said, row.answered) for row in made}
        if self.repair and missing:
            try:
                await derived.take(missing, epoch=epoch)
            except ErasedError:
                return []  # nothing to report about what is gone
        changed = [turn for turn in sample if turn.seq in known and known[turn.seq] != own.get(turn.seq)]
        return [
            *(_of(turn, "terms", "has no terms", mended=self.repair) for turn in missing),
            *map(_changed, changed),
        ]


@dataclass(slots=True)
class Vectors(Check):
    """Checks that every done turn up to the watermark that says anything has a vector that can be found."""

    #: None once it is reported that they are not checked.
    vectors: TurnVectors | None

    async def begin(self) -> list[Finding]:
        """Whether there is anything to compare with."""
        if self.vectors is None:
            return []
        try:
            _, others = await self.vectors.collections()
        except PagefileError as error:
            return self._without(f"vectors cannot be looked at: {error}")
        told = ", ".join(f"{collection.model.key} ({collection.vectors:,})" for collection in others)
        return [Finding("note", "vectors", f"there are vectors of other embedders: {told}")] if told else []

    async def look(
        self, kept: KeptConversation, after: int, turns: Sequence[Turn], epoch: int
    ) -> list[Finding]:
        """What is wrong with the vectors of these turns, which follow `after` in the log."""
        vectors = self.vectors
        mark = 0 if vectors is None else kept.marks.get(vectors.tier, 0)
        if vectors is None or not mark:
            return []
        try:
            held = await vectors.index.held(
                vectors.embedder.model, kept.scope, after, max(turn.seq or 0 for turn in turns)
            )
            if held is None:
                return self._without(f"{vectors.index.name} does not tell which turns have vectors")
            self.tally.checked["vectors"] += len(held)
            right = {(one.seq, one.turn_id) for one in held if one.fits}
            there = {one.seq for one in held}
            lacking = [turn for turn in turns if (turn.seq or 0) <= mark and (turn.seq, turn.id) not in right]
            wrong = [turn for turn in lacking if turn.seq in there or await _speaks(vectors, turn)]
            if self.repair and wrong:
                await vectors.take(wrong, epoch=epoch)
        except ErasedError:
            return []
        except PagefileError as error:
            return self._without(f"vectors cannot be looked at: {error}")
        unfound = "has a vector that cannot be found"
        return [
            _of(turn, "vector", unfound if turn.seq in there else "has no vector", mended=self.repair)
            for turn in wrong
        ]

    def _without(self, what: str) -> list[Finding]:
        """Report once that vectors are not checked."""
        self.vectors = None
        return [Finding("note", "vectors", what)]


async def _speaks(vectors: TurnVectors, turn: Turn) -> bool:
    """Whether a turn has anything to embed: punctuation alone does not count."""
    texts = embedded_texts(turn.user, turn.assistant)
    return bool(texts) and bool(blended(list(await vectors.embedder.embed(texts))).any())


def _changed(turn: Turn) -> Finding:
    what = f"the words of turn {turn.id!r} are not those that its terms were made of: one or the other was changed"
    return at_entry(turn, "damage", "log-terms", what)


def _of(turn: Turn, kind: str, what: str, *, mended: bool) -> Finding:
    return at_entry(turn, "derived", kind, f"turn {turn.id!r} {what}", mended=mended)
