"""Passages of archived results come by themselves when they answer, in a conversation that never saw them."""

import pytest

from pagefile import Memory, Settings

ROWS = "\n".join(f"{n} Leeds - Preston, {n % 3} changes, {200 + n} pounds" for n in range(400))
RESULT = (
    f"{ROWS}\nBicycles: two places on each train via Skipton, reservation needed on Saturdays only\n{ROWS}"
)


@pytest.fixture
async def memory():
    async with Memory.open("memory://", embedder="none") as memory:
        chat = memory.conversation("fetched", user_id="maya")
        step = {"tool": "rail_search", "input": {"query": "Leeds to Lancaster"}, "result": RESULT}
        await chat.record("Search trains to Lancaster.", "I looked them up.", steps=[step])
        await memory.settle()
        yield memory


def passages(window):
    return "\n".join(window.parts.memory.sections.get("loaded", ()))


async def test_what_answers_is_there(memory):
    """With the tool, the day and the page that it is from, and what it is worth in the receipt."""
    window = await memory.conversation("new", user_id="maya").context(
        "Do I need a reservation for bicycles on the train via Skipton?", window_tokens=4000
    )
    assert "reservation needed on Saturdays only" in passages(window)
    assert "rail_search" in passages(window)
    (verdict,) = (one for one in window.receipt.kept if one.block == "loaded")
    assert "worth" in verdict.reason


@pytest.mark.parametrize("message", ["thanks!", "Write a haiku about fog.", "Who wrote Wuthering Heights?"])
async def test_nothing_comes_that_was_not_asked_for(memory, message):
    """A message about something else costs nothing."""
    window = await memory.conversation("new", user_id="maya").context(message, window_tokens=4000)
    assert passages(window) == ""


async def test_a_statement_in_a_conversation_is_no_question(memory):
    """What it shares with a page it says itself; the first message of a conversation may want what is known."""
    said = "I made a reservation for the bicycles on the train via Skipton today."
    assert passages(await memory.conversation("new", user_id="maya").context(said, window_tokens=4000))
    talk = memory.conversation("talk", user_id="maya")
    await talk.record("Recommend a pump.", "Any floor pump will do.")
    assert passages(await talk.context(said, window_tokens=4000)) == ""


async def test_a_follow_up_reaches_the_results_of_its_own_conversation(memory):
    """ "And …?" leans on what was just fetched; in another conversation it leans on nothing that is archived."""
    asked = "And what about bicycles via Skipton?"
    window = await memory.conversation("fetched", user_id="maya").context(asked, window_tokens=4000)
    assert "reservation needed on Saturdays only" in passages(window)
    other = memory.conversation("other", user_id="maya")
    await other.record("Recommend a pump.", "Any floor pump will do.")
    assert passages(await other.context(asked, window_tokens=4000)) == ""


async def test_nobody_elses(memory):
    """Only pages of the same user."""
    window = await memory.conversation("theirs", user_id="dan").context(
        "Do I need a reservation for bicycles on the train via Skipton?", window_tokens=4000
    )
    assert passages(window) == ""


async def test_never_means_never():
    """The setting that keeps turns away keeps passages away too."""
    async with Memory.open("memory://", embedder="none", settings=Settings(recall="never")) as memory:
        chat = memory.conversation("fetched", user_id="maya")
        step = {"tool": "rail_search", "input": {}, "result": RESULT}
        await chat.record("Search trains.", "I looked them up.", steps=[step])
        window = await memory.conversation("new", user_id="maya").context(
            "Is a reservation needed for bicycles via Skipton?", window_tokens=4000
        )
        assert passages(window) == ""
