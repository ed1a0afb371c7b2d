"""The dialogue of the design document on external memory, offline, with a scripted model in place of a real one.

A tool returns 52,000 characters. The turn that fetched them sees them all; the next turn sees a placeholder of a few
lines, asks for the page when it needs it, and after that the placeholder is back.

    python examples/zh/yongce_dialogue.py
"""

import re
import tempfile
from typing import Any

from pagefile import BlockingMemory, Settings, Window

QUESTIONS = (
    "永策Pro的权限管理怎么配置？",
    "你之前说的配置步骤再详细说一下第三步",
    "好的，谢谢！",
)
STEPS = (
    "第一步：在后台新建角色，填写角色名称和适用部门。",
    "第二步：打开权限管理，为角色勾选菜单权限。",
    "第三步：设置数据范围，选择“本部门及下级”，再逐个字段设为只读或可编辑，最后点击“应用到全部成员”。",
    "第四步：通知成员重新登录，新的权限随即生效。",
)


def search_yongce_docs(query: str) -> str:
    """The agent's tool: a handbook of 52,000 characters, with the four steps somewhere in it."""
    filler = (
        f"与“{query}”有关的背景说明：权限由角色、菜单与数据三级组成，管理员可以逐级下放，并随时收回。\n\n"
    )
    chapter = filler * (10_000 // len(filler))
    handbook = chapter + chapter.join(f"## {step[:3]}\n\n{step}\n\n" for step in STEPS) + chapter * 2
    return handbook[:52_000]


def scripted_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stands for a language model: it reads the messages and answers, or calls a tool first."""
    asked = next(message["content"] for message in reversed(messages) if message["role"] == "user")
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if asked == QUESTIONS[0]:
        if not results:
            return {"call": "search_yongce_docs", "input": {"query": "权限管理 配置"}}
        return {"say": "权限管理配置步骤如下：新建角色、勾选菜单、设置数据范围、通知成员。"}
    if asked == QUESTIONS[1]:
        detail = next((found for text in results if (found := re.search(r"第三步：.*", text))), None)
        if detail is None:  # only a placeholder is in view: page in the result
            uuids = re.findall(r'load_tool_history\(uuid="([^"]+)"\)', "\n".join(results))
            return {"call": "load_tool_history", "input": {"uuid": uuids[0]}}
        return {"say": detail[0]}
    return {"say": "不客气！"}


def show(window: Window) -> None:
    """What this model call costs, and how each tool result appears in the window."""
    print(f"   窗口: {window.tokens:,} tokens")
    for message in window.messages:
        if message["role"] == "tool":
            text = str(message["content"])
            kind = "占位符" if text.startswith("📎") else "全文"
            print(f"      工具结果: {kind}, {len(text):,} 字 | {text.splitlines()[0][:60]}")


def main() -> None:
    # The window of a mid-sized model: the handbook fits once, and would not fit twice.
    settings = Settings(window_tokens=100_000)
    with (
        tempfile.TemporaryDirectory() as folder,
        BlockingMemory.open(f"sqlite:///{folder}/agent.db", settings=settings) as memory,
    ):
        chat = memory.conversation("yongce", user_id="user-1")
        first_windows: dict[str, Window] = {}
        for question in QUESTIONS:
            print(f"\n用户: {question}")
            turn = chat.begin(question)
            while True:
                window = chat.context()
                first_windows.setdefault(question, window)
                show(window)
                reply = scripted_model(window.messages)
                if "say" in reply:
                    break
                tool, asked = reply["call"], reply["input"]
                print(f"助手: 调用 {tool}({asked})")
                result = (
                    search_yongce_docs(**asked)
                    if tool == "search_yongce_docs"
                    else chat.call_tool(tool, asked)
                )
                turn = chat.step(turn, tool=tool, input=asked, result=result)
            chat.complete(turn, reply["say"])
            print(f"助手: {reply['say']}")

        # The first turn as the second and the third question find it: guide, question, call, placeholder, answer.
        before, after = (first_windows[question].messages[:5] for question in QUESTIONS[1:])
        print(f"\n第三轮中第一轮的内容与加载之前逐字节相同: {'是' if before == after else '否'}")
        (page,) = chat.pages()
        print(
            f"存档: {page.uuid}, {page.length:,} 字, 加载 {page.loads} 次, 磁盘上 {page.stored_bytes:,} 字节"
        )


if __name__ == "__main__":
    main()
