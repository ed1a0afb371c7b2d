"""Callers choose the ids of turns: conversations of a user that number theirs alike come back each with its own text."""

from datetime import UTC, datetime, timedelta

import pytest

from pagefile import Memory, NotFoundError, Settings
from pagefile.testing import FakeClock

START = datetime(2025, 3, 3, 9, tzinfo=UTC)
SAID = {
    "p1": "The greenhouse project needs copper pipes from Bristol.",
    "p2": "The greenhouse project needs tinted glass from Dundee.",
    "p3": "The greenhouse project needs cedar planks from Oslo.",
}
QUESTION = "What does the greenhouse project need?"
SETTINGS = Settings(language="en", recall="always", checkpoints="manual", on_tier_error="raise")


@pytest.fixture
async def memory(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    async with Memory.open(url, settings=SETTINGS, embedder="none", clock=FakeClock(START)) as memory:
        # The order of names is not that of time.
        for day, name in enumerate(["p2", "p3", "p1"]):
            chat = memory.conversation(name, user_id="ada")
            await chat.record(SAID[name], "Noted.", id="t1", at=START - timedelta(days=9 - day))
        await memory.settle()
        yield memory


def recalled(window):
    return [one.id for one in window.receipt if one.block == "episodes" and one.kept]


def shown(window):
    return {name for name, text in SAID.items() if text in str(window.messages)}


async def test_turns_with_equal_ids_are_each_shown_with_their_own_text(memory):
    """One keeps the id that it would have alone; the others name their conversations too."""
    window = await memory.conversation("new", user_id="ada").context(QUESTION)
    assert shown(window) == {"p1", "p2", "p3"}
    assert recalled(window) == ["episode:t1", "episode:t1@p3", "episode:t1@p1"]


async def test_names_stay_distinct_whatever_the_ids_are(memory):
    """An id may look like one that names a conversation."""
    await memory.conversation("p4", user_id="ada").record(
        "The greenhouse project needs a heater from Turin.", "Noted.", id="t1@p3", at=START
    )
    await memory.settle()
    window = await memory.conversation("new", user_id="ada").context(QUESTION)
    assert "heater" in str(window.messages)
    assert shown(window) == {"p1", "p2", "p3"}
    assert len(set(recalled(window))) == len(recalled(window)) == 4


async def test_such_a_window_is_rebuilt_byte_for_byte(memory):
    """Also after more turns with that id were recorded."""
    chat = memory.conversation("new", user_id="ada")
    window = await chat.context(QUESTION)
    late = "The greenhouse project needs bricks from Delft."
    await memory.conversation("p0", user_id="ada").record(late, "Noted.", id="t1", at=START)
    await memory.settle()
    explained = await chat.explain(window.id)
    assert explained.exact, explained.why
    assert explained.messages == window.messages
    assert explained.window.receipt.verdicts == window.receipt.verdicts
    replay = await chat.replay(window.id, window_tokens=3000)
    assert replay.exact
    assert shown(replay.after) == {"p1", "p2", "p3"}


async def test_an_erased_conversation_leaves_the_others_with_their_texts(memory):
    """The window that showed it is rebuilt without it, and says that it differs."""
    chat = memory.conversation("new", user_id="ada")
    window = await chat.context(QUESTION)
    await memory.settle()
    await memory.forget(conversation_id="p3", user_id="ada")
    explained = await chat.explain(window.id)
    assert not explained.exact
    assert shown(explained) == shown(await chat.context(QUESTION)) == {"p1", "p2"}


async def test_a_turn_that_is_erased_alone_takes_the_windows_that_showed_it(memory):
    """Whichever of the names it has there."""
    chat = memory.conversation("new", user_id="ada")
    window = await chat.context(QUESTION)
    await memory.settle()
    await memory.forget(conversation_id="p3", user_id="ada", turn_id="t1")
    with pytest.raises(NotFoundError):
        await chat.explain(window.id)
    assert shown(await chat.context(QUESTION)) == {"p1", "p2"}
