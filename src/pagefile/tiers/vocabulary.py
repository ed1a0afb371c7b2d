"""Words of other languages that mean the same as those of a query, by the embedder's vectors of single words.

A sentence and a table in another language have little in common as wholes; "refund" and 退款 do. Only an embedder that
costs nothing per text embeds single words.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from pagefile.arrays import np
from pagefile.ports import Embedder, Vector
from pagefile.text.words import ASKING_TERMS

#: Words of a script that are known at a time, and how many are embedded at a time: a question waits for these.
_MOST, _BATCH = 20_000, 64
#: From this similarity on a word is a translation; how many of them count, and how much beside the word itself.
_ALIKE, _TRANSLATIONS, _WORTH = 0.5, 2, 0.8
#: How many of the most similar words are looked at: others may have no page with them.
_LOOK = 40


def words_in(terms: Sequence[str]) -> set[str]:
    """The terms of a text that are words of a language.

    Chinese words come whole and in pairs of characters, so a pair that is a word comes twice.
    """
    return {term for term, times in Counter(terms).items() if term.isalpha() and _is_word(term, times)}


def _is_word(term: str, times: int) -> bool:
    if term.isascii():
        return 3 <= len(term) <= 20
    return 2 < len(term) <= 6 or (len(term) == 2 and times > 1)


class Vocabulary:
    """The words of all pages that were searched, by script."""

    def __init__(self) -> None:
        self._rows: dict[bool, dict[str, Vector]] = {True: {}, False: {}}

    async def learn(self, words: Iterable[str], embedder: Embedder) -> None:
        """Embed words that are not known yet; what is done is kept if the caller stops waiting."""
        wanted = [word for word in words if word not in self._rows[word.isascii()]]
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            for word, row in zip(batch, await embedder.embed(batch), strict=True):
                rows = self._rows[word.isascii()]
                if len(rows) >= _MOST:
                    rows.clear()
                rows[word] = row

    async def translations(
        self,
        asked: Collection[str],
        among: AbstractSet[str],
        embedder: Embedder,
        holds: Callable[[str], bool],
    ) -> dict[str, float]:
        """Words of the other script that mean what the words of a query mean, with their weights beside those."""
        found: dict[str, float] = {}
        for ascii_ in (True, False):
            words = sorted(word for word in asked if word.isascii() is ascii_ and word not in ASKING_TERMS)
            others = [word for word in among if word.isascii() is not ascii_]
            if not words or not others:
                continue
            await self.learn([*words, *others], embedder)
            rows = self._rows[not ascii_]
            known = [word for word in others if word in rows]
            if known and all(word in self._rows[ascii_] for word in words):
                alike = (
                    np.stack([self._rows[ascii_][word] for word in words])
                    @ np.stack([rows[word] for word in known]).T
                )
                for row in alike:
                    _add(found, row, known, holds)
        return found

    def forget(self) -> None:
        for rows in self._rows.values():
            rows.clear()


def _add(found: dict[str, float], alike: Vector, words: Sequence[str], holds: Callable[[str], bool]) -> None:
    """The best translations of one word; several of them share its weight."""
    nearest: list[int] = np.argsort(-alike)[:_LOOK].tolist()
    best = [at for at in nearest if alike[at] >= _ALIKE and holds(words[at])][:_TRANSLATIONS]
    for at in best:
        weight = _WORTH * float(alike[at]) / len(best) ** 0.5
        found[words[at]] = max(found.get(words[at], 0.0), weight)
