"""What is embedded, and how vectors are blended."""

import numpy as np
import pytest

from pagefile.text.speech import ANSWER_CHARS, SAID_CHARS, blended, embedded_texts, question_text


def test_both_sides_of_a_turn():
    """Their heads; a side that says nothing is none."""
    assert ("hello", "a cat") == embedded_texts(" hello ", "a cat")
    assert (("hi",), ("hello",), ()) == (
        embedded_texts(None, "hi"),
        embedded_texts("hello", "  "),
        embedded_texts("", None),
    )
    said, answered = embedded_texts("字" * 2000, "a" * 2000)
    assert (SAID_CHARS, ANSWER_CHARS) == (len(said), len(answered))


def test_an_answer_that_says_nothing_does_not_count():
    """Unless nothing else was said."""
    assert embedded_texts("My rent is 900 euros.", "Noted.") == ("My rent is 900 euros.",)
    assert embedded_texts("我住在杭州", "好的") == ("我住在杭州",)
    assert embedded_texts("", "Noted.") == ("Noted.",)


def test_a_question_is_embedded_as_it_is_asked():
    """Without the space around it, and its beginning where it is long."""
    assert question_text(" Where did I park my car? ") == "Where did I park my car?"
    assert question_text("  ") == ""
    assert len(question_text("Where is my car " * 200)) == SAID_CHARS


def test_vectors_are_blended():
    """The direction between them, of unit length; zeros stay zeros."""
    assert [pytest.approx(0.5**0.5)] * 2 == blended([[1.0, 0.0], [0.0, 1.0]]).tolist()
    assert [0.0, 0.0] == blended([[0.0, 0.0]]).tolist()
    assert np.float32 == blended([[1.0, 0.0]]).dtype
