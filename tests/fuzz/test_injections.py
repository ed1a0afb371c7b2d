"""Text that tries to be more than text: our blocks stay ours, nobody's page is opened, and the log keeps every character."""

import json
import re
from datetime import UTC, datetime

import anyio
import pytest

from pagefile import HandleNotFoundError, Memory, Settings
from pagefile.errors import ModelOutputError
from pagefile.models.extractors import ChatExtractor, RuleExtractor
from pagefile.models.summarizers import ChatSummarizer
from pagefile.ports import ChatModel, Said, SummaryRequest
from pagefile.records import Page, Scope
from pagefile.settings import ArchiveSettings
from pagefile.standalone import AgentMemory, ToolResultManager, format_memory_for_injection
from pagefile.text.fact_rules import own_words
from pagefile.text.tokens import open_counter
from pagefile.window.candidates import MEMORY, TAGGED
from pagefile.window.parts import MemoryPart, escape
from pagefile.window.placeholder import placeholder, placeholder_uuid, short_placeholder
from pagefile.window.wording import EN, ZH
from tests.heavy import heavy

from .injections import ALL, FOREIGN_UUID, OURS

SMALL = Settings(archive=ArchiveSettings(threshold=400))
BLOCKS = ("memory", *MEMORY, *TAGGED)
TAG = re.compile(rf"<(/?)({'|'.join(BLOCKS)})>")
MARK = "这是记号"
AT = datetime(2026, 1, 1, tzinfo=UTC)


def balanced(text: str) -> list[str]:
    """The names of the blocks of a text, in order; each is opened and closed once, one inside `memory` at most."""
    open_blocks: list[str] = []
    seen: list[str] = []
    for closing, name in TAG.findall(text):
        if closing:
            assert open_blocks
            assert name == open_blocks.pop()
        else:
            assert name not in seen
            open_blocks.append(name)
            seen.append(name)
    assert [] == open_blocks
    return seen


async def talked(memory: Memory, conversation: str) -> None:
    """Every text as a question, an answer, a tool's result, a fact, an anchor and a summary."""
    chat = memory.conversation(conversation, user_id="u")
    for number, text in enumerate(ALL):
        steps = (
            [{"tool": "smart_search", "input": {"q": text}, "result": text * 3}] if number % 3 == 0 else []
        )
        await chat.record(f"{MARK}{text}", f"{text}{MARK}", steps=steps)
        await memory.remember(f"事实 {number}：{text}", user_id="u")


@pytest.mark.anyio
async def test_a_window_has_our_blocks_and_no_others():
    """In both placements, with facts, episodes, chunks, a loaded page and a summary full of it; in all four shapes."""
    async with Memory.open("memory://", settings=SMALL) as memory:
        await talked(memory, "earlier")
        await talked(memory, "now")
        chat = memory.conversation("now", user_id="u")
        await chat.checkpoint("摘要：" + " ".join(ALL), recent_turns=2)
        page = (await memory.conversation("earlier", user_id="u").pages(limit=1))[0]
        workspace = chat.workspace()
        for text in ALL:
            await workspace.absorb(
                "smart_search", {"q": text}, [{"content": f"{text} 内容", "source": text, "score": 0.9}]
            )
            await workspace.absorb("get_toc", {"reg_id": text[:20]}, {"items": [{"title": text}]})
        for placement in ("tail", "head"):
            for text in (f"{MARK} 之前说过什么？", ALL[1]):
                window = await chat.context(
                    text,
                    window_tokens=60_000,
                    placement=placement,
                    load=[page.uuid],
                    instructions="你是助手。",
                )
                _check_window(window, text, placement)


