"""Document 002's summarizer: when a summary is due, what its author reads, and up to where it speaks."""

import logging

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import ConflictError, Memory, SettingsError
from pagefile.errors import StoreUnavailableError
from pagefile.ports import ChatModel, SummaryRequest
from pagefile.settings import Settings
from pagefile.standalone import (
    SUMMARY_PROMPT,
    ConversationHistory,
    ConversationStore,
    ConversationSummarizer,
    format_messages,
)
from pagefile.standalone import conversation_summarizer as module
from pagefile.standalone.conversation_summarizer import conversation_text
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock, HashingEmbedder
from pagefile.text.tokens import open_counter
from pagefile.tiers.history import History
from tests.engines import engine_over
from tests.waiting import PATIENCE_S, until


class Scripted(ChatModel):
    """A model that says what it is told to, and remembers what it was asked."""

    def __init__(self, *answers, gate=None):
        self.answers = list(answers) or ["摘要。"]
        self.asked = []
        self.gate = gate

    async def complete(self, messages, *, max_tokens):
        self.asked.append([dict(message) for message in messages])
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def read(self):
        return [messages[-1]["content"] for messages in self.asked]


async def talk(store, *numbers, conversation_id="c"):
    for number in numbers:
        await store.append_message(conversation_id, "user", f"问{number}。")
        await store.append_message(conversation_id, "assistant", f"答{number}。")


def lines(*numbers):
    return "\n".join(f"用户: 问{number}。\nAI: 答{number}。" for number in numbers)


@pytest.fixture
def conversations(memory):
    return ConversationStore(memory)


@pytest.fixture
def llm():
    return Scripted()


@pytest.fixture
def summarizer(llm, conversations):
    return ConversationSummarizer(llm, store=conversations)


@pytest.fixture
async def open_memory(clock):
    """With the background at work."""
    async with Memory.open("memory://", clock=clock, embedder=HashingEmbedder()) as memory:
        yield memory


# -- when ----------------------------------------------------------------------------------------------------------------


async def test_too_short(summarizer, conversations):
    """S2-15: nine messages have no summary, whatever else."""
    await conversations.append_message("c", "assistant", "欢迎。")
    await talk(conversations, *range(4))
    assert 9 == await conversations.count_messages("c")
    assert not await summarizer.should_summarize("c")


async def test_long_enough(summarizer, conversations):
    """S2-16, C2-2: with ten, the first summary speaks for four."""
    await talk(conversations, *range(5))
    assert await summarizer.should_summarize("c")
    await summarizer.generate_summary("c")
    assert 4 == (await conversations.get_summary("c")).covered_message_count


async def test_not_at_every_message(summarizer, conversations):
    """C2-1: the window is no news. After a summary the next is due when five more messages have left the window."""
    await talk(conversations, *range(5))
    due = []
    for number in range(5, 17):
        if await summarizer.should_summarize("c"):
            due.append(number)
            await summarizer.generate_summary("c")
        await talk(conversations, number)
    assert [5, 8, 11, 14] == due


async def test_four_are_not_enough(summarizer, conversations):
    """S2-17: two turns between summary and window are no reason yet."""
    await talk(conversations, *range(5))
    await summarizer.generate_summary("c")
    await talk(conversations, 5, 6)
    assert not await summarizer.should_summarize("c")


async def test_five_are_enough(summarizer, conversations):
    """S2-17, counted in messages: a greeting between the turns makes it five."""
    await talk(conversations, 0, 1, 2)
    await conversations.append_message("c", "assistant", "还有一句。")
    await talk(conversations, 3, 4)
    await summarizer.generate_summary("c")
    await talk(conversations, 5)
    assert not await summarizer.should_summarize("c")
    await talk(conversations, 6)
    assert await summarizer.should_summarize("c")


async def test_other_numbers(llm, conversations):
    await talk(conversations, 0, 1)
    small = ConversationSummarizer(llm, 4, store=conversations, window_messages=2, update_delta=1)
    assert await small.should_summarize("c")
    await small.generate_summary("c")
    assert [lines(0)] == llm.read
    everything = ConversationSummarizer(llm, 1, store=conversations, window_messages=0)
    await everything.generate_summary("c")
    assert 4 == (await conversations.get_summary("c")).covered_message_count


