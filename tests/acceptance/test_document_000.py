"""Document 000, where its numbers and columns are about long, many or missing things."""

import hashlib
import json
import re
import sqlite3

import pytest

from benchmarks.bulk import KINDS
from pagefile import Memory, Settings
from pagefile.integrations.prometheus import PrometheusMeter
from pagefile.ports import ChatModel
from pagefile.settings import ArchiveSettings
from pagefile.standalone import ToolResultManager
from pagefile.testing import FakeClock
from pagefile.window.placeholder import placeholder_uuid

QUESTION = "永策Pro的权限管理怎么配置？"
RESULT = "".join(
    f"第{n}条：角色{n}可以看到菜单{n * 7}和报表{n * 13}，由管理员{n % 5}审批。\n" for n in range(900)
)
RULE = "━" * 37


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent.db"


@pytest.fixture
async def memory(path):
    async with Memory.open(f"sqlite:///{path}", clock=FakeClock()) as memory:
        yield memory


@pytest.fixture
def manager(memory):
    return ToolResultManager(memory)


async def archived(manager, result=RESULT, **given):
    """The placeholder of a result, and its row."""
    shown = await manager.process_tool_result("search_yongce_docs", given, result, "c")
    return shown, await manager.get(placeholder_uuid(shown))


async def answered(chat, question, result, answer):
    """A turn with one call; the uuid of its page."""
    turn = await chat.begin(question)
    turn = await chat.step(turn, tool="search_yongce_docs", input={"question": question}, result=result)
    await chat.complete(turn, answer)
    return turn.steps[0].page


async def test_the_history_after_the_first_turn(memory):
    """S0-12: question, call, placeholder with id, length and summary, and the answer as it was given."""
    chat = memory.conversation("c")
    uuid = await answered(chat, QUESTION, RESULT, "权限管理配置步骤如下……")
    user, call, tool, assistant, now = (await chat.context("谢谢")).messages[1:]
    assert ("user", QUESTION) == (user["role"], user["content"])
    assert {"question": QUESTION} == json.loads(call["tool_calls"][0]["function"]["arguments"])
    assert ("tool", call["tool_calls"][0]["id"]) == (tool["role"], tool["tool_call_id"])
    for told in (
        uuid,
        f"原始长度: {len(RESULT)}字",
        f"内容摘要:\n{(await chat.page(uuid)).result_summary[:50]}",
    ):
        assert told in tool["content"]
    assert RESULT not in tool["content"]
    assert {"role": "assistant", "content": "权限管理配置步骤如下……"} == assistant
    assert "谢谢" == now["content"]


@pytest.mark.parametrize("question", ["短", "权限管理怎么配置，" * 400])
async def test_a_query_takes_at_most_500_characters(manager, question):
    """S0-21, S0-33: in the column and in its line; the parameters themselves are kept whole."""
    shown, row = await archived(manager, question=question)
    (line,) = [line for line in shown.splitlines() if line.startswith("查询: ")]
    assert 0 < len(line.removeprefix("查询: ")) <= 500
    assert row.query_summary.startswith(question[:100])
    assert 0 < len(row.query_summary) <= 500
    assert row.query_summary.startswith(line.removeprefix("查询: "))
    assert {"question": question} == row.tool_input


@pytest.mark.parametrize("kind", KINDS)
async def test_a_summary_of_200_to_500_characters_is_kept_and_200_are_shown(manager, kind):
    """S0-24, S0-34, C0-5: of prose, JSON and logs, in Chinese and English."""
    shown, row = await archived(manager, KINDS[kind](60_000, 0))
    assert 200 <= len(row.result_summary) <= 500
    summary = shown.split("内容摘要:\n")[1].split("\n\n主要来源:\n")[0]
    assert 0 < len(summary) <= 200
    assert row.result_summary.startswith(summary)


@pytest.mark.parametrize("many", [0, 1, 3, 10])
async def test_up_to_three_sources_are_shown_and_all_are_kept(manager, many):
    """S0-25, S0-37: of ten, three have a line; without any it says so."""
    names = [f"手册{n} (https://docs.example.com/{n})" for n in range(many)]
    listed = "".join(
        f"[{n + 1}] 文档标题: 手册{n}\n    文档地址: https://docs.example.com/{n}\n" for n in range(many)
    )
    shown, row = await archived(manager, RESULT + "\n\n## Reference Document List\n" + listed)
    told = shown.split("主要来源:\n")[1].split(f"\n{RULE}")[0].splitlines()
    assert ([f"- {name}" for name in names[:3]] or ["无"]) == told
    assert names == list(row.sources)


async def test_a_placeholder_gets_shorter_before_it_loses_its_call(memory):
    """C0-4: the long form as long as there is room, then one line; each says how to load the page."""
    chat = memory.conversation("c")
    uuid = await answered(chat, QUESTION, RESULT, "好")
    seen = set()
    for room in range(60, 1200, 20):
        window = await chat.context("?", window_tokens=room)
        for text in (m["content"] for m in window.messages if m["role"] == "tool"):
            assert uuid == placeholder_uuid(text)
            assert f'load_tool_history(uuid="{uuid}")' in text
            seen.add("\n" in text)
    assert {False, True} == seen


