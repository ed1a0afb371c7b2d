"""A turn made by hand."""

from datetime import UTC, datetime

from pagefile import Scope, Turn

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


def a_turn(**fields):
    """A done turn with some fields of its own."""
    given = {
        "id": "t", "scope": Scope(conversation="c"), "seq": 1, "status": "done", "user": "q", "assistant": "a", "steps": (),
        "at": MOMENT, "created": MOMENT, "user_tokens": 1, "assistant_tokens": 1, "tokens": 10, "counter": "x",
    }  # fmt: skip
    return Turn(**(given | fields))
