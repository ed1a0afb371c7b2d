"""Document 002's handler: baseline, summary and recall, each with and without the others."""

import re
import subprocess
import sys
from itertools import product

import pytest

from pagefile import SettingsError
from pagefile.errors import StoreUnavailableError
from pagefile.standalone import (
    ConversationEpisodicMemory,
    ConversationHistory,
    ConversationStore,
    ConversationSummarizer,
)

TALK = (
    ("我想看90年代的科幻电影，有什么推荐？", "《黑客帝国》和《十二猴子》都很经典。"),
    ("《盗梦空间》的导演是谁？", "《盗梦空间》的导演是克里斯托弗·诺兰。"),
    ("附近停车方便吗？", "楼下有地下停车场。"),
    ("餐厅几点关门？", "晚上十点。"),
    ("好的", "不客气。"),
    ("可以带宠物吗？", "露台可以。"),
    ("有包间吗？", "有两个，需要预订。"),
    ("人均多少钱？", "一百二十元。"),
    ("好的", "不客气。"),
    ("明天有高铁吗？", "上午九点有一趟。"),
)


async def talk(store, conversation_id="c", said=TALK):
    for user, assistant in said:
        await store.append_message(conversation_id, "user", user)
        await store.append_message(conversation_id, "assistant", assistant)


def texts(messages):
    return [message["content"] for message in messages]


@pytest.fixture
async def conversations(memory):
    store = ConversationStore(memory)
    await talk(store)
    return store


@pytest.fixture
def episodes(memory):
    return ConversationEpisodicMemory(memory)


RECENT = [text for turn in TALK[-3:] for text in turn]


async def test_the_baseline(conversations):
    """S2-01: the newest six, in their order, and nothing else."""
    history = ConversationHistory(conversations)
    assert RECENT == texts(await history.get_recent_history("c"))
    assert RECENT == texts(await history.get_hybrid_history("c", "那个导演是谁？"))
    prompt = await history.build_prompt("c", "那个导演是谁？", system_message="s")
    assert ["s", *RECENT, "那个导演是谁？"] == texts(prompt)


async def test_a_short_conversation_is_the_baseline(memory):
    """S2-02, S2-28: below ten messages there is no summary, and what the baseline would drop is before it."""
    store = ConversationStore(memory)
    plain = ConversationHistory(store)
    with_summaries = ConversationHistory(store, ConversationSummarizer(store=store))
    for number in range(1, 5):
        await talk(store, said=TALK[number - 1 : number])
        everything, context = await store.list_messages("c"), await with_summaries.get_context("c")
        baseline = (await plain.get_context("c"))["recent_history"]
        assert (None, everything) == (context["summary"], context["recent_history"])
        assert baseline == context["recent_history"][-6:]


async def test_the_context(conversations):
    """S2-24: its two keys; the summary and the recent messages have everything."""
    summarizer = ConversationSummarizer(lambda _: "聊过诺兰。", store=conversations)
    await summarizer.generate_summary("c")
    history = ConversationHistory(conversations, summarizer)
    context = await history._get_context("c")
    assert ["summary", "recent_history"] == list(context)
    assert ("聊过诺兰。", RECENT) == (context["summary"], texts(context["recent_history"]))
    await talk(conversations, said=TALK[:2])
    # Four messages have left the window and are in no summary yet.
    assert RECENT + [text for turn in TALK[:2] for text in turn] == texts(
        (await history.get_context("c"))["recent_history"]
    )


async def test_hybrid(conversations, episodes):
    """S2-30, S2-37, S2-38: what the question touches, then the newest six."""
    history = ConversationHistory(conversations, episodic_memory=episodes)
    found = await history._get_hybrid_history("c", "刚才说的那个导演是谁？")
    assert (list(TALK[1]), RECENT) == (texts(found)[:2], texts(found)[-6:])
    assert [True] * (len(found) - 6) + [None] * 6 == [message.get("recalled") for message in found]
    assert len(found) == len({message["id"] for message in found})


async def test_three_turns_are_recalled_and_no_more(conversations, episodes):
    """S2-37: whole turns, the document's three unless said otherwise."""
    films = [(f"第{n}部《星河》的导演是谁？", f"第{n}位导演。") for n in range(6)]
    await talk(conversations, "d", [*films, *TALK[-3:]])
    for options, most in (({}, 3), ({"top_k": 1}, 1)):
        history = ConversationHistory(conversations, episodic_memory=episodes, **options)
        found = await history.get_hybrid_history("d", "刚才说的《星河》的导演是谁？")
        assert ["user", "assistant"] * (most + 3) == [message["role"] for message in found]


async def test_recent_turns_keep_no_older_one_out(conversations, episodes):
    """Where the newest turns answer as well, those before them are recalled all the same."""
    films = [(f"第{n}部《星河》的导演是谁？", f"第{n}位导演。") for n in range(6)]
    await talk(conversations, "d", [*TALK[2:6], *films[:3], *TALK[5:9], *films[3:]])
    history = ConversationHistory(conversations, episodic_memory=episodes)
    found = texts(await history.get_hybrid_history("d", "刚才说的《星河》的导演是谁？"))
    assert [text for film in films[3:] for text in film] == found[-6:]
    assert {text for film in films[:3] for text in film} == set(found[:-6])


async def test_back_to_a_topic(conversations, episodes):
    """S2-09, S2-39."""
    history = ConversationHistory(conversations, episodic_memory=episodes)
    assert TALK[0][0] in texts(await history.get_hybrid_history("c", "回到之前讨论的科幻电影话题"))