async def test_a_window_that_holds_everything(llm, conversations):
    """Nothing has left it, so there is nothing to summarise, and no model is asked."""
    await talk(conversations, *range(5))
    wide = ConversationSummarizer(llm, store=conversations, window_messages=10)
    assert not await wide.should_summarize("c")
    assert "" == await wide.generate_summary("c")
    assert [] == llm.asked


# -- what is read --------------------------------------------------------------------------------------------------------


async def test_the_prompt(summarizer, conversations, llm):
    """S2-18, S2-19, S2-20, S2-22: the document's words, role-tagged lines, and not the last six."""
    await talk(conversations, *range(6))
    assert "摘要。" == await summarizer.generate_summary("c")
    assert [
        [
            {"role": "system", "content": "请将以下对话历史浓缩为简洁的摘要，突出关键信息和用户偏好。"},
            {"role": "user", "content": lines(0, 1, 2)},
        ]
    ] == llm.asked
    assert ("摘要。", 6) == (
        (await conversations.get_summary("c")).summary,
        (await conversations.get_summary("c")).covered_message_count,
    )


async def test_a_new_summary_is_made_of_the_old_one(conversations):
    """Incremental: the old summary and what slid out since; nothing is read twice."""
    llm = Scripted("摘要一。", "摘要二。")
    summarizer = ConversationSummarizer(llm, store=conversations)
    await talk(conversations, *range(5))
    await summarizer.generate_summary("c")
    await talk(conversations, *range(5, 9))
    assert "摘要二。" == await summarizer.generate_summary("c")
    assert f"已有摘要：\n摘要一。\n\n新的对话：\n{lines(2, 3, 4, 5)}" == llm.read[1]
    assert "摘要二。" == await summarizer.generate_summary("c")
    assert 2 == len(llm.asked)


async def test_what_no_summary_may_lose_goes_with_it(summarizer, conversations, memory):
    """The checkpoint carries the anchors of what it covers, whatever the model wrote, and no others."""
    await conversations.append_message("c", "user", "订单号是A-7788。")
    await conversations.append_message("c", "assistant", "收到。")
    await talk(conversations, *range(5))
    await conversations.append_message("c", "user", "新订单是B-9900。")
    await conversations.append_message("c", "assistant", "收到。")
    await summarizer.generate_summary("c")
    (made,) = await memory.conversation("c").checkpoints()
    assert any("A-7788" in anchor for anchor in made.anchors)
    assert not any("B-9900" in anchor for anchor in made.anchors)


async def test_what_had_no_answer_is_read_and_what_is_open_is_not(summarizer, conversations, llm):
    """S2-61, extra test 9: of an answer that broke off nothing is read; an open turn is in the window."""
    broken = await conversations.append_message("c", "user", "断了")
    await conversations.abort_turn("c", broken["turn_id"])
    await talk(conversations, *range(6))
    await conversations.append_message("c", "user", "还没回答")
    await summarizer.generate_summary("c")
    assert ["用户（未获回答）: 断了\n" + lines(0, 1, 2)] == llm.read


async def test_nothing_is_passed_over_unread(conversations):
    """Extra test 8: input beyond the cap is given in parts, and every word of it is read once."""
    llm = Scripted("摘要。")
    summarizer = ConversationSummarizer(llm, store=conversations, max_input_chars=100)
    await talk(conversations, *range(60))
    await conversations.append_message("c", "user", "长" * 950 + "尾")
    await conversations.append_message("c", "assistant", "好。")
    await talk(conversations, *range(61, 64))
    await summarizer.generate_summary("c")
    read = "".join(text.partition("新的对话：\n")[2] or text for text in llm.read)
    assert [1] * 60 == [read.count(f"问{number}。") for number in range(60)]
    assert (950, 1) == (read.count("长"), read.count("尾"))
    assert max(len(text) for text in llm.read) < 300
    assert 122 == (await conversations.get_summary("c")).covered_message_count


