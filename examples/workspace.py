"""An agent that does not look twice: what its tools brought stays at hand, and an equal call is answered.

Run it with `python examples/workspace.py`; the model is scripted, everything else is real.
"""

import anyio

from pagefile import Memory

PAGES = {
    85: "After a busbar loses voltage, check the relays at once and report to dispatch within 15 minutes.",
    86: "Before power is restored, the operator checks the insulation of the busbar.",
}


class Regulation:
    """The tools of a regulation; it counts what reaches it."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    def call(self, tool: str, given: dict) -> object:
        self.reached.append(tool)
        if tool == "get_toc":
            chapters = [
                f"Chapter {n}: {name}" for n, name in enumerate(("General", "Busbars", "Transformers"), 1)
            ]
            lines = [
                {"title": f"{n}.{m} General rules", "page_start": n * 10 + m}
                for n in range(1, 4)
                for m in range(900)
            ]
            items = [
                {"title": title, "page_start": 40 * n, "children": lines[900 * n : 900 * n + 900]}
                for n, title in enumerate(chapters)
            ]
            return {"reg_id": given["reg_id"], "items": items}
        if tool == "smart_search":
            # Fused ranks, as hybrid search gives them: far below the 0.5 of other searches, and remembered all the same.
            return [
                {"content": text, "reg_id": "safety_2024", "page_num": page, "score": 1 / (60 + rank)}
                for rank, (page, text) in enumerate(PAGES.items(), 1)
            ]
        return {
            "reg_id": "safety_2024",
            "start_page": given["page"],
            "content_markdown": PAGES[given["page"]],
        }


async def use(workspace, tools: Regulation, tool: str, given: dict) -> str:
    """A tool call of the agent: asked of the workspace first, told to it afterwards."""
    if cached := await workspace.lookup(tool, given):
        print(f"  {tool}: from cache, {cached.age}")
        return cached.answer
    result = tools.call(tool, given)
    kept = await workspace.absorb(tool, given, result)
    print(f"  {tool}: {'whole' if kept.whole else 'archived'}, {len(kept.text)} characters")
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
    await chat.record(question, "…")


async def main() -> None:
    tools = Regulation()
    toc = ("get_toc", {"reg_id": "safety_2024"})
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c-1", user_id="ada")
        await ask(
            chat,
            tools,
            "What do we do when a busbar loses voltage?",
            toc,
            ("smart_search", {"query": "busbar loses voltage"}),
        )
        print()
        await ask(chat, tools, "What comes before power is restored?", toc, ("read_page_range", {"page": 86}))
        print()
        chat.workspace().reset()
        await ask(chat, tools, "Which chapter is about transformers?", toc)
        print(f"\nCalls that reached the backend: {', '.join(tools.reached)}")


anyio.run(main)
