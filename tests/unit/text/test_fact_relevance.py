"""Which messages are shown facts at all, with vectors and by words alone."""

import numpy as np
import pytest

from pagefile.text.fact_relevance import Message, Relevance, Similarities, relevance

SMALL_TALK = ["Thanks, that's clear.", "谢啦，懂了", "Lovely weather today!", "哈哈，太逗了"]
SELF_CONTAINED = [
    "Translate 'good luck' into Italian.",
    "Why do cats purr?",
    "写一首关于秋雨的诗",
    "婚纱为什么是白色的？",
]
OF_THE_WORLD = [
    "How do I fold a fitted sheet?",
    "What's the longest river in Europe?",
    "How many bones does an adult have?",
    "怎么分辨真假钞票？",
    "珠穆朗玛峰有多高？",
    "这座桥是哪个修的？",
]
PERSONAL = ["Which antibiotics should I avoid?", "What can we cook tonight?", "我几点下班？", "帮我安排周末"]


def shown(message: str, relevance: float, *, words: float = 0.0, by_words: bool = False) -> bool:
    found = Relevance.of(
        np.array([relevance, 0.0]), (), Message.of(message), np.array([words, 0.0]), by_words=by_words
    )
    assert found.is_open or not found.values.any()
    return bool(found.values[0])


@pytest.mark.parametrize("message", SMALL_TALK + SELF_CONTAINED)
def test_what_seldom_needs_a_fact_gets_one_only_if_it_is_clearly_meant(message):
    assert not shown(message, 0.25)
    assert shown(message, 0.5)


@pytest.mark.parametrize("message", SMALL_TALK + SELF_CONTAINED)
def test_the_same_without_vectors(message):
    """Until the encoder is loaded, words decide: small talk must not be shown more because of that."""
    assert not shown(message, 0.25, by_words=True)


@pytest.mark.parametrize("message", PERSONAL)
@pytest.mark.parametrize("by_words", [False, True])
def test_a_question_about_oneself_is_shown_what_is_a_little_relevant(message, by_words):
    assert shown(message, 0.25, by_words=by_words)


@pytest.mark.parametrize("message", OF_THE_WORLD)
def test_how_something_is_done_in_general_needs_more_than_a_little_relevance(message):
    assert not shown(message, 0.33)
    assert shown(message, 0.4)


@pytest.mark.parametrize(
    "message", ["地下室怎么进去？", "How should we travel to Roscoff?", "Who won my bet?"]
)
def test_how_something_of_ones_own_is_done_needs_little(message):
    assert shown(message, 0.25)


@pytest.mark.parametrize("message", ["我溜了", "Give me five names for a team.", "what a day"])
def test_whoever_only_speaks_of_me_owns_nothing(message):
    assert not shown(message, 0.29)
    assert shown("Tell my boss that it was late.", 0.29)


@pytest.mark.parametrize("message", ["the cat's medication", "猫的药"])
def test_a_noun_phrase_needs_words_in_common(message):
    assert not shown(message, 0.25)
    assert shown(message, 0.25, words=0.1)


@pytest.mark.parametrize("message", ["能吃什么", "哪种药不能吃", "what can be eaten there"])
def test_a_question_needs_no_mark(message):
    assert Message.of(message).asks


@pytest.mark.parametrize(
    ("said", "plans", "of_others"),
    [
        ("What's a simple dessert I can make for them?", True, False),
        ("Where should we go for her birthday?", True, False),
        ("我周末请客，做什么好？", True, False),
        ("Is the spread from the farm shop safe for me?", True, False),
        ("Can I still eat this?", True, False),
        ("这个我可以吃吗？", True, False),
        ("Is it all right to toast with champagne?", False, False),
        ("What kind of bread can I buy for tomorrow?", False, False),
        ("What's a good way to join my coworkers' conversations?", False, True),
        ("Say something for a funny toast.", False, True),
        ("给老板的贺卡上写什么？", False, True),
    ],
)
def test_plans_of_ones_own_are_told_from_texts_for_others(said, plans, of_others):
    message = Message.of(said)
    assert (plans, of_others) == (message.plans, message.of_others)


@pytest.mark.parametrize("by_words", [False, True])
def test_a_bare_mark_is_about_no_fact(by_words):
    assert not shown("?!", 0.6, by_words=by_words)


def relevant(message: str, facts: list[str]) -> list[float]:
    nothing = np.zeros(len(facts))
    same = Similarities(nothing, nothing + 0.2, nothing + 0.2, np.eye(len(facts)))
    return relevance(message, facts, same).tolist()


def test_a_relative_is_also_meant_where_only_the_name_is_said():
    """Another fact says who that is."""
    facts = ["They have a son, Tom, who is fifteen", "Tom wants to become an electrician", "Ann paints"]
    son, wants, ann = relevant("What does my son want to be?", facts)
    assert son == wants
    assert wants > ann


@pytest.mark.parametrize(
    "message",
    ["Can I carry the fridge?", "Is it all right to open champagne?", "这双鞋适合我吗？", "点什么菜要避开？"],
)
def test_what_is_forbidden_answers_whether_something_is_allowed(message):
    assert Message.of(message).asks_leave
    forbids, neutral = relevant(message, ["Must not lift more than 15 kilos", "Lives in Brno"])
    assert forbids > neutral
    assert not Message.of("What does Tom do?").asks_leave
