"""Time in questions, in windows and in prompts: which day is meant, and whether the model is told the day."""

import re
from datetime import UTC, datetime, timedelta, timezone

import anyio
import pytest
from langchain_core.messages import HumanMessage

from pagefile import Memory, Settings
from pagefile.integrations.langgraph import build_conversation_graph
from pagefile.standalone import (
    AgentApp,
    ConversationEpisodicMemory,
    ConversationHistory,
    ConversationStore,
    ConversationSummarizer,
)
from pagefile.testing import FakeClock
from tests.findings.marks import finding

from .small_talk import SMALL_TALK

#: A Wednesday.
NOW = datetime(2026, 6, 17, 10, tzinfo=UTC)
SHANGHAI = timezone(timedelta(hours=8))


def morning(day):
    return datetime.fromisoformat(f"{day}T08:00:00+00:00")


async def chatter(chat, turns=40):
    """Talk of this morning that has nothing to do with anything."""
    for number in range(turns):
        at = NOW - timedelta(minutes=turns - number)
        await chat.record(*SMALL_TALK[number % len(SMALL_TALK)], at=at)


@pytest.fixture
async def memory(sqlite_url):
    async with Memory.open(sqlite_url, clock=FakeClock(NOW)) as memory:
        yield memory


@pytest.fixture
def chat(memory):
    return memory.conversation("c", user_id="u")


# -- F18: recall cuts before it filters ------------------------------------------------------------------------------------


@finding("history-F18")
@pytest.mark.parametrize(
    "question",
    ["5月20日发生了什么", "What did we talk about on May 20?", "你还记得我5月20号说了什么吗"],
)
async def test_the_only_turn_of_a_day_is_recalled(memory, chat, question):
    """The only turn of the day that a question names is recalled, however few turns are wanted."""
    await chat.record("和朋友吃了火锅", "听起来很棒", at=morning("2026-05-20"))
    await chatter(chat)
    await memory.settle()
    assert "火锅" in str([hit.text for hit in await chat.recall(question, 5)])


# -- F24: which days are meant ---------------------------------------------------------------------------------------------

#: Names of one length: otherwise shorter turns would rank higher by their words.
WALKS = {
    "2025-12-15": ("西湖", "the harbour"),
    "2026-01-05": ("东山", "the museum"),
    "2026-03-09": ("古城", "the library"),
    "2026-05-12": ("湿地", "the castle"),
    "2026-06-08": ("运河", "the market"),
    "2026-06-09": ("花圃", "the station"),
    "2026-06-10": ("北峰", "the tower"),
    "2026-06-12": ("灵隐", "the bridge"),
    "2026-06-14": ("钱塘", "the garden"),
    "2026-06-15": ("龙井", "the theatre"),
    "2026-06-16": ("孤山", "the beach"),
    "2026-06-17": ("断桥", "the bakery"),
}
UNDERSTOOD = {
    "昨天我散步到了哪里？": {"2026-06-16"},
    "上周三我散步到了哪里？": {"2026-06-10"},
    "3月9日我散步到了哪里？": {"2026-03-09"},
    "Where did I walk last Friday?": {"2026-06-12"},
}
IN_OTHER_WORDS = {
    "周一我散步到了哪里？": {"2026-06-15"},
    "9号我散步到了哪里？": {"2026-06-09"},
    "半年前我散步到了哪里？": {"2025-12-15"},
    "年初我散步到了哪里？": {"2026-01-05"},
    "Q1 我散步到了哪里？": {"2026-01-05", "2026-03-09"},
    "Where did I walk on Monday?": {"2026-06-15"},
    "Where did I walk last night?": {"2026-06-16"},
    "Where did I walk the day before yesterday?": {"2026-06-15"},
    "Where did I walk in may?": {"2026-05-12"},
    "Where did I walk on the 9th?": {"2026-06-09"},
}


@pytest.fixture(scope="module")
def days_recalled(tmp_path_factory):
    """For each question, the day of the turn that is recalled first."""
    return anyio.run(ask_all, f"sqlite:///{tmp_path_factory.mktemp('days')}/history.db")


async def ask_all(url):
    async with Memory.open(url, clock=FakeClock(NOW), embedder="none") as memory:
        chinese = memory.conversation("zh", user_id="u")
        english = memory.conversation("en", user_id="v")
        for day, (place, spot) in WALKS.items():
            await chinese.record(f"我散步到了{place}", "好的", at=morning(day))
            await english.record(f"I walked to {spot}", "Nice", at=morning(day))
        await memory.settle()
        days = {}
        for question in (*UNDERSTOOD, *IN_OTHER_WORDS):
            hits = await (english if "walk" in question else chinese).recall(question, 3)
            days[question] = f"{hits[0].at:%Y-%m-%d}" if hits else None
        return days


