"""When archived pages are loaded without the model asking: four strategies.

Each is a small pure policy that maps a question and the available pages to the uuids to load.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pagefile.text.facts import FactIndex

Strategy = Literal["model", "keyword", "similarity", "hybrid"]

#: Words that refer back, in Chinese and English.
_POINTS_BACK = re.compile(
    r"之前|刚才|刚刚|上次|上回|前面|先前|早些时候|第[一二三四五六七八九十\d]+步"
    r"|\b(?:earlier|before|previous(?:ly)?|last time|you (?:said|mentioned|found|showed)|just now|above)\b",
    re.IGNORECASE,
)
#: From this cosine similarity on, the question is considered to be about the page.
SIMILAR_FROM = 0.12


@dataclass(frozen=True, slots=True)
class PageHint:
    """What is known about a page without reading it."""

    uuid: str
    #: Tool, query and synopsis.
    text: str


def points_back(question: str) -> bool:
    """Whether a question refers to something said or found before."""
    return _POINTS_BACK.search(question) is not None


def pages_to_load(strategy: Strategy, question: str, pages: Sequence[PageHint]) -> list[str]:
    """The uuids that the strategy loads for this question; `pages` are ordered oldest to newest."""
    if not pages or not question.strip():
        return []
    return _POLICIES[strategy](question, pages)


def _by_model(question: str, pages: Sequence[PageHint]) -> list[str]:
    """Nothing: the model calls `load_tool_history` if it wants a page."""
    return []


def _by_keyword(question: str, pages: Sequence[PageHint]) -> list[str]:
    """If a word refers back, the page most similar to the question, or else the newest."""
    if not points_back(question):
        return []
    return _best(question, pages, 0.0) or [pages[-1].uuid]


def _by_similarity(question: str, pages: Sequence[PageHint]) -> list[str]:
    """The page most similar to the question, if it is similar enough."""
    return _best(question, pages, SIMILAR_FROM)


def _hybrid(question: str, pages: Sequence[PageHint]) -> list[str]:
    """A word that refers back decides; without one, similarity does."""
    return _by_keyword(question, pages) or _by_similarity(question, pages)


_POLICIES: Mapping[Strategy, Callable[[str, Sequence[PageHint]], list[str]]] = {
    "model": _by_model,
    "keyword": _by_keyword,
    "similarity": _by_similarity,
    "hybrid": _hybrid,
}


def _best(question: str, pages: Sequence[PageHint], least: float) -> list[str]:
    index: FactIndex[int] = FactIndex()
    index.add(enumerate(page.text for page in pages))
    similarities = index.similarities(question)
    # Of equally similar pages the newest, which is what the conversation is about now.
    best = max(range(len(pages)), key=lambda n: (similarities.get(n, 0.0), n))
    return [pages[best].uuid] if similarities.get(best, 0.0) > least else []
