"""Document 002's history: messages that are in no summary and no window, and messages that come in a row."""

import re

import anyio
import pytest
from langchain_core.messages import HumanMessage

from pagefile import Memory, Settings
from pagefile.integrations.langgraph import build_conversation_graph
from pagefile.standalone import (
    ConversationEpisodicMemory,
    ConversationHistory,
    ConversationStore,
    ConversationSummarizer,
)
from tests.findings.marks import finding

#: Several times as long as the window of the tests below.
CONTRACT = "请帮我看这份合同。" + "甲方应按照约定履行义务，并在收到通知后答复。" * 150
ADVICE = "违约金较高，建议谈到10%。"
#: Nothing in the background: what a window shows then does not hang on whether a summary came in time.
BY_HAND = Settings(window_tokens=1000, checkpoints="manual", indexing="manual")


@pytest.fixture
async def memory(sqlite_url):
    async with Memory.open(sqlite_url, embedder="none") as memory:
        yield memory


@pytest.fixture
def store(memory):
    return ConversationStore(memory)


# -- F2: covered and window together are everything ------------------------------------------------------------------------


def honest_summary(text):
    """Names every question it was given, and those of the summary before."""
    return "S<" + ",".join(sorted(set(numbers_in(text)), key=int)) + ">"


def numbers_in(text):
    before = [number for part in re.findall(r"S<([\d,]*)>", text) for number in part.split(",") if number]
    return before + re.findall(r"问(\d+)；", text)


async def exchange(store, number):
    await store.append_message("c", "user", f"问{number}；")
    await store.append_message("c", "assistant", f"答{number}；")


def known(context):
    """The questions that are in the summary or in the window."""
    recent = "".join(message["content"] for message in context["recent_history"])
    return {int(number) for number in numbers_in((context["summary"] or "") + recent)}


@finding("history-F2")
async def test_a_short_conversation_is_covered_too(memory, store):
    """Of a conversation of seven to ten messages, each is in the summary or in the window."""
    history = ConversationHistory(store, ConversationSummarizer(honest_summary, store=store))
    missing = []
    for number in range(1, 7):
        await exchange(store, number)
        missing += set(range(1, number + 1)) - known(await history.get_context("c"))
        await memory.settle()
    assert [] == missing


@finding("history-F2")
async def test_a_summary_that_hangs_leaves_no_hole(store):
    """While a summary is not there yet, every message that it will speak for is in the window."""
    answered = anyio.Event()

    async def hanging(text):
        await answered.wait()
        return honest_summary(text)

    history = ConversationHistory(store, ConversationSummarizer(hanging, store=store))
    try:
        for number in range(1, 31):
            await exchange(store, number)
            context = await history.get_context("c")
    finally:
        answered.set()
    assert set(range(1, 31)) == known(context)


@finding("history-F2")
async def test_a_prompt_summariser_leaves_no_hole(memory, store):
    """With summaries that come in time, every message after the tenth is in the summary or in the window."""
    history = ConversationHistory(store, ConversationSummarizer(honest_summary, store=store))
    for number in range(1, 41):
        await exchange(store, number)
        context = await history.get_context("c")
        await memory.settle()
        if number > 5:
            assert set(range(1, number + 1)) == known(context)
    assert context["summary"]


# -- F4: a turn that is larger than the window -----------------------------------------------------------------------------


