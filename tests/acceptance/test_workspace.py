"""An agent that does not look twice, told from the outside: the steps by which its design is verified, on both faces."""

import logging

import pytest

from pagefile import BlockingMemory, Memory, Settings
from pagefile.settings import WorkspaceSettings

TOC = {
    "reg_id": "angui_2024",
    "items": [{"title": "第一章 总则", "page_start": 1}, {"title": "第二章 母线", "page_start": 80}],
}
HITS = [
    {
        "content": "母线失压后应立即检查保护动作情况。",
        "reg_id": "angui_2024",
        "page_num": 85,
        "score": 0.0164,
    },
    {"content": "与母线无关的内容。", "reg_id": "angui_2024", "page_num": 9, "score": 0.0021},
]
PAGE = {"reg_id": "angui_2024", "start_page": 86, "content_markdown": "恢复送电前，值班员应检查母线。" * 300}


class Backend:
    """A regulation's three tools, and how often each was reached."""

    def __init__(self):
        self.asked = []

    def call(self, tool: str, given: dict) -> object:
        self.asked.append(tool)
        return {"get_toc": TOC, "smart_search": HITS, "read_page_range": PAGE}[tool]


async def use(workspace, backend: Backend, tool: str, given: dict) -> str:
    """A tool wrapper, as an integration writes it."""
    if cached := await workspace.lookup(tool, given):
        return cached.answer
    return (await workspace.absorb(tool, given, backend.call(tool, given))).text


def memory_block(window) -> str:
    return next((m["content"] for m in window.messages if m["content"].startswith("<memory>")), "")


async def test_the_documents_verification_of_the_table_of_contents(caplog):
    """The first query calls get_toc, the second does not; the log says what was cached."""
    backend = Backend()
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u", language="zh")
        with caplog.at_level(logging.DEBUG, logger="pagefile"):
            first = await use(chat.workspace(), backend, "get_toc", {"reg_id": "angui_2024"})
        again = await use(chat.workspace(), backend, "get_toc", {"reg_id": "angui_2024"})
    assert ["get_toc"] == backend.asked
    assert again.endswith(first)
    assert "[缓存] get_toc 的结果于刚刚获取" in again
    assert "[Memory] 缓存目录: angui_2024" in caplog.messages


async def test_the_documents_verification_of_content():
    """Three tools, three kinds of memory, all in the next prompt."""
    backend = Backend()
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        workspace = chat.workspace()
        await use(workspace, backend, "get_toc", {"reg_id": "angui_2024"})
        await use(
            workspace,
            backend,
            "mcp__gridcode__smart_search".removeprefix("mcp__gridcode__"),
            {"query": "母线失压"},
        )
        await use(workspace, backend, "read_page_range", {"reg_id": "angui_2024", "start_page": 86})
        window = await chat.context("母线失压怎么办？")
        shown = memory_block(window)
        pages = await chat.pages()
    assert (
        "# 已缓存目录\n以下规程目录已获取: angui_2024\n无需再次调用 get_toc()\n- 第一章 总则 P1\n- 第二章 母线 P80"
        in shown
    )
    assert "# 已获取的相关信息\n## [1] angui_2024 P85\n母线失压后应立即检查保护动作情况。" in shown
    assert "与母线无关的内容" not in shown
    assert "## [2] angui_2024 P86\n恢复送电前" in shown
    assert f'load_tool_history(uuid="{pages[0].uuid}")' in shown
    kept = {verdict.id: verdict for verdict in window.receipt}
    assert all(
        kept[name].kept
        for name in ("toc", "chunk:search_result:angui_2024 P85", "chunk:page_content:angui_2024 P86")
    )


