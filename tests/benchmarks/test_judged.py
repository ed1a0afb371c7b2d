"""The judged set is what it says it is: fair to itself, in two languages, the same every time."""

import json
from collections import Counter

import pytest

from benchmarks.judged import Case, cases
from benchmarks.judged.case import dice, numbered, planted, subject
from benchmarks.judged.score import SYNOPSIS_CHARS, decoded, folded, holds, language_of, misleading, says

CASES = [pytest.param(case, id=case.name) for case in cases()]


def test_the_set_is_large_and_in_two_languages():
    """At least 72 results, at least 30 of them in each language, a few in both."""
    languages = Counter(case.language for case in cases())
    assert len(cases()) >= 72
    assert min(languages["en"], languages["zh"]) >= 30
    assert languages["mixed"] >= 2
    assert len({case.kind for case in cases()}) >= 10


def test_no_two_cases_are_equal():
    """Neither in name nor in what the tool returned."""
    assert len(cases()) == len({case.name for case in cases()})
    assert len(cases()) == len({case.result for case in cases()})
    questions = [ask for case in cases() for ask, _ in case.questions]
    assert len(questions) == len(set(questions))


def test_the_sizes_are_those_of_real_results():
    """Most are long, some of middling length, a few short, none endless."""
    sizes = [len(case.result) for case in cases()]
    assert sum(10_000 <= size <= 60_000 for size in sizes) >= 50
    assert sum(2_000 <= size < 10_000 for size in sizes) >= 10
    assert sum(size < 2_000 for size in sizes) >= 3
    assert max(sizes) <= 60_000


def test_the_set_is_the_same_twice():
    """It is made from seeds."""
    again = cases.__wrapped__()
    assert cases() == again
    assert cases() is not again


def test_a_third_of_the_questions_are_in_the_other_language():
    """People ask in their own language, whatever the tool's is."""
    crossing = [
        language_of(ask) != case.language
        for case in cases()
        if case.language != "mixed"
        for ask, _ in case.questions
    ]
    assert len(crossing) >= 150
    assert 0.3 <= sum(crossing) / len(crossing) <= 0.5


@pytest.mark.parametrize("case", CASES)
def test_answers_are_in_their_results(case: Case):
    """Verbatim, as text or inside of JSON; not in the question or the call, and at few places only."""
    text = folded(case.result) + "\n" + folded(decoded(case.result))
    call = json.dumps(case.input, ensure_ascii=False)
    for ask, answer in case.questions:
        assert folded(answer) in text, answer
        assert not says(ask, answer), answer
        assert not holds(call, answer), answer
        assert holds(case.result, answer), answer
        assert len(answer) <= 60, answer
        assert case.result.count(answer) <= 3, answer


@pytest.mark.parametrize("case", CASES)
def test_keys_can_be_told(case: Case):
    """One to three groups, which fit into a synopsis together and do not contradict what must not be said."""
    assert 1 <= len(case.key) <= 3
    assert all(group and all(words.strip() for words in group) for group in case.key)
    best = " · ".join(min(group, key=len) for group in case.key)
    assert len(best) <= SYNOPSIS_CHARS
    for group in case.key:
        assert any(not misleading(words, (), case) for words in group), group
    assert all(words.strip() for words in case.wrong)


def test_facts_are_planted_where_they_were_said_to_be():
    """At their share of the way, in whatever order they are given."""
    assert ["b", "0", "1", "a", "2", "3", "c"] == planted("0123", (0.5, "a"), (0.0, "b"), (1.0, "c"))


def test_lines_are_numbered_as_agents_see_them():
    """Right-aligned, and a tab."""
    assert "     1\tone\n     2\ttwo" == numbered("one\ntwo")


def test_sentences_are_about_their_subject():
    """The same for the same dice, and seldom twice the same."""
    made = [subject("grid").sentence(dice("x")) for _ in range(2)]
    assert made[0] == made[1]
    pick = dice("many")
    assert len({subject("supply").sentence(pick) for _ in range(100)}) > 90
