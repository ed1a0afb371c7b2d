"""What the wire takes and gives."""

import pytest
from pydantic import ValidationError

from pagefile.wire.requests import AskContext, RecordTurn
from pagefile.wire.responses import LoadOut


@pytest.mark.parametrize(
    ("offset", "limit", "text", "following"),
    [
        (0, None, "abcdef", None),
        (2, 2, "cd", 4),
        (4, 2, "ef", None),
        (4, 99, "ef", None),
        (6, 1, "", None),
        (99, 5, "", None),
    ],
)
def test_parts_of_a_page(offset, limit, text, following):
    """`next` is where to go on, and null when there is no more."""
    part = LoadOut.of("u", "abcdef", offset, limit)
    assert (text, following, 6) == (part.text, part.next, part.length)


@pytest.mark.parametrize(
    "given", ["2026-01-31T09:30:00Z", "2026-01-31T09:30:00", "2026-01-31T17:30:00+08:00"]
)
def test_a_time_is_utc(given):
    """A time names its zone, or is UTC."""
    turn = RecordTurn.model_validate({"conversation_id": "c", "user": "hi", "at": given})
    assert turn.at is not None
    assert "2026-01-31T09:30:00+00:00" == turn.at.isoformat()


@pytest.mark.parametrize(
    "wrong",
    [
        {"conversation_id": ""},
        {"conversation_id": "  "},
        {"conversation_id": "x" * 256},
        {"conversation_id": 5},
        {"conversation_id": "c", "recent_turns": True},
        {"conversation_id": "c", "recent_turns": 1.0},
        {"conversation_id": "c", "threshold": 0},
        {"conversation_id": "c", "placement": "middle"},
        {"conversation_id": "c", "format": "xml"},
        {"conversation_id": "c", "window_token": 5},
    ],
)
def test_nothing_is_converted_silently(wrong):
    """A number is a number, a text is a text, and an unknown field is an error."""
    with pytest.raises(ValidationError):
        AskContext.model_validate(wrong)
