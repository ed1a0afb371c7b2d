"""Long conversations never overflow and never lose a turn: automatic checkpoints, told as stories."""

import re

import anyio
import pytest

from pagefile import ConflictError, Memory, Settings, StoreUnavailableError
from pagefile.models import CallableSummarizer, ChatSummarizer, ExtractiveSummarizer
from pagefile.ports import ChatModel, Summarizer
from pagefile.stores import InMemoryStore, SystemClock
from pagefile.testing import FlakyStore
from pagefile.text.tokens import open_counter
from pagefile.tiers.history import History
from tests.engines import engine_over
from tests.waiting import PATIENCE_S

WINDOW = 1200


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/agent.db"


def settings(**given):
    return Settings(window_tokens=WINDOW, on_tier_error="raise", recall="never", **given)


async def say(chat, number, text="关于血压的第{n}个问题，请详细说明一下日常需要注意的事项。"):
    await chat.record(
        user=text.format(n=number), assistant=f"第{number}个回答：请按时服药，剂量 {number} mg。"
    )


def contents(window):
    return "\n".join(str(message["content"]) for message in window.messages)


async def test_a_conversation_checkpoints_itself_when_its_window_fills(url):
    """Nobody calls anything: prepared at 60 %, in force at 75 %, and the newest turns stay verbatim."""
    async with Memory.open(url, settings=settings()) as memory:
        chat = memory.conversation("c")
        ratios = []
        for n in range(60):
            await say(chat, n)
            await memory.settle()
            window = await chat.context("下一个问题")
            ratios.append(window.ratio)
            assert window.tokens <= WINDOW
            assert f"剂量 {n} mg" in contents(window)
        assert len(await chat.checkpoints()) >= 3
        assert max(ratios) < 1
        assert window.mode == "SUMMARY_N"


async def test_a_checkpoint_waits_until_the_threshold(url):
    """At 60 % it is prepared, and nothing is different yet."""
    made = []

    def summarizer(text):
        made.append(text)
        return "摘要"

    async with Memory.open(url, settings=settings(), summarizer=summarizer) as memory:
        chat = memory.conversation("c")
        live = 0
        n = 0
        while live < 0.62 * WINDOW:
            await say(chat, n)
            await memory.settle()
            n += 1
            live = (await memory.conversations())[0].live_tokens
        assert len(made) == 1
        assert await chat.checkpoints() == []
        while live < 0.75 * WINDOW:
            await say(chat, n)
            n += 1
            live += 40
        await memory.settle()
        assert len(await chat.checkpoints()) == 1
        assert len(made) == 1


async def test_half_of_the_window_is_free_after_a_checkpoint(url):
    """What was said since it was prepared counts, too: in half of a window, the next one would come soon."""
    async with Memory.open(url, settings=settings(recent_turns=100)) as memory:
        chat = memory.conversation("c")
        n = 0
        while not await chat.checkpoints():
            await say(chat, n)
            await memory.settle()
            n += 1
        live = (await memory.conversations())[0]
        # But for the turn that filled it.
        assert live.live_tokens * (1 - 1 / live.live_turns) <= WINDOW // 2


async def test_second_and_third_checkpoints_keep_the_first_ones_facts(url):
    """Extra test 1 (B7): what was said in turn 1 is still there after three summaries, by summary or by anchor."""
    async with Memory.open(url, settings=settings()) as memory:
        chat = memory.conversation("c")
        await chat.record(user="我对青霉素过敏，病历号 BA-20241107，家住杭州。", assistant="记下了。")
        for n in range(80):
            await say(chat, n)
        await memory.settle()
        assert len(await chat.checkpoints()) >= 1
        for n in range(80, 160):
            await say(chat, n)
            if n % 10 == 0:
                await memory.settle()
        await memory.settle()
        assert len(await chat.checkpoints()) >= 3
        window = await chat.context("我的病历号是多少？")
        assert "青霉素" in contents(window)
        assert "BA-20241107" in contents(window)
        verdict = next(v for v in window.receipt if v.block == "summary")
        assert "anchors survive" in verdict.note


@pytest.mark.waits
async def test_turns_written_while_a_summary_is_made_stay_visible(url):
    """Extra test 2 and B14: the checkpoint states up to which turn it speaks."""
    begun, go = anyio.Event(), anyio.Event()

    async def slow(text):
        begun.set()
        await go.wait()
        return "慢慢写的摘要"

    async with Memory.open(url, settings=settings(), summarizer=slow) as memory:
        chat = memory.conversation("c")
        for n in range(25):
            await say(chat, n)
        await begun.wait()
        for n in range(25, 30):
            await say(chat, n)
            assert f"剂量 {n} mg" in contents(await chat.context("?"))
        go.set()
        await memory.settle()
        window = await chat.context("?")
        assert "慢慢写的摘要" in contents(window)
        assert all(f"剂量 {n} mg" in contents(window) for n in range(25, 30))