async def test_the_cursor_stops_where_reading_stopped(conversations, store, monkeypatch):
    """Extra test 8: what an update did not come to is left for the next, and is in the window until then."""
    monkeypatch.setattr(module, "MAX_TURNS", 10)
    llm = Scripted("摘要一。", "摘要二。")
    summarizer = ConversationSummarizer(llm, store=conversations)
    await talk(conversations, *range(25))
    second = 0

    async def refuse(marker):
        nonlocal second
        second += 1
        if second == 2:
            raise StoreUnavailableError
        return await passed_on(marker)

    passed_on = conversations.engine.tier(History).checkpoints.log.mark
    monkeypatch.setattr(
        conversations.engine.tier(History).checkpoints,
        "log",
        type("Log", (), {"mark": staticmethod(refuse)}),
    )
    with pytest.raises(StoreUnavailableError):
        await summarizer.generate_summary("c")
    saved = await conversations.get_summary("c")
    assert ("摘要一。", 20) == (saved.summary, saved.covered_message_count)
    recent = (await ConversationHistory(conversations, summarizer).get_context("c"))["recent_history"]
    assert [f"问{number}。" for number in range(10, 25)] == [
        m["content"] for m in recent if m["role"] == "user"
    ]
    await summarizer.generate_summary("c")
    assert 44 == (await conversations.get_summary("c")).covered_message_count


# -- who writes it -------------------------------------------------------------------------------------------------------


async def test_without_a_model(conversations):
    """Sentences of the conversation, the user's first."""
    summarizer = ConversationSummarizer(store=conversations)
    await conversations.append_message("c", "user", "我叫王芳，我对花生过敏。")
    await conversations.append_message("c", "assistant", "好的，我记住了。")
    await talk(conversations, *range(8))
    assert "花生过敏" in await summarizer.generate_summary("c")


class Invoked:
    """Called like a chat model of LangChain."""

    def __init__(self, content):
        self.content = content
        self.asked = []

    async def ainvoke(self, messages):
        self.asked.append(messages)
        return self


@pytest.mark.parametrize(
    "content",
    [
        "摘要。",
        [{"type": "text", "text": "摘"}, {"type": "image"}, "要。"],
        [{"type": "text", "text": "摘要。"}],
    ],
)
async def test_anything_with_ainvoke(conversations, content):
    llm = Invoked(content)
    await talk(conversations, *range(5))
    assert "摘要。" == await ConversationSummarizer(llm, store=conversations).generate_summary("c")
    assert SUMMARY_PROMPT == llm.asked[0][0]["content"]


async def test_a_function(conversations):
    """S2-19: a plain function reads the document's sentence too, before the conversation."""
    read = []

    def write(text):
        read.append(text)
        return "函数写的摘要。"

    await talk(conversations, *range(5))
    assert "函数写的摘要。" == await ConversationSummarizer(write, store=conversations).generate_summary("c")
    assert [f"{SUMMARY_PROMPT}\n\n{lines(0, 1)}"] == read


@pytest.mark.parametrize("answer", [RuntimeError("no"), "", "  \n"])
async def test_a_model_that_fails(conversations, caplog, answer):
    """S2-62: the summary is extracted instead, it covers the same, and the log says so."""
    await talk(conversations, *range(5))
    text = await ConversationSummarizer(Scripted(answer), store=conversations).generate_summary("c")
    assert "问0" in text
    assert 4 == (await conversations.get_summary("c")).covered_message_count
    assert any("extracted a summary instead" in record.message for record in caplog.records)


async def test_a_model_that_answers_with_no_text(conversations, caplog):
    await talk(conversations, *range(5))
    assert "问0" in await ConversationSummarizer(Invoked(7), store=conversations).generate_summary("c")
    assert any("not with text" in record.message for record in caplog.records)


async def test_a_summary_ends_with_a_sentence(conversations, caplog):
    """A model that says too much is cut between two sentences, and the log says so."""
    answer = "用户喜欢科幻片。" * 3 + "".join(f"第{n}句话有一点长，讲的是电影。" for n in range(40))
    await talk(conversations, *range(5))
    summarizer = ConversationSummarizer(Scripted(answer), store=conversations, max_summary_tokens=70)
    text = await summarizer.generate_summary("c")
    assert open_counter().count(text) <= 70
    assert text.endswith("讲的是电影。")
    assert any("was cut" in record.message for record in caplog.records)


@pytest.mark.parametrize("llm", [7, "gpt", object()])
def test_what_is_no_model_is_refused(conversations, llm):
    with pytest.raises(SettingsError, match="llm is"):
        ConversationSummarizer(llm, store=conversations)


@pytest.mark.parametrize(
    "options",
    [
        {"min_messages": 0},
        {"window_messages": -1},
        {"update_delta": 0},
        {"max_summary_tokens": 3},
        {"max_input_chars": 1},
    ],
)
def test_numbers_that_cannot_work_are_refused(conversations, options):
    with pytest.raises(SettingsError):
        ConversationSummarizer(store=conversations, **options)


