"""Past turns that asked what is asked now, and whether their answers help."""

import pytest

from pagefile.text.repeats import asked_before, says_more


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ("Where do I live?", True),
        ("where do I live", True),
        ("I live here.", False),
        ("Where does Tom live?", False),
        ("I moved to Ghent. Where do I live?", False),
    ],
)
def test_a_turn_asked_the_same_if_it_asked_and_said_nothing_else(said, same):
    assert same == asked_before("Where do I live now?", said)


def test_a_statement_in_the_words_of_the_question_is_its_answer():
    assert not asked_before("Do I like olives?", "I like olives.")


@pytest.mark.parametrize(
    ("answer", "more"),
    [("Noted.", False), ("", False), ("Where do you live?", False), ("You live in Porto.", True)],
)
def test_an_answer_says_more_if_it_has_words_of_its_own(answer, more):
    assert more == says_more("Where do I live?", answer)
    assert says_more("我住在哪里？", "您住在苏州。")
    assert not says_more("我住在哪里？", "好的。")