@finding("history-F4")
async def test_the_turn_before_the_question_is_not_invisible(sqlite_url):
    """After a turn that is larger than the window, the model is shown its answer and the turns before it."""
    async with Memory.open(sqlite_url, settings=BY_HAND, embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("我叫王小明，对青霉素过敏", "记住了")
        await chat.record(CONTRACT, ADVICE)
        window = await chat.context("你刚才建议谈到多少？")
    text = str(window.messages[:-1])
    assert window.tokens <= 1000
    assert "10%" in text
    assert "王小明" in text


@finding("history-F4")
async def test_the_graph_shows_the_turn_before_the_question(sqlite_url):
    """The graph's prompt has the answer of the turn before, also if that turn is larger than the window."""
    prompts = []

    def model(messages):
        prompts.append(messages)
        return ADVICE if messages[-1].content == CONTRACT else "好的。"

    async with Memory.open(sqlite_url, settings=BY_HAND, embedder="none") as memory:
        graph = build_conversation_graph(memory, model=model)
        for question in ("我叫王小明", CONTRACT, "你刚才建议谈到多少？"):
            asked = {"messages": [HumanMessage(question)], "conversation_id": "c", "user_id": "u"}
            await graph.ainvoke(asked)
    assert 3 == len(prompts)
    assert "10%" in str([message.content for message in prompts[-1][:-1]])


# -- F5: several messages in a row -----------------------------------------------------------------------------------------

IN_A_ROW = ["你好，我是王小明", "我对青霉素过敏", "我可以吃阿莫西林吗？"]
REPLY = "不建议，阿莫西林属于青霉素类。"


async def append_all(store):
    for text in IN_A_ROW:
        await store.append_message("c", "user", text)
    await store.append_message("c", "assistant", REPLY)


def said(messages):
    return [(message["role"], message["content"]) for message in messages]


@finding("history-F5")
async def test_messages_in_a_row_are_all_listed(store):
    """Three messages of a user and one answer are four messages, in the order in which they were said."""
    await append_all(store)
    expected = [*(("user", text) for text in IN_A_ROW), ("assistant", REPLY)]
    assert expected == said(await store.list_messages("c"))
    assert 4 == await store.count_messages("c")


@finding("history-F5")
async def test_messages_in_a_row_are_in_the_next_prompt(store):
    """What a user said in the first of several messages is in the next prompt."""
    history = ConversationHistory(
        store, ConversationSummarizer(store=store), ConversationEpisodicMemory(store)
    )
    await append_all(store)
    prompt = await history.build_prompt("c", "我叫什么？", system_message="你是药房助手。")
    text = str([message["content"] for message in prompt[:-1]])
    assert all(words in text for words in IN_A_ROW)


@finding("history-F5")
async def test_a_second_answer_comes_after_the_first(store):
    """A second message of the assistant changes nothing of the order in which things were said."""
    await append_all(store)
    await store.append_message("c", "assistant", "另外，记得告诉医生您的过敏史。")
    expected = [*IN_A_ROW, REPLY, "另外，记得告诉医生您的过敏史。"]
    assert expected == [message["content"] for message in await store.list_messages("c")]


@finding("history-F5")
async def test_a_message_is_listed_before_it_is_answered(store):
    """A user's message is listed and counted as soon as it was appended."""
    await store.append_message("c", "user", "只有提问，没有回答")
    assert [("user", "只有提问，没有回答")] == said(await store.list_messages("c"))
    assert 1 == await store.count_messages("c")


# -- F7: two summarisers race ----------------------------------------------------------------------------------------------

BY_THE_MODEL = "LLM摘要：用户在讨论科幻电影。"
LONG_ANSWER = "这是一个比较长的回答。" * 60


async def model_summary(text):
    """The model that the user gave."""
    return BY_THE_MODEL


@finding("history-F7")
async def test_every_summary_is_by_the_model_that_was_given(sqlite_url):
    """With a model given to the summarizer, every checkpoint of a conversation with long turns is that model's."""
    async with Memory.open(sqlite_url, settings=Settings(window_tokens=2000), embedder="none") as memory:
        store = ConversationStore(memory)
        history = ConversationHistory(store, ConversationSummarizer(model_summary, store=store))
        for number in range(15):
            await store.append_message("c", "user", f"第{number}个问题")
            await store.append_message("c", "assistant", f"答{number}：{LONG_ANSWER}")
            await history.get_context("c")
            await memory.settle()
        summaries = [checkpoint.summary for checkpoint in await memory.conversation("c").checkpoints()]
    assert summaries
    assert {BY_THE_MODEL} == set(summaries)


@finding("history-F7")
async def test_the_graph_shows_the_summary_of_its_own_summarizer(sqlite_url):
    """The summary in the graph's prompt is by the model that was given to its summarizer."""
    prompts = []

    def model(messages):
        prompts.append(messages)
        return LONG_ANSWER

    async with Memory.open(sqlite_url, settings=Settings(window_tokens=2000), embedder="none") as memory:
        summarizer = ConversationSummarizer(model_summary, store=memory)
        graph = build_conversation_graph(memory, model=model, summarizer=summarizer)
        for number in range(12):
            asked = {"messages": [HumanMessage(f"第{number}个问题")], "conversation_id": "c", "user_id": "u"}
            await graph.ainvoke(asked)
            await memory.settle()
    backgrounds = [
        str(message.content) for message in prompts[-1] if str(message.content).startswith("对话背景")
    ]
    assert [f"对话背景：\n{BY_THE_MODEL}"] == backgrounds
