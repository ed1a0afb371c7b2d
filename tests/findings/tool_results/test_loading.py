"""Findings F4, F5, F7, F11 and F12: what comes back when a page is asked for, by whom and for how long."""

import pytest
from langchain_core.messages import ToolMessage

from pagefile import Memory, Settings
from pagefile.settings import ArchiveSettings
from pagefile.standalone import ToolResultManager
from tests.findings.marks import finding

from .made import (
    contract,
    handbook,
    kept,
    load,
    load_in,
    output_of_tests,
    page_of,
    payment_log,
    tool_texts,
    transcript,
    uuid_in,
)

# -- F4: arguments of the load tool --------------------------------------------------------------------------------------

SOUGHT = "附件上限 185MB"


@pytest.fixture
async def collection():
    """A conversation and the page of a handbook, some 50,000 characters long."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        yield chat, await kept(chat, "看一下手册", handbook(180), tool="search_docs", question="审批流")


@finding("tool-results-F4")
async def test_a_query_alone_finds_its_passage(collection):
    """The load tool with a query brings the passage that answers it; so does `chat.load` with a limit."""
    chat, page = collection
    assert "185MB" in await load(chat, page, query=SOUGHT)
    assert "185MB" in await chat.load(page, query=SOUGHT, limit=2000)


@finding("tool-results-F4")
@pytest.mark.parametrize("also", [{"limit": 2000}, {"offset": 0}, {"offset": 0, "limit": 2000}])
async def test_a_query_counts_beside_limit_and_offset(collection, also):
    """A query is not dropped because the model also says how much it wants."""
    chat, page = collection
    assert "185MB" in await load(chat, page, query=SOUGHT, **also)


@finding("tool-results-F4")
async def test_behind_the_end_there_is_nothing(collection):
    """An offset behind the end of a page does not bring its beginning again."""
    chat, page = collection
    answer = await load(chat, page, offset=10**9)
    assert answer
    assert "## 检索上下文" not in answer


@finding("tool-results-F4")
async def test_numbers_as_text_are_numbers(collection):
    """A model that writes its numbers as strings reads the same part as one that does not."""
    chat, page = collection
    assert await load(chat, page, offset=300, limit=500) == await load(chat, page, offset="300", limit="500")


@finding("tool-results-F4")
@pytest.mark.parametrize(
    "copied", ["📎 {}", "[存档:{}]", "[工具结果存档: {}]", 'load_tool_history(uuid="{}")']
)
async def test_what_was_copied_with_a_uuid_does_no_harm(collection, copied):
    """A model that copies more of the placeholder than the uuid reads the same page; two uuids are none."""
    chat, page = collection
    part = {"offset": 300, "limit": 500}
    assert await load(chat, page, **part) == await load(chat, copied.format(page), **part)
    other = "00000000-0000-4000-8000-000000000000"
    assert "不是有效的 UUID" in await load(chat, copied.format(page) + other, **part)


# -- F5: placeholders that come back -------------------------------------------------------------------------------------


async def loaded_once(memory):
    """Messages with a placeholder, the same with the page loaded by one manager, and the page's uuid."""
    manager = ToolResultManager(memory)
    shown = await manager.process_tool_result("search_docs", {"question": "审批流"}, handbook(), "conv-1")
    uuid = uuid_in(shown)
    before = [{"role": "user", "content": "问"}, {"role": "tool", "tool_call_id": "1", "content": shown}]
    return before, await manager.prepare_context(before, [uuid]), uuid


@finding("tool-results-F5")
async def test_the_manager_that_loaded_a_page_restores_its_placeholder():
    """What one manager loaded it puts back, as a mapping and as a LangChain message."""
    async with Memory.open("memory://") as memory:
        before, loaded, uuid = await loaded_once(memory)
        manager = ToolResultManager(memory)
        messages = [ToolMessage(content=before[1]["content"], tool_call_id="1")]
        whole = await manager.prepare_context(messages, [uuid])
        assert handbook() == loaded[1]["content"] == whole[0].content
        assert messages == await manager.restore_placeholders(whole)


@finding("tool-results-F5")
async def test_another_manager_restores_a_placeholder():
    """A web service has a manager for each request: the next one puts the placeholder back all the same."""
    async with Memory.open("memory://") as memory:
        before, loaded, _ = await loaded_once(memory)
        assert before == await ToolResultManager(memory).restore_placeholders(loaded)


