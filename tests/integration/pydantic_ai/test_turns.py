"""The turn is in the log however the run ends."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, ModelRetry
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ImageUrl, ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.usage import UsageLimits

from pagefile import BlockingMemory, Memory
from pagefile.integrations.pydantic_ai import PagefileMemory
from pagefile.tiers.archive import Archive

from .agents import Script, dumped

LONG = "超长结果" * 5000
ROOT = Path(__file__).parents[3]


@dataclass
class Deps:
    user_id: str


async def turns(memory, conversation="c", user_id="ada"):
    return list(await memory.conversation(conversation, user_id=user_id).turns())


def with_tools(script, memory, **options):
    agent = script.agent(PagefileMemory(memory, user_id="ada", **options))
    agent.gate = asyncio.Event()
    agent.reached = asyncio.Event()

    @agent.tool_plain
    def fetch() -> str:
        return LONG

    @agent.tool_plain
    async def hang() -> str:
        agent.reached.set()
        await agent.gate.wait()
        return "never"

    @agent.tool_plain
    def fail() -> str:
        raise RuntimeError("broken tool")

    return agent


async def test_a_run_is_one_turn(memory):
    """Question, steps and answer; the turn's id is the run's."""
    agent = with_tools(Script(("fetch", {}), "好的"), memory)
    result = await agent.run("问题", conversation_id="c")
    (turn,) = await turns(memory)
    assert ("问题", "好的", "done") == (turn.user, turn.assistant, turn.status)
    assert ["fetch"] == [step.tool for step in turn.steps]
    assert result.run_id == turn.id


@pytest.mark.waits
async def test_cancelled_in_a_tool(memory, tmp_path):
    """What was acknowledged survives: the question, the step before, and the page, also for another process."""
    agent = with_tools(Script(("fetch", {}), ("hang", {}), "好"), memory)
    task = asyncio.ensure_future(agent.run("问题", conversation_id="c"))
    await agent.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (turn,) = await turns(memory)
    assert ("问题", None, "aborted") == (turn.user, turn.assistant, turn.status)
    assert ["fetch"] == [step.tool for step in turn.steps]
    async with Memory.open(f"sqlite:///{tmp_path}/agent.db") as other:
        chat = other.conversation("c", user_id="ada")
        assert LONG == await chat.load(turn.steps[0].page)


@pytest.mark.waits
async def test_cancelled_by_a_scope(memory):
    """The same under anyio, which cancels at every await until the block is left."""
    agent = with_tools(Script(("fetch", {}), ("hang", {}), "好"), memory)

    async def run():
        await agent.run("问题", conversation_id="c")

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await agent.reached.wait()
        group.cancel_scope.cancel()
    (turn,) = await turns(memory)
    assert ("aborted", 1) == (turn.status, len(turn.steps))


@pytest.mark.waits
async def test_cancelled_while_a_result_is_written(memory, monkeypatch):
    """The write goes on behind the cancelled run, and the turn is closed after it."""
    agent = with_tools(Script(("fetch", {}), "好"), memory)
    writing, given_up = asyncio.Event(), asyncio.Event()
    put = memory.engine.store.pages.put

    async def slow_put(draft):
        writing.set()
        await given_up.wait()
        return await put(draft)

    monkeypatch.setattr(
        memory.engine.tier(Archive), "_pages", Slow(memory.engine.tier(Archive)._pages, put=slow_put)
    )
    task = asyncio.ensure_future(agent.run("问题", conversation_id="c"))
    await writing.wait()
    task.cancel()
    await asyncio.sleep(0)
    given_up.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    (turn,) = await turns(memory)
    assert ("aborted", ["fetch"]) == (turn.status, [step.tool for step in turn.steps])


class Slow:
    """A port with some verbs of its own."""

    def __init__(self, port, **verbs):
        self._port, self._verbs = port, verbs

    def __getattr__(self, name):
        return self._verbs.get(name) or getattr(self._port, name)


@pytest.mark.waits
async def test_killed(tmp_path):
    """A process that is killed in its second tool: the question, the first step and its page are on disk."""
    url = f"sqlite:///{tmp_path}/killed.db"
    command = [sys.executable, "-m", "tests.integration.pydantic_ai.killed_process", url]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert b"hanging\n" == await process.stdout.readline()
    process.kill()
    await process.wait()
    async with Memory.open(url) as memory:
        (turn,) = await turns(memory)
        assert ("问题", "open", ["fetch"]) == (turn.user, turn.status, [step.tool for step in turn.steps])
        chat = memory.conversation("c", user_id="ada")
        assert LONG == await chat.load(turn.steps[0].page)
        # And the conversation goes on.
        script = Script("好")
        await script.agent(PagefileMemory(memory, user_id="ada")).run("还在吗？", conversation_id="c")
        assert ["还在吗？"] == [done.user for done in await turns(memory) if done.status == "done"]


async def test_a_tool_that_raises(memory):
    """The run fails as it would have; the turn is aborted with what came before."""
    agent = with_tools(Script(("fetch", {}), ("fail", {})), memory)
    with pytest.raises(RuntimeError, match="broken tool"):
        await agent.run("问题", conversation_id="c")
    (turn,) = await turns(memory)
    assert ("aborted", ["fetch"]) == (turn.status, [step.tool for step in turn.steps])


async def test_a_limit(memory):
    """A run stopped by its usage limit leaves its steps in the log."""
    agent = with_tools(Script(("fetch", {}), ("fetch", {}), "好"), memory)
    with pytest.raises(UsageLimitExceeded):
        await agent.run("问题", conversation_id="c", usage_limits=UsageLimits(request_limit=2))
    (turn,) = await turns(memory)
    assert ("aborted", 2) == (turn.status, len(turn.steps))


async def test_a_call_to_be_made_again(memory):
    """A tool that asks for another try is no result: it is neither archived nor cached."""
    script = Script(("get_toc", {}), ("get_toc", {}), "好")
    agent = script.agent(PagefileMemory(memory, user_id="ada"))
    tries = []

    @agent.tool_plain(retries=2)
    def get_toc() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ModelRetry("again")
        return "目录"

    await agent.run("问题", conversation_id="c")
    (turn,) = await turns(memory)
    assert ["目录"] == [step.result for step in turn.steps]


async def test_streamed(memory):
    """A stream read to its end is a done turn, with memory in its request."""
    await memory.remember("用户喜欢龙井茶", user_id="ada")
    script = Script(("fetch", {}), "喜欢 龙井")
    agent = with_tools(script, memory)
    async with agent.run_stream("我喜欢什么茶？", conversation_id="c") as stream:
        told = [text async for text in stream.stream_text(delta=True, debounce_by=None)]
    assert "喜欢 龙井 " == "".join(told)
    assert all("龙井茶" in sent.memory for sent in script.sent)
    (turn,) = await turns(memory)
    assert ("喜欢 龙井 ", "done", 1) == (turn.assistant, turn.status, len(turn.steps))
    assert "<memory>" not in dumped(stream.all_messages())


async def test_a_stream_that_is_left(memory):
    """Whoever stops listening aborts the turn; the next run is not held up."""
    script = Script(" ".join(["词"] * 50), "好")
    agent = with_tools(script, memory)
    async with agent.run_stream("长篇", conversation_id="c") as stream:
        async for _ in stream.stream_text(delta=True, debounce_by=None):
            break
    await agent.run("短", conversation_id="c")
    assert ["aborted", "done"] == [turn.status for turn in await turns(memory)]


async def test_step_by_step(memory):
    """`iter` to its end is a done turn; left early it is aborted."""
    agent = with_tools(Script(("fetch", {}), "好", ("fetch", {})), memory)
    async with agent.iter("一", conversation_id="c") as run:
        async for _ in run:
            pass
    assert "好" == run.result.output
    async with agent.iter("二", conversation_id="c") as run:
        async for node in run:
            if Agent.is_call_tools_node(node):
                break
    assert ["done", "aborted"] == [turn.status for turn in await turns(memory)]


@pytest.mark.usefixtures("own_loop")
def test_without_an_event_loop(tmp_path):
    """`run_sync` with a BlockingMemory: the same memory, results, tools and turns."""
    with BlockingMemory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
        memory.remember("用户喜欢龙井茶", user_id="ada")
        script = Script(("fetch", {}), "好", ("recall", {"query": "龙井"}), "龙井")
        agent = script.agent(PagefileMemory(memory, user_id=lambda ctx: ctx.deps.user_id), deps_type=Deps)

        @agent.tool_plain
        def fetch() -> str:
            return LONG

        first = agent.run_sync("我喜欢龙井茶吗？", deps=Deps("ada"), conversation_id="c")
        agent.run_sync("说说茶", deps=Deps("ada"), conversation_id="c", message_history=first.all_messages())
        assert "龙井茶" in script.sent[0].memory
        assert script.sent[2].returned[0].startswith("📎")
        assert "我喜欢龙井茶吗？" in script.sent[3].returned[-1]
        done = memory.conversation("c", user_id="ada").turns()
        assert ["done", "done"] == [turn.status for turn in done]


async def test_a_structured_answer(memory):
    """What is not text is written as JSON."""

    class Tea(BaseModel):
        name: str

    def respond(messages, info):
        return ModelResponse([ToolCallPart(info.output_tools[0].name, {"name": "龙井"})])

    agent = Agent(
        FunctionModel(respond), output_type=Tea, capabilities=[PagefileMemory(memory, user_id="ada")]
    )
    result = await agent.run("什么茶？", conversation_id="c")
    assert Tea(name="龙井") == result.output
    (turn,) = await turns(memory)
    assert '{"name":"龙井"}' == turn.assistant


async def test_pictures_in_the_question(memory):
    """The text is written down, the picture is named, and the model still gets it."""
    script = Script("一只猫")
    agent = script.agent(PagefileMemory(memory, user_id="ada"))
    await agent.run(["这是什么？", ImageUrl("https://example.com/cat.png")], conversation_id="c")
    (turn,) = await turns(memory)
    assert "这是什么？\n[image]" == turn.user
    assert "cat.png" in script.sent[0].text


async def test_tools_that_run_elsewhere(memory):
    """A run that waits for someone leaves its turn open; the run that goes on completes it."""
    script = Script(("delete", {}), "删了")
    agent = script.agent(PagefileMemory(memory, user_id="ada"), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def delete() -> str:
        return "gone"

    first = await agent.run("删除", conversation_id="c")
    call = first.output.approvals[0].tool_call_id
    await agent.run(
        message_history=first.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={call: True}),
    )
    (turn,) = await turns(memory)
    assert ("done", "删除", "删了") == (turn.status, turn.user, turn.assistant)
    assert [("delete", "gone")] == [(step.tool, step.result) for step in turn.steps]


async def test_the_same_run_twice(memory):
    """A run that is played again under its id makes no second turn, and still gives its answer."""
    script = Script("好", "好")
    agent = script.agent(PagefileMemory(memory, user_id="ada"))
    for _ in range(2):
        result = await agent.run("问题", conversation_id="c", run_id="run-1")
        assert "好" == result.output
    assert 1 == len(await turns(memory))
