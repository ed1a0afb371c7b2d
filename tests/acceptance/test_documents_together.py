"""The five documents in one memory: where they speak of the same thing, there is one of it."""

import pytest

from pagefile import Memory, Settings
from pagefile.standalone import AgentApp, ConversationSummarizer, MemoryQueryRequest
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, open_counter

LONG = "第三步：为角色勾选菜单和数据权限，然后保存。" * 600
HITS = [{"reg_id": "angui_2024", "page_num": 85, "snippet": "母线失压时先检查保护动作。", "score": 0.9}]


async def looked_up(chat, question="权限怎么配置？", result=LONG):
    """A turn whose result is archived; its uuid."""
    turn = await chat.begin(question)
    turn = await chat.step(turn, tool="search_yongce_docs", input={"question": question}, result=result)
    await chat.complete(turn, "如下。")
    return turn.steps[0].page


@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base", "estimate"])
async def test_one_counter_counts_everything(tokenizer):
    """CX-1: results, turns, facts, windows and document 001's estimate, by the tokenizer of the settings."""
    count = open_counter(tokenizer).count
    async with Memory.open("memory://", settings=Settings(tokenizer=tokenizer, recall="never")) as memory:
        chat = memory.conversation("c", user_id="u")
        uuid = await looked_up(chat)
        turn = await chat.record("头晕三天了，怎么办？", "先量血压。")
        fact = await memory.remember("用户对青霉素过敏", user_id="u")
        asked = MemoryQueryRequest("c", query="还有别的吗？")
        context = await AgentApp(memory).query_memory_context(asked)
        assert count(LONG) == (await chat.page(uuid)).tokens
        assert (count(turn.user), count(turn.assistant)) == (turn.user_tokens, turn.assistant_tokens)
        assert count(fact.text) == fact.tokens
        assert count(f"{context.history}\n还有别的吗？") == context.estimated_tokens
        window = await chat.context("好")
        calls = [call["function"] for message in window.messages for call in message.get("tool_calls") or ()]
        assert window.tokens == REPLY_OVERHEAD + sum(
            MESSAGE_OVERHEAD + count(message["content"]) for message in window.messages
        ) + sum(count(call["name"]) + count(call["arguments"]) for call in calls)


async def test_every_document_speaks_through_one_window():
    """CX-3: each in a block of its own, once, in every shape that a client takes, with memory at the tail or at the head."""
    told = {
        "summary": "用户姓王，咨询高血压。",
        "facts": "用户对青霉素过敏",
        "chunks": "母线失压时先检查保护动作。",
        "episodes": "我的猫叫米粒。",
        "recent": "先量血压。",
    }
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        await memory.conversation("before", user_id="u").record(told["episodes"], "记下了。")
        for n in range(4):
            await chat.record(f"早先的问题{n}", "早先的回答")
        await chat.checkpoint(told["summary"], recent_turns=1)
        await chat.record("头晕怎么办？", told["recent"])
        await memory.remember(told["facts"], user_id="u")
        await chat.workspace().absorb("smart_search", {"query": "母线"}, HITS)
        for placement in ("tail", "head"):
            window = await chat.context(
                "你还记得我的猫叫什么吗？我对青霉素过敏吗？", instructions="请简短。", placement=placement
            )
            blocks = window.receipt.tokens_by_block()
            assert told.keys() <= blocks.keys(), blocks
            system, messages = window.for_anthropic()
            for shape in (
                "\n".join(str(message["content"]) for message in window.messages),
                system + str(messages),
                window.as_text(),
            ):
                assert dict.fromkeys(told, 1) == {name: shape.count(text) for name, text in told.items()}
            head = str(window.messages[0]["content"])
            assert ("<memory>" in head) == (placement == "head")


async def test_a_page_and_its_placeholder_are_one_thing():
    """CX-8: loaded, pinned and asked for at once, the text is there once, where the placeholder was."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        uuid = await looked_up(chat)
        for _ in range(2):
            turn = await chat.begin("再看一下")
            text = await chat.call_tool("load_tool_history", {"uuid": uuid})
            turn = await chat.step(turn, tool="load_tool_history", input={"uuid": uuid}, result=text)
            await chat.complete(turn, "好")
        await chat.pin(uuid)
        window = await chat.context("第三步？", load=[uuid, uuid], window_tokens=100_000)
        shown = [m["content"] for m in window.messages if m["role"] == "tool"]
        assert LONG == shown[0]
        assert 1 == shown.count(LONG)
        assert [uuid] == [page.uuid for page in await chat.pages()]


async def test_what_a_summary_covers_can_still_be_loaded():
    """CX-10: the placeholder is gone with its turn; its uuid is beside the summary, over several summaries."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        uuid = await looked_up(chat)
        for n in range(3):
            for m in range(3):
                await chat.record(f"闲聊{n}{m}", "嗯")
            made = await chat.checkpoint(f"用户问过权限，闲聊了{n}次。", recent_turns=1)
            assert (uuid,) == tuple(made.archive_refs)
            window = await chat.context("之前查到的权限手册怎么说？")
            assert not [m for m in window.messages if m["role"] == "tool"]
            assert uuid in str(window.messages[0]["content"])
            assert "load_tool_history" in str(window.messages[0]["content"])
        assert LONG == await chat.load(uuid)


async def test_a_summary_is_due_by_tokens_or_by_messages():
    """CX-4: ten short messages, or a few that fill the window; either way it is the same one summary."""
    for settings, turns, text in (
        (Settings(window_tokens=16_000), 8, "好"),
        (Settings(window_tokens=600), 4, "血压一百四十，头晕两天。" * 12),
    ):
        async with Memory.open("memory://", settings=settings) as memory:
            chat = memory.conversation("c")
            summarizer = ConversationSummarizer(store=memory)
            for n in range(turns):
                await chat.record(f"{n} {text}", "嗯")
            due = await summarizer.should_summarize("c")
            await memory.settle()
            by_tokens = await chat.checkpoints()
            assert (turns == 8) == due == (by_tokens == [])
            if due:
                await summarizer.generate_summary("c")
            (checkpoint,) = await chat.checkpoints()
            assert checkpoint.summary in str((await chat.context("?")).messages[0]["content"])
