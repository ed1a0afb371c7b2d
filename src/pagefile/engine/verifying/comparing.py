"""Comparisons: pages and their texts, passages, facts and their journal. Pure functions that return what is wrong."""

import hashlib
import re
from collections.abc import Iterator, Sequence

from pagefile.ports import KeptPage, TurnTerms
from pagefile.records import Fact, Page, Revision, Turn
from pagefile.text.facts_rules import own_words

_SHA256 = re.compile(r"[0-9a-f]{64}")


def wrong_text(kept: KeptPage, page: Page, text: str) -> str | None:
    """What is wrong with a page's text; None if it is byte for byte what was archived."""
    if len(text) != page.length:
        return f"its text has {len(text)} characters, and had {page.length}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    # Code that fills a store without an archive may use other kinds of hashes.
    known = {hash_ for hash_ in (page.content_hash, kept.blob) if hash_ and _SHA256.fullmatch(hash_)}
    if known - {digest}:
        return f"its text has the SHA-256 {digest}, and had {', '.join(sorted(known - {digest}))}"
    return None


def tiles(spans: Sequence[tuple[int, int]], length: int) -> bool:
    """Whether the passages, joined, are the whole text."""
    ends = [0, *(end for _, end in spans)]
    return ends[-1] == length and all(
        start == before <= end for (start, end), before in zip(spans, ends, strict=False)
    )


def missing_terms(turns: Sequence[Turn], kept: Sequence[TurnTerms], mark: int) -> list[Turn]:
    """Turns up to the watermark without terms."""
    lacking = {row.seq for row in kept if row.said is None}
    return [turn for turn in turns if (turn.seq or 0) <= mark and turn.seq in lacking]


def other_terms(made: Sequence[TurnTerms], kept: Sequence[TurnTerms]) -> set[int]:
    """The `seq`s whose stored terms differ from the recomputed ones."""
    known = {row.seq: (row.said, row.answered) for row in kept if row.said is not None}
    return {
        row.seq for row in made if known.get(row.seq, (row.said, row.answered)) != (row.said, row.answered)
    }


def is_quoted(quote: str, turn: Turn) -> bool:
    """Whether a turn contains the quote of a fact."""
    said = turn.user or ""
    return quote in said or quote in own_words(said) or quote in (turn.assistant or "")


def broken_chain(facts: Sequence[Fact], revisions: Sequence[Revision]) -> Iterator[tuple[str, str]]:
    """Facts whose changes do not follow from one another or do not lead to the current state, with what is wrong."""
    became: dict[str, Fact] = {}
    told: set[str] = set()
    for revision in revisions:
        for before, after in zip(revision.before, revision.after, strict=True):
            known = became.get(after.id)
            if known is not None and before != known and after.id not in told:
                told.add(after.id)
                yield after.id, f"revision {revision.number} does not begin with what the one before left"
            became[after.id] = after
    held = {fact.id: fact for fact in facts}
    for fact_id, last in became.items():
        if fact_id not in held:
            yield fact_id, "its changes are there, and it is not"
        elif held[fact_id] != last and fact_id not in told:
            yield fact_id, "it is not what its last change made of it"
