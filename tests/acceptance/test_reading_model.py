"""The archive of tool results, with a model that has no script: it knows only what its prompt says, and calls only what its prompt and its schemas name."""

import re
from dataclasses import dataclass, field

import pytest

from pagefile import Memory
from pagefile.standalone import HISTORY_TOOL_PROMPT, ToolResultManager, tool_schemas

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
UNKNOWN = "不知道"
#: What the search is asked for in the first turns, and the line of its result that is asked for later.
LIBRARY = {
    "权限管理的角色怎么配置": "管理员角色的编号为 4711。",
    "报销流程需要哪些发票": "餐饮发票的编号为 8632。",
    "年假制度怎么规定": "年假申请表的编号为 2053。",
}
#: In another order than fetched, so that neither the first nor the newest placeholder is right each time.
FOLLOW_UPS = {
    "之前查的报销流程里，餐饮发票的编号是多少？": "8632",
    "刚才年假制度说的，年假申请表的编号是多少？": "2053",
    "再看权限管理，管理员角色的编号是多少？": "4711",
}


def search_docs(question: str) -> str:
    """Some 20,000 characters on the subject, with the line in the middle."""
    half = "".join(f"第{n}条：{question[:4]}由部门{n}的负责人审核，{n % 30} 天内办结。\n" for n in range(400))
    return f"{half}{LIBRARY[question]}\n{half}"


def pairs(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1)}


@dataclass
class Reader:
    """Answers from its prompt; else loads the page whose note has most in common with the question, if it may; else gives up."""

    offered: list[dict] = field(default_factory=tool_schemas)

    def reply(self, messages: list[dict]) -> str | dict:
        """The answer, or the arguments of its call of `load_tool_history`."""
        at = max(place for place, message in enumerate(messages) if message["role"] == "user")
        question = messages[at]["content"]
        (subject,) = re.findall(r"(\w+)的编号", question)
        told = [message["content"] for message in messages if message["role"] != "user"]
        if found := re.search(rf"{subject}的编号为 (\d+)", "\n".join(told)):
            return found[1]
        loads = [schema for schema in self.offered if schema["name"] == "load_tool_history"]
        asked_already = any(message["role"] == "tool" for message in messages[at:])
        if not loads or "load_tool_history" not in messages[0]["content"] or asked_already:
            return UNKNOWN
        notes = {uuid: note for text in told for note in parts(text) for uuid in UUID.findall(note)}
        best = max(notes, key=lambda uuid: len(pairs(question) & pairs(notes[uuid])), default=None)
        (needed,) = loads[0]["parameters"]["required"]
        return UNKNOWN if best is None else {needed: best}


def parts(text: str) -> list[str]:
    """A placeholder is read as a whole, anything else by its lines."""
    return [text] if text.startswith("📎") else text.splitlines()


async def documents_parts(memory: Memory, model: Reader) -> list[str]:
    """Four places: a chat loop of one's own, the wrapped retriever, the prompt block and the tool."""
    manager = ToolResultManager(memory)
    retriever = manager.wrap(search_docs, conversation_id="c")
    messages = [{"role": "system", "content": HISTORY_TOOL_PROMPT}]
    for number, query in enumerate(LIBRARY):
        result = await retriever(question=query)
        messages += [
            {"role": "user", "content": query},
            {"role": "tool", "tool_call_id": str(number), "content": result},
        ]
    answers: list[str] = []
    for question in FOLLOW_UPS:
        messages.append({"role": "user", "content": question})
        while isinstance(reply := model.reply(messages), dict):
            loaded = await manager.load_tool_result(**reply, conversation_id="c")
            messages.append({"role": "tool", "tool_call_id": question, "content": loaded})
        messages.append({"role": "assistant", "content": "好"})
        messages = await manager.restore_placeholders(messages)
        answers.append(reply)
    return answers


async def engine(memory: Memory, model: Reader, *, summarized: bool = False) -> list[str]:
    """`chat.step`, `chat.context` and `chat.call_tool`."""
    chat = memory.conversation("c")
    for query in LIBRARY:
        step = {"tool": "search_docs", "input": {"question": query}, "result": search_docs(query)}
        await chat.record(query, "好", steps=[step])
    if summarized:
        await chat.record("谢谢", "不客气")
        await chat.checkpoint("用户问过三个问题。", recent_turns=1)
    answers: list[str] = []
    for question in FOLLOW_UPS:
        turn = await chat.begin(question)
        while isinstance(reply := model.reply((await chat.context()).messages), dict):
            loaded = await chat.call_tool("load_tool_history", reply, turn=turn)
            turn = await chat.step(turn, tool="load_tool_history", input=reply, result=loaded)
        # The answer itself would be found in the prompt of the next question.
        await chat.complete(turn, "好")
        answers.append(reply)
    return answers


async def behind_a_checkpoint(memory: Memory, model: Reader) -> list[str]:
    """The turns that fetched the pages are in a summary that says nothing of them."""
    return await engine(memory, model, summarized=True)


WAYS = [documents_parts, engine, behind_a_checkpoint]


@pytest.mark.parametrize("way", WAYS, ids=[way.__name__ for way in WAYS])
async def test_a_follow_up_leads_from_what_is_told_of_a_page_to_its_answer(way):
    """Of three pages the right one is loaded, once for each question, and none is archived again."""
    async with Memory.open("memory://") as memory:
        assert list(FOLLOW_UPS.values()) == await way(memory, Reader())
        pages = await memory.conversation("c").pages()
    assert [1, 1, 1] == [page.loads for page in pages]


@pytest.mark.parametrize("way", WAYS, ids=[way.__name__ for way in WAYS])
async def test_without_the_tool_the_model_does_not_know(way):
    """The answers are in no prompt by themselves: it is the load that brings them."""
    async with Memory.open("memory://") as memory:
        assert [UNKNOWN] * 3 == await way(memory, Reader(offered=[]))