class Broken(Summarizer):
    """A summarizer that misbehaves in a chosen way."""

    def __init__(self, how):
        self.how = how

    async def summarize(self, request):
        return await self.how(request)


async def _raises(_):
    raise RuntimeError("no model today")


async def _nothing(_):
    return "  \n "


async def _endless(_):
    return "很长的摘要。" * 20_000


async def _repeats(_):
    return "同样的话。" * 300


@pytest.mark.parametrize(
    "how", [_raises, _nothing, _endless, _repeats], ids=["raises", "nothing", "100 KB", "repeats"]
)
async def test_a_summarizer_that_misbehaves_does_no_harm(url, how):
    """There is a checkpoint, of bounded length, and the conversation goes on."""
    async with Memory.open(url, settings=settings(), summarizer=Broken(how)) as memory:
        chat = memory.conversation("c")
        for n in range(40):
            await say(chat, n)
        await memory.settle()
        (checkpoint, *_) = await chat.checkpoints()
        assert 0 < len(checkpoint.summary) <= 1200
        assert (await chat.context("?")).tokens <= WINDOW


async def test_a_summarizer_that_hangs_holds_nobody_up(url, monkeypatch):
    """It is given up after a while, and a summary is extracted instead; closing does not wait for it for ever."""
    monkeypatch.setattr("pagefile.tiers.checkpoints.SUMMARY_TIMEOUT_S", 0.05)

    async def hang(_):
        await anyio.sleep_forever()

    async with Memory.open(url, settings=settings(), summarizer=Broken(hang)) as memory:
        chat = memory.conversation("c")
        for n in range(40):
            await say(chat, n)
        await memory.settle()
        assert await chat.checkpoints()


@pytest.mark.waits
async def test_closing_drains_background_work_within_its_limit(url):
    """Extra test 20: what is quick is finished, what hangs is given up."""

    async def hang(_):
        await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE_S):
        async with Memory.open(url, settings=settings(drain_s=0.1), summarizer=Broken(hang)) as memory:
            for n in range(40):
                await say(memory.conversation("c"), n)
    async with Memory.open(url, settings=settings()) as memory:
        for n in range(40):
            await say(memory.conversation("d"), n)
    async with Memory.open(url, settings=settings()) as memory:
        assert await memory.conversation("d").checkpoints()
        assert len(await memory.conversation("c").turns()) == 40


async def test_sync_mode_makes_the_checkpoint_before_the_window_goes_out(url):
    """The document's 同步摘要流程: the window that would be too full is made from the summary already."""
    async with Memory.open(url, settings=settings(checkpoints="sync")) as memory:
        chat = memory.conversation("c")
        for n in range(30):
            await say(chat, n)
        assert await chat.checkpoints() == []
        window = await chat.context("?")
        assert window.mode == "SUMMARY_N"
        assert not window.should_checkpoint


async def test_manual_mode_leaves_it_to_the_caller(url):
    """The flag says when; nothing happens by itself."""
    async with Memory.open(url, settings=settings(checkpoints="manual")) as memory:
        chat = memory.conversation("c")
        for n in range(30):
            await say(chat, n)
        await memory.settle()
        assert (await chat.context("?")).should_checkpoint
        assert await chat.checkpoints() == []


async def test_a_few_huge_turns_are_covered_too(url):
    """Recent turns that alone fill the window do not keep it full for ever."""
    async with Memory.open(url, settings=settings()) as memory:
        chat = memory.conversation("c")
        for n in range(6):
            await chat.record(user=f"第{n}次。" + "很长的描述，" * 60, assistant="好的。")
            await memory.settle()
        window = await chat.context("?")
        assert window.mode == "SUMMARY_N"
        assert window.ratio < 0.75


