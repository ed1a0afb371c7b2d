"""Beside LangChain's own middleware, in either order, and Pagefile's parts inside of it."""

import asyncio
from functools import partial

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from pagefile import BlockingMemory, ModelOutputError, ModelUnavailableError
from pagefile.integrations.langchain import (
    ArchiveToolUsesEdit,
    LangChainChat,
    PagefileMiddleware,
    memory_tools,
    pagefile_summarizer,
)
from pagefile.integrations.langchain.view import request_tokens
from tests.waiting import until

from .models import Recorder, calls_tool, check_order, memories

THREAD = {"configurable": {"thread_id": "t", "user_id": "ada"}}


@tool
def lookup(name: str) -> str:
    """Look something up."""
    return f"{name}: " + "a fact about it. " * 300


def ask(text: str) -> dict:
    return {"messages": [HumanMessage(text)]}


def turn_script(count: int) -> list:
    return [
        message
        for n in range(count)
        for message in (
            calls_tool("lookup", {"name": f"thing {n}"}, f"c{n}"),
            AIMessage(f"Thing {n} is found."),
        )
    ]


@pytest.mark.parametrize("first", [True, False], ids=["ours first", "theirs first"])
async def test_beside_summarization(memory, first):
    """Their summary replaces the thread, also in the middle of a turn; the log has every turn all the same."""
    await memory.remember("The user likes oolong tea.", user_id="ada")
    theirs = SummarizationMiddleware(
        Recorder(script=[AIMessage("They looked things up and drank tea.")]),
        trigger=("messages", 6),
        keep=("messages", 2),
    )
    ours = PagefileMiddleware(memory)
    model = Recorder(script=turn_script(5))
    agent = create_agent(
        model,
        [lookup],
        system_prompt="BASE",
        middleware=[ours, theirs] if first else [theirs, ours],
        checkpointer=InMemorySaver(),
    )
    for number in range(5):
        out = await agent.ainvoke(ask(f"Look up thing {number} while I drink tea"), THREAD)
    assert len(out["messages"]) < 12
    for request in model.calls:
        check_order(request)
        assert 1 == len(memories(request))
    assert [] == memories(out["messages"])
    assert any("They looked things up" in message.text for message in model.calls[-1])
    turns = list(await memory.conversation("t", user_id="ada").turns())
    assert [
        (f"Look up thing {n} while I drink tea", f"Thing {n} is found.", "done", 1) for n in range(5)
    ] == [(turn.user, turn.assistant, turn.status, len(turn.steps)) for turn in turns]


@pytest.mark.parametrize("first", [True, False], ids=["ours first", "theirs first"])
async def test_beside_context_editing(memory, first):
    """Their edit clears what it likes in the request; memory stays, the order stays, the log has the originals."""
    await memory.remember("The user likes oolong tea.", user_id="ada")
    theirs = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1500, keep=1)])
    ours = PagefileMiddleware(memory)
    model = Recorder(script=turn_script(4))
    agent = create_agent(
        model,
        [lookup],
        middleware=[ours, theirs] if first else [theirs, ours],
        checkpointer=InMemorySaver(),
    )
    for number in range(4):
        await agent.ainvoke(ask(f"Look up thing {number} with tea"), THREAD)
    for request in model.calls:
        check_order(request)
        assert 1 == len(memories(request))
    assert "[cleared]" in [message.text for message in model.calls[-1]]
    turns = list(await memory.conversation("t", user_id="ada").turns())
    assert [lookup.invoke({"name": f"thing {n}"}) for n in range(4)] == [
        turn.steps[0].result for turn in turns
    ]


async def test_all_three_together(memory):
    """Nothing piles up, whoever edits."""
    model = Recorder(script=turn_script(6))
    agent = create_agent(
        model,
        [lookup],
        middleware=[
            SummarizationMiddleware(
                Recorder(script=[AIMessage("unused")]),
                trigger=("messages", 10),
                keep=("messages", 4),
                summarizer=pagefile_summarizer(memory),
            ),
            PagefileMiddleware(memory, window_tokens=4000),
            ContextEditingMiddleware(edits=[ArchiveToolUsesEdit(memory, trigger=1000, keep=1)]),
        ],
        checkpointer=InMemorySaver(),
    )
    for number in range(6):
        await agent.ainvoke(ask(f"Look up thing {number}"), THREAD)
    for request in model.calls:
        check_order(request)
        assert request_tokens(request, memory.engine.counter.count) <= 4000
    turns = list(await memory.conversation("t", user_id="ada").turns())
    assert [f"Thing {n} is found." for n in range(6)] == [turn.assistant for turn in turns]


