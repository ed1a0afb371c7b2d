"""Four ways to decide that a page is needed."""

import pytest

from pagefile.window.residency import Relevance, pages_to_load, points_back, subject

#: Found for a question: coverage, similarity, points, and the lead over the next page.
CLEARLY = Relevance("clearly", 0.5, 0.3, 30.0, 3.0)
WHOLLY = Relevance("wholly", 1.0, 0.05, 9.0, 1.2)
ALONE = Relevance("alone", 0.1, 0.13, 10.0, 90.0)
HARDLY = Relevance("hardly", 0.11, 0.04, 7.8, 1.2)
VAGUELY = Relevance("vaguely", 0.16, 0.1, 13.0, 1.1)
BY_WORDS = Relevance("by words", 0.45, 0.0, 9.0, 3.0)

CASES = [
    # question, what is found, model, keyword, similarity, hybrid
    ("权限管理的角色怎么建？", CLEARLY, [], [], ["clearly"], ["clearly"]),
    ("what did Li Lei buy", WHOLLY, [], [], ["wholly"], ["wholly"]),
    ("which pod kept restarting?", ALONE, [], [], ["alone"], ["alone"]),
    ("which pod kept restarting?", BY_WORDS, [], [], ["by words"], ["by words"]),
    ("上次的报销流程是什么", CLEARLY, [], ["clearly"], ["clearly"], ["clearly"]),
    ("what was the exit code you saw earlier", VAGUELY, [], ["vaguely"], [], ["vaguely"]),
    ("Before I forget: what's the capital of France?", HARDLY, [], [], [], []),
    ("第一步先煮水，对吗？教我泡茶", HARDLY, [], [], [], []),
    ("Write a haiku about rain", VAGUELY, [], [], [], []),
    ("Before I forget: what's the capital of France?", None, [], [], [], []),
    # It refers back and names nothing.
    ("刚才那个呢", None, [], ["newest"], [], ["newest"]),
    ("刚才那个再详细说一遍", None, [], ["newest"], [], ["newest"]),
    ("Once more in detail, what you found earlier, please", None, [], ["newest"], [], ["newest"]),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{case[1] and case[1].uuid}" for case in CASES])
def test_each_strategy_loads_what_it_says(case):
    """By the model: never by itself; by word: what points back; by similarity; hybrid: either."""
    question, found, *expected = case
    chosen = [
        pages_to_load(strategy, question, [found, CLEARLY] if found else [], "newest")
        for strategy in ("model", "keyword", "similarity", "hybrid")
    ]
    assert expected == chosen


@pytest.mark.parametrize("strategy", ["model", "keyword", "similarity", "hybrid"])
def test_without_pages_nothing_is_loaded(strategy):
    """Nothing to load."""
    assert pages_to_load(strategy, "之前", [], None) == []


def test_the_subject_of_a_question_is_what_it_does_not_only_refer_back_with():
    """Words that refer back find no page; a question that has no others has no subject."""
    assert subject("What was the exit code earlier?") == "What was the exit code  ?"
    assert subject("刚才那个呢") == ""


@pytest.mark.parametrize(
    "text", ["之前", "刚才说的", "上次", "as I said before", "PREVIOUSLY", "you mentioned it", "第三步"]
)
def test_words_that_point_back_are_recognised(text):
    """之前, 刚才 and 上次 are such words."""
    assert points_back(text)


@pytest.mark.parametrize("text", ["你好", "beforehand", "What now?"])
def test_other_words_are_not(text):
    """Only whole words count."""
    assert not points_back(text)
