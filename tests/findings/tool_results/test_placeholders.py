"""Findings F8, F13 to F16 and F23: what is said of a page that is not in view, and whether it can be had."""

import re
import sqlite3
from datetime import timedelta

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from pagefile import Memory, Settings
from pagefile.integrations.langchain import PagefileMiddleware
from pagefile.integrations.pydantic_ai import PagefileMemory
from pagefile.standalone import load_tool_history_schema, tool_schemas
from tests.acceptance.cli_calling import pagefile
from tests.acceptance.http_serving import serving
from tests.findings.marks import finding
from tests.integration.langchain.models import Recorder

from .made import (
    all_text,
    contract,
    handbook,
    kept,
    load,
    minutes,
    output_of_tests,
    payment_log,
    tool_texts,
    transcript,
)

# -- F8: a page that gave way can be told from the others ----------------------------------------------------------------

#: Results by what was asked for.
ASKED = {
    "service contract": contract,
    "payment log": payment_log,
    "committee minutes": minutes,
    "flow handbook": handbook,
    "roadmap transcript": transcript,
    "nightly tests": output_of_tests,
}


async def demoted() -> str:
    """What stands for a contract of 8,000 characters that gave way to two handbooks fetched after it."""
    async with Memory.open("memory://", settings=Settings(window_tokens=16_000)) as memory:
        chat = memory.conversation("c", user_id="u")
        fetched = {"service contract": contract(), "flow handbook": handbook(), "old handbook": handbook(70)}
        for query, text in fetched.items():
            step = {"tool": "search", "input": {"q": query}, "result": text[:8000]}
            await chat.record("查一下", "好", steps=[step])
        note = tool_texts(await chat.context("你好"))[0]
    if len(note) > 4000:
        raise LookupError("The contract did not give way: the window is too large for this test.")
    return note


@finding("tool-results-F8")
async def test_a_result_that_gave_way_says_what_was_asked():
    """What stands for a result of middle length has the query that brought it."""
    assert "service contract" in await demoted()


@finding("tool-results-F8")
async def test_a_result_that_gave_way_has_a_summary():
    """What stands for a result of middle length says something of what is in it."""
    assert "技术服务合同" in await demoted()


@finding("tool-results-F8")
async def test_a_checkpoint_says_which_page_is_which():
    """Beside each uuid that a checkpoint names stand the tool and the query that brought the page."""
    async with Memory.open("memory://", settings=Settings(window_tokens=8000)) as memory:
        chat = memory.conversation("c", user_id="u")
        pages = {}
        for number, query in enumerate(ASKED):
            text = ASKED[query]() * 2
            pages[query] = await kept(chat, "看一下", text, tool=f"source_{number}", query=query)
        await chat.checkpoint("看过几份资料。", recent_turns=1)
        said = all_text(await chat.context("合同的仲裁条款在哪？"))
    covered = list(pages.items())[:-1]
    if any(uuid not in said for _, uuid in covered):
        raise LookupError("The checkpoint does not name its pages.")
    unnamed = [query for query, uuid in covered if query not in around(uuid, said)]
    untold = [
        number for number, (_, uuid) in enumerate(covered) if f"source_{number}" not in around(uuid, said)
    ]
    assert ([], []) == (unnamed, untold)


@finding("tool-results-F8")
async def test_the_guide_names_the_search_tool():
    """The guide that comes with a placeholder tells the model of both tools, to load and to search."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        await kept(chat, "查合同", contract())
        system = (await chat.context("之前的合同？")).messages[0]
    assert "load_tool_history" in system["content"]
    assert "search_tool_history" in system["content"]


def around(uuid: str, text: str) -> str:
    """What is between the uuids next to this one, this one included."""
    place = text.index(uuid)
    others = [m.span() for m in re.finditer(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text)]
    before = max((end for _, end in others if end <= place), default=0)
    after = min((start for start, _ in others if start > place), default=len(text))
    return text[before:after]


# -- F13: what is no source ----------------------------------------------------------------------------------------------

PYTHON = '''"""A client of a service, in Python."""

import typing


class Request:
    method: str
    url: URL | str
    title: str = ""

''' + "".join(
    f'''
    def get_{n}(
        self,
        url: URL | str,
        *,
        source: str,
        link: typing.Optional[str] = None,
    ) -> "Response":
        """Send a GET request to resource {n}."""
        return self.request("GET", url)
'''
    for n in range(60)
)
STUB = "from typing import overload\n\n" + "".join(
    f"class Node{n}:\n    title: str\n    url: str\n    source: bytes | None\n    def link(self) -> str: ...\n\n"
    for n in range(120)
)
JAVASCRIPT = '"use strict";\n\n' + "".join(
    f"module.exports.make{n} = function (options) {{\n  return {{\n    title: options.title,\n"
    f"    url: options.url || base,\n    source: 'none',\n  }};\n}};\n\n"
    for n in range(100)
)
CONTENTS = {
    "reg_id": "angui_2024",
    "items": [
        {
            "title": f"第{n}章 设备{n}",
            "page_start": n * 10,
            "children": [{"title": f"{n}.{k} 小节"} for k in range(20)],
        }
        for n in range(1, 40)
    ],
}
CODE = {"Python": PYTHON, "a stub": STUB, "JavaScript": JAVASCRIPT}


async def sources_of(result) -> list[str]:
    """The sources that Pagefile names for a result."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        page = await chat.page(await kept(chat, "看一下", result, tool="read_file"))
        return list(page.sources)


