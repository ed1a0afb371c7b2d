"""What is wanted from now on is told from what is only told, and tasks from questions about the past."""

from datetime import UTC, datetime

import pytest

from pagefile.text.speech import said_terms, speech
from pagefile.text.standing import is_task, lasts
from pagefile.text.turn_ranking import Placed, TurnIndex
from pagefile.text.turn_scores import LASTING_WISH

NOON = datetime(2025, 6, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "said",
    [
        "Always include version numbers when I ask about libraries.",
        "Thanks. Please never use tables again",
        "From now on, call me Ana",
        "Whenever you answer, keep it under five lines",
        "I'm on a budget, so I prefer simple tools",
        "I'd rather take the train",
        "以后回答都用中文",
        "以后推荐书都要说明页数",
        "每次你写代码都要加注释",
        "我更喜欢靠窗的座位",
    ],
)
def test_a_wish_lasts(said):
    assert lasts(said)
    assert speech(" ".join(said_terms(said))).lasts


@pytest.mark.parametrize(
    "said",
    [
        "I always go to the gym on Mondays",
        "He never came",
        "We always had fun there",
        "What does he prefer?",
        "Every time it rains the roof leaks",
        "我每次去都很开心",
        "以后再说吧，今天下雨",
        "",
    ],
)
def test_a_habit_is_no_wish(said):
    assert not lasts(said)
    assert not speech(" ".join(said_terms(said))).lasts


@pytest.mark.parametrize(
    "message",
    [
        "Could you show me how to implement a login?",
        "Which libraries should I use?",
        "ok, so can you draft the letter",
        "Plan a birthday dinner for Mia",
        "What's a good laptop for travelling?",
        "帮我写一封邮件",
        "我应该怎么安排明天？",
    ],
)
def test_something_is_to_be_done(message):
    assert is_task(message)


@pytest.mark.parametrize(
    "message",
    [
        "When did I go to Paris?",
        "How many columns did I want to add?",
        "Which books have I read?",
        "Can you list the order in which I brought these up?",
        "Could you summarize what we planned?",
        "我上次推荐过什么书？",
        "你好",
    ],
)
def test_the_past_is_asked_about(message):
    assert not is_task(message)


def test_marks_are_read_in_the_order_in_which_they_are_written():
    said = speech(" ".join(said_terms("Mia: Please always answer in French, ok?")))
    assert ("mia", True, True) == (said.speaker, said.asks, said.lasts)
    assert not {"?", "!", "mia:"} & set(said.words.split())


def test_a_wish_counts_more_for_a_task_and_as_much_as_before_for_a_question():
    """All parts of its score are multiplied, so that the score remains their sum."""
    texts = {
        "wish": "Always pin the versions of libraries",
        "talk": "The libraries were closed on Sunday, and the librarian was away",
    }
    index: TurnIndex[str] = TurnIndex()
    for name, text in texts.items():
        index.add(Placed(name, name, NOON, " ".join(said_terms(text))))
    near = {"wish": 0.3, "talk": 0.4}

    def scores(question: str) -> dict[str, float]:
        found = index.search(question, 9, meaning=near)
        return {one.key: one.score for one in found}

    asked, task = scores("Where were the libraries?"), scores("Suggest some libraries")
    assert asked["talk"] > asked["wish"]
    assert task["wish"] / task["talk"] == pytest.approx(asked["wish"] / asked["talk"] * (1 + LASTING_WISH))
