"""Document 000's four ways to decide that a page is needed."""

import pytest

from pagefile.window.residency import PageHint, pages_to_load, points_back

PAGES = [
    PageHint("rights", "search_yongce_docs 永策Pro的权限管理怎么配置？ 权限管理模块包括角色、菜单和数据权限"),
    PageHint("expenses", "search_yongce_docs 报销流程 财务报销需要先提交发票"),
    PageHint("weather", "get_weather Beijing sunny, 20 degrees, light wind"),
]

CASES = [
    # question, model, keyword, similarity, hybrid
    ("你之前说的配置步骤再详细说一下第三步", [], ["rights"], [], ["rights"]),
    ("权限管理的角色怎么建？", [], [], ["rights"], ["rights"]),
    ("刚才那个再说一遍", [], ["weather"], [], ["weather"]),
    ("上次的报销流程是什么", [], ["expenses"], ["expenses"], ["expenses"]),
    ("What did you say earlier about the weather in Beijing?", [], ["weather"], ["weather"], ["weather"]),
    ("Tell me a joke", [], [], [], []),
    ("今天吃什么", [], [], [], []),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_each_strategy_loads_what_it_says(case):
    """By the model: never by itself; by word: what points back; by similarity; hybrid: either."""
    question, *expected = case
    chosen = [
        pages_to_load(strategy, question, PAGES) for strategy in ("model", "keyword", "similarity", "hybrid")
    ]
    assert expected == chosen


@pytest.mark.parametrize("strategy", ["model", "keyword", "similarity", "hybrid"])
def test_without_pages_or_question_nothing_is_loaded(strategy):
    """Nothing to load, nothing asked."""
    assert pages_to_load(strategy, "之前", []) == []
    assert pages_to_load(strategy, "  ", PAGES) == []


@pytest.mark.parametrize(
    "text", ["之前", "刚才说的", "上次", "as I said before", "PREVIOUSLY", "you mentioned it", "第三步"]
)
def test_words_that_point_back_are_recognised(text):
    """Document 000 names 之前, 刚才 and 上次."""
    assert points_back(text)


@pytest.mark.parametrize("text", ["你好", "beforehand", "What now?"])
def test_other_words_are_not(text):
    """Only whole words count."""
    assert not points_back(text)
