"""A long conversation about films, looked back on: the director of ten turns ago, a topic to return to, the first turn."""

import pytest

from pagefile import Memory
from pagefile.standalone import (
    ConversationEpisodicMemory,
    ConversationHistory,
    ConversationStore,
    ConversationSummarizer,
)

DIRECTOR = ("《盗梦空间》的导演是谁？", "《盗梦空间》的导演是克里斯托弗·诺兰。")
TOPIC = ("我想看90年代的科幻电影，有什么推荐？", "《黑客帝国》和《十二猴子》都很经典。")
FIRST = ("我叫王芳，我对青霉素过敏。", "好的，我记住了。")
FOODS = ("豆腐", "米饭", "面条", "饺子", "青菜", "鸡汤", "苹果", "面包", "土豆", "西瓜")


class Talk:
    """A conversation as an application leads it: both messages of a turn, then the summary in the background."""

    def __init__(self, memory):
        self.memory = memory
        self.store = ConversationStore(memory)
        self.summarizer = ConversationSummarizer(store=self.store)
        self.baseline = ConversationHistory(self.store)
        self.history = ConversationHistory(self.store, self.summarizer, ConversationEpisodicMemory(memory))

    async def say(self, *turns):
        for user, assistant in turns:
            asked = await self.store.append_message("films", "user", user)
            await self.store.append_message("films", "assistant", assistant, turn_id=asked["turn_id"])
            self.summarizer.schedule_update("films")
        await self.memory.settle()

    async def small_talk(self, turns):
        for number in range(turns):
            food = FOODS[number % len(FOODS)]
            await self.say((f"第{number}顿吃{food}可以吗？", f"{food}可以，注意搭配。"))

    async def prompt(self, question, history=None):
        return await (history or self.history).build_prompt("films", question, system_message="你是电影助手")


def recalled(prompt):
    return [m["content"] for m in prompt if m["content"].startswith("【相关历史】")]


def text(prompt):
    return "\n".join(message["content"] for message in prompt[:-1])


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/films.db"


async def test_the_director_of_ten_turns_ago(url):
    """Forgotten by the baseline, recalled with question and answer."""
    async with Memory.open(url) as memory:
        talk = Talk(memory)
        await talk.say(TOPIC, DIRECTOR)
        await talk.small_talk(10)
        question = "刚才说的那个导演是谁？"
        assert "诺兰" not in text(await talk.prompt(question, talk.baseline))
        (block,) = recalled(await talk.prompt(question))
        assert f"{DIRECTOR[0]} → {DIRECTOR[1]}" in [line.partition("] ")[2] for line in block.splitlines()]


async def test_back_to_the_topic(url):
    """Also after the application was started again."""
    async with Memory.open(url) as memory:
        talk = Talk(memory)
        await talk.say(TOPIC, DIRECTOR)
        await talk.small_talk(30)
    async with Memory.open(url) as memory:
        talk = Talk(memory)
        question = "回到之前讨论的科幻电影话题"
        assert "黑客帝国" not in text(await talk.prompt(question, talk.baseline))
        block = recalled(await talk.prompt(question))[0]
        assert f"{TOPIC[0]} → {TOPIC[1]}" in [line.partition("] ")[2] for line in block.splitlines()]


async def test_the_first_turn_at_turn_120(url):
    """What was said once, 119 turns ago, is in the prompt; the prompt has not grown with the conversation."""
    async with Memory.open(url) as memory:
        talk = Talk(memory)
        await talk.say(FIRST)
        await talk.small_talk(28)
        question = "我对青霉素过敏吗？"
        assert "青霉素" not in text(await talk.prompt(question, talk.baseline))
        assert FIRST[0] in text(await talk.prompt(question))
        at_30 = len(text(await talk.prompt(question)))
        await talk.small_talk(90)
        assert 238 == await talk.store.count_messages("films")
        assert FIRST[0] in text(await talk.prompt(question))
        assert len(text(await talk.prompt(question))) < at_30 + 1000


async def test_an_unrelated_question_adds_nothing(url):
    """Also where it shares words with what was said."""
    async with Memory.open(url) as memory:
        talk = Talk(memory)
        await talk.say(TOPIC, DIRECTOR)
        await talk.small_talk(12)
        for question in ("怎样给自行车换轮胎？", "有什么推荐的自行车吗？", "自行车可以带上高铁吗？"):
            assert [] == recalled(await talk.prompt(question))


async def test_a_stream_that_broke_off(url):
    """The half answer is nowhere; what the user said is known before and after a restart."""
    async with Memory.open(url) as memory:
        talk = Talk(memory)
        await talk.say(TOPIC, DIRECTOR)
        broken = await talk.store.append_message("films", "user", "《沙丘》的作曲家汉斯·季默还写过什么？")
        await talk.store.abort_turn("films", broken["turn_id"])
        await talk.store.append_message("films", "user", "《沙丘》的服装是谁设计的？")
    async with Memory.open(url) as memory:
        talk = Talk(memory)
        assert "沙丘》的服装" in text(await talk.prompt("继续"))
        await talk.small_talk(12)
        prompt = await talk.prompt("之前说的《沙丘》呢？")
        assert "汉斯·季默" in text(prompt)


async def test_the_prompt_has_its_order(url):
    """System, what is known, the summary, what was recalled, recent messages, the question."""
    async with Memory.open(url) as memory:
        talk = Talk(memory)
        await talk.say(FIRST, TOPIC, DIRECTOR)
        await talk.small_talk(10)
        prompt = await talk.history.build_prompt(
            "films", "那个导演是谁？", system_message="你是电影助手", memory_context="喜欢科幻片"
        )
        heads = [message["content"].partition("\n")[0] for message in prompt]
        assert ["你是电影助手", "长期记忆：", "对话背景：", "【相关历史】"] == heads[:4]
        assert "那个导演是谁？" == heads[-1]
        assert ["system"] * 4 == [message["role"] for message in prompt[:4]]
        assert ["user", "assistant"] * 3 == [message["role"] for message in prompt[-7:-1]]


async def test_a_langchain_model(url):
    """LangChain's chat models write the summary and take the prompt, and nothing of ours needs them."""
    models = pytest.importorskip("langchain_core.language_models.fake_chat_models")
    async with Memory.open(url) as memory:
        talk = Talk(memory)
        talk.summarizer = ConversationSummarizer(
            models.FakeListChatModel(responses=["用户想看科幻电影，喜欢诺兰。"]), store=talk.store
        )
        talk.history = ConversationHistory(talk.store, talk.summarizer)
        await talk.say(TOPIC, DIRECTOR)
        await talk.small_talk(4)
        prompt = await talk.prompt("推荐一部电影")
        assert "对话背景：\n用户想看科幻电影，喜欢诺兰。" == prompt[1]["content"]
        answer = await models.FakeListChatModel(responses=["《星际穿越》"]).ainvoke(prompt)
        assert "《星际穿越》" == answer.content
