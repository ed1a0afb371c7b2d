"""Finding F1: a long text that a tool wraps in JSON can be shown and loaded in part, like a bare one."""

import json
import re

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from pagefile import Memory, Settings
from pagefile.integrations.langchain import PagefileMiddleware
from pagefile.integrations.pydantic_ai import PagefileMemory
from tests.acceptance.http_serving import serving
from tests.findings.marks import finding
from tests.integration.langchain.models import Recorder, calls_tool
from tests.integration.pydantic_ai.agents import Script

from .made import ANSWER, QUESTION, WRAPPINGS, load, minutes, output_of_tests, page_of, tool_texts

HERE = {"conversation_id": "c", "user_id": "ann"}
FETCHED = {"url": "https://example.org/a", "title": "Minutes", "content": minutes()}
wrapped = pytest.mark.parametrize("wrapping", list(WRAPPINGS))


def english(window: int) -> Settings:
    return Settings(window_tokens=window, language="en")


async def fetching(memory, result):
    """A conversation whose open turn has just fetched a result."""
    chat = memory.conversation("c", user_id="u")
    turn = await chat.begin(QUESTION)
    return chat, await chat.step(turn, tool="fetch", input={"of": "minutes"}, result=result)


@finding("tool-results-F1")
@pytest.mark.parametrize("window", [16_000, 32_000])
async def test_bare_text_is_shown_and_loaded_in_part(window):
    """Of a text too long for the window, the turn that fetched it and the load tool show the passage that answers."""
    async with Memory.open("memory://", settings=english(window)) as memory:
        chat, turn = await fetching(memory, minutes())
        assert ANSWER in tool_texts(await chat.context())[0]
        assert ANSWER in await load(chat, page_of(turn), query="launch code word")
        assert (await load(chat, page_of(turn))).count("was recorded by committee") >= 5


@finding("tool-results-F1")
@wrapped
@pytest.mark.parametrize("window", [16_000, 32_000])
async def test_the_fetching_turn_sees_the_answer_inside_json(window, wrapping):
    """The turn that fetched a long text in JSON sees the part of it that answers the question."""
    async with Memory.open("memory://", settings=english(window)) as memory:
        chat, _ = await fetching(memory, WRAPPINGS[wrapping](minutes()))
        shown = await chat.context()
        assert shown.tokens <= window
        assert ANSWER in tool_texts(shown)[0]


@finding("tool-results-F1")
@wrapped
async def test_a_query_finds_its_passage_inside_json(wrapping):
    """Loading by query brings the passage that answers, also when it stands inside a JSON string."""
    async with Memory.open("memory://", settings=english(32_000)) as memory:
        chat, turn = await fetching(memory, WRAPPINGS[wrapping](minutes()))
        assert ANSWER in await load(chat, page_of(turn), query="launch code word")


@finding("tool-results-F1")
@wrapped
async def test_a_load_without_a_query_brings_text_that_is_inside_json(wrapping):
    """Loading a page too long for the window brings a good part of its text, never only word that nothing fits."""
    async with Memory.open("memory://", settings=english(32_000)) as memory:
        chat, turn = await fetching(memory, WRAPPINGS[wrapping](minutes()))
        assert (await load(chat, page_of(turn))).count("was recorded by committee") >= 5


@finding("tool-results-F1")
async def test_a_query_reaches_json_inside_json():
    """A text that was encoded twice, JSON in a string of JSON, is still reached by a query."""
    rows = [{"id": n, "said": f"value {n}"} for n in range(4000)]
    rows[2000]["said"] = f"the launch code word is {ANSWER}"
    async with Memory.open("memory://", settings=english(32_000)) as memory:
        chat, turn = await fetching(memory, json.dumps({"result": json.dumps({"rows": rows})}))
        assert ANSWER in await load(chat, page_of(turn), query="launch code word")


