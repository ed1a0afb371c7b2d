"""An agent that does not look twice: what its tools brought stays at hand, and an equal call is answered.

Run it with `python examples/zh/workspace.py`; the model is scripted, everything else is real.
"""

import anyio

from pagefile import Memory

PAGES = {
    85: "母线失压后，应立即检查保护动作情况，并在15分钟内汇报调度。",
    86: "恢复送电前，值班员应检查母线绝缘。",
}


class Regulation:
    """The tools of a regulation; it counts what reaches it."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    def call(self, tool: str, given: dict) -> object:
        self.reached.append(tool)
        if tool == "get_toc":
            chapters = [f"第{n}章 {name}" for n, name in enumerate(("总则", "母线", "变压器"), 1)]
            lines = [
                {"title": f"{n}.{m} 一般规定", "page_start": n * 10 + m}
                for n in range(1, 4)
                for m in range(900)
            ]
            items = [
                {"title": title, "page_start": 40 * n, "children": lines[900 * n : 900 * n + 900]}
                for n, title in enumerate(chapters)
            ]
            return {"reg_id": given["reg_id"], "items": items}
        if tool == "smart_search":
            # Fused ranks, as hybrid search gives them: far below the document's 0.5, and remembered all the same.
            return [
                {"content": text, "reg_id": "angui_2024", "page_num": page, "score": 1 / (60 + rank)}
                for rank, (page, text) in enumerate(PAGES.items(), 1)
            ]
        return {"reg_id": "angui_2024", "start_page": given["page"], "content_markdown": PAGES[given["page"]]}


async def use(workspace, tools: Regulation, tool: str, given: dict) -> str:
    """A tool call of the agent: asked of the workspace first, told to it afterwards."""
    if cached := await workspace.lookup(tool, given):
        print(f"  {tool}: 缓存, {cached.age}")
        return cached.answer
    result = tools.call(tool, given)
    kept = await workspace.absorb(tool, given, result)
    print(f"  {tool}: {'全文' if kept.whole else '已存档'}, {len(kept.text)} 字")
    return kept.text


async def ask(chat, tools: Regulation, question: str, *steps: tuple[str, dict]) -> None:
    """One run of the agent: the steps stand for what a model decides to call."""
    workspace = chat.workspace()
    print(question)
    for tool, given in steps:
        await use(workspace, tools, tool, given)
    window = await chat.context(question)
    memory = next(
        message["content"] for message in window.messages if message["content"].startswith("<memory>")
    )
    print("\n".join(f"    {line[:60]}" for line in memory.splitlines()[3:-2]))
    await chat.record(question, "……")


async def main() -> None:
    tools = Regulation()
    toc = ("get_toc", {"reg_id": "angui_2024"})
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c-1", user_id="ada")
        await ask(chat, tools, "母线失压怎么办？", toc, ("smart_search", {"query": "母线失压"}))
        print()
        await ask(chat, tools, "恢复送电前要做什么？", toc, ("read_page_range", {"page": 86}))
        print()
        chat.workspace().reset()
        await ask(chat, tools, "变压器在哪一章？", toc)
        print(f"\n到达后端的调用: {', '.join(tools.reached)}")


anyio.run(main)
