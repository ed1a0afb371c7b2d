"""What always holds when turns are ranked, whatever was said and whatever is near."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefile.text.speech import in_first_person, said_terms, speech
from pagefile.text.turn_ranking import Placed, TurnIndex
from pagefile.text.words import terms

NOON = datetime(2025, 6, 18, 12, tzinfo=UTC)
APART = {"coverage", "similarity", "inside"}

lines = st.sampled_from(
    [
        "Mia: I adopted a cat",
        "Tom: Which cat?",
        "Mia: The grey cat, yesterday",
        "上周我们去了杭州",
        "杭州的茶好喝吗？",
        "Tom: nothing",
        "",
    ]
)
turns = st.lists(st.tuples(lines, st.sampled_from("ab"), st.integers(0, 200)), max_size=12)
questions = st.sampled_from(
    ["Which cat did Mia adopt?", "上周去了哪里？", "tea", "What about the dog?", "？"]
)
nearness = st.dictionaries(st.integers(-1, 13), st.floats(-1, 1), max_size=14)


def index_of(said: list[tuple[str, str, int]]) -> TurnIndex[int]:
    index: TurnIndex[int] = TurnIndex()
    for key, (text, conversation, hours) in enumerate(said):
        index.add(Placed(key, conversation, NOON + timedelta(hours=hours), " ".join(said_terms(text))))
    return index


@given(said=turns, question=questions, meaning=nearness, limit=st.integers(0, 20))
def test_a_ranking_explains_itself(
    said: list[tuple[str, str, int]], question: str, meaning: dict[int, float], limit: int
):
    """Known turns, none twice, best first, no more than asked for; each score is the sum of its parts, none of them negative."""
    found = index_of(said).search(question, limit, meaning=meaning)
    assert len({one.key for one in found}) == len(found) <= limit
    assert all(0 <= one.key < len(said) for one in found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for one in found:
        assert pytest.approx(one.score) == sum(part for name, part in one.parts.items() if name not in APART)
        assert min(one.parts.values()) >= 0
        assert max(one.parts["coverage"], one.parts["similarity"]) <= 1 + 1e-9
        assert pytest.approx(max(0.0, meaning.get(one.key, 0.0))) == one.parts["similarity"]


@given(said=turns, question=questions, meaning=nearness, limit=st.integers(1, 5))
def test_the_best_few_are_the_first_of_all(said, question, meaning, limit):
    """What cannot be among the best is not scored, and changes nothing of those that are."""
    index = index_of(said)
    every = index.search(question, 1000, meaning=meaning)
    assert every[:limit] == index.search(question, limit, meaning=meaning)


@given(said=turns, question=questions, meaning=nearness)
def test_nothing_near_is_as_no_meaning(
    said: list[tuple[str, str, int]], question: str, meaning: dict[int, float]
):
    """The words decide alone; and whatever they find is found with meaning too."""
    index = index_of(said)
    by_word = index.search(question, 20)
    nothing = {key: -abs(near) for key, near in meaning.items()}
    assert by_word == index.search(question, 20, meaning={}) == index.search(question, 20, meaning=nothing)
    assert {one.key for one in by_word} <= {one.key for one in index.search(question, 20, meaning=meaning)}


@given(st.text(max_size=80) | lines)
def test_marks_are_never_words(text: str):
    """Whatever is said, its terms come back as they are."""
    assert " ".join(terms(text)) == speech(" ".join(said_terms(text))).words


@given(st.text(max_size=60), st.sets(st.sampled_from(["mia", "tom", "李雷", "a.b"])))
def test_a_question_always_stays_a_text(question: str, names: set[str]):
    """Whatever is asked: nothing raises, and nobody's name changes nothing."""
    assert question == in_first_person(question, ())
    assert isinstance(in_first_person(question, names), str)
