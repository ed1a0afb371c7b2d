"""Which archived pages are shown in full in the window: page replacement, and loading ahead, as pure decisions.

The turn that fetched or loaded a page sees it whole. Afterwards the page leaves, unless it is pinned; if a setting
asks for it, a page that was loaded in two turns close together stays until as many turns pass without a load. Pages
that stay never take more than the working set's share of the window in total. A strategy may load pages that the
model did not ask for.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import Literal, NamedTuple

from pagefile.text.words import terms

#: Resident pages of earlier turns take at most the window divided by this.
WORKING_SET_SHARE = 4

Strategy = Literal["model", "keyword", "similarity", "hybrid"]

#: Words that refer back, in Chinese and English.
_POINTS_BACK = re.compile(
    r"之前|刚才|刚刚|上次|上回|前面|先前|早些时候|第[一二三四五六七八九十\d]+步"
    r"|\b(?:earlier|before|previous(?:ly)?|last time|you (?:said|mentioned|found|showed)|just now|above)\b",
    re.IGNORECASE,
)
#: Words that ask for something once more, and do not say for what.
_ONCE_MORE = re.compile(
    r"[那这]个|再[说讲看来]?|[说讲看]{1,2}(?=一[遍次下])|一[遍次下]|详细|具体|继续"
    r"|\b(?:again|repeat|once more|please|in (?:more )?detail|tell me|show me|go on|continue|more)\b",
    re.IGNORECASE,
)
# The thresholds were chosen on the judged set of `pagefile bench pages` and on everyday questions beside it: among its
# 115 pages, 2 of 25 of these load one.
#: A question is about a page with at least this many points, and has more than a trifle of the question's words …
ABOUT_SCORE, SOME_COVERAGE = 20.0, 0.1
#: … or that has nearly all of them …
WHOLE_COVERAGE = 0.9
#: … or that leads the runner-up by this factor and meets one of these (coverage, similarity) pairs.
LEAD, LEADING = 2.0, ((0.25, 0.08), (0.08, 0.12))
#: A question means nearly the same as a page, and has anything in common with it, from these similarities on.
ALIKE, SOME_SIMILARITY = 0.45, 0.3
#: Without a similarity, the leader needs this coverage.
WORDS_COVERAGE = 0.4
#: A question that refers back needs fewer points.
BACK_SCORE = 12.0


class Use(NamedTuple):
    """A page was fetched or loaded in a turn; turns are numbered from the oldest."""

    turn: int
    uuid: str


def resident_pages(
    uses: Sequence[Use],
    now: int,
    *,
    pinned: AbstractSet[str],
    tokens: Mapping[str, int],
    limit_tokens: int,
    reuse_turns: int = 0,
) -> list[str]:
    """The pages of earlier turns that stay in full, most recently used first, within the working set.

    `now` numbers the turn this window is for; `tokens` has the pages' sizes: one without a size is left out. Two
    uses within `reuse_turns` make a page stay, and as many turns without one evict it; with 0 only pinned pages stay.
    """
    by_page: dict[str, list[int]] = {}
    for use in uses:
        by_page.setdefault(use.uuid, []).append(use.turn)
    used = {uuid for uuid, turns in by_page.items() if _stays(sorted(set(turns)), now, reuse_turns)}
    newest = {uuid: max(turns) for uuid, turns in by_page.items()}
    staying = sorted(used | pinned, key=lambda uuid: (uuid not in pinned, -newest.get(uuid, 0), uuid))
    kept: list[str] = []
    for uuid in staying:
        if (size := tokens.get(uuid)) is not None and size <= limit_tokens:
            kept.append(uuid)
            limit_tokens -= size
    return kept


def _stays(turns: Sequence[int], now: int, reuse_turns: int) -> bool:
    """Whether two uses were close together and no long pause followed."""
    established = False
    for earlier, later in pairwise(turns):
        close = later - earlier < reuse_turns
        established = close or (established and later - earlier <= reuse_turns)
    return established and now - turns[-1] <= reuse_turns


# -- loading ahead ------------------------------------------------------------------------------------------------------


class Relevance(NamedTuple):
    """What a page has in common with a question."""

    uuid: str
    #: The share of the question's words, by their rarity, that one passage has.
    coverage: float
    #: Between the question and what the page is about; 0 if that is not known.
    similarity: float
    #: Points for words and similarity, and how many times those of the next page they are.
    score: float
    lead: float


def points_back(question: str) -> bool:
    """Whether a question refers to something said or found before."""
    return _POINTS_BACK.search(question) is not None


def subject(question: str) -> str:
    """A question without the words that only refer back; empty if it says nothing else."""
    rest = _POINTS_BACK.sub(" ", question)
    return rest.strip() if terms(_ONCE_MORE.sub(" ", rest), keep_stop_words_if_empty=False) else ""


def pages_to_load(
    strategy: Strategy, question: str, found: Sequence[Relevance], newest: str | None
) -> list[str]:
    """The uuids to load for this question; `found` are the pages with something in common with its subject, best first.

    "model" leaves it to the model, which calls `load_tool_history`. "keyword": if a word refers back, the page that
    the question is about, or, if it names nothing, the newest. "similarity": the page that the question is about.
    "hybrid": either.
    """
    back = strategy in {"keyword", "hybrid"} and points_back(question)
    if back and newest is not None and not subject(question):
        return [newest]
    if not found or strategy == "model":
        return []
    best = found[0]
    known = best.coverage >= SOME_COVERAGE and (best.score >= BACK_SCORE or best.lead >= LEAD)
    close = back and (known or best.similarity >= SOME_SIMILARITY)
    about = strategy in {"similarity", "hybrid"} and _is_about(best)
    return [best.uuid] if close or about else []


def _is_about(page: Relevance) -> bool:
    """Whether a question that may be about anything is about this page."""
    if page.similarity >= ALIKE or page.coverage >= WHOLE_COVERAGE:
        return True
    if page.score >= ABOUT_SCORE and page.coverage >= SOME_COVERAGE:
        return True
    leading = page.lead >= LEAD and any(
        page.coverage >= coverage and page.similarity >= similarity for coverage, similarity in LEADING
    )
    return leading or (not page.similarity and page.lead >= LEAD and page.coverage >= WORDS_COVERAGE)
