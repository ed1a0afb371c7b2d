"""Document 000's own API, byte for byte."""

import inspect
import re
from dataclasses import fields
from datetime import datetime
from types import SimpleNamespace

import pytest

from pagefile import HandleNotFoundError, Memory
from pagefile.standalone import (
    ARCHIVE_THRESHOLD,
    HISTORY_TOOL_PROMPT,
    ToolResultArchive,
    ToolResultManager,
    load_tool_history_schema,
)
from pagefile.window.placeholder import placeholder_uuid

LONG = "第三步：为角色勾选菜单权限。" * 1000


@pytest.fixture
async def memory():
    async with Memory.open("memory://") as memory:
        yield memory


@pytest.fixture
def manager(memory):
    return ToolResultManager(memory)


def test_the_threshold_is_ten_thousand_characters():
    """S0-16, S0-17."""
    assert (ARCHIVE_THRESHOLD, ToolResultManager.ARCHIVE_THRESHOLD) == (10000, 10000)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("process_tool_result", ["tool_name", "tool_input", "result", "conversation_id"]),
        ("load_tool_result", ["uuid"]),
        ("prepare_context", ["messages", "load_uuids"]),
        ("restore_placeholders", ["messages"]),
    ],
)
def test_the_methods_have_the_documents_signatures(name, parameters):
    """S0-40, S0-43, S0-44, S0-45: coroutines with these parameters; what we added is by keyword."""
    method = getattr(ToolResultManager, name)
    given = [p.name for p in inspect.signature(method).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert inspect.iscoroutinefunction(method)
    assert given == ["self", *parameters]


async def test_a_result_at_the_threshold_passes_and_one_more_character_is_archived(manager):
    """S0-16, S0-41, S0-42: strict, and a Chinese character is one character."""
    short, long = "字" * 10_000, "字" * 10_001
    assert await manager.process_tool_result("t", {}, short, "c") is short
    assert (await manager.process_tool_result("t", {}, long, "c")).startswith("📎 [工具结果存档: ")


async def test_a_subclass_may_have_another_threshold(memory):
    """S0-17."""

    class Eager(ToolResultManager):
        ARCHIVE_THRESHOLD = 10

    assert (await Eager(memory).process_tool_result("t", {}, "x" * 11, "c")).startswith("📎")


async def test_the_placeholder_is_the_documents_line_by_line(manager):
    """S0-18 … S0-26."""
    result = (
        LONG
        + "\n\n## Reference Document List\n[1] 文档标题: 权限手册 / 文档地址: https://docs.example.com/1\n"
    )
    text = await manager.process_tool_result(
        "search_yongce_docs", {"question": "权限怎么配置？"}, result, "c"
    )
    lines = text.split("\n")
    uuid = re.fullmatch(r"📎 \[工具结果存档: ([0-9a-f-]{36})\]", lines[0]).group(1)
    assert [n for n, line in enumerate(lines) if line == "━" * 37] == [1, 6, len(lines) - 2]
    assert lines[2] == "工具: search_yongce_docs"
    assert lines[3] == "查询: 权限怎么配置？"
    row = await manager.get(uuid)
    assert datetime.fromisoformat(lines[4].removeprefix("时间: ")) == row.created_at.replace(microsecond=0)
    assert lines[5] == f"原始长度: {len(result)}字"
    summary = text.split("内容摘要:\n")[1].split("\n\n主要来源:\n")[0]
    assert 0 < len(summary) <= 200
    sources = text.split("主要来源:\n")[1].split("\n" + "━" * 37)[0].split("\n")
    assert 1 <= len(sources) <= 3
    assert all(line.startswith("- ") for line in sources)
    assert "权限手册" in sources[0]
    assert lines[-1] == f'如需查看完整内容，请调用 load_tool_history(uuid="{uuid}")'


async def test_a_result_without_sources_says_so(manager):
    """S0-25."""
    text = await manager.process_tool_result("t", {"a": 1}, "平常的文字。" * 3000, "c")
    assert "主要来源:\n无\n" in text


async def test_the_row_has_the_documents_columns(manager, memory):
    """S0-27 … S0-38."""
    text = await manager.process_tool_result("t" * 120, {"q": {"深": [1, None]}}, LONG, "c", thread_id="th")
    row = await manager.get(text.splitlines()[0].split(": ")[1].rstrip("]"))
    assert ToolResultArchive.__tablename__ == "tool_result_archive"
    assert [field.name for field in fields(row)] == [
        "uuid", "conversation_id", "thread_id", "tool_name", "tool_input", "query_summary", "result_summary",
        "result_full", "result_length", "sources", "created_at",
    ]  # fmt: skip
    assert len(row.uuid) == 36
    assert (row.conversation_id, row.thread_id, row.tool_name) == ("c", "th", "t" * 100)
    assert row.tool_input == {"q": {"深": [1, None]}}
    assert len(row.query_summary) <= 500
    assert 0 < len(row.result_summary) <= 500
    assert row.result_full == LONG
    assert row.result_length == len(LONG)
    assert row.created_at.utcoffset().total_seconds() == 0


async def test_full_results_come_back_and_others_are_explained(manager):
    """S0-43, S0-77: what cannot be loaded is said in words, and raised by `get`."""
    uuid = (await manager.process_tool_result("t", {}, LONG, "c")).splitlines()[0].split(": ")[1].rstrip("]")
    assert await manager.load_tool_result(uuid) == LONG
    for bad in ("nonsense", "00000000-0000-4000-8000-000000000000"):
        assert (await manager.load_tool_result(bad)).startswith("[未找到存档")
        with pytest.raises(HandleNotFoundError):
            await manager.get(bad)


async def test_loading_and_restoring_are_inverse(manager):
    """S0-14, S0-15, S0-44, S0-45: in place, input untouched, `restore(prepare(m, all)) == m`, idempotent."""
    texts = [
        await manager.process_tool_result("t", {"n": n}, result, "c")
        for n, result in enumerate([LONG, LONG, LONG + "完"])
    ]
    uuids = [text.splitlines()[0].split(": ")[1].rstrip("]") for text in texts]
    messages = [
        {"role": "user", "content": texts[0]},
        *({"role": "tool", "tool_call_id": f"call_{n}", "content": text} for n, text in enumerate(texts)),
        {"role": "assistant", "content": "如下"},
    ]
    before = [dict(message) for message in messages]
    assert await manager.prepare_context(messages) == messages
    assert await manager.prepare_context(messages) is not messages
    loaded = await manager.prepare_context(messages, uuids)
    assert [message["content"] for message in loaded] == [texts[0], LONG, LONG, LONG + "完", "如下"]
    assert messages == before
    assert await manager.restore_placeholders(loaded) == messages
    assert await manager.restore_placeholders(messages) == messages
    one = await manager.prepare_context(messages, [uuids[2]])
    assert [
        message["content"] == original["content"] for message, original in zip(one, messages, strict=True)
    ] == [True, True, True, False, True]


async def test_framework_messages_work_as_well(manager):
    """Objects with `type` and `content`, as LangChain has them, are copied and not changed."""
    text = await manager.process_tool_result("t", {}, LONG, "c")
    message = SimpleNamespace(type="tool", content=text)
    (loaded,) = await manager.prepare_context([message], [text.splitlines()[0].split(": ")[1].rstrip("]")])
    assert loaded.content == LONG
    assert message.content == text


async def test_what_cannot_be_loaded_stays_a_placeholder(manager):
    """A purged or foreign uuid in a tool message is left as it is."""
    forged = f"📎 [工具结果存档: 00000000-0000-4000-8000-000000000000]\n{'━' * 37}\n"
    messages = [{"role": "tool", "content": forged}]
    assert await manager.prepare_context(messages, ["00000000-0000-4000-8000-000000000000"]) == messages


async def test_a_loaded_result_is_never_archived_again(manager, memory):
    """S0-78: no persist → load → persist loop."""
    assert await manager.process_tool_result("load_tool_history", {"uuid": "x"}, LONG, "c") == LONG
    assert await memory.pages() == []


async def test_users_have_their_own_pages(memory):
    """C0-6: unscoped within the process, scoped where a user is named."""
    text = await ToolResultManager(memory, user_id="a").process_tool_result("t", {}, LONG, "c")
    uuid = text.splitlines()[0].split(": ")[1].rstrip("]")
    assert (await ToolResultManager(memory, user_id="b").load_tool_result(uuid)).startswith("[未找到")
    assert await ToolResultManager(memory).load_tool_result(uuid) == LONG
    assert (await ToolResultManager(memory).load_tool_result(uuid, conversation_id="d")).startswith("[未找到")


def test_the_tools_schema_is_the_documents():
    """S0-46 … S0-49."""
    assert load_tool_history_schema["name"] == "load_tool_history"
    assert load_tool_history_schema["parameters"] == {
        "type": "object",
        "properties": {"uuid": {"type": "string", "description": "要加载的工具结果 UUID（从占位符中获取）"}},
        "required": ["uuid"],
    }
    for scene in (
        '用户说"之前"、"刚才"、"上次说的"等',
        "用户询问之前讨论过的细节",
        "需要回顾历史检索内容",
        "只在确实需要历史详情时调用",
    ):
        assert scene in load_tool_history_schema["description"]


def test_the_prompt_is_the_documents():
    """S0-55, S0-56."""
    assert HISTORY_TOOL_PROMPT.startswith(
        "## 历史工具结果管理\n\n对话中可能包含已存档的工具结果（显示为占位符格式）。"
    )
    for criterion in (
        '用户明确提到"之前"、"刚才说的"、"上次"',
        "用户追问之前回答中的具体细节",
        "占位符中的摘要不足以回答用户问题",
    ):
        assert f"- {criterion}" in HISTORY_TOOL_PROMPT


@pytest.mark.parametrize("awaited", [False, True])
async def test_an_unmodified_tool_is_wrapped_by_one_call(manager, memory, awaited):
    """S0-06: blocking or not, with its own arguments; short results pass, long ones become placeholders."""

    def search(question, mode="mix"):
        return LONG if mode == "mix" else f"{question}: short"

    async def asearch(question, mode="mix"):
        return search(question, mode)

    tool = manager.wrap(asearch if awaited else search, conversation_id="c", name="search_yongce_docs")
    assert await tool("权限", mode="naive") == "权限: short"
    assert (await tool("权限", mode="mix")).startswith("📎")
    (page,) = await memory.pages()
    assert (page.tool, page.input) == ("search_yongce_docs", {"args": ["权限"], "mode": "mix"})


async def test_another_users_placeholder_is_never_restored(memory):
    """Their page has the same text; its query is theirs."""
    given = {"query": "a lawyer for the divorce"}
    await ToolResultManager(memory, user_id="a").process_tool_result("fetch", given, LONG, "c")
    manager = ToolResultManager(memory)
    own = await manager.process_tool_result("fetch", {"query": "the weather"}, LONG, "d")
    loaded = await manager.prepare_context([{"role": "tool", "content": own}], [str(placeholder_uuid(own))])
    assert LONG == loaded[0]["content"]
    assert [{"role": "tool", "content": own}] == await manager.restore_placeholders(loaded)
