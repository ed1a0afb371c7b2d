"""What the model's tools answer: as much as was asked for, from where it goes on, and an error in words for what makes no sense."""

import json
import re
from collections.abc import AsyncIterator

import pytest

from pagefile.engine import Conversation, Memory
from pagefile.settings import ArchiveSettings, EmbedderSettings, Settings

SETTINGS = Settings(
    window_tokens=4_000,
    archive=ArchiveSettings(threshold=1, page_from=1),
    embedder=EmbedderSettings(name="none"),
)
SENTENCES = " ".join(f"Sentence {n} tells of crate {n * 7} in hall {n % 9}." for n in range(900))
BLOCK = json.dumps([{"type": "text", "text": SENTENCES}])
TABLE = "# Stock\n\n| crate | hall |\n|---|---|\n" + "".join(
    f"| crate {n} | hall {n % 9} |\n" for n in range(900)
)


@pytest.fixture
async def chat() -> AsyncIterator[Conversation]:
    async with Memory.open("memory://", settings=SETTINGS) as memory:
        yield memory.conversation("c", user_id="ada")


async def page_of(chat: Conversation, result: str, said: str = "Please read it") -> str:
    turn = await chat.record(user=said, assistant="OK.", steps=[{"tool": "read", "result": result}])
    return turn.steps[0].page or ""


@pytest.mark.parametrize("result", [BLOCK, TABLE])
async def test_a_part_has_about_the_length_that_was_asked_for(chat: Conversation, result: str):
    """Of a string of JSON, and of a table below a heading; reading on tiles the page exactly."""
    uuid = await page_of(chat, result)
    parts: list[str] = []
    while sum(map(len, parts)) < len(result):
        parts.append(await chat.load(uuid, offset=sum(map(len, parts)), limit=1_000))
        assert len(parts[-1]) <= 1_000
    assert result == "".join(parts)
    assert all(len(part) >= 500 for part in parts[:-1])


async def test_after_a_query_the_call_reads_on_behind_what_was_shown(chat: Conversation):
    """Not from the beginning of the page again."""
    uuid = await page_of(chat, BLOCK)
    text = await chat.call_tool("load_tool_history", {"uuid": uuid, "query": "crate 2345"})
    ends = [int(end) for end in re.findall(r"characters \d+–(\d+) of", text)]
    (offset,) = re.findall(r"offset=(\d+)", text)
    assert int(offset) == max(ends) > 0


@pytest.mark.parametrize("result", [BLOCK, TABLE])
async def test_when_nothing_matches_the_call_reads_on_behind_the_beginning(chat: Conversation, result: str):
    """The end of the page is shown too, but reading on there would skip all that is between."""
    uuid = await page_of(chat, result)
    text = await chat.call_tool("load_tool_history", {"uuid": uuid, "query": "giraffes"})
    offset = int(re.findall(r"offset=(\d+)", text)[0])
    assert 100 < offset < len(result) // 2
    assert result[offset - 20 : offset].strip() in text
    assert result[offset : offset + 20].strip() not in text


async def test_a_limit_of_a_few_words_shows_what_matched_and_reads_on_there(chat: Conversation):
    """There is no room to say where in the page it is."""
    uuid = await page_of(chat, BLOCK)
    text = await chat.call_tool("load_tool_history", {"uuid": uuid, "query": "crate 2345", "limit": 20})
    part, _, more = text.partition("\n[")
    place = BLOCK.index(part)
    assert "2345" in BLOCK[place - 20 : place + 40]
    assert f"offset={place + len(part)}," in more


async def test_a_bare_load_of_a_long_page_does_not_say_that_nothing_matches(chat: Conversation):
    """The model asked for no passage. The question of its turn has no word of the page."""
    uuid = await page_of(chat, BLOCK, "Zebra?")
    turn = await chat.begin("Giraffe elephants?")
    text = await chat.call_tool("load_tool_history", {"uuid": uuid}, turn=turn)
    assert "Sentence 0" in text
    assert "no passage matches" not in text
    asked = await chat.call_tool("load_tool_history", {"uuid": uuid, "query": "giraffe"}, turn=turn)
    assert "no passage matches" in asked


