"""The gate of recall: what passes, what does not, and which questions point back."""

import pytest

from pagefile.text.recall_gate import (
    BACK_SIMILARITY,
    COVERED_SIMILARITY,
    LITTLE_SIMILARITY,
    MIN_COVERAGE,
    MIN_SIMILARITY,
    NEARER,
    NOT_APART,
    SELF_COVERAGE,
    SOME_COVERAGE,
    SOME_SIMILARITY,
    WHOLE_COVERAGE,
    answers,
    asking,
    asks_again,
    names_another_day,
    passes,
    points_back,
    tells,
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
    "question",
    [
        "我住在哪里？",
        "我叫什么名字？",
        "我的狗几岁了",
        "我对什么过敏？",
        "Where do I live?",
        "What is my dog's name?",
        "Which book did I finish a week ago?",
        "Is my meeting on Monday?",
        "How many plants have I bought?",
    ],
)
def test_a_question_about_oneself(question):
    """Who else could have told?"""
    assert asking(question) == "self"


@pytest.mark.parametrize(
    "question",
    [
        "帮我写一首诗，好吗？",
        "我该穿什么？",
        "我想知道法国的首都是哪里",
        "告诉我什么是量子纠缠",
        "How do I bake bread?",
        "What should I wear to my interview?",
        "Can I use tabs here?",
        "What is the capital of Australia?",
    ],
)
def test_a_question_for_advice(question):
    """It may be answered without knowing who asks."""
    assert asking(question) == "anything"


@pytest.mark.parametrize(
    ("coverage", "similarity", "anything", "of_self", "back", "always"),
    [
        (MIN_COVERAGE, COVERED_SIMILARITY, True, True, True, True),
        (MIN_COVERAGE, 0.0, True, True, True, True),
        (SELF_COVERAGE, 0.0, False, True, True, True),
        (SELF_COVERAGE - 0.01, 0.0, False, False, True, True),
        (MIN_COVERAGE, COVERED_SIMILARITY - 0.01, False, False, True, True),
        (0.0, MIN_SIMILARITY, True, True, True, True),
        (SOME_COVERAGE, NEARER, True, True, True, True),
        (SOME_COVERAGE, COVERED_SIMILARITY, False, True, True, True),
        (SOME_COVERAGE, 0.1, False, False, True, True),
        (0.0, BACK_SIMILARITY, False, False, True, True),
        (0.01, 0.1, False, False, False, True),
        (0.0, SOME_SIMILARITY, False, False, False, True),
        (0.0, SOME_SIMILARITY - 0.01, False, False, False, False),
        (0.0, 0.0, False, False, False, False),
    ],
)
def test_what_passes(coverage, similarity, anything, of_self, back, always):
    """Bars by word and by meaning, lower ones for who asks of oneself or points back; nothing with nothing in common."""
    parts = {"coverage": coverage, "similarity": similarity}
    assert passes(parts, "auto") is anything
    assert passes(parts, "auto", "self") is of_self
    assert passes(parts, "auto", "back") is back
    assert passes(parts, "always") is always
    assert passes(parts, "never", "back") is False


def test_what_answers():
    """A word, a neighbour's word, a time, or enough of the meaning; similarity that every two texts have is none."""
    assert answers({"words": 0.1})
    assert answers({"neighbours": 0.1})
    assert answers({"time": 0.1})
    assert answers({"similarity": SOME_SIMILARITY})
    assert not answers({"similarity": SOME_SIMILARITY - 0.01, "meaning": 0.2})
    assert not answers({})


def test_a_turn_that_holds_all_the_question_names_passes():
    """Though a short turn and a long question are seldom alike; not when they mean quite different things."""
    assert passes({"coverage": WHOLE_COVERAGE, "similarity": NOT_APART}, "auto")
    assert not passes({"coverage": WHOLE_COVERAGE, "similarity": NOT_APART - 0.01}, "auto")
    assert not passes({"coverage": WHOLE_COVERAGE - 0.01, "similarity": NOT_APART}, "auto")


@pytest.mark.parametrize(
    "question",
    [
        "上周三我做了什么？",
        "5月20日发生了什么",
        "最近三天有哪些事",
        "总结一下昨天的对话",
        "What did I do the day before yesterday?",
        "Summarize what we discussed last week",
        "Where did I go last weekend?",
        "two Wednesdays ago?",
        "昨晚？",
    ],
)
def test_a_question_for_nothing_but_a_time(question):
    """What was said then passes, whatever it is about."""
    assert "time" == asking(question)
    assert passes({"inside": 1.0}, "auto", "time")
    assert not passes({"inside": 1.0}, "never", "time")
    assert not passes({"inside": 0.0}, "auto", "time")


@pytest.mark.parametrize(
    "question", ["昨天", "昨天晚饭吃了什么？", "Who did I meet yesterday?", "What did I do?"]
)
def test_a_question_for_more_than_a_time(question):
    """Or for none, or no question at all."""
    assert "time" != asking(question)


def test_a_turn_of_the_named_time_passes_with_less():
    """Where the question is about oneself, or the turn has something of it."""
    assert passes({"inside": 1.0}, "auto", "self")
    assert not passes({"inside": 1.0}, "auto", "anything")
    assert passes({"inside": 1.0, "similarity": NEARER}, "auto", "anything")


@pytest.mark.parametrize(
    "message",
    [
        "I moved the meeting with Yusuf to Monday, because the room was taken.",
        "Please remember that the order A-1475 goes to the warehouse in Nairobi.",
        "The nightly import stopped at row 48021, and nobody noticed before Monday.",
        "Thomas说下周17号要去出差，记得提前订酒店。",
        "If the 花生 arrives late, we can still use the old one for about 16 days.",
        "We met 李娜 in Osaka and decided about the new printer.",
    ],
)
def test_what_only_tells(message):
    assert tells(message)


@pytest.mark.parametrize(
    "message",
    [
        "I forgot when the meeting with Yusuf is, in which room and with whom",
        "Tell me where the order A-1475 goes, and to which warehouse.",
        "I'm at the shop; what size does Beata wear",
        "I want to call the plumber from last winter, do you have his number?",
        "我要去银行办房贷，上次说的利率是多少",
        "帮我把会议改到周一上午，通知所有人",
        "cat medication",
        "Vaillant 锅炉 保修期",
        "车险到期日",
    ],
)
def test_what_asks_or_names_what_it_wants(message):
    assert not tells(message)


@pytest.mark.parametrize(
    "message",
    [
        "Which host was staging again?",
        "someone left a pile of manga for us, what were the steps again",
        "交片那个尺寸是多少来着",
        "Do you remember what I paid for the bike?",
        "还记得我车位号吗",
    ],
)
def test_what_was_known_before(message):
    assert asks_again(message)


@pytest.mark.parametrize(
    "message", ["The radiators are cold again.", "How do I start again after a crash?", "Say that again."]
)
def test_again_alone_asks_for_nothing(message):
    assert not asks_again(message)


def test_a_window_considers_what_a_search_leaves_out():
    assert answers({"similarity": LITTLE_SIMILARITY}, least=LITTLE_SIMILARITY)
    assert not answers({"similarity": LITTLE_SIMILARITY})


@pytest.mark.parametrize(
    ("question", "another"),
    [
        ("前天的批件编号是多少？", True),
        ("What did the doctor say yesterday?", True),
        ("今天吃什么？", False),
        ("What shall I eat?", False),
    ],
)
def test_another_day_is_not_the_present(question, another):
    """What was said then may be all that such a question asks for."""
    assert another == names_another_day(question)