@finding("tool-results-F13")
async def test_a_reference_is_a_source():
    """Titles and addresses below a heading of references are the sources of a text."""
    text = f"{handbook()}\n\n## References\n[1] Flow manual (https://example.org/flow)\n"
    assert ["Flow manual (https://example.org/flow)"] == await sources_of(text)


@finding("tool-results-F13")
@pytest.mark.parametrize("language", list(CODE))
async def test_code_names_no_sources(language):
    """A field called `url` or `title` in a program is no source of it."""
    assert [] == await sources_of(CODE[language])


@finding("tool-results-F13")
async def test_chapters_are_no_sources():
    """The chapters of a table of contents are what the document has, not where it comes from."""
    assert [] == [source for source in await sources_of(CONTENTS) if "章" in source or "小节" in source]


# -- F14: the scenes in which to load ------------------------------------------------------------------------------------


def scenes_in(description: str) -> list[str]:
    """Which of three scenes a description tells of."""
    scenes = {
        "details": ("细节", "asks about details"),
        "what was found": ("回顾", "reviewed"),
        "words such as": ("刚才", '"just now"'),
    }
    return [name for name, words in scenes.items() if any(word in description for word in words)]


ALL_SCENES = ["details", "what was found", "words such as"]


@finding("tool-results-F14")
def test_the_documents_schema_has_the_scenes():
    """The tool's schema tells a model in which three scenes to load."""
    assert ALL_SCENES == scenes_in(load_tool_history_schema["description"])


@finding("tool-results-F14")
@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("shape", ["plain", "openai", "responses", "anthropic", "mcp"])
def test_the_schemas_for_an_own_loop_have_the_scenes(language, shape):
    """`tool_schemas()`, which an agent's own loop offers, tells a model in which scenes to load, whatever API it is for."""
    offered = {tool["name"]: tool for tool in (s.get("function", s) for s in tool_schemas(language, shape))}
    assert ALL_SCENES == scenes_in(offered["load_tool_history"]["description"])


@finding("tool-results-F14")
async def test_the_service_offers_the_scenes():
    """The tools that the service lists tell a model in which scenes to load."""
    async with serving() as client:
        listed = (await client.get("/v1/tools")).raise_for_status().json()["items"]
    offered = {item["name"]: item["description"] for item in listed}
    assert ALL_SCENES == scenes_in(offered["load_tool_history"])


class Offered(Recorder):
    """A model that remembers the descriptions of its tools."""

    described: dict = {}  # noqa: RUF012 - pydantic copies defaults

    def bind_tools(self, tools, **kwargs):
        self.described.update({each.name: each.description for each in tools})
        return super().bind_tools(tools, **kwargs)


@finding("tool-results-F14")
async def test_langchain_offers_the_scenes():
    """The load tool of a LangChain agent tells the model in which scenes to load."""
    model = Offered(script=[AIMessage("ok")])
    async with Memory.open("memory://") as memory:
        agent = create_agent(model, [], middleware=[PagefileMiddleware(memory, user_id="u")])
        await agent.ainvoke({"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": "t"}})
    assert ALL_SCENES == scenes_in(model.described["load_tool_history"])


@finding("tool-results-F14")
async def test_pydantic_ai_offers_the_scenes():
    """The load tool of a PydanticAI agent tells the model in which scenes to load."""
    described = {}

    def model(messages, info):
        described.update({each.name: each.description for each in info.function_tools})
        return ModelResponse([TextPart("ok")])

    async with Memory.open("memory://") as memory:
        plugged = PagefileMemory(memory, user_id="u", conversation_id="c")
        await Agent(FunctionModel(model), capabilities=[plugged]).run("hi")
    assert ALL_SCENES == scenes_in(described["load_tool_history"])


# -- F15: a page that the window invites to load -------------------------------------------------------------------------


@finding("tool-results-F15")
async def test_what_a_window_invites_to_load_can_be_loaded():
    """After a purge a window still tells of the page, and either it loads or nothing invites the model to load it."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        page = await kept(chat, "查合同", contract())
        await memory.purge(older_than=timedelta(0))
        said = all_text(await chat.context("之前的合同？"))
        loads = "杭州仲裁委员会" in await load(chat, page, query="争议 仲裁")
    assert page in said
    assert loads or f'load_tool_history(uuid="{page}")' not in said


# -- F16: the column of the full text ------------------------------------------------------------------------------------


@finding("tool-results-F16")
async def test_the_documents_column_has_the_full_text(tmp_path):
    """`SELECT result_full FROM tool_result_archive` returns what the tool returned."""
    async with Memory.open(f"sqlite:///{tmp_path}/archive.db") as memory:
        page = await kept(memory.conversation("c", user_id="u"), "查合同", contract())
    database = sqlite3.connect(tmp_path / "archive.db")
    try:
        rows = database.execute(
            "SELECT result_full FROM tool_result_archive WHERE uuid = ?", [page]
        ).fetchall()
    finally:
        database.close()
    assert [(contract(),)] == rows


# -- F23: the search of the command line ---------------------------------------------------------------------------------


@finding("tool-results-F23")
def test_the_command_shows_what_it_found(tmp_path, monkeypatch):
    """`pagefile archive search` shows the words that were sought where they stand, not the head of a passage."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("PAGEFILE_URL", "PAGEFILE_CONFIG", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    async def record() -> None:
        async with Memory.open("sqlite:///a.db") as memory:
            await kept(memory.conversation("c", user_id="ann"), "查合同", contract())

    anyio.run(record)
    said = pagefile("archive", "search", "杭州仲裁委员会", "--db", "a.db", "--user-id", "ann")
    assert 0 == said.code, said.err
    assert "本合同争议提交杭州仲裁委员会仲裁" in "".join(said.out.split())