@finding("history-F24")
@pytest.mark.parametrize("question", UNDERSTOOD)
async def test_a_day_that_is_understood(days_recalled, question):
    """A question that names a day brings the turn of that day first."""
    assert days_recalled[question] in UNDERSTOOD[question]


@finding("history-F24")
@pytest.mark.parametrize("question", IN_OTHER_WORDS)
async def test_a_day_in_other_words(days_recalled, question):
    """A question that names a day or a time of the year in other words brings a turn of that time first."""
    assert days_recalled[question] in IN_OTHER_WORDS[question]


# -- F25: the turn of the day is in the window -------------------------------------------------------------------------

DAYS = {
    "2026-03-09": ("签了租房合同", "恭喜搬家"),
    "2026-05-12": ("今天买了新手机", "恭喜"),
    "2026-05-20": ("和朋友吃了火锅", "听起来很棒"),
    "2026-06-01": ("今天带孩子去了动物园", "孩子一定很开心"),
    "2026-06-10": ("我今天去爬了北高峰", "北高峰风景不错"),
    "2026-06-12": ("I finished the quarterly report", "Well done"),
    "2026-06-15": ("今天开了产品评审会", "辛苦了"),
    "2026-06-16": ("今天做了体检，抽了血", "注意休息"),
}


@finding("history-F25")
@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("上周三我做了什么？", "北高峰"),
        ("昨天我做了什么？", "体检"),
        ("我五月份买了什么？", "新手机"),
        ("What did I do last Friday?", "quarterly"),
        ("3月9日我签了什么", "租房"),
        ("上上周一我去了哪里", "动物园"),
        ("what did I buy in May?", "新手机"),
        ("前天我开了什么会", "评审"),
        ("六月十号我做了什么", "北高峰"),
        ("周一我做了什么", "评审"),
        ("What did I do the day before yesterday?", "评审"),
        ("5月20日发生了什么", "火锅"),
        ("上周我都做了些什么？", "北高峰"),
        ("what happened on June 12?", "quarterly"),
        ("上周三我们聊了什么？", "北高峰"),
        ("5月12日我们聊了什么", "新手机"),
        ("What did we talk about on June 10?", "北高峰"),
        ("你还记得我3月9号说了什么吗", "租房"),
    ],
)
async def test_the_turn_of_the_day_is_in_the_window(memory, chat, question, words):
    """A question about a day puts what was said on that day before the model."""
    for day, said in DAYS.items():
        await chat.record(*said, at=morning(day))
    await chatter(chat)
    await memory.settle()
    await chat.checkpoint("闲聊。", recent_turns=4)
    window = await chat.context(question)
    assert words in str(window.messages[:-1])


# -- F26: the user's time zone ---------------------------------------------------------------------------------------------


@finding("history-F26")
async def test_yesterday_is_the_users_yesterday(memory, chat):
    """Asked at 07:30 in Shanghai, "昨天" is the day before by the clock in Shanghai."""
    for day, food in ((15, "饺子"), (16, "烤鸭"), (17, "烤鱼")):
        at = datetime(2026, 6, day, 19, tzinfo=SHANGHAI)
        await chat.record(f"晚饭吃了{food}", "好的", at=at)
    await memory.settle()
    asked = datetime(2026, 6, 18, 7, 30, tzinfo=SHANGHAI)
    hits = await chat.recall("昨天晚饭吃了什么？", 3, at=asked)
    assert "烤鱼" in hits[0].text


# -- F27: the model is told when -------------------------------------------------------------------------------------------

QUESTION = "之前说的科幻电影，导演是谁？"


async def talk_of_films(memory, chat):
    await chat.record("推荐一部科幻电影", "推荐《星际穿越》，导演是诺兰。", at=morning("2026-03-01"))
    await chatter(chat)
    await memory.settle()
    await chat.checkpoint("闲聊。", recent_turns=4)


@finding("history-F27")
async def test_the_prompt_of_document_002_says_when(memory, chat):
    """What is recalled into document 002's prompt carries its date."""
    await talk_of_films(memory, chat)
    store = ConversationStore(memory)
    history = ConversationHistory(
        store, ConversationSummarizer(store=store), ConversationEpisodicMemory(store)
    )
    prompt = await history.build_prompt("c", QUESTION, system_message="你是电影助手。")
    recalled = [message["content"] for message in prompt if "星际穿越" in message["content"]]
    assert recalled
    assert "2026-03-01" in str(recalled)


