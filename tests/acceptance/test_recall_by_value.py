"""What a question touches comes into its window by what it is worth: the promises, told as stories."""

from datetime import UTC, datetime, timedelta

import pytest

from pagefile import Memory, Settings
from pagefile.settings import EmbedderSettings
from pagefile.testing import FakeClock

START = datetime(2025, 3, 3, 9, tzinfo=UTC)
#: What else was talked about, so that there is something to leave out.
ELSE = [
    "We watched a film about penguins.",
    "The tomatoes in the garden are growing well.",
    "I fixed the bicycle's front light.",
    "My sister sent a postcard from Porto.",
    "The neighbours have a new fence.",
    "I read half of a book about bridges.",
    "Lunch was soup with bread.",
    "The train was late again this morning.",
]


@pytest.fixture
async def memory():
    """One with its own encoder, which is waited for."""
    settings = Settings(language="en", embedder=EmbedderSettings(query_timeout_s=60))
    async with Memory.open("memory://", settings=settings, clock=FakeClock(START)) as memory:
        yield memory


async def told(memory, turns, conversation="old"):
    chat = memory.conversation(conversation, user_id="ada")
    for day, said in enumerate([*ELSE[:4], *turns, *ELSE[4:]]):
        user, assistant = said if isinstance(said, tuple) else (said, "I see.")
        await chat.record(user, assistant, at=START + timedelta(days=day))
    await memory.settle()


async def asked(memory, question, window_tokens=4000, conversation="new"):
    return await memory.conversation(conversation, user_id="ada").context(
        question, window_tokens=window_tokens
    )


def brought(window):
    return window.parts.memory.text


def values(window):
    return {one.id: one.reason for one in window.receipt if one.block == "episodes" and one.kept}


async def test_a_statement_that_no_longer_holds_comes_with_the_newer_one(memory):
    """The newer one shares no word with the question; what both are about is the same."""
    old = "I have atrial fibrillation and take warfarin, 4 mg. The clinic checks my blood every fortnight."
    new = "The clinic took me off warfarin. I am on apixaban, 5 mg in the morning and evening."
    await told(memory, [old, *ELSE[:2], new])
    text = brought(await asked(memory, "Which tablets do I take for my heart?"))
    assert "take warfarin" in text
    assert text.index("take warfarin") < text.index("apixaban")


async def test_a_short_answer_comes_with_what_it_answers(memory):
    """ "Yes, last May" says nothing of Leeds: the turn before it does."""
    await told(
        memory, [("I have a new flat now.", "Did you move to Leeds, and when?"), ("Yes, last May.", "Nice!")]
    )
    assert "Yes, last May." in brought(await asked(memory, "When did I move to Leeds?"))


async def test_the_same_twice_is_shown_once(memory):
    """Whatever its case and its spaces."""
    await told(memory, ["My rent is 1,240 pounds.", "My rent  is 1,240 pounds.", "MY RENT IS 1,240 pounds."])
    assert brought(await asked(memory, "How much is my rent?")).lower().count("1,240") == 1


async def test_of_a_long_answer_the_passage_that_answers_is_shown_with_its_day(memory):
    """And who said what: an arrow is before the answer."""
    filler = " ".join(f"Remark {n} on houses, heating and the weather in general." for n in range(120))
    await told(
        memory,
        [("How do I bleed the radiators?", f"{filler} Open the valve with the 5 mm key, cold. {filler}")],
    )
    text = brought(await asked(memory, "Which key opens the valve of the radiators?"))
    assert "Open the valve with the 5 mm key, cold." in text
    assert "2025-03-07\n- How do I bleed the radiators? → …" in text
    assert len(text) < len(filler)


async def test_the_receipt_says_what_each_was_worth(memory):
    """Kept or not."""
    await told(memory, ["My rent is 1,240 pounds, due on the fifth."])
    window = await asked(memory, "How much is my rent?")
    assert all("worth 0." in reason for reason in values(window).values())
    assert values(window)


async def test_a_message_that_leans_on_the_last_answer_brings_nothing(memory):
    """The same words in a new conversation may mean what was said long ago."""
    await told(memory, ["The second one of the two flats was larger, with a balcony."])
    chat = memory.conversation("cards", user_id="ada")
    await chat.record("Name three card games for two.", "Gin rummy, cribbage and bezique.", at=START)
    assert not values(await chat.context("What was the second one again?", window_tokens=4000))


async def test_a_summary_leaves_room_in_a_small_window(memory):
    """One that was made for a large window is shortened in a small one, the same whatever is asked."""
    chat = memory.conversation("long", user_id="ada")
    await told(
        memory,
        ["My rent is 1,240 pounds.", *(f"Note {n}: {text}" for n in range(2) for text in ELSE)],
        "long",
    )
    await chat.checkpoint(" ".join(f"In week {n} they talked about garden no. {n}." for n in range(60)))
    window = await asked(memory, "How much is my rent?", 1000, "long")
    assert "1,240 pounds" in brought(window)
    quiet = await asked(memory, "Thanks!", 1000, "long")
    assert window.parts.summary == quiet.parts.summary
    assert "In week 0" in window.parts.summary
    assert "In week 59" not in window.parts.summary
    assert "In week 59" in (await asked(memory, "Thanks!", 8000, "long")).parts.summary


async def test_turns_without_room_have_no_forms_and_the_room_is_used(memory):
    """Forms are made of what may find room only; the receipt names the others, and nothing that fits is left out."""
    offers = [
        f"Flat {n} has a rent of {900 + n} pounds and {text.lower()}" * 2 for n in range(10) for text in ELSE
    ]
    await told(memory, offers)
    window = await asked(memory, "How much rent were the flats that I looked at?", 600)
    found = [verdict for verdict in window.receipt.verdicts if verdict.block == "episodes"]
    beyond = [verdict for verdict in found if not verdict.kept]
    assert window.tokens <= window.budget
    assert any(verdict.reason == "over budget" for verdict in beyond)
    # One more would need the heading of its day, too.
    assert window.budget - window.tokens < min(verdict.tokens for verdict in beyond) + 8
