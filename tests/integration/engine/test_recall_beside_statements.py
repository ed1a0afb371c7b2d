"""A statement in the course of a conversation brings the best of the past; a question, or the first message, all that helps."""

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
