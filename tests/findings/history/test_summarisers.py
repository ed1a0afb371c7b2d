"""What writes summaries: functions that block, models that hang or refuse, and what an extract keeps."""

import random
import re
import threading

import anyio
import pytest

from pagefile import Memory, Settings
from pagefile.standalone import ConversationStore, ConversationSummarizer
from tests.findings.marks import finding

from .small_talk import CORRECTIONS, SMALL_TALK

#: A function that the loop never answers waits so long.
PATIENCE_S = 1.0


# -- F8: a plain function holds up nobody ----------------------------------------------------------------------------------


class BlockingModel:
    """A function that goes on once the event loop has noticed that it runs."""

    def __init__(self):
        self.began, self.noticed = threading.Event(), threading.Event()
        self.calls = self.held_up = 0

    def __call__(self, text):
        self.calls += 1
        self.began.set()
        # Whoever held the loop up once need not do so again.
        self.held_up += not self.noticed.wait(PATIENCE_S)
        self.noticed.set()
        return "用户王小明对青霉素过敏。"

    async def watch(self):
        while not self.began.is_set():
            await anyio.sleep(0.005)
        self.noticed.set()


@finding("history-F8")
async def test_a_blocking_summarizer_of_a_memory_holds_up_nobody(sqlite_url):
    """While a plain function writes a summary, everything else in the process goes on."""
    model = BlockingModel()
    settings = Settings(window_tokens=600)
    async with (
        Memory.open(sqlite_url, settings=settings, summarizer=model, embedder="none") as memory,
        anyio.create_task_group() as group,
    ):
        group.start_soon(model.watch)
        chat = memory.conversation("c")
        for number in range(25):
            await chat.record(f"问题{number}", f"回答{number} " + "内容" * 15)
        await memory.settle()
        group.cancel_scope.cancel()
    assert model.calls
    assert 0 == model.held_up


@finding("history-F8")
async def test_a_blocking_model_of_the_summarizer_holds_up_nobody(sqlite_url):
    """`ConversationSummarizer` runs a plain function beside the event loop, as its page shows one."""
    model = BlockingModel()
    async with (
        Memory.open(sqlite_url, embedder="none") as memory,
        anyio.create_task_group() as group,
    ):
        group.start_soon(model.watch)
        store = ConversationStore(memory)
        for number in range(6):
            await store.append_message("c", "user", f"问题{number}")
            await store.append_message("c", "assistant", f"回答{number}")
        summary = await ConversationSummarizer(model, store=store).generate_summary("c")
        group.cancel_scope.cancel()
    assert "用户王小明对青霉素过敏。" == summary
    assert 0 == model.held_up


# -- F9: hanging summaries hold up nobody else -----------------------------------------------------------------------------


@finding("history-F9")
async def test_hanging_summaries_do_not_stop_other_conversations(sqlite_url):
    """A conversation gets its checkpoint while the summaries of others hang."""
    answered, hanging = anyio.Event(), []

    async def summarize(text):
        if "HANG" in text:
            hanging.append(text)
            await answered.wait()
        return "正常的摘要。"

    settings = Settings(window_tokens=600, drain_s=0)
    async with Memory.open(sqlite_url, settings=settings, summarizer=summarize, embedder="none") as memory:
        for conversation in ("h0", "h1", "h2", "h3"):
            await fill(memory.conversation(conversation), "HANG")
        with anyio.move_on_after(2):
            while len(hanging) < 4:
                await anyio.sleep(0.01)
        chat = memory.conversation("fine")
        await fill(chat, "问")
        with anyio.move_on_after(3):
            while not list(await chat.checkpoints()):
                await anyio.sleep(0.05)
        summaries = [checkpoint.summary for checkpoint in await chat.checkpoints()]
        answered.set()
    assert hanging
    assert summaries
    assert {"正常的摘要。"} == set(summaries)


async def fill(chat, word):
    for number in range(25):
        await chat.record(f"{word} {number} " + "词" * 10, "答" * 10)
        await chat.context("x")


# -- F20: a refusal is no summary ------------------------------------------------------------------------------------------

FACT = "我对青霉素过敏，我叫王小明。"


async def seen_after(sqlite_url, summarizer):
    """What is before the model besides the live turns, after summaries by somebody."""
    settings = Settings(window_tokens=1000)
    async with Memory.open(sqlite_url, settings=settings, summarizer=summarizer, embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record(FACT, "记住了。")
        for number in range(50):
            await chat.record(f"问题{number} 关于第{number}件事", f"回答{number} " + "内容" * 15)
            await memory.settle()
        assert list(await chat.checkpoints())
        window = await chat.context("你好，请问我要注意什么")
    return str(window.messages)


@finding("history-F20")
async def test_a_refusal_does_not_replace_the_summary(sqlite_url):
    """When the model refuses to summarise, allergy and name are still before the model."""
    seen = await seen_after(sqlite_url, lambda _: "抱歉，我无法协助完成这个请求。")
    assert "青霉素" in seen
    assert "王小明" in seen


@finding("history-F20")
@pytest.mark.parametrize("answer", ["   ", None], ids=["empty", "none"])
async def test_no_answer_does_not_replace_the_summary(sqlite_url, answer):
    """When the model answers nothing, allergy and name are still before the model."""
    seen = await seen_after(sqlite_url, lambda _: answer)
    assert "青霉素" in seen
    assert "王小明" in seen


# -- F23: what a summary without a model says ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    """What stands for the past in the window after talk with corrections, without a model."""
    return anyio.run(told_of_the_past, f"sqlite:///{tmp_path_factory.mktemp('extracted')}/history.db")


async def told_of_the_past(url):
    chance = random.Random(2)
    async with Memory.open(url, settings=Settings(window_tokens=2000), embedder="none") as memory:
        chat = memory.conversation("c", user_id="u")

        async def chatter(turns):
            for _ in range(turns):
                await chat.record(*chance.choice(SMALL_TALK))
                await chat.context("x")
                await memory.settle()

        for correction in CORRECTIONS:
            await chat.record(correction.before, "好的，记下了。")
            await chatter(3)
        await chatter(15)
        for correction in CORRECTIONS:
            await chat.record(correction.after, "好的，已更新。")
            await chatter(3)
        await chatter(40)
        window = await chat.context("你好")
        return str(window.messages[0]["content"])


@finding("history-F23")
async def test_a_corrected_statement_does_not_stand_without_its_correction(extracted):
    """A summary that is extracted states nothing that was corrected later without the correction."""
    told = [correction for correction in CORRECTIONS if correction.new in extracted]
    stale = [correction.before for correction in CORRECTIONS if correction.old in extracted]
    assert len(told) >= 3
    assert [] == [before for before in stale if before not in [correction.before for correction in told]]


@finding("history-F23")
async def test_small_talk_takes_no_room_in_a_summary(extracted):
    """A summary that is extracted keeps statements, and no "好的" that says nothing."""
    assert "13900002222" in extracted
    assert not re.search(r"(?m)^(\w+: )?好的$", extracted)


@finding("history-F23")
async def test_a_chinese_conversation_has_no_english_labels(extracted):
    """A summary of a Chinese conversation names its speakers in Chinese."""
    assert "13900002222" in extracted
    assert "user:" not in extracted
