"""The gate of recall: what passes, what does not, and which questions point back."""

import pytest

from pagefile.text.gate import (
    BACK_LIKENESS,
    MIN_COVERAGE,
    MIN_LIKENESS,
    SOME_LIKENESS,
    answers,
    passes,
    points_back,
)


@pytest.mark.parametrize(
    "question",
    [
        "刚才说的那个导演是谁？",
        "回到之前讨论的科幻电影话题",
        "你上次推荐的那家餐厅叫什么",
        "还记得我说过对什么过敏吗",
        "What did you say earlier about the budget?",
        "Who was that film director we talked about?",
        "Remember the name of my dog?",
        "As I mentioned, the meeting moved.",
    ],
)
def test_a_question_that_points_back(question):
    """In both languages."""
    assert points_back(question)


@pytest.mark.parametrize(
    "question",
    ["今天天气怎么样？", "写一首关于秋天的诗", "How do I bake bread?", "Translate this to French", ""],
)
def test_a_question_that_does_not(question):
    """Most questions are about now."""
    assert not points_back(question)


@pytest.mark.parametrize(
    ("coverage", "likeness", "auto", "back", "always"),
    [
        (MIN_COVERAGE, 0.0, True, True, True),
        (0.0, MIN_LIKENESS, True, True, True),
        (0.2, 0.0, False, True, True),
        (0.0, BACK_LIKENESS, False, True, True),
        (0.01, 0.0, False, False, True),
        (0.0, SOME_LIKENESS, False, False, True),
        (0.0, SOME_LIKENESS - 0.01, False, False, False),
        (0.0, 0.0, False, False, False),
    ],
)
def test_what_passes(coverage, likeness, auto, back, always):
    """A bar by word, a bar by meaning, lower ones for who points back; nothing passes with nothing in common."""
    parts = {"coverage": coverage, "likeness": likeness}
    assert passes(parts, "auto", back=False) is auto
    assert passes(parts, "auto", back=True) is back
    assert passes(parts, "always", back=False) is always
    assert passes(parts, "never", back=True) is False


def test_what_answers():
    """A word, a neighbour's word, a time, or enough of the meaning; likeness that every two texts have is none."""
    assert answers({"words": 0.1})
    assert answers({"neighbours": 0.1})
    assert answers({"time": 0.1})
    assert answers({"likeness": SOME_LIKENESS})
    assert not answers({"likeness": SOME_LIKENESS - 0.01, "meaning": 0.2})
    assert not answers({})