@finding("tool-results-F5")
async def test_a_placeholder_is_restored_after_a_restart(tmp_path):
    """Messages that were saved with a page in full get their placeholder back from a new process."""
    url = f"sqlite:///{tmp_path}/archive.db"
    async with Memory.open(url) as memory:
        before, loaded, _ = await loaded_once(memory)
    async with Memory.open(url) as memory:
        assert before == await ToolResultManager(memory).restore_placeholders(loaded)


#: A placeholder in messages of other shapes.
SHAPES = {
    "a list of parts": lambda text: {
        "role": "tool",
        "tool_call_id": "1",
        "content": [{"type": "text", "text": text}],
    },
    "Anthropic's block": lambda text: {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "1", "content": text}],
    },
    "Anthropic's block of parts": lambda text: {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": text}]}],
    },
}


@finding("tool-results-F5")
@pytest.mark.parametrize("shape", list(SHAPES))
async def test_a_page_is_loaded_into_and_out_of_other_shapes(shape):
    """A placeholder in a list of parts or in Anthropic's block becomes the page, and a placeholder again."""
    async with Memory.open("memory://") as memory:
        before, _, uuid = await loaded_once(memory)
        messages = [SHAPES[shape](before[1]["content"])]
        manager = ToolResultManager(memory)
        loaded = await manager.prepare_context(messages, [uuid])
        assert [SHAPES[shape](handbook())] == loaded
        assert messages == await manager.restore_placeholders(loaded)


# -- F7: which page a question is about ----------------------------------------------------------------------------------

#: By tool: the question it was called for, its input, its result.
FETCHED = {
    "get_document": ("把和凌峰的合同调出来", {"id": "HT-2025-0318"}, contract),
    "read_log": ("看看支付服务的日志", {"service": "pay"}, payment_log),
    "get_transcript": ("Get me the transcript of the sync", {"meeting": "q2-roadmap"}, transcript),
    "search_docs": ("永策Pro的流程怎么配？", {"question": "流程 配置"}, handbook),
    "bash": ("Run the tests", {"command": "pytest -q"}, output_of_tests),
}
#: Questions about something that is in a page, and the tool that brought the page.
FOLLOW_UPS = {
    "违约金比例是多少": "get_document",
    "验签失败是哪个商户号": "read_log",
    "what did Priya decide about Android": "get_transcript",
    "会签和并行的区别": "search_docs",
    "why did the rounding test fail": "bash",
}
NOT_ABOUT_PAGES = (
    "Before I forget: what's the capital of France?",
    "I have never been to Japan before, is it nice?",
    "今天天气怎么样",
    "第一步先煮水，对吗？教我泡茶",
    "以前我住在北京，推荐个餐厅",
)


def library(strategy: str) -> Settings:
    return Settings(window_tokens=128_000, archive=ArchiveSettings(strategy=strategy, threshold=5000))


async def filled(memory):
    """A conversation with the five pages; the tools that brought them, by uuid."""
    chat = memory.conversation("c", user_id="u")
    brought = {}
    for tool, (question, given, made) in FETCHED.items():
        brought[await kept(chat, question, made(), tool=tool, **given)] = tool
    # A window waits a second for the embedder; loading it takes longer.
    await memory.settle()
    return chat, brought


async def in_full(chat, question) -> list[str]:
    """The tools whose pages are in full in the window for a question."""
    texts = {made(): tool for tool, (_, _, made) in FETCHED.items()}
    window = await chat.context(question)
    return [texts[text] for text in tool_texts(window) if text in texts]


@finding("tool-results-F7")
async def test_the_search_finds_the_page_a_question_is_about():
    """The words of a question find the page whose passages have them."""
    async with Memory.open("memory://", settings=library("model")) as memory:
        chat, brought = await filled(memory)
        for question, tool in FOLLOW_UPS.items():
            hits = await chat.search_tool_history(question)
            assert tool == brought[hits[0].page.uuid], question


@finding("tool-results-F7")
@pytest.mark.parametrize("strategy", ["similarity", "hybrid"])
async def test_similarity_loads_the_page_a_question_is_about(strategy):
    """The strategies that compare load what the question is about, wherever in the stored result it stands."""
    async with Memory.open("memory://", settings=library(strategy)) as memory:
        chat, _ = await filled(memory)
        loaded = {question: await in_full(chat, question) for question in FOLLOW_UPS}
    assert {question: [tool] for question, tool in FOLLOW_UPS.items()} == loaded