@pytest.mark.parametrize(("tool", "one_line"), [("search", False), ("𒀀𒁀🜁" * 33, True)])
async def test_a_placeholder_is_never_long(manager, memory, tool, one_line):
    """C0-4: where the words of the long form alone take too many tokens, the one-line form is in; both load the page."""
    shown = await manager.process_tool_result(tool, {"question": QUESTION}, RESULT, "c")
    uuid = placeholder_uuid(shown)
    assert one_line == ("\n" not in shown)
    assert memory.engine.counter.count(shown) <= 350
    assert f'load_tool_history(uuid="{uuid}")' in shown
    assert f"{len(RESULT)}字" in shown
    assert RESULT == await manager.load_tool_result(uuid)


async def test_rows_have_their_time_by_themselves(memory):
    """S0-38: in UTC, none before the one that was written earlier."""
    manager, clock = ToolResultManager(memory), memory.engine.clock
    times = []
    for _ in range(3):
        times.append((await archived(manager))[1].created_at)
        clock.advance(1)
    assert [0.0] * 3 == [time.utcoffset().total_seconds() for time in times]
    assert sorted(set(times)) == times


async def test_one_long_result_is_one_row(manager, path):
    """S0-27, S0-42, S0-61: in the table of the document; a short one is none."""
    await archived(manager)
    assert "短" == await manager.process_tool_result("t", {}, "短", "c")
    database = sqlite3.connect(path)
    rows = database.execute(
        "SELECT conversation_id, tool_name, result_length FROM tool_result_archive"
    ).fetchall()
    database.close()
    assert [("c", "search_yongce_docs", len(RESULT))] == rows


@pytest.mark.parametrize(
    "result",
    ["🙂👨‍👩‍👧 é e\u0301 " * 3000, "line\r\n\ttab\x0b\x7f\x1b[0m" * 2000, "永" * 1_000_000, json.dumps(list(range(9000)))],
    ids=["emoji", "control characters", "1 MB", "JSON"],
)  # fmt: skip
async def test_nothing_is_lost_over_a_restart(path, result):
    """S0-04, S0-08: another process loads, by its uuid, what was archived, byte for byte."""
    async with Memory.open(f"sqlite:///{path}") as memory:
        uuid = await answered(memory.conversation("c"), QUESTION, result, "好")
    async with Memory.open(f"sqlite:///{path}") as memory:
        loaded = await memory.conversation("c").load(uuid)
        assert await ToolResultManager(memory).load_tool_result(uuid) == loaded
    assert hashlib.sha256(result.encode()).digest() == hashlib.sha256(loaded.encode()).digest()


async def test_what_is_resident_is_what_the_gauge_says_and_a_load_is_a_page_fault(path):
    """S0-07, S0-10, S0-11: the tokens of a window are measured as they are; loads are counted; afterwards nothing is resident."""
    meter = PrometheusMeter()

    def measured(name):
        found = re.search(rf"^{name} (\S+)$", meter.text().decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    async with Memory.open(f"sqlite:///{path}", meter=meter) as memory:
        chat = memory.conversation("c")
        uuid = await answered(chat, QUESTION, RESULT, "好")
        sizes = []
        for load in ([], [uuid], []):
            before = measured("pagefile_window_tokens_sum")
            window = await chat.context("第三步？", window_tokens=100_000, load=load)
            assert window.tokens == measured("pagefile_window_tokens_sum") - before
            sizes.append(window.tokens)
        assert sizes[0] == sizes[2] < 1000 < sizes[1]
        faults = measured("pagefile_page_faults_total")
        await chat.call_tool("load_tool_history", {"uuid": uuid})
        assert faults + 1 == measured("pagefile_page_faults_total")


async def test_by_default_nothing_is_loaded_unless_the_model_asks(memory):
    """S0-51: whatever the question points at; the tool is all there is."""
    assert "model" == ArchiveSettings().strategy
    chat = memory.conversation("c")
    await answered(chat, QUESTION, RESULT, "好")
    for question in ("你之前说的配置步骤再详细说一下第三步", QUESTION, "刚才那个再说一遍"):
        assert RESULT not in str((await chat.context(question, window_tokens=100_000)).messages)


class Asked(ChatModel):
    """A model that remembers that it was asked."""

    def __init__(self):
        self.times = 0

    async def complete(self, messages, *, max_tokens):
        self.times += 1
        return "模型写的摘要。" * 500


@pytest.mark.parametrize(("synopsis", "times"), [("extract", 0), ("model", 1)])
async def test_a_summary_costs_no_call_unless_it_is_asked_for(synopsis, times):
    """S0-34, S0-70: without a setting the text itself is extracted, although there is a model; whoever writes it, 500 stay."""
    assert "extract" == ArchiveSettings().synopsis
    model = Asked()
    settings = Settings(archive=ArchiveSettings(synopsis=synopsis))
    async with Memory.open("memory://", settings=settings, model=model) as memory:
        chat = memory.conversation("c")
        page = await chat.page(await answered(chat, QUESTION, RESULT, "好"))
    assert times == model.times
    assert 200 <= len(page.result_summary) <= 500
    assert (times == 1) == page.result_summary.startswith("模型写的摘要")