@finding("history-F27")
async def test_the_prompt_of_the_graph_says_when(memory, chat):
    """What is recalled into the graph's prompt carries its date."""
    await talk_of_films(memory, chat)
    prompts = []

    def model(messages):
        prompts.append([str(message.content) for message in messages])
        return "诺兰。"

    graph = build_conversation_graph(memory, model=model)
    await graph.ainvoke({"messages": [HumanMessage(QUESTION)], "conversation_id": "c", "user_id": "u"})
    recalled = [text for text in prompts[-1] if "星际穿越" in text]
    assert recalled
    assert "2026-03-01" in str(recalled)


@finding("history-F27")
async def test_the_days_of_a_prompt_are_the_users(sqlite_url):
    """What was said at one o'clock in Shanghai is dated with the day there, by the conversation's time zone or the setting."""
    for settings, own in ((Settings(), "Asia/Shanghai"), (Settings(timezone="Asia/Shanghai"), None)):
        async with Memory.open(
            sqlite_url, settings=settings, clock=FakeClock(NOW), embedder="none"
        ) as memory:
            name = own or "by setting"
            chat = memory.conversation(name, timezone=own)
            await chat.record("凌晨下单了耳机", "好的", at=datetime(2026, 6, 1, 17, tzinfo=UTC))
            for number in range(8):
                await chat.record(f"闲聊{number}", "嗯")
            await memory.settle()
            history = ConversationHistory(
                ConversationStore(memory), None, ConversationEpisodicMemory(ConversationStore(memory))
            )
            prompt = await history.build_prompt(name, "我凌晨下单的耳机是哪款？", system_message="s")
        assert "[2026-06-02] 凌晨下单了耳机" in str(prompt)


@finding("history-F27")
async def test_a_window_says_when(memory, chat):
    """What is recalled into a window of the engine carries its date."""
    await talk_of_films(memory, chat)
    window = await chat.context(QUESTION)
    assert re.search(r"2026-03-01.{0,40}推荐一部科幻电影", str(window.messages))


@finding("history-F27")
async def test_a_window_says_what_day_it_is(chat):
    """The model is told today's date, so that it can make sense of "yesterday"."""
    await chat.record("昨天我去看了电影", "好看吗？", at=NOW)
    window = await chat.context("今天几号？")
    today = r"2026-06-17|2026年6月17日|17 June 2026|June 17,? 2026"
    assert re.search(today, str(window.messages[:-1]))


# -- F28: the same exchange five times -------------------------------------------------------------------------------------


@finding("history-F28")
async def test_an_exchange_that_was_said_often_is_once(memory, chat):
    """What was said five times word for word takes one place among what is recalled."""
    await chat.record("《盗梦空间》的导演是谁？", "克里斯托弗·诺兰。", at=morning("2026-03-01"))
    for day in range(2, 7):
        await chat.record("推荐一部科幻电影", "推荐《星际穿越》。", at=morning(f"2026-03-0{day}"))
    await chat.record("诺兰还拍过哪些科幻电影？", "《信条》《记忆碎片》。", at=morning("2026-03-09"))
    await chatter(chat)
    await memory.settle()
    await chat.checkpoint("闲聊。", recent_turns=4)
    window = await chat.context(QUESTION)
    assert 1 == str(window.messages[:-1]).count("推荐《星际穿越》。")


# -- F31: what came before a reset -----------------------------------------------------------------------------------------


@finding("history-F31")
async def test_a_reset_conversation_does_not_come_back_by_recall(memory, chat):
    """After a reset, nothing from before it is in a window of the conversation."""
    await chat.record("我的密码词是蓝色长颈鹿", "记住了。")
    await AgentApp(memory).delete_short_memory("c")
    await chat.record("你好", "你好，有什么可以帮您？")
    await memory.settle()
    window = await chat.context("之前说的密码词是什么？")
    assert "有什么可以帮您" in str(window.messages)
    assert "蓝色长颈鹿" not in str(window.messages)


# -- F33: questions that point at a turn in other words --------------------------------------------------------------------


@finding("history-F33")
@pytest.mark.parametrize("question", ["她的主刀医生姓什么", "where is my mother's eye operation?"])
async def test_an_operation_is_found_in_other_words(memory, chat, question):
    """A question in other words, or in another language, brings the turn that it is about."""
    said = ("我妈妈下周三要做白内障手术，在浙二医院，主刀是陈医生。", "白内障手术很成熟，祝顺利。")
    await chat.record(*said, at=morning("2026-04-01"))
    await chatter(chat)
    await memory.settle()
    await chat.checkpoint("闲聊。", recent_turns=4)
    window = await chat.context(question)
    assert "浙二医院" in str(window.messages[:-1])