@pytest.mark.parametrize("query", ["怎样给自行车换轮胎？", "量子计算机的原理是什么", "  "])
async def test_an_unrelated_question_adds_nothing(conversations, episodes, query):
    """S2-40."""
    history = ConversationHistory(conversations, episodic_memory=episodes)
    assert RECENT == texts(await history.get_hybrid_history("c", query))


async def test_what_is_recent_is_not_recalled(conversations, episodes):
    history = ConversationHistory(conversations, episodic_memory=episodes)
    found = await history.get_hybrid_history("c", "明天有高铁吗？")
    assert RECENT == texts(found)[-6:]
    assert 1 == texts(found).count("上午九点有一趟。")


@pytest.mark.parametrize("phases", [True, False])
async def test_safety_data_is_in_every_prompt(conversations, episodes, memory, phases):
    """S1-83: with the baseline too, and as the engine's own windows have it."""
    chat = memory.conversation("c")
    await chat.put_session({"user_snapshot": {"allergies": ["青霉素"], "history": ["高血压"]}})
    history = ConversationHistory(conversations, episodic_memory=episodes if phases else None)
    prompt = await history.build_prompt("c", "头疼吃什么药？", system_message="S")
    safety = "过敏史: 青霉素\n慢病史: 高血压"
    assert safety in str((await chat.context("头疼吃什么药？")).parts.profile)
    assert f"S\n\n{safety}" in prompt[0]["content"]


async def test_recall_of_the_log(conversations, episodes, memory):
    """S2-35, S2-36: two messages a turn, the user's first; of this conversation alone; nothing to index."""
    await talk(conversations, "o'b\"", [("《沙丘》的导演是谁？", "维伦纽瓦。")])
    await episodes.index_episode("c", "没有写进日志", "不会出现")
    found = await episodes.recall_relevant("c", "导演是谁", top_k=1)
    assert [("user", TALK[1][0]), ("assistant", TALK[1][1])] == [(m["role"], m["content"]) for m in found]
    said_at = (await memory.conversation("c").turns())[1].at
    assert [int(said_at.timestamp())] * 2 == [message["timestamp"] for message in found]
    assert ["《沙丘》的导演是谁？", "维伦纽瓦。"] == texts(
        await episodes.recall_relevant("o'b\"", "导演是谁")
    )
    assert [] == await episodes.recall_relevant("c' or '1'=='1", "导演是谁")


async def test_what_had_no_answer_is_recalled_by_what_the_user_said(conversations, episodes):
    """S2-61 is about the assistant's words; the user's count although the answer broke off."""
    broken = await conversations.append_message("c", "user", "《星际穿越》的作曲家是谁？")
    assert [] == await episodes.recall_relevant("c", "星际穿越 作曲家")
    await conversations.abort_turn("c", broken["turn_id"])
    found = await episodes.recall_relevant("c", "星际穿越 作曲家")
    assert [("user", "《星际穿越》的作曲家是谁？")] == [(one["role"], one["content"]) for one in found[:1]]


@pytest.mark.parametrize(("phase_1", "phase_2"), list(product([False, True], repeat=2)))
async def test_the_phases_are_independent(conversations, episodes, phase_1, phase_2):
    """S2-58, S2-59: each may be switched on and off by itself."""
    summarizer = ConversationSummarizer(lambda _: "摘要。", store=conversations)
    await summarizer.generate_summary("c")
    history = ConversationHistory(
        conversations, summarizer if phase_1 else None, episodes if phase_2 else None
    )
    prompt = texts(await history.build_prompt("c", "刚才说的那个导演是谁？", system_message="s"))
    assert phase_1 == ("对话背景：\n摘要。" in prompt)
    assert phase_2 == any(
        re.match(r"【相关历史】\n- \[[\d-]+\] 《盗梦空间》的导演是谁？ → ", text) for text in prompt
    )
    assert RECENT == prompt[-7:-1]


async def test_parts_that_fail_cost_their_own_block(conversations, memory, store, caplog):
    """S2-62: no summary, no recall, but an answer; it is in the log and in the counts."""
    history = ConversationHistory(
        conversations,
        Failing(store=conversations),
        ConversationEpisodicMemory(NoMilvus(), lambda text: [1.0]),
    )
    prompt = texts(await history.build_prompt("c", "那个导演是谁？", system_message="s"))
    assert ("s", RECENT) == (prompt[0].partition("\n")[0], prompt[-7:-1])
    assert {"summary": 1, "episodes": 1} == memory.engine.failures
    assert 2 == sum("going on without it" in record.message for record in caplog.records)


class Failing(ConversationSummarizer):
    async def get_summary(self, conversation_id):
        raise StoreUnavailableError


class NoMilvus:
    """A client that reaches nobody."""

    def __getattr__(self, verb):
        def fail(**arguments):
            raise ConnectionError(verb)

        return fail


def test_numbers_that_cannot_work_are_refused(memory):
    for options in ({"window_messages": 0}, {"top_k": 0}):
        with pytest.raises(SettingsError):
            ConversationHistory(memory, **options)


def test_nothing_else_is_imported():
    """S2-57: each phase works without the packages of the others; whoever has no Milvus or LangChain needs none."""
    script = "import sys, pagefile.standalone; print([m for m in sys.modules if m.startswith(('pymilvus', 'lang'))])"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "[]" == told.stdout.strip()
