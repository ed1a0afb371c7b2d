"""A statement in the course of a conversation brings the best of the past, and so does a request about something that nobody
has named; other requests, or the first message, bring all that helps."""

import pytest

from pagefile import Memory

STATEMENT = "The nightly import for Oslo stopped at row 512, and the warehouse noticed the stop."
QUESTION = "Which nightly imports stopped?"
PLACES = [
    f"Warehouse {name} {n}" for n in range(12) for name in ("Lyon", "Kraków", "Osaka", "Leeds", "Bergen")
]
TOKENS = 600


@pytest.fixture
async def memory():
    async with Memory.open("memory://", embedder="none") as memory:
        past = memory.conversation("past", user_id="ada")
        for n, place in enumerate(PLACES):
            said = (
                f"The nightly import for {place} stopped at row {1000 + 37 * n}, and Ravi noticed it at once."
            )
            await past.record(
                said, f"The import for {place} runs again; row {n} had a comma too many in its address field."
            )
        talk = memory.conversation("now", user_id="ada")
        await talk.record("Good morning! What is a comma?", "A mark that separates the parts of a sentence.")
        await memory.settle()
        yield memory


async def recalled(memory, conversation, message):
    window = await memory.conversation(conversation, user_id="ada").context(message, window_tokens=8000)
    return sum(one.tokens for one in window.receipt.kept if one.block == "episodes")


async def test_a_statement_brings_the_best_and_no_more(memory):
    """One turn may go beyond the limit: it is the last that was taken."""
    assert TOKENS / 2 < await recalled(memory, "now", STATEMENT) < TOKENS + 100


async def test_a_question_brings_all_that_helps(memory):
    assert await recalled(memory, "now", QUESTION) > 2 * TOKENS


async def test_so_does_a_statement_that_begins_a_conversation(memory):
    """Whoever begins with "My tablets are empty" may want what is known of them."""
    assert await recalled(memory, "new", STATEMENT) > 2 * TOKENS


async def test_what_resembles_a_thing_that_nobody_has_named_is_about_another(memory):
    """Its best few may still say something about its kind."""
    request = "Please tell Ravi that my nightly import K-7721 stopped at a row with a comma too many in its address field."
    assert 0 < await recalled(memory, "now", request) < TOKENS
    past = memory.conversation("past", user_id="ada")
    await past.record("The import K-7721 failed.", "That is the comma again.")
    assert await recalled(memory, "now", request) > 2 * TOKENS


async def test_beside_a_statement_turns_are_short(memory):
    """Of a long answer only the passage comes, where a question gets all of it."""
    past = memory.conversation("past", user_id="ada")
    story = " ".join(f"Step {n} of the repair took {n + 2} minutes." for n in range(30))
    await past.record("The boiler in the cellar of the warehouse leaks.", story)
    statement = "The boiler in the cellar of the warehouse leaks again, so I turned it off."
    question = "What did we do about the boiler that leaks in the cellar of the warehouse?"
    shown = [
        (await memory.conversation("now", user_id="ada").context(asked, window_tokens=8000)).parts.memory.text
        for asked in (statement, question)
    ]
    assert [story in text for text in shown] == [False, True]
    assert all("leaks. → Step" in text for text in shown)
