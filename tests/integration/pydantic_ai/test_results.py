"""Tool results on their way: in full while their turn runs, a placeholder in every history."""

import json

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ToolReturn
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from pagefile import Memory, Settings
from pagefile.integrations.pydantic_ai import PagefileMemory

from .agents import Script, dumped, pairs_are_whole, reloaded

LONG = "".join(f"第{n}条 操作票由操作人填写，编号{n}。\n" for n in range(900))


class Report(BaseModel):
    """What a tool may return."""

    title: str
    body: str


def asking(script: Script, result, memory, **options):
    agent = script.agent(PagefileMemory(memory, user_id="ada", **options))

    @agent.tool_plain
    def fetch(q: str = ""):
        return result

    return agent


async def test_in_full_now_and_a_placeholder_later(memory):
    """The turn that fetched it sees all of it at every call; the saved history and later runs hold the placeholder."""
    script = Script(("fetch", {"q": "操作票"}), ("fetch", {"q": "b"}), "好", "好")
    agent = asking(script, LONG, memory, window_tokens=60_000)
    first = await agent.run("操作票谁填？", conversation_id="c")
    assert [LONG] == script.sent[1].returned
    assert [LONG, LONG] == script.sent[2].returned
    assert LONG[:2000] not in dumped(first.all_messages())
    assert len(dumped(first.all_messages())) < 6000

    await agent.run("还有呢？", conversation_id="c", message_history=reloaded(first.all_messages()))
    assert all(text.startswith("📎 [工具结果存档: ") for text in script.sent[3].returned)
    assert pairs_are_whole(script.sent[3].messages)
    pages = await memory.conversation("c", user_id="ada").pages()
    assert [LONG] * 2 == [await memory.conversation("c", user_id="ada").load(page.uuid) for page in pages]


async def test_loaded_again_and_not_archived_again(tmp_path):
    """Extra test 13: what load_tool_history brings is seen in full, makes no second page, and leaves the history slim."""

    def load(sent):
        uuid = sent.returned[0].split('uuid="')[1].split('"')[0]
        return ("load_tool_history", {"uuid": uuid})

    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=Settings(window_tokens=60_000)) as memory:
        script = Script(("fetch", {}), "好", load, "好", "好")
        agent = asking(script, LONG, memory)
        history = None
        for question in ("取", "刚才的内容？", "谢谢"):
            result = await agent.run(question, conversation_id="c", message_history=history)
            history = reloaded(result.all_messages())
        assert LONG == script.sent[3].returned[-1]
        assert script.sent[4].returned[-1].startswith("📎 [存档:")
        assert LONG[:2000] not in dumped(history)
        chat = memory.conversation("c", user_id="ada")
        assert 1 == len(await chat.pages())
        assert 1 == (await chat.pages())[0].loads


@pytest.mark.parametrize(
    "result",
    [
        pytest.param({"正文": LONG}, id="dict"),
        pytest.param([{"n": n, "text": "条" * 50} for n in range(400)], id="list"),
        pytest.param(json.dumps({"正文": LONG}, ensure_ascii=False), id="json"),
        pytest.param(Report(title="规程", body=LONG), id="pydantic"),
        pytest.param(ToolReturn(LONG, metadata={"n": 1}), id="tool return"),
        pytest.param("\x00�{{[" * 4000, id="garbage"),
    ],
)
async def test_whatever_a_tool_returns(memory, result):
    """Long results of any shape are archived as the model would have read them, and the history can be saved."""
    script = Script(("fetch", {}), "好", "好")
    agent = asking(script, result, memory, window_tokens=100_000)
    first = await agent.run("取", conversation_id="c")
    whole = script.sent[1].returned[0]
    chat = memory.conversation("c", user_id="ada")
    (page,) = await chat.pages()
    assert whole.replace("\0", "␀") == await chat.load(page.uuid)
    await agent.run("再", conversation_id="c", message_history=reloaded(first.all_messages()))
    assert script.sent[2].returned[0].startswith("📎")
    if isinstance(result, ToolReturn):
        (part,) = [p for m in first.all_messages() for p in m.parts if p.part_kind == "tool-return"]
        assert {"n": 1} == part.metadata


@pytest.mark.parametrize(
    "result", [None, "", 0, [], {}, "短", {"a": 1}, Report(title="a", body="b"), b"\xff\x00"]
)
async def test_short_results_stay_as_they_are(memory, result):
    """Nothing is turned into text that was none."""
    script = Script(("fetch", {}), "好")
    bare = Script(("fetch", {}), "好")
    plain = bare.agent()

    @plain.tool_plain
    def fetch(q: str = ""):
        return result

    kept = await asking(script, result, memory).run("取")
    expected = await plain.run("取")
    assert bare.sent[1].returned == script.sent[1].returned
    assert returns(expected) == returns(kept)


