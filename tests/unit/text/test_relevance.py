"""Probabilities that a past turn helps: what raises them, what lowers them, and what they never do."""

from datetime import UTC, datetime

import pytest

from pagefile.text.relevance import FEATURES, helps, is_exercise, is_of_world, needs, page_helps, weights
from pagefile.text.turn_ranking import Placed, TurnIndex
from pagefile.text.words import is_trivial, terms

AT = datetime(2025, 3, 1, tzinfo=UTC)
SAID = [
    "The rent is 1,240 pounds now.",
    "Biscuit gets 5 mg in the morning.",
    "We went to the lake.",
    "I like tea.",
]


@pytest.fixture
def index():
    index = TurnIndex()
    for number, text in enumerate(SAID):
        index.add(Placed(number, "c", AT, " ".join(terms(text))))
    return index


def need(index, message, similar=0.0):
    found = index.search(message, 10, meaning={0: similar} if similar else None)
    return needs(message, found, index.familiarity(message))


def test_a_message_that_names_what_was_said_needs_it_more(index):
    assert need(index, "I have to pay the rent tomorrow.") > need(index, "Write something about lakes.")
    assert need(index, "What is my rent?", 0.6) > need(index, "What is my rent?", 0.1)


def test_nothing_found_is_nothing_needed(index):
    assert need(index, "zxqv wvut") == 0.0
    assert helps([]) == []


def test_the_first_is_likelier_than_the_last(index):
    found = index.search("How much is the rent in pounds, and the tea?", 10)
    chances = helps(found)
    assert all(0 < chance < 1 for chance in chances)
    assert chances[0] == max(chances)


def test_a_page_that_has_the_words_is_likelier():
    asked = "which process blocked 8114 in the deadlock"
    assert page_helps(asked, 0.7, 0.3, in_text=True) > 0.5 > page_helps(asked, 0.1, 0.1, in_text=False)


def test_a_foreign_language_is_noticed(index):
    assert index.familiarity("我的房租是多少？").foreign
    assert not index.familiarity("How much is my rent?").foreign


@pytest.mark.parametrize("message", ["Where is order K-7721?", "What does E119 mean?", "订单B-503到哪了"])
def test_a_number_that_nobody_has_said_is_noticed(index, message):
    assert index.familiarity(message).names_unknown
    index.add(Placed("later", "c", AT, " ".join(terms(f"I noted it: {message}"))))
    assert not index.familiarity(message).names_unknown


@pytest.mark.parametrize(
    "message", ["What happened in 2019?", "Is the lake open at 5pm?", "Do I need 30 or 40 kg?"]
)
def test_a_time_or_an_amount_is_no_name(index, message):
    assert not index.familiarity(message).names_unknown


def test_a_name_that_somebody_has_said_is_noticed(index):
    """How something of the user's is done is no question of the world."""
    assert index.familiarity("How do I give Biscuit a pill?").names_known
    assert not index.familiarity("How do I give Rex a pill?").names_known
    # Every sentence begins with a capital letter, and a biscuit may be one to eat.
    assert not index.familiarity("Biscuit recipes?").names_known
    assert not index.familiarity("How do I bake a biscuit?").names_known


def test_whoever_asks_for_themselves_is_the_first_person(index):
    assert need(index, "Suggest a tea for me.", 0.3) > need(index, "Suggest a tea for Rex.", 0.3)
    assert need(index, "Tell me a tea.", 0.3) < need(index, "Choose a tea for me.", 0.3)


def test_a_general_question_needs_less_than_ones_own(index):
    assert need(index, "Why is the rent paid in pounds?", 0.3) < need(
        index, "Is the rent paid in pounds?", 0.3
    )
    assert need(index, "Write a poem about the lake.", 0.3) < need(index, "Write to me about the lake.", 0.3)


@pytest.mark.parametrize(
    "message",
    [
        "Sort these: 14, 3, 88.",
        "Please translate 'rent' into French.",
        "三百六十五减一百七十八是多少？",
        "写一首诗",
    ],
)
def test_an_exercise_brings_all_it_needs(message):
    assert is_exercise(message)


@pytest.mark.parametrize(
    "message", ["Write to Anna about the rent.", "房租是多少？", "Which sort of tea do I like?"]
)
def test_whatever_may_need_the_past_is_no_exercise(message):
    assert not is_exercise(message)


def test_what_was_said_later_about_the_same_is_known(index):
    moved = "Biscuit now gets 10 mg in the morning."
    index.add(Placed(4, "d", AT.replace(day=9), " ".join(terms(moved))))
    index.add(Placed(5, "d", AT.replace(day=9), " ".join(terms("The garden is full of snow."))))
    assert index.newer(1, terms(SAID[1])) == 4
    assert index.newer(4, terms(moved)) is None
    assert index.newer(0, terms(SAID[0])) is None
    assert index.newer(99, terms(moved)) is None


@pytest.mark.parametrize(
    "message",
    [
        "Good morning!",
        "How are you today?",
        "How is it going?",
        "ok, thanks a lot",
        "Sound.",
        "all good then",
        "谢谢你",
        "早上好！",
        "刚下班",
        "Ha, good one.",
        "Thanks, that's all I needed!",
        "哈哈哈太好笑了",
    ],
)
def test_small_talk_is_trivial(message):
    assert is_trivial(message)


@pytest.mark.parametrize(
    "message",
    [
        *("cat medication", "那个多少钱来着", "Tell me the rent again.", "rent"),
        *("What was it?", "What is the best for today?", "What was that?"),
    ],
)
def test_whatever_names_something_is_not(message):
    assert not is_trivial(message)


def test_every_feature_has_its_weight():
    for kind, names in FEATURES.items():
        assert len(weights(kind, meaning=True).weights) == len(names)


@pytest.mark.parametrize(
    "message",
    [
        "How do I sharpen kitchen scissors?",
        "How many feet are in a mile?",
        "What's the boiling point of ethanol?",
        "怎么分辨真假钞票？",
        "《夜巡》是谁画的",
        "荷兰的首都是哪里？",
    ],
)
def test_what_asks_about_the_world(message):
    assert is_of_world(message)


@pytest.mark.parametrize(
    "message",
    [
        "How do I restart the router?",
        "How many eggs are in our fridge?",
        "What's the best pizza place?",
        "What was the name of that film?",
        "我家的猫怎么喂？",
        "怎么还没到",
        "谁是我们的房东？",
    ],
)
def test_what_may_be_about_the_user(message):
    assert not is_of_world(message)