async def test_a_window_that_brings_a_long_page_does_not_say_that_nothing_matches(chat: Conversation):
    """Its question is the user's, and the user did not ask the page."""
    uuid = await page_of(chat, BLOCK, "Zebra?")
    shown = (await chat.context("Giraffe elephants?", load=[uuid])).as_text()
    assert "Sentence 0" in shown
    assert "no passage matches" not in shown


async def test_a_small_limit_shows_the_words_that_matched(chat: Conversation):
    """Of a long line only the part around them."""
    words = " ".join(f"word{n}" for n in range(60))
    uuid = await page_of(chat, f"{SENTENCES}\n{words} zirconium {words}\n{SENTENCES}")
    text = await chat.call_tool("load_tool_history", {"uuid": uuid, "query": "zirconium", "limit": 120})
    assert "zirconium" in text


@pytest.mark.parametrize("tool", ["load_tool_history", "search_tool_history"])
@pytest.mark.parametrize(
    "given", [{"limit": "many"}, {"limit": 0}, {"limit": -3}, {"offset": "x"}, {"query": ["a"]}]
)
async def test_an_argument_that_makes_no_sense_is_named(
    chat: Conversation, tool: str, given: dict[str, object]
):
    """In words, with its value; it is not dropped."""
    uuid = await page_of(chat, BLOCK)
    text = await chat.call_tool(tool, {"uuid": uuid, "query": "crate", **given})
    ((name, value),) = given.items()
    assert text.startswith(f"[bad argument] {name}={value!r}")


@pytest.mark.parametrize(
    ("tool", "given", "named"),
    [
        ("load_tool_history", {"page": 3}, "page"),
        ("load_tool_history", {"start": 10, "query": "crate"}, "start"),
        ("search_tool_history", {"query": "crate", "top_k": 3}, "top_k"),
    ],
)
async def test_an_argument_that_the_tool_does_not_have_is_named(
    chat: Conversation, tool: str, given: dict[str, object], named: str
):
    """Beside those that it has: the model would take the answer for what it asked."""
    uuid = {"uuid": await page_of(chat, BLOCK)} if tool == "load_tool_history" else {}
    text = await chat.call_tool(tool, {**uuid, **given})
    assert text.startswith(f"[unknown argument] {named}")
    assert "limit" in text


async def test_a_load_without_a_uuid_says_what_is_missing(chat: Conversation):
    """Not that an empty text is no uuid."""
    assert "[missing argument] uuid" in await chat.call_tool("load_tool_history", {"query": "crate"})


@pytest.mark.parametrize("given", [{"limit": "many"}, {"page": 3}])
async def test_an_answer_that_names_a_bad_argument_is_recorded_as_it_is(
    chat: Conversation, given: dict[str, object]
):
    """It loaded nothing: neither the turn nor its window says otherwise."""
    asked = {"uuid": await page_of(chat, BLOCK), **given}
    turn = await chat.begin("Which crate?")
    answer = await chat.call_tool("load_tool_history", asked, turn=turn)
    turn = await chat.step(turn, tool="load_tool_history", input=asked, result=answer)
    assert (None, answer) == (turn.steps[0].page, turn.steps[0].result)
    assert "Sentence 5 " not in (await chat.context(turn=turn)).as_text()


async def test_numbers_as_text_and_nulls_are_fine(chat: Conversation):
    """Models write both."""
    uuid = await page_of(chat, BLOCK)
    text = await chat.call_tool(
        "load_tool_history", {"uuid": uuid, "offset": "0", "limit": "600", "query": None}
    )
    assert BLOCK.startswith(text.partition("\n[")[0])


async def test_a_search_returns_as_many_hits_as_asked_for(chat: Conversation):
    """Five by default."""
    for n in range(8):
        await page_of(chat, f"The invoice of supplier {n} is about pallets.")
    every = {}
    for limit in (None, 2, 8):
        text = await chat.call_tool("search_tool_history", {"query": "invoice pallets", "limit": limit})
        every[limit] = text.count("📎")
    assert {None: 5, 2: 2, 8: 8} == every
