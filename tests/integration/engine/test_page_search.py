"""Archived pages are found by the words of the answer: quoted, in a row, or in another language."""

import logging

import anyio
import pytest

from pagefile.engine import Memory
from pagefile.models.embedders import MemoryEncoder
from pagefile.records import Page, Scope
from pagefile.settings import ArchiveSettings, EmbedderSettings, Settings
from pagefile.tiers.page_search import PageSearch
from pagefile.tiers.vocabulary import words_in

ALL_PAGES = ArchiveSettings(threshold=1, page_from=1)
WORDS = Settings(archive=ALL_PAGES, embedder=EmbedderSettings(name="none"))


async def searched(results: dict[str, str], query: str, settings: Settings = WORDS) -> str:
    """The name of the result that a search finds first."""
    async with Memory.open("memory://", settings=settings) as memory:
        chat = memory.conversation("c", user_id="ada")
        pages: dict[str, str] = {}
        for name, result in results.items():
            turn = await chat.record(user=name, assistant="OK.", steps=[{"tool": "read", "result": result}])
            pages[turn.steps[0].page or ""] = name
        await memory.settle()
        hits = await chat.search_tool_history(query)
        return pages[hits[0].page.uuid] if hits else ""


async def test_a_quotation_finds_the_result_that_has_it_to_the_letter():
    """Another has the same words, more often, in another order and with other white space."""
    span = "    let total = sum(lines) + tax(lines, rate);\n"
    other = "tax(lines, rate); lines total rate = sum(tax) let lines\n" * 4
    assert "quoted" == await searched(
        {"quoted": f"fn bill() {{\n{span}}}\n" + "other text\n" * 60, "other": other}, span
    )


async def test_words_in_a_row_count_more_than_the_same_words_apart():
    """Both have all words of the query equally often."""
    filler = "nothing of it is here, only pallets and doors. " * 20
    apart = f"The winter was mild. {filler} A surcharge was discussed. winter {filler} surcharge"
    together = f"The winter surcharge was mild. {filler} A thing was discussed. {filler} winter surcharge"
    assert "together" == await searched({"together": together, "apart": apart}, "winter surcharge")


async def test_a_word_of_another_language_finds_the_page():
    """No word is shared; what the page is about is something else, and the word is one of many."""
    filler = "货物按计划入库，盘点没有差异，班组交接正常。" * 60
    pages = {
        "arbitration": f"{filler}争议提交杭州仲裁委员会仲裁。{filler}",
        "elevator": f"{filler}电梯每半年检修一次，费用由业主分摊。{filler}",
    }
    settings = Settings(archive=ALL_PAGES, embedder=EmbedderSettings(query_timeout_s=30))
    assert "arbitration" == await searched(pages, "Where does arbitration take place?", settings)
    assert "elevator" == await searched(pages, "How often is the elevator inspected?", settings)


@pytest.mark.parametrize(
    ("question", "expected"),
    [("哪个证书过期了？", "certificate"), ("数据库迁移为什么失败", "migration"), ("网关的镜像版本", "image")],
)
async def test_the_glossary_finds_the_page_without_an_embedder(question: str, expected: str):
    """A Chinese question shares a word with the Chinese pages only, and what it asks for is in an English one."""
    filler = "the relay answered and nothing else happened on this line. " * 30
    pages = {
        "certificate": f"{filler}\ncertificate of mail-2 expired\n{filler}",
        "migration": f"{filler}\ndatabase migration 0042 failed: lock\n{filler}",
        "image": f"{filler}\ngateway runs image 2.41 of that release\n{filler}",
        "门店": "门店为什么调价的说明，哪个都可以。" * 30,
    }
    assert expected == await searched(pages, question)


@pytest.mark.parametrize("query", ["noeviction", "298417", "is it noeviction?"])
async def test_a_rare_word_finds_the_only_page_that_has_it(query: str):
    """Whatever else is about something more alike: to an encoder, one unusual word is like anything."""
    filler = "cache memory policy keys are written and read all day, clients come and go. " * 80
    pages = {"settings": f"{filler}\nmaxmemory_policy:noeviction limit 298417\n{filler}"}
    topics = ("where one can say it", "numbers of rooms and what they say", "evictions of tenants", "policy")
    pages |= {topic: f"{topic}. {topic}, and where it is said. " * 40 for topic in topics}
    settings = Settings(archive=ALL_PAGES, embedder=EmbedderSettings(query_timeout_s=30))
    assert "settings" == await searched(pages, query, settings)


def test_chinese_words_are_told_from_pairs_of_characters():
    """A pair that is a word comes twice: as a word and as a pair."""
    assert {"仲裁", "委员会", "certif"} == words_in(
        ["仲裁", "仲裁", "裁委", "委员会", "委员", "certif", "of", "a1b2"]
    )


async def test_an_embedder_that_is_still_loading_is_no_failure(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """The search goes by words, and the log says so in one line, without a traceback."""

    async def never(self: MemoryEncoder, texts: list[str]) -> object:
        await anyio.sleep(60)

    monkeypatch.setattr(MemoryEncoder, "_rows", never)
    settings = Settings(archive=ALL_PAGES, embedder=EmbedderSettings(query_timeout_s=0.05))
    async with Memory.open("memory://", settings=settings) as memory:
        chat = memory.conversation("c", user_id="ada")
        await chat.record(
            user="q", assistant="a", steps=[{"tool": "read", "result": "the arbitration clause"}]
        )
        with caplog.at_level(logging.WARNING, "pagefile"):
            for _ in range(3):
                assert await chat.search_tool_history("arbitration")
    # With every search of the process, and a line for the first.
    assert 1 == caplog.text.count("The embedder did not answer in time")
    assert "archive: The embedder did not answer in time: pages are found by words only." in caplog.text
    assert "tier failed" not in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_page_that_is_purged_while_it_is_indexed_is_left_out(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """The worker had listed it already: the others are indexed, and the log has no error."""
    own = PageSearch._text

    async def purged_before(self: PageSearch, scope: Scope, uuid: str) -> str | None:
        if not purged:
            purged.extend(await memory.purge(user_id="ada", uuids=[uuid]))
        return await own(self, scope, uuid)

    purged: list[Page] = []
    monkeypatch.setattr(PageSearch, "_text", purged_before)
    async with Memory.open("memory://", settings=WORDS) as memory:
        chat = memory.conversation("c", user_id="ada")
        with caplog.at_level(logging.ERROR, "pagefile"):
            for name in ("arbitration", "elevator"):
                await chat.record(
                    user=name, assistant="OK.", steps=[{"tool": "read", "result": f"the {name}"}]
                )
            await memory.settle()
        left = await chat.search_tool_history("arbitration elevator")
    assert 1 == len(purged)
    assert 1 == len(left)
    assert purged[0].uuid != left[0].page.uuid
    assert "" == caplog.text
