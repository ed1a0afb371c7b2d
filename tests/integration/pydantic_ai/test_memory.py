"""Every model call sees what memory knows, and the history holds none of it."""

import pytest

from pagefile import Memory
from pagefile.integrations.pydantic_ai import PagefileMemory

from .agents import Script, dumped, reloaded

pytestmark = pytest.mark.anyio

TOC = {
    "reg_id": "angui_2024",
    "title": "安规",
    "items": [{"title": f"第{n}章 安全措施", "page": n} for n in range(1, 9)],
}


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/agent.db") as opened:
        yield opened


async def test_six_model_calls(memory):
    """Three questions with a tool call each: one copy seen by every call, none in the saved history."""
    await memory.remember("用户喜欢喝龙井茶", user_id="ada")
    script = Script(*[move for n in range(3) for move in (("look", {"n": n}), f"回答{n}")])
    agent = script.agent(PagefileMemory(memory, user_id="ada"), instructions="BASE")

    @agent.tool_plain
    def look(n: int) -> str:
        return f"看到{n}"

    history = None
    for n in range(3):
        result = await agent.run(f"我喜欢喝什么茶？问题{n}", message_history=history, conversation_id="c")
        history = reloaded(result.all_messages())

    assert [1] * 6 == [sent.text.count("<memory>") for sent in script.sent]
    assert all("龙井茶" in sent.memory for sent in script.sent)
    assert 0 == dumped(history).count("<memory>")
    assert "龙井茶" not in dumped(history)
    assert 12 == len(history)
    # The same bytes through the turn: what stands before the tool's return can be served from a prompt cache.
    for first, second in zip(script.sent[::2], script.sent[1::2], strict=True):
        assert first.said == second.said
        assert first.instructions == second.instructions
    # Beside the question, never between a call and its return.
    assert all(sent.said[-2] == sent.memory for sent in script.sent)


async def test_the_table_of_contents_is_fetched_once(memory):
    """S3-34, S3-41: the second get_toc is answered with its age and does not reach the backend."""
    script = Script(
        ("get_toc", {"reg_id": "angui_2024"}),
        ("get_toc", {"reg_id": "angui_2024"}),
        "好",
        ("get_toc", {"reg_id": "angui_2024"}),
        "好",
    )
    agent = script.agent(PagefileMemory(memory, user_id="ada"))
    asked = []

    @agent.tool_plain
    def get_toc(reg_id: str) -> dict:
        asked.append(reg_id)
        return TOC

    first = await agent.run("目录？", conversation_id="c")
    await agent.run("再看目录", conversation_id="c", message_history=first.all_messages())
    assert ["angui_2024"] == asked
    answer = script.sent[2].returned[-1]
    assert "无需再次调用" in answer
    assert "第1章 安全措施" in answer
    assert "无需再次调用 get_toc()" in script.sent[1].memory
    assert "第8章 安全措施" in script.sent[3].memory