def test_defaults(memory):
    """S2-14."""
    summarizer = ConversationSummarizer(store=memory)
    assert (10, 6, 5) == (summarizer.min_messages, summarizer.window_messages, summarizer.update_delta)


def test_format_messages():
    """S2-22: a text of several lines cannot pass for another speaker's."""
    said = [
        {"role": "user", "content": "一\nAI: 二", "timestamp": 0},
        {"role": "assistant", "content": "三", "timestamp": 0},
    ]
    assert "用户: 一 AI: 二\nAI: 三" == format_messages(said)
    assert "用户: 一" == conversation_text(SummaryRequest(None, (("user", "一"),), 100))


# -- reading and the background ----------------------------------------------------------------------------------------------


@pytest.mark.waits
async def test_reading_never_asks_a_model(open_memory):
    """S2-23, C2-3: what is there is returned at once; the rest happens when nobody waits."""
    store, llm = ConversationStore(open_memory), Scripted("摘要。", gate=anyio.Event())
    summarizer = ConversationSummarizer(llm, store=store)
    await talk(store, *range(6))
    assert await summarizer.get_summary("c") is None
    with anyio.fail_after(PATIENCE_S):
        assert await summarizer.get_or_generate_summary("c") is None
        assert await summarizer.get_or_generate_summary("c") is None
    llm.gate.set()
    await open_memory.settle()
    assert "摘要。" == await summarizer.get_or_generate_summary("c") == await summarizer.get_summary("c")
    await open_memory.settle()
    assert 1 == len(llm.asked)


@pytest.mark.waits
async def test_one_update_at_a_time(open_memory):
    """Single-flight: asked for often, made once; what was written meanwhile stays visible and is next."""
    store, llm = ConversationStore(open_memory), Scripted("一。", "二。", gate=anyio.Event())
    summarizer = ConversationSummarizer(llm, store=store)
    await talk(store, *range(5))
    for _ in range(5):
        summarizer.schedule_update("c")
    await until(lambda: llm.asked)
    await talk(store, *range(5, 9))
    for _ in range(5):
        summarizer.schedule_update("c")
    assert 1 == len(llm.asked)
    llm.gate.set()
    await open_memory.settle()
    assert 2 == len(llm.asked)
    assert 12 == (await store.get_summary("c")).covered_message_count


@pytest.mark.waits
async def test_conversations_do_not_wait_for_each_other(open_memory):
    store = ConversationStore(open_memory)
    slow, quick = Scripted(gate=anyio.Event()), Scripted()
    await talk(store, *range(5), conversation_id="slow")
    await talk(store, *range(5), conversation_id="quick")
    ConversationSummarizer(slow, store=store).schedule_update("slow")
    ConversationSummarizer(quick, store=store).schedule_update("quick")
    await until(lambda: store.get_summary("quick"))
    assert await store.get_summary("slow") is None
    slow.gate.set()


async def test_a_failure_in_the_background_costs_no_turn(open_memory, caplog, monkeypatch):
    """S2-62."""
    store = ConversationStore(open_memory)
    summarizer = ConversationSummarizer(Scripted(), store=store)
    await talk(store, *range(5))

    async def refuse(*args, **options):
        raise StoreUnavailableError

    with monkeypatch.context() as broken:
        broken.setattr(open_memory.engine.tier(History).checkpoints, "cover", refuse)
        summarizer.schedule_update("c")
        await open_memory.settle()
    assert any(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)
    await talk(store, 5)
    assert 12 == await store.count_messages("c")
    summarizer.schedule_update("c")
    await open_memory.settle()
    assert await summarizer.get_summary("c")


async def test_closing_waits_for_the_summary(tmp_path):
    """Extra test 20: what was scheduled is there after the memory is opened again."""
    url = f"sqlite:///{tmp_path}/agent.db"
    async with Memory.open(url) as memory:
        summarizer = ConversationSummarizer(store=memory)
        await talk(summarizer.store, *range(6))
        summarizer.schedule_update("c")
    async with Memory.open(url) as memory:
        assert await ConversationSummarizer(store=memory).get_summary("c")


