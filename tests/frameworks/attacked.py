"""What the runs beyond the contract share: a fact, a picture, a memory that knows the fact, and the log."""

import base64
import io
import re

from pagefile.testing.contracts.adapters import Use

FACT = "The user is allergic to hazelnuts."
KNOWN = "allergic to hazelnuts."
#: One dot, as PNG.
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def call(tool, **given):
    """The model calls one tool."""
    return Use(((tool, given),))


def without_recalled(request):
    """A request without what memory put beside the question."""
    return re.sub(r"<memory>.*?</memory>", "", request, flags=re.DOTALL)


def known(player):
    """How often each request of a player's has the fact."""
    return [request.count(KNOWN) for request in player.requests]


async def logged(memory, conversation="c1", **whose):
    """The turns of a conversation."""
    return [*await memory.conversation(conversation, user_id="ada", **whose).turns()]


def done(turns):
    """What was asked and answered."""
    return [(turn.user, turn.assistant) for turn in turns if turn.status == "done"]


def bill(month: str) -> str:
    """The bill of a month.

    Args:
        month: its name.
    """
    return f"The bill of {month} is 40 euros."


def broken(month: str) -> str:
    """The bill of a month, which breaks.

    Args:
        month: its name.
    """
    raise OSError(f"no bill of {month}")


def picture():
    """The dot as a stream."""
    return io.BytesIO(DOT)