def _check_window(window, asked: str, placement: str) -> None:
    roles = [message["role"] for message in window.messages]
    assert 1 == roles.count("system")
    assert {"role": "user", "content": asked} == window.messages[-1]
    system = window.messages[0]["content"]
    assert system.startswith("你是助手。")
    found = balanced(system)
    assert {"summary"} <= set(found)
    memories = [
        message["content"]
        for message in window.messages[:-1]
        if message["content"].startswith(("<memory>\n来自记忆", "<memory>\nFrom memory"))
    ]
    if placement == "tail":
        assert 1 == len(memories)
        assert {"memory", "facts"} <= set(balanced(memories[0]))
    else:
        assert [] == memories
        assert {"memory", "facts", "summary"} <= set(found)
    told, turns = window.for_anthropic()
    assert system == told
    assert all(turn["role"] in {"user", "assistant"} for turn in turns)
    lines = window.as_text().count("\n")
    assert lines >= len(window.messages) - 1


@heavy("claude")
def test_what_a_session_is_told_is_whole_blocks():
    """The Claude integration tells only what is new, cut out of the memory block line by line."""
    from pagefile.integrations.claude_code.hooks import unsaid

    facts = [f"- {escape(' '.join(text.split()))}" for text in ALL]
    memory = MemoryPart({"facts": tuple(facts), "episodes": tuple(facts)}, "zh")
    said: set[str] = set()
    for most in (400, 2_000, 100_000):
        assert {"memory", "facts", "episodes"} >= set(balanced(unsaid(memory, said, most)))


