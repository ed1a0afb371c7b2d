"""Ranking by words: BM25 that grows, and TF-IDF."""

import math
import threading
import time

import pytest

from pagefile.text.bm25 import K1, B, Ranked, WordIndex
from pagefile.text.words import terms

DOCS = {
    "cat": "The cat sleeps on the sofa",
    "dog": "The dog chases the cat in the garden and barks at it for hours",
    "血压": "我有高血压，每天吃一片氨氯地平",
    "过敏": "我对青霉素过敏",
}


@pytest.fixture
def index() -> WordIndex[str]:
    filled: WordIndex[str] = WordIndex()
    for key, text in DOCS.items():
        filled.add(key, terms(text))
    return filled


def keys(found: list[Ranked[str]]) -> list[str]:
    return [ranked.key for ranked in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sleeping cats", ["cat", "dog"]),
        ("barking dog", ["dog"]),
        ("高血压吃什么药", ["血压"]),
        ("青霉素", ["过敏"]),
        ("quantum physics", []),
        ("", []),
    ],
)
def test_the_best_come_first(index: WordIndex[str], query: str, expected: list[str]):
    """Only documents that share a term are found, in both languages."""
    assert expected == keys(index.search(terms(query), 10))


def test_scores_are_bm25():
    """The arithmetic, by hand, with a repeated query term."""
    index: WordIndex[int] = WordIndex()
    index.add(1, ["a", "a", "b"])
    index.add(2, ["b"])
    [found] = index.search(["a", "a"], 5)
    rarity = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    expected = 2 * rarity * 2 * (K1 + 1) / (2 + K1 * (1 - B + B * 3 / 2))
    assert (1, pytest.approx(expected, rel=1e-5)) == (found.key, found.score)


def test_the_share_of_a_questions_weight(index: WordIndex[str]):
    """Rare terms weigh more than common ones, unknown ones most, and all of them as much as they are asked for."""
    assert 1.0 == index.share("dog", {"dog": 1})
    assert 0 < index.share("dog", {"dog": 1, "unheard": 1}) < 0.5
    assert index.share("dog", {"dog": 1, "unheard": 1}) < index.share("dog", {"dog": 1, "unheard": 0.5}) < 1
    assert (
        0.0
        == index.share("nobody", {"dog": 1})
        == index.share("dog", {})
        == index.share("dog", {"unheard": 1})
    )
    index.remove(["dog"])
    assert 0.0 == index.share("dog", {"dog": 1})


def test_equal_scores_are_newest_first():
    """Of two that say the same, the later one still holds; the cut at `limit` follows the same order."""
    index: WordIndex[int] = WordIndex()
    for key in range(20):
        index.add(key, ["same"])
    assert [19, 18, 17] == [ranked.key for ranked in index.search(["same"], 3)]
    assert list(range(19, -1, -1)) == [ranked.key for ranked in index.search(["same"], 99)]


def test_a_known_key_is_left_as_it_is(index: WordIndex[str]):
    """Adding twice changes nothing."""
    before = index.search(["cat"], 5), len(index), index.postings
    index.add("cat", ["something", "else"])
    assert before == (index.search(["cat"], 5), len(index), index.postings)


def test_adding_one_by_one_is_the_same_as_at_once(index: WordIndex[str]):
    """Rarity is that of the documents there are now, not of those there were."""
    other: WordIndex[str] = WordIndex()
    for key, text in DOCS.items():
        other.add(key, terms(text))
        other.search(["cat"], 3)
    assert index.search(terms("the cat, 高血压"), 9) == other.search(terms("the cat, 高血压"), 9)


@pytest.mark.parametrize("gone", [["dog"], ["cat", "dog", "nobody"], list(DOCS)])
def test_removing_is_as_if_never_added(index: WordIndex[str], gone: list[str]):
    """A few stay as dead postings, many are packed away: the scores cannot tell."""
    index.remove(gone)
    fresh: WordIndex[str] = WordIndex()
    for key, text in DOCS.items():
        if key not in gone:
            fresh.add(key, terms(text))
    query = terms("cats and dogs, 高血压 过敏")
    assert (len(fresh), fresh.search(query, 9)) == (len(index), index.search(query, 9))
    assert [key not in gone for key in DOCS] == [key in index for key in DOCS]


def test_packing_gives_memory_back_and_keeps_the_order():
    """After a quarter is dead the postings hold the living only, and a removed key can come again."""
    index: WordIndex[int] = WordIndex()
    for key in range(100):
        index.add(key, ["x", f"only{key}"])
    assert 200 == index.postings
    index.remove(range(10))
    assert 200 == index.postings
    index.remove(range(10, 40))
    assert 120 == index.postings
    index.add(5, ["x"])
    # the newcomer is shorter than the rest, hence first
    assert [5, *range(99, 39, -1)] == [ranked.key for ranked in index.search(["x"], 99)]


@pytest.mark.parametrize("limit", [0, -1])
def test_no_limit_left_is_no_result(index: WordIndex[str], limit: int):
    """Nothing was asked for."""
    assert [] == index.search(["cat"], limit)


def test_an_empty_index_and_an_empty_document():
    """Neither divides by zero."""
    index: WordIndex[int] = WordIndex()
    assert [] == index.search(["a"], 5)
    index.add(1, [])
    assert (1, []) == (len(index), index.search(["a"], 5))


def test_search_while_adding():
    """Threads may add and search at the same time."""
    index: WordIndex[int] = WordIndex()
    failures: list[BaseException] = []

    def add() -> None:
        for key in range(2000):
            index.add(key, ["a", "b", str(key % 7)])

    def search() -> None:
        try:
            for _ in range(300):
                index.search(["a", "3"], 5)
        except BufferError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for work in (add, search, search)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ([], 2000) == (failures, len(index))


def test_ten_thousand_documents_are_searched_in_milliseconds():
    """About half a millisecond on an idle machine; ten times that is a broken index."""
    index: WordIndex[int] = WordIndex()
    for key in range(10_000):
        index.add(key, [f"w{key * step % 977}" for step in range(1, 30)])
    began = time.thread_time()
    for at in range(20):
        assert index.search([f"w{at}", f"w{at * 31 % 977}", "w5"], 10)
    assert (time.thread_time() - began) / 20 < 0.01
