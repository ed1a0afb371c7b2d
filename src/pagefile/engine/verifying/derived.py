"""The terms and vectors of turns, checked against the turns themselves."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import anyio.to_thread

from pagefile.engine.verifying.comparing import missing_terms, other_terms
from pagefile.engine.verifying.findings import Finding, Tally, at
from pagefile.errors import ErasedError, PagefileError
from pagefile.ports import UNREADABLE, KeptConversation, SinceRequest, TermStore
from pagefile.records import Turn
from pagefile.text.speech import blended, embedded_texts
from pagefile.tiers.indexing import ANALYZER, TurnVectors, terms_of
from pagefile.tiers.indexing import Terms as DerivedTerms

#: Without `full`, one turn in this many is recomputed for comparison.
SAMPLE = 20


class Terms:
    """Checks that every done turn up to the watermark has its terms, and that they match its text.

    Missing terms are recomputed. Different terms are evidence that the text was different when they were
    computed: they carry the version of the analyzer, so only a manual change explains the difference, and
    they are never overwritten here.
    """

    def __init__(self, store: TermStore, *, full: bool, repair: bool) -> None:
        self._store = store
        self._derived = DerivedTerms(store)
        self._full = full
        self._repair = repair

    async def look(
        self, kept: KeptConversation, after: int, turns: Sequence[Turn], tally: Tally, epoch: int
    ) -> list[Finding]:
        """What is wrong with the terms of these turns, which follow `after` in the log."""
        request = SinceRequest(kept.scope, {kept.scope.conversation or "": after}, len(turns))
        try:
            rows = await self._store.since(request, ANALYZER)
        except UNREADABLE:
            return []  # an unreadable turn, reported with the log
        tally.checked["terms"] += sum(row.said is not None for row in rows)
        missing = missing_terms(turns, rows, kept.marks.get(self._derived.tier, 0))
        sample = [turn for turn in turns if self._full or (turn.seq or 0) % SAMPLE == 1]
        wrong = other_terms(await anyio.to_thread.run_sync(partial(terms_of, sample)), rows)
        other = [turn for turn in sample if turn.seq in wrong]
        if self._repair and missing:
            try:
                await self._derived.take(missing, epoch=epoch)
            except ErasedError:
                return []  # nothing to report about what is gone
        lacking = [replace(_of(turn, "terms", "has no terms"), mended=self._repair) for turn in missing]
        return [*lacking, *(_changed(turn) for turn in other)]


class Vectors:
    """Checks that every done turn up to the watermark that says anything has a vector that can be found."""

    def __init__(self, vectors: TurnVectors | None, *, repair: bool) -> None:
        self._vectors = vectors
        self._repair = repair

    async def begin(self) -> list[Finding]:
        """Whether there is anything to compare with."""
        vectors = self._vectors
        if vectors is None:
            return []
        try:
            _, others = await vectors.shelves()
        except PagefileError as error:
            return self._without(f"vectors cannot be looked at: {error}")
        if not others:
            return []
        told = ", ".join(f"{shelf.maker.key} ({shelf.vectors:,})" for shelf in others)
        return [Finding("note", "vectors", f"there are vectors of other embedders: {told}")]

    async def look(
        self, kept: KeptConversation, after: int, turns: Sequence[Turn], tally: Tally, epoch: int
    ) -> list[Finding]:
        """What is wrong with the vectors of these turns, which follow `after` in the log."""
        vectors = self._vectors
        mark = 0 if vectors is None else kept.marks.get(vectors.tier, 0)
        if vectors is None or not mark:
            return []
        try:
            held = await vectors.home.held(
                vectors.embedder.maker, kept.scope, after, max(turn.seq or 0 for turn in turns)
            )
            if held is None:
                return self._without(f"{vectors.home.name} does not tell which turns have vectors")
            tally.checked["vectors"] += len(held)
            right = {(one.seq, one.turn_id) for one in held if one.fits}
            there = {one.seq for one in held}
            lacking = [turn for turn in turns if (turn.seq or 0) <= mark and (turn.seq, turn.id) not in right]
            wrong = [turn for turn in lacking if turn.seq in there or await _speaks(vectors, turn)]
            if self._repair and wrong:
                await vectors.take(wrong, epoch=epoch)
        except ErasedError:
            return []
        except PagefileError as error:
            return self._without(f"vectors cannot be looked at: {error}")
        return [
            replace(
                _of(
                    turn,
                    "vector",
                    "has a vector that cannot be found" if turn.seq in there else "has no vector",
                ),
                mended=self._repair,
            )
            for turn in wrong
        ]

    def _without(self, what: str) -> list[Finding]:
        """Report once that vectors are not checked."""
        self._vectors = None
        return [Finding("note", "vectors", what)]


async def _speaks(vectors: TurnVectors, turn: Turn) -> bool:
    """Whether a turn has anything to embed: punctuation alone does not count."""
    texts = embedded_texts(turn.user, turn.assistant)
    return bool(texts) and bool(blended(list(await vectors.embedder.embed(texts))).any())


def _changed(turn: Turn) -> Finding:
    what = f"the words of turn {turn.id!r} are not those that its terms were made of: one or the other was changed"
    return at(turn.scope, "damage", "log-terms", what, turn=turn.id, seq=turn.seq)


def _of(turn: Turn, kind: str, what: str) -> Finding:
    return at(turn.scope, "derived", kind, f"turn {turn.id!r} {what}", turn=turn.id, seq=turn.seq)
