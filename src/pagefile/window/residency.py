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
from typing import Literal, NamedTuple, TypeVar

from pagefile.text.fact_ranking import FactIndex

K = TypeVar("K")
#: Resident pages of earlier turns take at most the window divided by this.
WORKING_SET_SHARE = 4

Strategy = Literal["model", "keyword", "similarity", "hybrid"]

#: Words that refer back, in Chinese and English.
_POINTS_BACK = re.compile(
    r"之前|刚才|刚刚|上次|上回|前面|先前|早些时候|第[一二三四五六七八九十\d]+步"
    r"|\b(?:earlier|before|previous(?:ly)?|last time|you (?:said|mentioned|found|showed)|just now|above)\b",
    re.IGNORECASE,
)
#: From this cosine similarity on, the question is considered to be about the page.
SIMILAR_FROM = 0.12


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


def demoted_results(sizes: Sequence[tuple[K, int]], limit_tokens: int) -> set[K]:
    """Which full results are demoted when many accumulate: the oldest, until the rest fits or only the newest is left.

    `sizes` are (key, tokens) of results shown in full, oldest first.
    """
    over = sum(tokens for _, tokens in sizes) - limit_tokens
    demoted: set[K] = set()
    for key, tokens in sizes[:-1]:
        if over <= 0:
            break
        demoted.add(key)
        over -= tokens
    return demoted


# -- loading ahead ------------------------------------------------------------------------------------------------------


class PageHint(NamedTuple):
    """What is known about a page without reading it."""

    uuid: str
    #: Tool, query and synopsis.
    text: str


def points_back(question: str) -> bool:
    """Whether a question refers to something said or found before."""
    return _POINTS_BACK.search(question) is not None


def pages_to_load(strategy: Strategy, question: str, pages: Sequence[PageHint]) -> list[str]:
    """The uuids to load for this question; `pages` are ordered oldest to newest.

    "model" leaves it to the model, which calls `load_tool_history`. "keyword": if a word refers back, the page
    most similar to the question, or else the newest. "similarity": the page most similar to the question, if it
    is similar enough. "hybrid": a word that refers back decides; without one, similarity does.
    """
    if not pages or not question.strip():
        return []
    if strategy in {"keyword", "hybrid"} and points_back(question):
        return _best(question, pages, 0.0) or [pages[-1].uuid]
    return _best(question, pages, SIMILAR_FROM) if strategy in {"similarity", "hybrid"} else []


def _best(question: str, pages: Sequence[PageHint], least: float) -> list[str]:
    index: FactIndex[int] = FactIndex()
    index.add(enumerate(page.text for page in pages))
    similarities = index.similarities(question)
    # Of equally similar pages the newest, which is what the conversation is about now.
    best = max(range(len(pages)), key=lambda n: (similarities.get(n, 0.0), n))
    return [pages[best].uuid] if similarities.get(best, 0.0) > least else []