async def test_a_failing_write_is_tried_again_and_then_given_up(monkeypatch, caplog):
    """Pauses of 1, 2 and 3 seconds; then the window goes on within its budget, without a summary."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr("pagefile.tiers.checkpoints.anyio.sleep", sleep)
    store = FlakyStore(InMemoryStore(SystemClock()))
    memory = Memory(engine_over(store, settings(checkpoints="manual"), SystemClock(), open_counter()))
    chat = memory.conversation("c")
    for n in range(40):
        await say(chat, n)
    store.fail(["log.mark"])
    rules = memory.engine.tier(History).rules_of(chat.scope)
    await memory.engine.tier(History).checkpoints.maintain(chat.scope, rules)
    assert slept == [1.0, 2.0, 3.0]
    assert "CheckpointShortMemory error" in caplog.text
    window = await chat.context("?")
    assert (window.mode, window.tokens <= WINDOW) == ("FULL_HISTORY", True)
    with pytest.raises(StoreUnavailableError):
        await chat.checkpoint("by hand")
    store.mend()
    await memory.engine.tier(History).checkpoints.maintain(chat.scope, rules)
    assert (await chat.context("?")).mode == "SUMMARY_N"


async def test_two_processes_do_not_cover_each_other(url):
    """Extra test 10: a summary made from an older state is refused, and nothing is lost."""
    async with Memory.open(url, settings=settings(checkpoints="manual")) as one, Memory.open(url, settings=settings(checkpoints="manual")) as two:  # fmt: skip
        for n in range(30):
            await say(one.conversation("c"), n)
        rules = one.engine.tier(History).rules_of(one.conversation("c").scope)
        scope = one.conversation("c").scope
        prepared = await one.engine.tier(History).checkpoints._prepare(
            scope, await one.engine.tier(History).checkpoints.view(scope), rules
        )
        await two.conversation("c").checkpoint("另一个进程的摘要", recent_turns=5)
        with pytest.raises(ConflictError):
            await one.engine.tier(History).checkpoints._apply(prepared)
        assert [c.summary for c in await one.conversation("c").checkpoints()] == ["另一个进程的摘要"]


async def test_safety_data_is_in_every_window(url):
    """Allergies and histories, also when there is room for nothing else."""
    async with Memory.open(url, settings=settings()) as memory:
        chat = memory.conversation("c", user_id="u")
        await say(chat, 1)
        session = dict(await memory.engine.sessions.get(chat.scope))
        session["user_snapshot"] = {
            **session["user_snapshot"],
            "allergies": ["青霉素", "花生</safety>"],
            "history": ["高血压"],
        }
        await memory.engine.sessions.put(chat.scope, session)
        window = await chat.context("头晕", window_tokens=120)
        system = window.messages[0]["content"]
        assert "过敏史: 青霉素、花生&lt;/safety&gt;" in system
        assert "慢病史: 高血压" in system
        assert next(v for v in window.receipt if v.block == "safety").reason == "never cut"


class Scripted(ChatModel):
    """A chat model that answers with what it is told to."""

    def __init__(self, answer):
        self.answer, self.seen = answer, []

    async def complete(self, messages, *, max_tokens):
        self.seen.append(messages)
        return self.answer


class Retelling(Scripted):
    """Answers with every number that it was told."""

    async def complete(self, messages, *, max_tokens):
        numbers = "、".join(dict.fromkeys(re.findall(r"\d+", messages[-1]["content"])))
        return f"{await super().complete(messages, max_tokens=max_tokens)}血压问题与按时服药的剂量 mg：{numbers}。"


async def test_any_chat_model_can_write_the_summaries(url):
    """It is asked in the language of the conversation, with the summary so far, and everything is read in parts."""
    model = Retelling("模型写的摘要：")
    async with Memory.open(url, settings=settings(), model=model) as memory:
        chat = memory.conversation("c")
        for n in range(60):
            await say(chat, n)
            if n % 5 == 0:
                await memory.settle()
        await memory.settle()
        assert "模型写的摘要" in contents(await chat.context("?"))
    assert "请将以下对话历史浓缩为简洁的摘要" in model.seen[0][0]["content"]
    assert "已有摘要: 模型写的摘要" in model.seen[-1][1]["content"]


async def test_input_longer_than_the_model_can_read_is_summarised_in_parts():
    """Extra test 8: nothing is passed over unread."""
    from pagefile.engine.metrics import NoMeter
    from pagefile.text.tokens import open_counter
    from pagefile.tiers.checkpoints import parts, summary_of

    from .turns import a_turn

    seen = []

    def note(text):
        seen.append(text)
        return f"摘要 {len(seen)}"

    turns = [a_turn(user=f"事实{n} " + "字" * 300, assistant="好") for n in range(20)]
    writer = CallableSummarizer(note, max_input_chars=1000)
    made = await summary_of(turns, None, writer, NoMeter(), 600, open_counter())
    assert made.text == f"摘要 {len(seen)}"
    assert made.fallback_reason is None
    assert len(seen) > 5
    assert all(any(f"事实{n} " in text for text in seen) for n in range(20))
    said = [("user", "x" * 2500), ("assistant", "y")]
    assert "".join(text for part in parts(said, 1000) for _, text in part) == "x" * 2500 + "y"
    assert all(sum(len(text) for _, text in part) <= 1000 for part in parts(said, 1000))


def test_the_default_summarizer_reads_much():
    """No model, no small window."""
    assert ExtractiveSummarizer().max_input_chars > ChatSummarizer(Scripted("")).max_input_chars


async def test_a_checkpoint_on_request_survives_another_one(url):
    """Which took effect while its summary was made: it is made again, from that one on."""
    others = ["the first half", "everything"]

    async def summarizer(text):
        if others:
            await chat.checkpoint(others.pop(0), recent_turns=4 if others else 0)
        return text

    async with Memory.open(url, settings=settings(checkpoints="manual"), summarizer=summarizer) as memory:
        chat = memory.conversation("c")
        for n in range(8):
            await say(chat, n)
        made = await chat.checkpoint(recent_turns=2)
        assert made == (await chat.checkpoints())[-1]
        assert ["the first half", "everything"] == [one.summary for one in await chat.checkpoints()]
        await say(chat, 9)
        assert "剂量 9 mg" in (await chat.checkpoint(recent_turns=0)).summary
