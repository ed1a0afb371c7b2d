"""What words are called in the other of our two languages: exact where an embedder only guesses, and at no cost.

A question in Chinese about a build log in English shares no word with it, and single words that stand for an operation
(回滚, "rollback") are what the vectors of a small encoder know least.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

from pagefile.text.tables import table
from pagefile.text.words import terms


@cache
def _glossary() -> Mapping[str, frozenset[str]]:
    """Every term of the glossary with those that may stand for it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for field in table("pagefile.text", "glossary")["terms"].values():
        for line in field.strip().splitlines():
            chinese, _, english = line.partition("=")
            ours, others = chinese.split(), [term for word in english.split() for term in terms(word)]
            for term in ours:
                found[term].update(others)
            for term in others:
                found[term].update(ours)
    return {term: frozenset(others) for term, others in found.items()}


def counterparts(asked: Iterable[str]) -> dict[str, frozenset[str]]:
    """Those of the terms that the glossary has, with what they are called in the other language."""
    glossary = _glossary()
    return {term: glossary[term] for term in dict.fromkeys(asked) if term in glossary}
