"""What is embedded, and how vectors are blended."""

import numpy as np
import pytest

from pagefile.text.speech import ANSWER_CHARS, SAID_CHARS, blended, embedded_texts, question_texts


def test_both_sides_of_a_turn():
    """Their heads; a side that says nothing is none."""
    assert ("hello", "hi") == embedded_texts(" hello ", "hi")
    assert (("hi",), ("hello",), ()) == (
        embedded_texts(None, "hi"),
        embedded_texts("hello", "  "),
        embedded_texts("", None),
    )
    said, answered = embedded_texts("字" * 2000, "a" * 2000)
    assert (SAID_CHARS, ANSWER_CHARS) == (len(said), len(answered))


def test_a_question_is_asked_twice():
    """As it is and as a statement; once when that is the same, and never when it is empty."""
    assert ("Where did I park my car?", "I park my car") == question_texts(" Where did I park my car? ")
    assert ("红烧肉",) == question_texts("红烧肉")
    assert () == question_texts("  ")
    assert all(len(text) <= SAID_CHARS for text in question_texts("Where is my car " * 200))


def test_vectors_are_blended():
    """The direction between them, of unit length; zeros stay zeros."""
    assert [pytest.approx(0.5**0.5)] * 2 == blended([[1.0, 0.0], [0.0, 1.0]]).tolist()
    assert [0.0, 0.0] == blended([[0.0, 0.0]]).tolist()
    assert np.float32 == blended([[1.0, 0.0]]).dtype
