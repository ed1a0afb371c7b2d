"""Splits a text into the pieces an encoder knows: SentencePiece's unigram segmentation, in Python alone.

A word is segmented once and remembered, which makes it fast enough: a piece never crosses a space.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

#: Stands for a space, and begins every text.
SPACE: Final = "\u2581"
#: Words whose segmentation is remembered.
_WORDS = 50_000
#: A longer run without a space is cut there: time grows with its length, and it is hardly a text.
_MAX_RUN = 200
_RUNS: Final = re.compile(rf"{SPACE}*[^{SPACE}]{{1,{_MAX_RUN}}}|{SPACE}+")


class Pieces:
    """The pieces with their log probabilities, numbered from `first`; what is in none of them is `unknown`."""

    def __init__(self, scores: Mapping[str, float], *, first: int, unknown: int) -> None:
        self._scores = {piece: (number, score) for number, (piece, score) in enumerate(scores.items(), first)}
        self._longest = max(map(len, scores))
        self._worst = min(scores.values()) - 10.0
        self._unknown = unknown
        self._known = lru_cache(_WORDS)(self._segmented)

    def ids(self, text: str, limit: int) -> list[int]:
        """The numbers of the first `limit` pieces of a text."""
        spaced = SPACE + SPACE.join(unicodedata.normalize("NFKC", text).split())
        found: list[int] = []
        for run in _RUNS.findall(spaced):
            if len(found) >= limit:
                break
            found += self._known(run)
        return found[:limit]

    def forget(self) -> None:
        """Discard the words that were seen; any thread may call it."""
        self._known.cache_clear()

    def _segmented(self, run: str) -> Sequence[int]:
        """The most probable way to cut a run into pieces (Viterbi)."""
        size = len(run)
        best = [0.0] + [-1e30] * size
        back: list[tuple[int, int]] = [(0, 0)] * (size + 1)
        for start in range(size):
            base = best[start]
            if base + self._worst > best[start + 1]:
                best[start + 1], back[start + 1] = base + self._worst, (start, self._unknown)
            for end in range(start + 1, min(size, start + self._longest) + 1):
                if (piece := self._scores.get(run[start:end])) is not None and base + piece[1] > best[end]:
                    best[end], back[end] = base + piece[1], (start, piece[0])
        ids: list[int] = []
        while size:
            size, number = back[size]
            ids.append(number)
        return tuple(reversed(ids))