async def test_a_loop_that_records_its_steps_needs_nothing_else():
    """`chat.step` tells the workspace; what the window shows as a step is not shown again as a chunk."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("母线失压怎么办？")
        turn = await chat.step(turn, tool="get_toc", input={"reg_id": "angui_2024"}, result=TOC)
        turn = await chat.step(turn, tool="smart_search", input={"query": "母线"}, result=HITS)
        turn = await chat.step(
            turn,
            tool="read_page_range",
            input={"start_page": 86},
            result={**PAGE, "content_markdown": PAGE["content_markdown"] * 3},
        )
        during = await chat.context()
        await chat.complete(turn, "先检查保护动作情况。")
        workspace = chat.workspace()
        assert "母线失压怎么办？" == workspace.notes.current_query
        assert await workspace.lookup("get_toc", {"reg_id": "angui_2024"}) is not None
        after = await chat.context("再说一遍")
    assert "已获取的相关信息" not in memory_block(during)
    assert "已缓存目录" in memory_block(during)
    # The search is whole in the last turn; of the page, which is a placeholder there, the beginning is shown.
    assert "## [1] angui_2024 P86\n恢复送电前" in memory_block(after)
    assert "## [2]" not in memory_block(after)


async def test_a_reset_keeps_the_table_of_contents_and_the_promise():
    """What the hint says is at hand is answered; a full reset makes it silent."""
    backend = Backend()
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        workspace = chat.workspace()
        await use(workspace, backend, "get_toc", {"reg_id": "angui_2024"})
        await use(workspace, backend, "smart_search", {"query": "母线"})
        await chat.reset()
        shown = memory_block(await chat.context("新的问题"))
        assert "无需再次调用 get_toc()" in shown
        assert "已获取的相关信息" not in shown
        await use(workspace, backend, "get_toc", {"reg_id": "angui_2024"})
        assert ["get_toc", "smart_search"] == backend.asked
        workspace.reset_all()
        assert "" == memory_block(await chat.context("新的问题"))
        await use(workspace, backend, "get_toc", {"reg_id": "angui_2024"})
        assert 3 == len(backend.asked)


async def test_a_new_session_is_empty(tmp_path):
    """Another process, another run, another conversation, another user; the archive stays."""
    url = f"sqlite:///{tmp_path}/agent.db"
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user_id="u")
        kept = await chat.workspace().absorb("read_page_range", {}, "母线" * 9_000)
        others = [
            chat.workspace("other-run"),
            memory.conversation("d", user_id="u").workspace(),
            memory.conversation("c", user_id="v").workspace(),
            memory.conversation("c", user_id="u", incognito=True).workspace(),
        ]
        assert [""] * 4 == [other.text() for other in others]
        assert "" == memory_block(await chat.context("q", run="other-run"))
        assert "" != memory_block(await chat.context("q"))
    async with Memory.open(url) as memory:
        chat = memory.conversation("c", user_id="u")
        assert "" == chat.workspace().text()
        assert "母线" * 9_000 == await chat.load(kept.archive_uuid)


async def test_notes_of_an_earlier_question_stay_out_of_other_subjects():
    """A search serves the question it was made for, the one after it, and later ones about the same things."""
    results = [
        {
            "title": "Harbour",
            "snippet": f"hotel {n} at the harbour: quiet rooms, breakfast, tram",
            "score": 0.9,
        }
        for n in range(3)
    ]
    asked = {
        "Find me a family hotel in Oslo.": True,
        "Which of them is central?": True,
        "What is the capital of Australia?": False,
        "The accountant is Petra Holm, and the invoices go to her.": False,
        "I moved to Oslo last week with my husband and our daughter.": False,
        "Thanks!": False,
        "Does the hotel have breakfast?": True,
        "Write a haiku about rain.": True,
        "Explain what a deadlock is in one sentence.": False,
    }
    shown = {}
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        for number, question in enumerate(asked):
            window = await chat.context(question, recent_turns=1)
            if not number:
                await chat.workspace().absorb("smart_search", {"q": "family hotel oslo"}, results)
                window = await chat.context(question, recent_turns=1)
            shown[question] = "quiet rooms" in memory_block(window)
            if question.startswith("Does"):
                await chat.workspace().absorb("smart_search", {"q": "hotel breakfast"}, results)
            await chat.record(question, "Noted.")
    assert asked == shown


async def test_notes_that_bear_on_the_question_are_not_crowded_out():
    """Notes of other questions take none of the places in a prompt."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        workspace = chat.workspace()
        for subject in ("hotel", "accountant"):
            workspace.ask(f"Find out about the {subject}.")
            found = [
                {"snippet": f"{subject} number {n}", "source": f"{subject}{n}", "score": 0.9}
                for n in range(5)
            ]
            await workspace.absorb("smart_search", {"q": subject}, found)
        workspace.ask("Write a haiku about rain.")
        workspace.ask("Which hotel was it?")
        assert [f"hotel{n}" for n in range(5)] == [chunk.source for chunk, _ in workspace.chunk_forms()]


async def test_forgetting_forgets_it_too():
    """Nothing of an erased conversation is offered or answered."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        workspace = chat.workspace()
        await chat.record("q", "a", steps=[{"tool": "get_toc", "input": {}, "result": TOC}])
        assert workspace.text()
        await memory.forget(user_id="u")
        assert ("", None) == (workspace.text(), await workspace.lookup("get_toc"))
        assert "" == chat.workspace().text()


@pytest.mark.parametrize(
    "chosen", [{"enabled": False}, {"max_injected": 0, "outline_chars": 0, "max_tokens": 0}]
)
async def test_settings_switch_it_off(chosen):
    """Nothing in the window."""
    async with Memory.open("memory://", settings=Settings(workspace=WorkspaceSettings(**chosen))) as memory:
        chat = memory.conversation("c")
        await chat.record(
            "q",
            "a",
            steps=[{"tool": "smart_search", "input": {}, "result": HITS}, {"tool": "get_toc", "result": TOC}],
        )
        assert "" == memory_block(await chat.context("q"))


async def test_chunks_give_way_to_everything_but_older_turns():
    """CX-2: one budget; the conversation itself always has room."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c")
        for number in range(10):
            await chat.workspace().absorb(
                "read_page_range", {"page": number}, f"页 {number} " + "母线检修规定" * 80
            )
        await chat.record("先前的问题", "先前的回答")
        window = await chat.context("母线？", window_tokens=400)
        assert window.tokens <= 400
        assert 50 >= window.receipt.tokens_by_block().get("chunks", 0)
        assert "先前的回答" in window.as_text()


def test_the_blocking_face(tmp_path):
    """The same verbs without an event loop."""
    backend = Backend()
    with BlockingMemory.open(f"sqlite:///{tmp_path}/agent.db") as memory:
        workspace = memory.conversation("c").workspace()
        for _ in range(3):
            if workspace.lookup("get_toc", {}) is None:
                workspace.absorb("get_toc", {}, backend.call("get_toc", {}))
        workspace.ask("问题")
        assert ["get_toc"] == backend.asked
        assert ("问题", True, "toc") == (
            workspace.notes.current_query,
            workspace.enabled,
            workspace.rule("get_toc").remembers,
        )
        assert "第二章 母线" in workspace.text(200)
        workspace.reset()
        assert workspace.lookup("get_toc", {}).whole
        workspace.reset_all()
        assert "" == workspace.text()
