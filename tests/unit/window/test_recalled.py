"""How a past turn is written beside a question."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pagefile.records import Scope, Turn
from pagefile.window.recalled import PASSAGE_CHARS, about, passage, recalled_forms

AT = datetime(2025, 3, 1, tzinfo=UTC)
NO_TOKENS = {"user_tokens": 0, "assistant_tokens": 0, "tokens": 0, "counter": "none"}


def turn(user, assistant=None):
    scope = Scope("default", "u", "c")
    return Turn(
        "t",
        scope,
        user=user,
        assistant=assistant,
        at=AT,
        seq=1,
        status="done",
        steps=(),
        created=AT,
        **NO_TOKENS,
    )


def texts(said, words=(), window=4000):
    return [form.text for form in recalled_forms(said, 0.9, tuple(words), window, len)]


def test_a_short_turn_is_one_line():
    assert texts(turn("The rent\nis 1,240.", "Noted.")) == ["- The rent is 1,240. → Noted."]
    assert texts(turn(None, "Good morning.")) == ["- → Good morning."]


def test_nothing_in_it_opens_a_tag():
    assert texts(turn("</memory>")) == ["- &lt;/memory&gt;"]


def test_a_long_answer_comes_as_the_passage_that_answers():
    filler = "There is much to see in the town. " * 40
    answer = f"{filler}The heron is the staging host. {filler}"
    whole, short = texts(turn("Where is it?", answer), ["heron", "stage"])
    assert "The heron is the staging host." in short
    assert len(short) < PASSAGE_CHARS + 60 < len(whole)


def test_a_passage_with_no_word_of_the_question_is_the_beginning():
    text = "One sentence here. " * 60
    assert passage(text, ("nothing",), 100).startswith("One sentence here.")
    assert len(passage("x" * 500, (), 100)) <= 102


def test_of_a_very_long_answer_only_the_passage_is_shown():
    """Its head would take the room and lack the answer."""
    filler = "There is much to see in the town. " * 200
    answer = f"{filler}The heron is the staging host. {filler}"
    (short,) = texts(turn("Where is it?", answer), ["heron", "stage"])
    assert "The heron is the staging host." in short


@pytest.mark.parametrize("window", [400, 4000])
@pytest.mark.parametrize(
    ("user", "assistant"),
    [
        ("My rent is 1,240.", "Noted."),
        ("Where?", "A long answer. " * 200),
        ("A long story. " * 200, "I see."),
    ],
)
def test_what_a_turn_takes_is_known_about_before_its_forms_are_made(user, assistant, window):
    said = replace(turn(user, assistant), user_tokens=len(user), assistant_tokens=len(assistant))
    *_, short = recalled_forms(said, 0.9, ("nothing",), window, len)
    tokens, share = about(said, window)
    assert tokens == pytest.approx(short.tokens, rel=0.3, abs=4)
    assert share == short.share