@finding("tool-results-F1")
async def test_langchain_shows_the_answer_inside_json():
    """A LangChain tool that returns a page in a mapping leaves its answer readable for the next model call."""

    @tool
    def fetch() -> dict:
        """Fetch the minutes."""
        return FETCHED

    model = Recorder(script=[calls_tool("fetch"), AIMessage("ok")])
    async with Memory.open("memory://", settings=english(16_000)) as memory:
        agent = create_agent(model, [fetch], middleware=[PagefileMiddleware(memory, user_id="u")])
        asked = {"messages": [HumanMessage(QUESTION)]}
        await agent.ainvoke(asked, {"configurable": {"thread_id": "t"}})
    assert ANSWER in model.calls[-1][-1].text


@finding("tool-results-F1")
async def test_pydantic_ai_shows_the_answer_inside_json():
    """A PydanticAI tool that returns a page in a mapping leaves its answer readable for the next model call."""
    script = Script(("fetch", {}), "ok")
    async with Memory.open("memory://", settings=english(16_000)) as memory:
        agent = script.agent(PagefileMemory(memory, user_id="u", conversation_id="c"))
        agent.tool_plain(lambda: FETCHED, name="fetch")
        await agent.run(QUESTION)
    assert ANSWER in script.sent[-1].returned[-1]


async def posted(client, path, **body):
    answer = await client.post(f"/v1/{path}", json={**HERE, **body})
    return answer.raise_for_status().json()


async def fetched_over_http(client):
    """A turn that fetched the minutes in a mapping; the uuid of their page."""
    await posted(client, "turns/begin", id="t1", user=QUESTION)
    turn = await posted(client, "turns/step", turn_id="t1", tool="fetch", input={}, result=FETCHED)
    return turn["steps"][0]["page"]


@finding("tool-results-F1")
async def test_the_service_shows_the_answer_inside_json():
    """Over HTTP, too, the turn that fetched a page in a mapping sees the part that answers."""
    async with serving(Settings(url="memory://", language="en")) as client:
        await fetched_over_http(client)
        window = await posted(client, "context", turn_id="t1")
    assert ANSWER in next(m["content"] for m in window["messages"] if m["role"] == "tool")


@finding("tool-results-F1")
async def test_the_service_loads_by_query_inside_json():
    """Over HTTP, too, the load tool finds its passage inside a JSON string."""
    async with serving(Settings(url="memory://", language="en")) as client:
        wanted = {"uuid": await fetched_over_http(client), "query": "launch code word"}
        told = await posted(client, "tools/call", turn_id="t1", name="load_tool_history", arguments=wanted)
    assert ANSWER in told["text"]


# -- F10: what a hook has room for, without the SDK ----------------------------------------------------------------------


@finding("tool-results-F10")
@pytest.mark.parametrize(
    "prompt", ["run pytest", "跑一下测试，看看哪些失败了", "Make the invoices round half up"]
)
async def test_1500_tokens_of_a_run_of_tests_say_how_it_ended(prompt):
    """Whatever was asked, the failures and the totals are among what is shown, also inside of a shell's JSON."""
    async with Memory.open("memory://", settings=english(32_000)) as memory:
        for result in (output_of_tests(), {"stdout": output_of_tests(), "stderr": "", "exit_code": 1}):
            chat, turn = await fetching(memory, result)
            shown = await chat.load(page_of(turn), query=prompt, limit=1_500)
            assert "2 failed, 410 passed" in shown
            assert "FAILED tests/test_mod_11.py::test_refund_rounding" in shown


@finding("tool-results-F1")
@wrapped
async def test_an_offset_that_is_told_leads_to_the_text_that_was_shown(wrapping):
    """The characters that an excerpt names are those of the page, byte for byte."""
    async with Memory.open("memory://", settings=english(32_000)) as memory:
        chat, turn = await fetching(memory, WRAPPINGS[wrapping](minutes()))
        shown = await chat.load(page_of(turn), query="launch code word", limit=400)
        before = shown[: shown.index(ANSWER)]
        start, end = map(int, re.findall(r"\[… characters (\d+)–(\d+) of", before)[-1])
        part = await chat.load(page_of(turn), offset=start, limit=end - start)
        assert ANSWER in part
        assert (await chat.load(page_of(turn)))[start : start + len(part)] == part