# -- Pagefile's parts in LangChain's middleware -----------------------------------------------------------------------------


async def archived(memory, count):
    """Whether this many results are in the archive."""
    return count == len(await memory.pages(user_id="ada"))


@pytest.mark.waits
async def test_our_placeholders_in_their_context_editing(memory):
    """Where they write `[cleared]`, a page stands that the model can bring back; in one loop, from the next call on."""
    model = Recorder(script=[*turn_script(4)])
    agent = create_agent(
        model,
        [lookup, *memory_tools(memory)],
        middleware=[ContextEditingMiddleware(edits=[ArchiveToolUsesEdit(memory, trigger=1500, keep=1)])],
        checkpointer=InMemorySaver(),
    )
    for number in range(4):
        await agent.ainvoke(ask(f"Look up thing {number}"), THREAD)
        await until(partial(archived, memory, number))
    shown = [message.text for message in model.calls[-1] if message.type == "tool"]
    assert [True, True, False, False] == [text.startswith("📎 [archived tool result: ") for text in shown]
    uuid = shown[0].split("result: ")[1][:36]
    model.play = lambda messages: (
        calls_tool("load_tool_history", {"uuid": uuid}, "l1")
        if messages[-1].type == "human"
        else AIMessage("Back.")
    )
    out = await agent.ainvoke(ask("What about thing 0?"), THREAD)
    assert lookup.invoke({"name": "thing 0"}) == out["messages"][-2].text
    assert 0 == sum(m.text.startswith("📎") for m in out["messages"])


def test_an_edit_with_a_blocking_memory_takes_effect_at_once(blocking):
    """Where an edit can wait, the first request that is too long is short already."""
    model = Recorder(script=turn_script(3))
    agent = create_agent(
        model,
        [lookup],
        middleware=[ContextEditingMiddleware(edits=[ArchiveToolUsesEdit(blocking, trigger=1500, keep=1)])],
        checkpointer=InMemorySaver(),
    )
    for number in range(3):
        agent.invoke(ask(f"Look up thing {number}"), THREAD)
    seen = [[m.text.startswith("📎") for m in request if m.type == "tool"] for request in model.calls]
    assert [[], [False], [False], [True, False], [True, False], [True, True, False]] == seen
    assert 2 == len(list(blocking.pages(user_id="ada")))


def test_an_edit_leaves_alone_what_it_must(blocking):
    """Short results, excluded tools, pictures, placeholders, and everything below the trigger."""
    edit = ArchiveToolUsesEdit(
        blocking, user_id="ada", conversation_id="c", trigger=0, keep=0, exclude_tools=["kept"]
    )
    long = "long " * 1000
    messages = [
        HumanMessage("hi", id="m1"),
        AIMessage(
            "", tool_calls=[{"name": n, "args": {}, "id": n} for n in ("short", "kept", "picture", "gone")]
        ),
        ToolMessage("short", tool_call_id="short", name="short"),
        ToolMessage(long, tool_call_id="kept", name="kept"),
        ToolMessage(
            [{"type": "text", "text": long}, {"type": "image", "url": "https://example.com/a.png"}],
            tool_call_id="picture",
            name="picture",
        ),
        ToolMessage(long, tool_call_id="gone", name="gone", artifact={"rows": 3}),
    ]
    before = list(messages)
    edit.apply(messages, count_tokens=len)
    assert before[:5] == messages[:5]
    assert messages[5].text.startswith("📎")
    again = list(messages)
    edit.apply(messages, count_tokens=len)
    assert again == messages
    quiet = ArchiveToolUsesEdit(blocking, user_id="ada", conversation_id="c", keep=0)
    untouched = list(before)
    quiet.apply(untouched, count_tokens=len)
    assert before == untouched
    # More are kept than there are.
    keeping = ArchiveToolUsesEdit(blocking, user_id="ada", conversation_id="c", trigger=0, keep=5)
    keeping.apply(untouched, count_tokens=len)
    assert before == untouched


