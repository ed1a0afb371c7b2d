"""Whatever fails or hangs behind a hook, the run gives its answer; it is logged once and counted."""

import asyncio
import logging

import pytest

from pagefile import Memory, Settings, StoreUnavailableError
from pagefile.integrations.pydantic_ai import PagefileMemory
from pagefile.stores import InMemoryStore, SystemClock
from pagefile.testing import FlakyStore
from pagefile.text.tokens import open_counter
from tests.engines import engine_over
from tests.waiting import PATIENCE_S

from .agents import Script, dumped, reloaded

LONG = "".join(f"第{n}条 内容。\n" for n in range(3000))
#: Long enough for a page, and short enough to be prepared without a thread: the store is reached before any time-out.
LONG_ENOUGH = LONG[:11_000]

VERBS = {
    "writing turns": ["log.append", "log.advance"],
    "steps and ends": ["log.advance"],
    "reading": ["reader.view", "reader.entries", "source.since", "facts.list"],
    "pages": ["pages.put", "pages.load", "page_keeper.page"],
}


class StuckStore(FlakyStore):
    """A store that hangs instead of failing."""

    def __init__(self, store):
        super().__init__(store)
        self.stuck = set()
        self.waited = 0

    def hang(self, *verbs):
        self.stuck = set(verbs)
        for name in ("log", "reader", "pages", "facts"):
            port = getattr(self, name)
            setattr(self, name, _StuckPort(name, port, self))


class _StuckPort:
    def __init__(self, name, port, store):
        self._name, self._port, self._store = name, port, store

    def __getattr__(self, verb):
        method = getattr(self._port, verb)

        async def held(*args, **kwargs):
            if f"{self._name}.{verb}" in self._store.stuck:
                self._store.waited += 1
                await asyncio.Event().wait()
            return await method(*args, **kwargs)

        return held


def opened(store):
    return Memory(engine_over(store, Settings(), SystemClock(), open_counter()))


@pytest.fixture
def store():
    return FlakyStore(InMemoryStore(SystemClock()))


@pytest.fixture
def memory(store):
    return opened(store)


def agent_of(script, memory, long=LONG, **options):
    agent = script.agent(PagefileMemory(memory, user_id="ada", **options), instructions="BASE")

    @agent.tool_plain
    def fetch() -> str:
        return long

    @agent.tool_plain
    def get_toc() -> dict:
        return {"reg_id": "r", "items": [{"title": "第1章"}]}

    return agent


@pytest.mark.parametrize("verbs", VERBS.values(), ids=VERBS)
async def test_a_store_that_fails(memory, store, caplog, verbs):
    """Extra test 14: two runs with tools give their answers; each kind of failure is logged once and counted every time."""
    script = Script(*[("fetch", {}), ("get_toc", {}), ("get_toc", {}), "好"] * 2)
    agent = agent_of(script, memory, window_tokens=60_000)
    store.fail(verbs)
    history = None
    with caplog.at_level(logging.ERROR, "pagefile"):
        for question in ("一", "二"):
            result = await agent.run(question, message_history=history, conversation_id="c")
            assert "好" == result.output
            history = reloaded(result.all_messages())
    assert LONG in script.sent[1].returned
    assert sum(memory.engine.failures.values()) > 0
    told = [record.getMessage() for record in caplog.records if "pydantic_ai" in record.getMessage()]
    assert sorted(set(told)) == sorted(told)
    store.mend()
    script.moves = ["好"]
    await agent.run("三", conversation_id="c")
    assert "三" in [turn.user for turn in await memory.conversation("c", user_id="ada").turns()]


async def test_a_question_that_could_not_be_written_is_written_at_the_end(memory, store):
    """A store that was away for a moment: nothing of the turn is lost."""
    script = Script(("fetch", {}), ("get_toc", {}), "好")
    agent = agent_of(script, memory)
    store.fail(["log.append"], times=1)
    await agent.run("问题", conversation_id="c")
    (turn,) = await memory.conversation("c", user_id="ada").turns()
    assert ("问题", "好", ["fetch", "get_toc"]) == (turn.user, turn.assistant, [s.tool for s in turn.steps])


async def test_a_step_that_could_not_be_written_is_written_at_the_end(memory, store):
    """The same for a step in the middle; the model has seen its result in full all the time."""
    script = Script(("fetch", {}), ("get_toc", {}), "好")
    agent = agent_of(script, memory, window_tokens=60_000)
    store.fail(["log.advance"], times=1)
    result = await agent.run("问题", conversation_id="c")
    (turn,) = await memory.conversation("c", user_id="ada").turns()
    assert {"fetch", "get_toc"} == {step.tool for step in turn.steps}
    assert LONG in script.sent[1].returned
    assert LONG[:500] in dumped(result.all_messages()).replace("\\n", "\n")


async def test_a_result_that_could_not_be_archived_fits_the_window(memory, store):
    """The archive is down and the result is longer than the window: the model sees both its ends, the history keeps it whole."""
    script = Script(("fetch", {}), "好")
    agent = agent_of(script, memory, window_tokens=4000)
    store.fail(["pages.put"])
    await agent.run("问题", conversation_id="c")
    (shown,) = script.sent[1].returned
    assert shown.startswith("第0条")
    assert shown.endswith("第2999条 内容。\n")
    assert memory.engine.counter.count(shown) < 4000


@pytest.mark.parametrize("verb", ["log.append", "log.advance", "reader.view", "pages.put"])
@pytest.mark.waits
async def test_a_store_that_hangs(verb, caplog):
    """A hook waits a moment and no longer, then lets the store alone; the answer comes, and the failure is told once."""
    store = StuckStore(InMemoryStore(SystemClock()))
    store.hang(verb)
    memory = opened(store)
    script = Script(("fetch", {}), ("get_toc", {}), "好")
    agent = agent_of(script, memory, LONG_ENOUGH, timeout_s=0.5, window_tokens=60_000)
    with caplog.at_level(logging.ERROR, "pagefile"):
        result = await asyncio.wait_for(agent.run("问题", conversation_id="c"), PATIENCE_S)
    assert "好" == result.output
    assert LONG_ENOUGH in script.sent[1].returned
    assert store.waited > 0
    assert memory.engine.failures["pydantic_ai"] > 0
    told = [record.getMessage() for record in caplog.records]
    assert sorted(set(told)) == sorted(told)


async def test_a_memory_that_was_closed(tmp_path):
    """The agent outlives its memory."""
    script = Script(("get_toc", {}), "好")
    async with Memory.open(f"sqlite:///{tmp_path}/a.db") as memory:
        agent = agent_of(script, memory)
    assert "好" == (await agent.run("问题")).output


async def test_whatever_is_raised_inside(memory, monkeypatch, caplog):
    """Not only our own errors: a mistake of ours costs the user nothing either."""

    def broken(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("pagefile.integrations.pydantic_ai.requests.fitted", broken)
    monkeypatch.setattr("pagefile.engine.conversation.Conversation.workspace", broken)
    script = Script(("get_toc", {}), "好")
    with caplog.at_level(logging.ERROR, "pagefile"):
        assert "好" == (await agent_of(script, memory).run("问题")).output
    assert caplog.records


async def test_for_tests_it_may_raise(store):
    """on_tier_error="raise": a failure is seen where it happens."""
    settings = Settings(on_tier_error="raise")
    memory = Memory(engine_over(store, settings, SystemClock(), open_counter()))
    store.fail(["log.append"])
    with pytest.raises(StoreUnavailableError):
        await agent_of(Script("好"), memory).run("问题")