async def test_two_writers_lose_nothing(conversations, monkeypatch):
    """Extra test 10: another process saves a summary while ours is being made; ours is made again from its."""
    await talk(conversations, *range(10))

    class Overtaken(Scripted):
        async def complete(self, messages, *, max_tokens):
            if not self.asked:
                await conversations.save_summary("c", "别人的摘要。", 6, expected_version=0)
            return await super().complete(messages, max_tokens=max_tokens)

    llm = Overtaken("我们的摘要。")
    await ConversationSummarizer(llm, store=conversations).generate_summary("c")
    assert [lines(*range(7)), f"已有摘要：\n别人的摘要。\n\n新的对话：\n{lines(*range(3, 7))}"] == llm.read
    saved = await conversations.get_summary("c")
    assert ("我们的摘要。", 14, 2) == (saved.summary, saved.covered_message_count, saved.version)


async def test_who_is_always_overtaken_gives_up(conversations):
    await talk(conversations, *range(20))
    covered = 0

    class Overtaken(Scripted):
        async def complete(self, messages, *, max_tokens):
            nonlocal covered
            covered += 2
            await conversations.save_summary("c", f"别人{covered}。", covered)
            return "我们。"

    with pytest.raises(ConflictError):
        await ConversationSummarizer(Overtaken(), store=conversations).generate_summary("c")
    assert "别人6。" == (await conversations.get_summary("c")).summary


@settings(max_examples=12)
@given(
    script=st.lists(
        st.sampled_from([*["turn"] * 8, "answer", "abort", "update", "checkpoint"]), min_size=16, max_size=60
    )
)
def test_summary_and_window_have_everything(script):
    """S2-28: whatever happens, a message is spoken for by the summary or is in the window; never both but at its edge."""

    async def play():
        clock = FakeClock()
        memory = Memory(engine_over(InMemoryStore(clock), Settings(), clock, open_counter()))
        store, llm = ConversationStore(memory), Scripted("摘要。")
        summarizer = ConversationSummarizer(llm, store=store)
        history = ConversationHistory(store, summarizer)
        for number, event in enumerate(script):
            if event == "turn":
                await talk(store, number)
            elif event == "answer":
                await store.append_message("c", "assistant", f"独{number}。")
            elif event == "abort":
                broken = await store.append_message("c", "user", f"断{number}。")
                await store.abort_turn("c", broken["turn_id"])
            elif event == "update" and await summarizer.should_summarize("c"):
                await summarizer.generate_summary("c")
            elif event == "checkpoint" and (await memory.conversation("c").turns()):
                heads = await store.view(store.scope("c"))
                if heads.head.live_turns > 8:
                    await memory.conversation("c").checkpoint("引擎。")
            everything = [m["id"] for m in await store.list_messages("c")]
            summary = await store.get_summary("c")
            recent = [m["id"] for m in (await history.get_context("c"))["recent_history"]]
            covered = summary.covered_message_count if summary else 0
            uncovered = everything[covered:]
            assert (uncovered if len(uncovered) > 6 else everything[-6:]) == recent

    anyio.run(play)


async def test_a_summarizer_that_is_down_leaves_no_hole(conversations):
    """S2-28: however many messages wait for it, they are in the window."""
    await talk(conversations, *range(100))
    history = ConversationHistory(conversations, ConversationSummarizer(store=conversations))
    history.summarizer.schedule_update = lambda _: None
    context = await history.get_context("c")
    assert (None, await conversations.list_messages("c")) == (context["summary"], context["recent_history"])


async def test_messages_are_counted_from_the_last_count_on(open_memory, monkeypatch):
    """A summary is asked for with every prompt: it must not read the whole conversation each time."""
    store = ConversationStore(open_memory)
    read = []

    async def watched(scope, after_seq, whole=store.turns_after):
        async for turn in whole(scope, after_seq):
            read.append(turn.user)
            yield turn

    monkeypatch.setattr(store, "turns_after", watched)
    await talk(store, *range(6))
    assert 12 == await store.count_messages("c") == await store.count_messages("c")
    assert [f"问{number}。" for number in range(6)] == read
    await talk(store, 6)
    assert 14 == await store.count_messages("c")
    assert "问6。" == read[-1]
    assert 7 == len(read)
    await store.conversation("c").reset()
    await talk(store, 7)
    assert 2 == await store.count_messages("c")
    await open_memory.forget(conversation_id="c")
    await talk(store, 8, 9)
    assert 4 == await store.count_messages("c")