@pytest.mark.anyio
async def test_the_log_and_the_archive_keep_every_character(tmp_path):
    """What was said is said again exactly: escaping is for prompts alone."""
    async with Memory.open(f"sqlite:///{tmp_path}/x.db", settings=SMALL) as memory:
        chat = memory.conversation("c", user_id="u")
        for number, text in enumerate(ALL):
            long = text * (500 // len(text) + 1)
            turn = await chat.record(
                text + "。",
                text + ".",
                id=f"t{number}",
                steps=[{"tool": "web", "input": {"q": text}, "result": long}],
            )
            assert turn.steps[0].page
            assert long == await chat.load(turn.steps[0].page)
        turns = await chat.turns(limit=len(ALL))
        assert [f"{text}。" for text in ALL] == [turn.user for turn in turns]
        assert [f"{text}." for text in ALL] == [turn.assistant for turn in turns]
        assert [{"q": text} for text in ALL] == [turn.steps[0].input for turn in turns]


@pytest.mark.anyio
async def test_a_placeholder_that_somebody_wrote_opens_nothing():
    """As a question, as a tool's result, as a call of the loading tool: the page of another tenant stays closed."""
    async with Memory.open("memory://", settings=SMALL) as memory:
        other = memory.conversation("theirs", user_id="them", tenant="other")
        turn = await other.record(
            "问", "答", steps=[{"tool": "web", "input": {}, "result": "别人的秘密。" * 200}]
        )
        uuid = turn.steps[0].page or ""
        chat = memory.conversation("c", user_id="u")
        manager = ToolResultManager(memory, user_id="u")
        for text in OURS:
            fake = text.replace(FOREIGN_UUID, uuid)
            await chat.record(
                fake,
                fake,
                steps=[
                    {"tool": "web", "input": {"uuid": uuid}, "result": fake},
                    {"tool": "load_tool_history", "input": {"uuid": uuid}, "result": fake},
                ],
            )
            window = await chat.context(fake)
            assert "别人的秘密" not in json.dumps(window.messages, ensure_ascii=False)
            prepared = await manager.prepare_context(
                [{"role": "user", "content": fake}, {"role": "tool", "content": fake}], [uuid]
            )
            assert [fake, fake] == [message["content"] for message in prepared]
        with pytest.raises(HandleNotFoundError):
            await chat.load(uuid)
        assert "别人的秘密" not in await chat.call_tool("load_tool_history", {"uuid": uuid})


@pytest.mark.anyio
@pytest.mark.parametrize("text", [text for text in OURS if text.startswith(("📎", "["))])
async def test_a_result_that_looks_like_ours_is_a_result(text):
    """A long page that begins as our placeholders do is archived like any other, and does not fill the window."""
    async with Memory.open("memory://", settings=SMALL) as memory:
        workspace = memory.conversation("c", user_id="u").workspace()
        kept = await workspace.absorb("smart_search", {"q": "x"}, f"{text}\n" + "冒充存档的长网页。" * 2_000)
        assert len(kept.text) < 5_000
        assert kept.archive_uuid != FOREIGN_UUID


def test_facts_for_a_prompt_are_lines_of_ours():
    """Whatever facts, categories and profiles say, no tag and no heading is theirs."""
    data = {
        "user": {"workContext": {"summary": " ".join(ALL)}, "topOfMind": ALL[0]},
        "facts": [{"content": text, "category": text, "confidence": 0.9} for text in ALL],
    }
    text = format_memory_for_injection(data, max_tokens=20_000, current_context="密码")
    assert not TAG.search(text)
    assert "<" not in text
    headings = {"User Context:", "History:", "Corrections:", "Facts:"}
    assert {line for line in text.splitlines() if line and not line.startswith("- ")} <= headings


@pytest.mark.parametrize("wording", [ZH, EN])
@pytest.mark.parametrize("text", ALL)
def test_a_placeholder_of_such_a_page_is_one_placeholder(wording, text):
    """It is known by its own uuid, whatever the page says of itself, and never longer than allowed."""
    uuid = "11111111-2222-4333-8444-555555555555"
    page = Page(uuid, Scope("t"), "web", {}, " ".join(text.split()), " ".join(text.split()), 9, (" ".join(text.split()),), datetime(2026, 1, 1, tzinfo=UTC), 3, "o200k_base", "h")  # fmt: skip
    count = open_counter().count
    for shown in (
        placeholder(page, count, wording),
        placeholder(page, None, wording),
        short_placeholder(page, wording),
    ):
        assert uuid == placeholder_uuid(shown)
        assert count(placeholder(page, count, wording)) <= 350


def test_the_workspace_says_what_it_found_in_its_own_words():
    """The workspace's text is plain; it holds each source once, under our headings."""
    memory = AgentMemory(max_chunks=10)
    memory.add_search_results([{"content": f"{text} 内容", "source": f"来源{number}", "score": 0.9} for number, text in enumerate(ALL)])  # fmt: skip
    told = memory.get_memory_context()
    assert told.startswith("# 已获取的相关信息\n## [1] ")


# -- models ------------------------------------------------------------------------------------------------------------------


class Listening(ChatModel):
    """Keeps what it was asked."""

    name = "listening"

    def __init__(self) -> None:
        self.asked: list[list[dict]] = []

    async def complete(self, messages, *, max_tokens=None):
        self.asked.append([dict(message) for message in messages])
        return '{"facts": []}'


def test_a_model_that_extracts_is_asked_with_data():
    """One instruction of ours, and the user's words as JSON: no line break or quote of theirs gets out of it."""
    model = Listening()
    said = [Said(f"t{number}", text, AT) for number, text in enumerate(ALL)]
    anyio.run(ChatExtractor(model).extract, said)
    [[system, user]] = model.asked
    assert ["system", "user"] == [system["role"], user["role"]]
    assert ALL == [json.loads(line)["text"] for line in user["content"].split("\n")]
    assert not [text for text in ALL if len(text) > 12 and text in system["content"]]


def test_rules_learn_nothing_from_what_others_wrote():
    """Our blocks and placeholders in a user's message are not the user's words."""
    for text in ALL:
        if text.startswith(("<memory>", "📎", "<system-reminder>", "<tool_result")):
            assert "假的" not in own_words(text)
            assert "管理员" not in own_words(text)
    assert isinstance(anyio.run(RuleExtractor().extract, [Said("t", text, AT) for text in ALL]), list)


def test_a_model_that_summarises_is_asked_with_data():
    """Our instructions are once, and first."""
    model = Listening()
    request = SummaryRequest(ALL[1], tuple(("user", text) for text in ALL), 500)
    with pytest.raises(ModelOutputError, match="leaves out"):
        anyio.run(ChatSummarizer(model).summarize, request)
    [messages] = model.asked
    assert "system" == messages[0]["role"]
    assert 1 == [message["role"] for message in messages].count("system")
    assert not [text for text in ALL if len(text) > 12 and text in messages[0]["content"]]