def returns(result):
    return [p.content for m in result.all_messages() for p in m.parts if p.part_kind == "tool-return"]


async def test_pictures_pass(memory):
    """A result with a file is left alone, however long its text; the log has the text."""
    script = Script(("fetch", {}), "好")
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    result = await asking(script, [LONG, picture], memory).run("取", conversation_id="c")
    assert [[LONG, picture]] == returns(result)
    (turn,) = await memory.conversation("c", user_id="ada").turns()
    assert turn.steps[0].page is not None


async def test_a_table_of_contents_of_188_000_characters(memory):
    """Extra test 26: the run goes on within its window, the chapters are in the hint, and nothing asks the backend twice."""
    chapters = [{"title": f"第{n}章 变电站的安全距离与措施 {'说明' * 12}", "page": n} for n in range(1, 2950)]
    toc = {"reg_id": "angui_2024", "items": chapters}
    assert 188_000 <= len(json.dumps(toc, ensure_ascii=False)) < 260_000
    script = Script(
        ("get_toc", {"reg_id": "a"}), ("get_toc", {"reg_id": "a"}), "好", ("get_toc", {"reg_id": "a"}), "好"
    )
    agent = script.agent(PagefileMemory(memory, user_id="ada", window_tokens=8000))
    asked = []

    @agent.tool_plain
    def get_toc(reg_id: str) -> dict:
        asked.append(reg_id)
        return toc

    first = await agent.run("第2000章讲什么？", conversation_id="c")
    await agent.run("再看", conversation_id="c", message_history=reloaded(first.all_messages()))
    assert ["a"] == asked
    count = memory.engine.counter.count
    assert all(
        count(sent.instructions + "".join(sent.said + sent.returned + sent.answered)) <= 8000
        for sent in script.sent
    )
    assert "第2000章" in script.sent[1].returned[0]
    assert script.sent[1].returned[0].startswith("📎")
    assert "第1章" in script.sent[2].returned[1]
    assert "第1章" in script.sent[4].memory
    assert len(dumped(first.all_messages())) < 20_000


async def test_the_frameworks_own_test_model(memory):
    """TestModel calls every tool, ours too, with made-up arguments and one id for all; nothing breaks."""
    model = TestModel()
    agent = Script().agent(PagefileMemory(memory, user_id="ada"))
    seen = []

    @agent.tool_plain
    def fetch(q: str) -> str:
        seen.append(q)
        return LONG

    first = await agent.run("测试", model=model, conversation_id="c")
    second = await agent.run(
        "再测", model=model, conversation_id="c", message_history=reloaded(first.all_messages())
    )
    assert ["a"] == seen
    saved = dumped(second.all_messages())
    assert LONG[:2000] not in saved
    assert "<memory>" not in saved
    assert ["done", "done"] == [t.status for t in await memory.conversation("c", user_id="ada").turns()]


async def test_parallel_calls(memory):
    """Calls of one response are each in the log, and each return is its own."""
    returned = []

    def respond(messages, info):
        found = [p for p in messages[-1].parts if p.part_kind == "tool-return"]
        returned.extend(part.model_response_str() for part in found)
        if found:
            return ModelResponse([TextPart("好")])
        return ModelResponse([ToolCallPart("fetch", {"n": n}, f"id{n}") for n in range(8)])

    agent = Agent(FunctionModel(respond), capabilities=[PagefileMemory(memory, window_tokens=300_000)])

    @agent.tool_plain
    def fetch(n: int) -> str:
        return f"结果{n}\n" + LONG

    result = await agent.run("取", conversation_id="c")
    assert [f"结果{n}\n" + LONG for n in range(8)] == returned
    (turn,) = await memory.conversation("c").turns()
    assert {f"id{n}" for n in range(8)} == {step.call_id for step in turn.steps}
    assert 8 == dumped(result.all_messages()).count("📎")


async def test_in_english(tmp_path):
    """Placeholders and tools speak the memory's language."""
    settings = Settings(language="en")
    async with Memory.open(f"sqlite:///{tmp_path}/en.db", settings=settings) as memory:
        script = Script(("fetch", {}), "ok", "ok")
        agent = asking(script, "word " * 5000, memory)
        first = await agent.run("fetch it", conversation_id="c")
        await agent.run("again", conversation_id="c", message_history=first.all_messages())
        assert script.sent[2].returned[0].startswith("📎 [archived tool result: ")
        assert "## Archived tool results" in script.sent[2].instructions