@finding("tool-results-F7")
@pytest.mark.parametrize("strategy", ["keyword", "hybrid"])
async def test_a_word_such_as_before_is_no_reason_to_load(strategy):
    """A page is loaded for "the contract from before", and not for a question that is about no page at all."""
    async with Memory.open("memory://", settings=library(strategy)) as memory:
        chat, _ = await filled(memory)
        wanted = await in_full(chat, "之前那份合同的违约金是多少")
        needless = {question: await in_full(chat, question) for question in NOT_ABOUT_PAGES}
    assert ["get_document"] == wanted
    assert [] == [question for question, loaded in needless.items() if loaded]


@finding("tool-results-F7")
async def test_the_search_finds_a_page_in_another_language():
    """A question in English finds the Chinese contract that it is about."""
    async with Memory.open("memory://", settings=library("model")) as memory:
        chat, brought = await filled(memory)
        hits = await chat.search_tool_history("What is the total price of the contract?")
    assert ["get_document"] == [brought[hit.page.uuid] for hit in hits[:1]]


# -- F17: the embedding of a page ------------------------------------------------------------------------------------------


@finding("tool-results-F17")
@pytest.mark.parametrize("embeddings", [True, False])
async def test_the_embedding_of_a_page_can_be_switched(embeddings):
    """With embeddings a page is found by what it is about, in another language; without them only by its words."""
    archive = ArchiveSettings(threshold=5000, embeddings=embeddings)
    async with Memory.open("memory://", settings=Settings(archive=archive)) as memory:
        chat, brought = await filled(memory)
        hits = await chat.search_tool_history("What is the total price of the contract?")
    assert embeddings == ("get_document" in [brought[hit.page.uuid] for hit in hits[:1]])


# -- F11 and F12: how long a page stays, and how often it stands ---------------------------------------------------------


@finding("tool-results-F11")
async def test_a_page_that_was_loaded_once_gives_way():
    """A page is in the window in full in the turn that loads it, and a placeholder in the next."""
    async with Memory.open("memory://", settings=Settings(window_tokens=64_000)) as memory:
        chat = memory.conversation("c", user_id="u")
        page = await kept(chat, "查合同", contract())
        assert [1, 0] == [await copies(chat, "问1", page), await copies(chat, "问2")]


@finding("tool-results-F11")
async def test_a_page_that_was_loaded_twice_gives_way():
    """However often a page was loaded, a turn that does not ask for it has its placeholder."""
    async with Memory.open("memory://", settings=Settings(window_tokens=64_000)) as memory:
        chat = memory.conversation("c", user_id="u")
        page = await kept(chat, "查合同", contract())
        loading = [await copies(chat, "问1", page), await copies(chat, "问2", page)]
        later = [await copies(chat, f"闲聊{n}") for n in range(3)]
    assert [1, 1] == loading
    assert [0, 0, 0] == later


async def copies(chat, question, *pages) -> int:
    """How many copies of the contract are in the window of a turn that loads these pages."""
    turn = await chat.begin(question)
    for page in pages:
        turn = await load_in(chat, turn, page)
    window = await chat.context()
    await chat.complete(turn, "答")
    return tool_texts(window).count(contract())


@finding("tool-results-F12")
async def test_a_page_fetched_and_loaded_in_one_turn_is_once():
    """A page is in a window once: loaded in the turn that fetched it, it is not there twice."""
    async with Memory.open("memory://", settings=Settings(window_tokens=64_000)) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.step(await chat.begin("查合同"), tool="fetch", input={}, result=contract())
        await load_in(chat, turn, page_of(turn))
        assert 1 == tool_texts(await chat.context()).count(contract())


@finding("tool-results-F12")
async def test_a_page_loaded_three_times_in_one_turn_is_once():
    """A page is in a window once, however often the model loads it in a turn."""
    async with Memory.open("memory://", settings=Settings(window_tokens=64_000)) as memory:
        chat = memory.conversation("c", user_id="u")
        page = await kept(chat, "查合同", contract())
        assert 1 == await copies(chat, "再看看", page, page, page)