async def test_what_is_erased_while_an_edit_archives_it_is_not_archived(memory, monkeypatch):
    """Nobody waits for the edit, so nothing of it is written behind an erasure."""
    put, ended = memory.engine.store.pages.put, asyncio.Event()

    async def behind_an_erasure(draft):
        await memory.forget(user_id="ada", conversation_id="c")
        try:
            return await put(draft)
        finally:
            ended.set()

    monkeypatch.setattr(memory.engine.store.pages, "put", behind_an_erasure)
    edit = ArchiveToolUsesEdit(memory, user_id="ada", conversation_id="c", trigger=0, keep=0)
    messages = [
        HumanMessage("hi", id="m1"),
        AIMessage("", tool_calls=[{"name": "lookup", "args": {}, "id": "c1"}]),
        ToolMessage("long " * 1000, tool_call_id="c1", name="lookup"),
    ]
    edit.apply(messages, count_tokens=len)
    await ended.wait()
    assert [[], []] == [
        list(await memory.pages(user_id="ada")),
        list(await memory.conversations(user_id="ada")),
    ]


async def test_our_summaries_in_their_summarization(memory):
    """Extracted from what was said, the summary before it carried on, uuids of placeholders kept, no model asked."""
    uuid = "6f2f7a52-3b0e-5c1d-9b7e-7a6d0c9f1e10"
    writer = pagefile_summarizer(memory, max_tokens=200)
    messages = [
        HumanMessage(
            "Here is a summary of the conversation to date:\n\nuser: 我对青霉素过敏。",
            additional_kwargs={"lc_source": "summarization"},
        ),
        HumanMessage("I moved to Bergen in March.", id="m1"),
        AIMessage("", tool_calls=[{"name": "lookup", "args": {}, "id": "c1"}]),
        ToolMessage(f"📎 [archived:{uuid}] 9000 characters", tool_call_id="c1"),
        HumanMessage("<memory>\nignore me\n</memory>", name="memory_context"),
        AIMessage("Bergen is rainy."),
    ]
    text = await writer.ainvoke(messages)
    assert "青霉素" in text
    assert "Bergen" in text
    assert uuid in text
    assert "ignore me" not in text
    assert "Here is a summary" not in text


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_summary_in_a_whole_agent(kind):
    """One callable for both kinds of agents; a model that fails costs its words, not the run."""
    with BlockingMemory.open("memory://") as blocking:
        agent, theirs = summarized(blocking)
        for text in ("I raise otters in Bergen.", "They eat herring.", "And now?"):
            if kind == "sync":
                out = agent.invoke(ask(text), THREAD)
            else:
                out = asyncio.run(agent.ainvoke(ask(text), THREAD))
    assert "otters" in out["messages"][0].text
    assert [] == theirs.model.calls


def summarized(blocking):
    failing = LangChainChat(Recorder(script=[ConnectionError("down")]))
    theirs = SummarizationMiddleware(
        Recorder(script=[AIMessage("must not be asked")]),
        trigger=("messages", 5),
        keep=("messages", 1),
        summarizer=pagefile_summarizer(blocking, model=failing),
    )
    model = Recorder(script=[AIMessage("I see.")])
    agent = create_agent(model, [], middleware=[theirs], checkpointer=InMemorySaver())
    return agent, theirs


async def test_any_chat_model_writes_pagefiles_summaries(tmp_path):
    """LangChain's models behind our own port."""
    model = Recorder(script=[AIMessage("模型的摘要：青霉素过敏 0、1、2。")])
    with BlockingMemory.open(f"sqlite:///{tmp_path}/a.db", model=LangChainChat(model)) as memory:
        chat = memory.conversation("c", user_id="ada")
        for number in range(4):
            chat.record(f"我对青霉素过敏 {number}", "知道了")
        assert "模型的摘要：青霉素过敏 0、1、2。" == chat.checkpoint(recent_turns=1).summary
    assert ["system", "human"] == [message.type for message in model.calls[0]]


async def test_a_model_that_gives_nothing():
    """Errors of any provider are ours at the port."""
    with pytest.raises(ModelUnavailableError, match="ConnectionError"):
        await LangChainChat(Recorder(script=[ConnectionError("x")])).complete(
            [{"role": "user", "content": "x"}], max_tokens=5
        )
    with pytest.raises(ModelOutputError):
        await LangChainChat(Recorder(script=[AIMessage(" ")]), limit=None).complete(
            [{"role": "user", "content": "x"}], max_tokens=5
        )
