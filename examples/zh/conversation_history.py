"""A movie assistant that looks back on a long conversation, offline, with a scripted model in place of a real one.

The same questions are put to three assistants over one conversation: the baseline sees the last six messages, the second has a
summary of what came before, the third also recalls past turns that the question touches.

    python examples/zh/conversation_history.py [URL]

URL may be PostgreSQL's: the conversation is the same.
"""

import re
import sys
import tempfile

import anyio

from pagefile import Memory
from pagefile.standalone import (
    ConversationEpisodicMemory,
    ConversationHistory,
    ConversationStore,
    ConversationSummarizer,
    PromptMessage,
)

SYSTEM = "你是一个电影助手。"
CONVERSATION = "movie-night"

#: What must not be forgotten, and what the model is to find in its prompt when it is asked.
BEGINNING = (
    ("你好，我叫王芳，我只看有中文字幕的电影。", "您好王芳，以后只推荐有中文字幕的电影。"),
    ("我想看90年代的科幻电影，有什么推荐？", "科幻电影里，《黑客帝国》和《十二猴子》都是90年代的经典。"),
    ("《盗梦空间》的导演是谁？", "《盗梦空间》的导演是克里斯托弗·诺兰。"),
)
TOWNS = ("成都", "杭州", "西安", "南京", "厦门", "昆明", "青岛", "苏州", "长沙", "大连")


def small_talk(number: int) -> tuple[str, str]:
    """Turns about something else."""
    town = TOWNS[number % len(TOWNS)]
    return f"第{number}站去{town}，带伞吗？", f"{town}那天多云，气温{15 + number % 12}度，不用带伞。"


#: Where in the conversation a question comes: ten turns after the director, and at turn 120.
QUESTIONS = {
    13: "刚才说的那个导演是谁？",
    60: "回到之前讨论的科幻电影话题",
    119: "怎样给自行车换轮胎？",
    120: "我叫什么名字，看电影有什么要求？",
}


def call_llm(prompt: list[PromptMessage]) -> str:
    """Stands for a language model: it knows what the prompt says, and nothing else."""
    *known, question = [message["content"] for message in prompt]
    context = "\n".join(known)
    if "导演" in question:
        found = re.search(r"导演是([^。？→\s]{4,})。", context)
        return f"是{found[1]}。" if found else "抱歉，我不记得您说的是哪位导演。"
    if "科幻" in question:
        return (
            "好的，我们刚才说到《黑客帝国》和《十二猴子》。"
            if "《黑客帝国》" in context
            else "抱歉，请再说一遍想看什么。"
        )
    if "我叫什么" in question:
        return (
            "您叫王芳，只看有中文字幕的电影。"
            if "王芳" in context and "中文字幕" in context
            else "抱歉，我不知道。"
        )
    return "先用撬胎棒取下外胎，再换上新的内胎。"


async def main(url: str) -> None:
    async with Memory.open(url) as memory:
        store = ConversationStore(memory)
        summarizer = ConversationSummarizer(store=store)
        assistants = {
            "最近6条": ConversationHistory(store),
            "加上摘要": ConversationHistory(store, summarizer),
            "加上摘要和召回": ConversationHistory(store, summarizer, ConversationEpisodicMemory(memory)),
        }
        for number in range(1, 121):
            if number in QUESTIONS:
                answer = await ask(assistants, number, QUESTIONS[number])
                user = QUESTIONS[number]
            else:
                user, answer = BEGINNING[number - 1] if number <= len(BEGINNING) else small_talk(number)
            # 用户消息先写入，回答完成后这一轮才进入窗口、摘要和召回
            asked = await store.append_message(CONVERSATION, "user", user)
            await store.append_message(CONVERSATION, "assistant", answer, turn_id=asked.get("turn_id"))
            # 后台更新摘要，没有人等它
            summarizer.schedule_update(CONVERSATION)
            await memory.settle()
        summary = await store.get_summary(CONVERSATION)
        if summary is not None:
            print(f"消息: {await store.count_messages(CONVERSATION)} 条")
            print(f"摘要: {len(summary.summary)} 字，覆盖 {summary.covered_message_count} 条")


async def ask(assistants: dict[str, ConversationHistory], number: int, question: str) -> str:
    """The answers of all assistants; the last one's is what was said."""
    print(f"第{number}轮 用户: {question}")
    answer = ""
    for name, history in assistants.items():
        prompt = await history.build_prompt(CONVERSATION, question, system_message=SYSTEM)
        recalled = [m["content"] for m in prompt if m["content"].startswith("【相关历史】")]
        answer = call_llm(prompt)
        lines = recalled[0].count("\n") if recalled else 0
        print(f"  {name}: {answer} （召回 {lines} 轮）")
    print()
    return answer


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(main, sys.argv[1] if sys.argv[1:] else f"sqlite:///{folder}/agent.db")
