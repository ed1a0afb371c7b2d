"""Ranking facts: similarity and confidence, weighted, without refitting."""

import numpy as np
import pytest

from pagefile.text.fact_ranking import (
    FactIndex,
    blended,
    coerced_confidence,
    confirmed_confidence,
    diverse,
    fact_key,
    scores,
    statement_key,
)

from .samples import CONTEXT, FACTS, MIXED, index_of


def test_document_004s_example():
    """All three facts of the conversation's topic rank above the one that is not, with equal confidence."""
    values = scores(index_of(FACTS).similarity_array(CONTEXT, range(4)), [0.9] * 4)
    order = [FACTS[i] for i in np.argsort(-values)]
    assert order[-1] == "Uses Docker for containerization"
    assert order[0] == "Expert in Python and FastAPI"


def test_facts_come_and_go_one_at_a_time():
    """After any change the index says what one built from the rest says."""
    index: FactIndex[int] = FactIndex()
    for number, text in enumerate(MIXED):
        index.add([(number, text)])
    index.remove([0, 3, 99])
    index.add([(5, "用户现在更喜欢游泳")])
    kept = {number: text for number, text in enumerate(MIXED) if number not in {0, 3}} | {
        5: "用户现在更喜欢游泳"
    }
    fresh: FactIndex[int] = FactIndex()
    fresh.add(kept.items())
    for query in (CONTEXT, "青霉素过敏", "喜欢什么运动", ""):
        assert index.similarity_array(query, list(kept)) == pytest.approx(
            fresh.similarity_array(query, list(kept)), abs=1e-9
        )
    assert (len(index), 0 in index, 5 in index) == (len(kept), False, True)


def test_chinese_facts_are_told_apart():
    """No sentence is one token: facts and questions in Chinese alone rank."""
    found = index_of(MIXED).similarities("医生说我不能用青霉素")
    assert max(found, key=found.__getitem__) in {4, 6}
    assert max(index_of(MIXED).similarities("周末去哪里爬山好").items(), key=lambda pair: pair[1])[0] == 5


def test_similarity_is_relative_to_the_best():
    """So 0.6 and 0.4 speak of the same range: relevance beats confidence."""
    plain = [0.6 * 0.2 + 0.4 * 1.0, 0.6 * 0.6 + 0.4 * 0.3]
    assert plain[0] > plain[1]
    assert scores([0.2, 0.6], [1.0, 0.3]).tolist() == pytest.approx([0.6 / 3 + 0.4, 0.6 + 0.12])
    assert scores([0.2, 0.6], [1.0, 0.3], similarity_weight=1, confidence_weight=0).tolist() == pytest.approx(
        [1 / 3, 1]
    )


def test_without_a_topic_the_surest_come_first():
    """No context, and a context that meets nothing, leave confidence alone."""
    for similarities in (None, [], [0.0, 0.0]):
        assert scores(similarities, [0.3, 0.9]).tolist() == pytest.approx([0.12, 0.36])


def test_meaning_bridges_languages():
    """A fact that shares no word with the question ranks by its meaning; words still count."""
    words = np.array([0.0, 0.0, 0.4])
    dense = np.array([0.62, 0.31, 0.30])
    assert blended(words, dense).tolist() == [1.0, 0.0, 1.0]
    assert blended(words, None).tolist() == [0.0, 0.0, 1.0]
    assert blended(np.zeros(1), np.array([0.5])).tolist() == [1.0]
    assert blended(np.zeros(0), np.zeros(0)).tolist() == []


def test_what_nearly_repeats_a_better_one_is_behind():
    """Once said is enough while others have not been said."""
    texts = [
        "The user likes green tea",
        "The user likes  Green Tea!",
        "The user lives in Berlin",
        "用户喜欢绿茶",
        "用户喜欢绿茶。",
    ]
    assert diverse(texts) == [0, 2, 3, 1, 4]
    assert diverse([]) == []
    many = [f"fact number {number} about {number * 7919}" for number in range(100)]
    assert sorted(diverse(many)) == list(range(100))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0.5, 0.5),
        (None, 1.0),
        (float("nan"), 1.0),
        (float("inf"), 1.0),
        (-3, 0.0),
        (7, 1.0),
        ("0.25", 0.25),
        ("high", 1.0),
        (True, 1.0),
        ([], 1.0),
        (10**400, 1.0),
    ],
)
def test_confidence_is_coerced(given, expected):
    """What is not a number counts as stated without doubt; the rest is clamped."""
    assert coerced_confidence(given) == expected


def test_repetition_makes_surer_and_never_more_than_sure():
    """Half of the doubt goes with each certain repetition."""
    assert confirmed_confidence(0.5, 1.0) == 0.75
    assert confirmed_confidence(0.5, 0.0) == 0.5
    assert confirmed_confidence(1.0, 1.0) == 1.0


def test_equal_facts_differ_in_spaces_and_case_alone():
    """The key of deer-flow's own deduplication."""
    assert (
        fact_key("  The User\tlikes TEA ")
        == fact_key("the user likes tea")
        != fact_key("the user likes teas")
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user lives in the city.", "lives in a city"),
        ("用户住在杭州", "用户 住在 杭州。"),
        ("Likes tea, coffee!", "the user likes TEA (coffee)"),
        ("A dog barks", "dog barks"),
    ],
)
def test_statements_that_are_equal(one, other):
    """Case, spaces, articles and punctuation do not matter."""
    assert statement_key(one) == statement_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("takes .5 mg", "takes 5 mg"),
        ("HbA1c target < 7", "HbA1c target > 7"),
        ("the plan is A", "the plan is"),
        ("plan A works", "the plan works"),
        ("feels 😀", "feels 😢"),
        ("कि", "की"),
        ("blood type O+", "blood type O-"),
    ],
)
def test_statements_that_differ_in_a_sign(one, other):
    """What tells them apart is kept."""
    assert statement_key(one) != statement_key(other)


def test_a_fact_is_found_by_what_the_question_is_called_in_the_other_language():
    index: FactIndex[int] = FactIndex(translates=True)
    index.add(enumerate(["护照明年二月到期", "养了两只乌龟", "喜欢读汪曾祺"]))
    assert [0] == list(index.similarities("When does my passport run out?"))
    assert [1] == list(index.similarities("tortoise"))
    assert {} == index.similarities("quilting")
