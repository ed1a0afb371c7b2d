"""The same question may be asked again: what was said since belongs to its answer."""

import pytest

from pagefile import Memory

TALKS = [
    ("Where do I live?", "I live in Porto with my wife.", "We have relocated to Ghent.", "Porto", "Ghent"),
    ("我住在哪里？", "我住在苏州工业园区。", "上个月我们搬到了成都。", "苏州", "成都"),
]
FILLERS = [
    "Which Python version should I use?",
    "Write a haiku about tea.",
    "My sister Ingrid is vegetarian.",
    "We launched the shop on 2 May 2019.",
    "Suggest a name for a newsletter.",
    "I'm training for a half marathon on April 25.",
    "Our shop uses PostgreSQL 16.",
    "给简报起个名字。",
    "写一首关于茶的俳句。",
    "我们店用 Redis 做缓存。",
    "澳大利亚的首都是哪里？",
]


async def asked(memory: Memory, conversation: str, question: str, answer: str) -> str:
    """What the model sees of memory when this begins a conversation. As a client does that names no turns, equal ones have equal ids."""
    chat = memory.conversation(conversation, user_id="ada")
    turn = await chat.begin(question, id=f"turn-{question}")
    window = await chat.context(turn=turn)
    await chat.complete(turn, answer)
    await memory.settle()
    return str(window.messages[:-1])


@pytest.mark.parametrize("answer", ["Noted.", "You told me: {old}."])
@pytest.mark.parametrize(("question", "first", "later", "old", "new"), TALKS)
async def test_a_question_asked_before_does_not_hide_what_changed_since(
    question, first, later, old, new, answer
):
    async with Memory.open("memory://") as memory:
        await memory.conversation("first", user_id="ada").record(first, "Noted.")
        for number, filler in enumerate(FILLERS):
            await memory.conversation(f"filler-{number}", user_id="ada").record(filler, "Noted.")
        await memory.settle()
        for number in range(3):
            shown = await asked(memory, f"asked-{number}", question, answer.format(old=old))
            assert old in shown
            assert new not in shown
        await memory.conversation("later", user_id="ada").record(later, "Noted.")
        await memory.settle()
        shown = await asked(memory, "again", question, "Noted.")
        assert old in shown
        assert new in shown


async def test_a_question_that_was_never_answered_is_no_memory():
    async with Memory.open("memory://") as memory:
        for number, filler in enumerate(FILLERS):
            await memory.conversation(f"filler-{number}", user_id="ada").record(filler, "Noted.")
        await memory.settle()
        for number in range(2):
            assert "tax" not in await asked(memory, f"c{number}", "What is my tax number?", "Noted.")
