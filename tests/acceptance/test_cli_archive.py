"""`pagefile archive`: a guide in Chinese and a search in English, listed, read, found, pinned and purged."""

import json
from pathlib import Path

import anyio
import pytest
from rich.cells import cell_len

from pagefile import Memory
from tests.acceptance.cli_calling import Said, pagefile, table_widths

GUIDE = "# 永策Pro 配置指南\n\n" + "".join(
    [f"第{number}节：安装包下载后双击运行，按提示完成安装并重启。\n\n" * 4 for number in range(100)]
    + ["第三步：打开系统设置，填写服务器地址 10.0.0.1 和端口 8443，然后点击测试连接。\n"]
)
HOTELS = (
    "1. [Memmo Alfama](https://example.org/memmo)\nA hotel with a terrace above the river.\n\n"
    + "".join(
        f"{number}. The tram passes the old cathedral of Lisbon every ten minutes, day and night.\n\n"
        for number in range(150)
    )
)
NOBODYS = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(autouse=True)
def _at_a_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory, 80 columns, no settings of the person who runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("PAGEFILE_URL", "PAGEFILE_CONFIG", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


async def _recorded() -> list[str]:
    async with Memory.open() as memory:
        clinic = memory.conversation("门诊/一号诊室", user_id="王芳")
        trip = memory.conversation("trip", user_id="ann")
        asked = {"query": "永策Pro 的详细配置步骤以及所有参数的含义、取值范围和推荐值"}
        turns = [
            await clinic.record(
                "怎么配置？",
                "见附件。",
                steps=[{"tool": "search_yongce_docs", "input": asked, "result": GUIDE}],
            ),
            await trip.record(
                "Hotels?",
                "Here.",
                steps=[{"tool": "web", "input": {"q": "hotels in Lisbon"}, "result": HOTELS}],
            ),
        ]
        for chat in (clinic, trip):
            # What is in a window in use is not purged.
            await chat.reset()
        return [turn.steps[0].page or "" for turn in turns]


@pytest.fixture
def pages() -> list[str]:
    """Two archived pages of two users: the guide, then the hotels."""
    return anyio.run(_recorded)


def complaint(said: Said, code: int) -> str:
    """What is on stderr of a command that failed; stdout stays empty."""
    assert (code, "") == (said.code, said.out)
    return said.err


def tight(text: str) -> str:
    """Text as it reads without any wrapping."""
    return "".join(text.split())


# -- looking --------------------------------------------------------------------------------------------------------------


def test_pages_are_listed_newest_first(pages: list[str]):
    """With sizes for people, whose they are, and what they come to."""
    said = pagefile("archive", "ls")
    assert 0 == said.code
    assert said.out.index(pages[1]) < said.out.index(pages[0])
    for part in (
        "search_yongce_docs",
        "门诊/一号诊室",
        "hotels in Lisbon",
        "永策Pro 的详细配置",
        " kB",
        "trip",
    ):
        assert part in said.out
    assert said.out.splitlines()[-1].startswith(f"2 pages · {len(GUIDE) + len(HOTELS):,} characters · ")
    assert said.out.rstrip().endswith(" on disk")
    found = pagefile("archive", "ls", "--json").json
    assert (pages[::-1], False) == ([page["uuid"] for page in found["pages"]], found["more"])
    assert found["totals"]["stored_bytes"] == sum(page["stored_bytes"] for page in found["pages"])


@pytest.mark.parametrize(
    ("options", "whose"),
    [
        (("--user", "王芳"), 0),
        (("--user-id", "ann"), 1),
        (("--conversation", "trip"), 1),
        (("-c", "门诊/一号诊室"), 0),
    ],
    ids=str,
)
def test_a_list_can_be_narrowed(pages: list[str], options: tuple[str, ...], whose: int):
    """To a user, or to a conversation."""
    assert [pages[whose]] == [
        page["uuid"] for page in pagefile("archive", "ls", *options, "--json").json["pages"]
    ]


def test_a_long_list_says_so(pages: list[str]):
    """The totals are those of all pages, shown or not."""
    said = pagefile("archive", "ls", "--limit", "1")
    assert pages[0] not in said.out
    assert "--limit 10 shows them" in said.out
    assert "2 pages · " in said.out
    found = pagefile("archive", "ls", "--limit", "1", "--json").json
    assert (1, True, 2) == (len(found["pages"]), found["more"], found["totals"]["pages"])


def test_a_page_is_shown_without_its_text(pages: list[str]):
    """What it is, what is in it, where it came from; the text only when asked for."""
    said = pagefile("archive", "show", pages[1])
    for part in (
        pages[1],
        '{"q": "hotels in Lisbon"}',
        "ann",
        "trip",
        "archived",
        f"{len(HOTELS):,} characters",
    ):
        assert part in said.out
    assert "https://example.org/memmo" in said.out, "its sources"
    assert "synopsis" in said.out
    assert len(said.out) < len(HOTELS)
    assert pagefile("archive", "show", pages[1], "--json").json["text"] is None


def test_a_page_is_shown_whole_by_part_and_by_question(pages: list[str]):
    """Byte for byte, from a character on, or the passages that answer."""
    assert [GUIDE, HOTELS] == [
        pagefile("archive", "show", uuid, "--full", "--json").json["text"] for uuid in pages
    ]
    assert tight(GUIDE) in tight(pagefile("archive", "show", pages[0].upper(), "--full").out)
    part = pagefile("archive", "show", pages[0], "--offset", "0", "--limit", "500", "--json").json["text"]
    assert GUIDE.startswith(part)
    assert 0 < len(part) <= 500
    said = pagefile("archive", "show", pages[0], "--limit", "500")
    assert f"{len(GUIDE) - len(part):,} more characters: --offset {len(part)}" in said.out
    rest = pagefile("archive", "show", pages[0], "--offset", str(len(part)), "--json").json["text"]
    assert GUIDE == part + rest
    assert "8443" in pagefile("archive", "show", pages[0], "--query", "第三步的端口", "--limit", "500").out
    assert "terrace" in pagefile("archive", "show", pages[1], "--query", "a hotel above the river").out


def test_pages_are_found(pages: list[str]):
    """By what is written in them, in either language, with the passage and where it stands."""
    said = pagefile("archive", "search", "第三步的端口", "--user", "王芳", "--full")
    assert pages[0] in said.out
    assert "8443" in said.out
    hit = pagefile("archive", "search", "terrace above the river", "--user", "ann", "--json").json[0]
    assert pages[1] == hit["page"]["uuid"]
    assert HOTELS[hit["start"] :].startswith(hit["passage"])
    assert "terrace" in pagefile("archive", "search", "terrace", "-c", "trip", "--user-id", "ann").out


@pytest.mark.parametrize(
    "arguments",
    [("ls",), ("show",), ("search", "第三步 tram", "--user", "王芳"), ("purge", "--max-bytes", "0", "--yes")],
    ids=" ".join,
)
def test_chinese_lines_up(pages: list[str], arguments: tuple[str, ...]):
    """Every line of a table is as wide as its rule, and everything fits into 80 columns."""
    said = pagefile("archive", *arguments, *(pages[:1] if arguments == ("show",) else ()))
    assert all(cell_len(line) <= 80 for line in said.out.splitlines())
    assert 1 == len(table_widths(said.out.partition("\n\n")[0])), said.out


@pytest.mark.usefixtures("pages")
def test_a_window_shows_a_page(pages: list[str]):
    """`context --load` brings a page back for one window; one that is not there is a warning."""
    ask = ("context", "门诊/一号诊室", "第三步再说一下", "--json")
    plain, loaded = pagefile(*ask).json, pagefile(*ask, "--load", pages[0]).json
    assert GUIDE not in [message["content"] for message in plain["messages"]]
    assert loaded["tokens"] > plain["tokens"]
    assert any("8443" in (message["content"] or "") for message in loaded["messages"])
    said = pagefile("context", "门诊/一号诊室", "第三步", "--load", NOBODYS)
    assert 0 == said.code
    assert f"page {NOBODYS} stays a placeholder" in " ".join(said.err.split())


# -- keeping and purging ----------------------------------------------------------------------------------------------------


def test_a_pinned_page_outlives_a_purge(pages: list[str]):
    """The other becomes a tombstone that still says what it was; the bytes are told."""
    assert f"Pinned {pages[0]}" in pagefile("archive", "pin", pages[0]).out
    said = pagefile("archive", "purge", "--uuid", pages[0], "--older-than", "0s", "--yes")
    assert "is pinned and stays" in said.err
    assert pages[1] in said.out
    assert pages[0] not in said.out
    assert said.out.splitlines()[-1].startswith("Purged 1 page: ")
    listed = pagefile("archive", "ls").out
    assert f"{pages[0]} pinned" in listed
    assert f"{pages[1]} purged" in listed
    assert "2 pages · 1 pinned · 1 purged · " in listed
    assert "the text is gone" in pagefile("archive", "show", pages[1]).out
    assert "was purged at" in complaint(pagefile("archive", "show", pages[1], "--full"), 3)
    assert "was purged at" in complaint(pagefile("archive", "pin", pages[1]), 3)
    assert [False] == [pagefile("archive", "unpin", pages[0], "--json").json["pinned"]]
    assert 0 == pagefile("archive", "purge", "--uuid", pages[0], "-y").code


def test_purging_for_a_script(pages: list[str]):
    """JSON names the tombstones and the bytes; nothing to purge is 3 and an empty list."""
    size = pagefile("archive", "show", pages[0], "--json").json["page"]["stored_bytes"]
    gone = pagefile("archive", "purge", "--max-bytes", "0", "--user", "王芳", "--yes", "--json").json
    assert ([pages[0]], size) == ([page["uuid"] for page in gone["purged"]], gone["bytes_freed"])
    again = pagefile("archive", "purge", "--uuid", pages[0], "--yes", "--json")
    assert (3, [], 0) == (again.code, again.json["purged"], again.json["bytes_freed"])
    assert 3 == pagefile("archive", "purge", "--older-than", "30d", "--max-bytes", "100MB", "-y").code


def test_a_text_that_others_hold_frees_nothing():
    """Equal text is stored once, and goes with the last page that holds it."""
    first, _ = anyio.run(_recorded)
    second, _ = anyio.run(_recorded)
    assert first != second
    one = pagefile("archive", "purge", "--uuid", first, "--yes", "--json").json
    assert (1, 0) == (len(one["purged"]), one["bytes_freed"])
    other = pagefile("archive", "purge", "--uuid", second, "--yes", "--json").json
    assert other["bytes_freed"] == other["purged"][0]["stored_bytes"] > 0


@pytest.mark.parametrize(
    ("size", "kept"), [("0", 0), ("1B", 0), ("0.001 kB", 0), ("100MB", 2), ("1.5GiB", 2), ("1TB", 2)]
)
@pytest.mark.usefixtures("pages")
def test_sizes_as_people_write_them(size: str, kept: int):
    """A number, or a number and its unit."""
    pagefile("archive", "purge", "--max-bytes", size, "--yes")
    found = pagefile("archive", "ls", "--json").json["pages"]
    assert kept == len([page for page in found if page["purged"] is None])


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize("length", ["10s", "5m", "12h", "30d", "2w", "1.5 H"])
def test_times_as_people_write_them(length: str):
    """What is younger stays."""
    assert "nothing to purge" in complaint(pagefile("archive", "purge", "--older-than", length, "-y"), 3)


# -- exit codes ---------------------------------------------------------------------------------------------------------------


def test_nothing_there_is_3(pages: list[str]):
    """A page, a hit, a database that is not there; a purge that names one stranger purges nobody."""
    for uuid in (NOBODYS, "nope", "病历"):
        assert complaint(pagefile("archive", "show", uuid), 3).startswith("error: ")
        assert complaint(pagefile("archive", "pin", uuid), 3).startswith("error: ")
        assert complaint(pagefile("archive", "purge", "--uuid", pages[0], "--uuid", uuid, "-y"), 3)
    assert 3 == pagefile("archive", "show", pages[0], "--tenant", "other").code
    assert "No archived page here answers" in complaint(
        pagefile("archive", "search", "斑马", "--user", "ann"), 3
    )
    assert "no archived pages here" in complaint(pagefile("archive", "ls", "--user", "nobody"), 3)
    empty = pagefile("archive", "ls", "--user", "nobody", "--json")
    assert (3, [], 0) == (empty.code, empty.json["pages"], empty.json["totals"]["pages"])
    assert "There is no database" in complaint(pagefile("archive", "ls", "--db", "none.db"), 3)
    found = pagefile("archive", "ls", "--json").json["pages"]
    assert [None, None] == [page["purged"] for page in found]


@pytest.mark.parametrize(
    "wrong",
    [
        ("purge",),
        ("purge", "--yes"),
        ("purge", "--max-bytes", "10XB", "--yes"),
        ("purge", "--max-bytes", "-1", "--yes"),
        ("purge", "--older-than", "soon", "--yes"),
        ("purge", "--older-than", "30", "--yes"),
        ("purge", "--older-than", "999999999999999d", "--yes"),
        ("purge", "--older-than", "0s"),
        ("search", "x"),
        ("show",),
        ("show", NOBODYS, "--full", "--limit", "5"),
        ("ls", "--limit", "0"),
        (),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("pages")
def test_written_wrongly_is_2(wrong: tuple[str, ...]):
    """Nothing is purged by a slip of the hand, nor when there is nobody to ask."""
    assert 2 == pagefile("archive", *wrong).code
    assert 2 == len([p for p in pagefile("archive", "ls", "--json").json["pages"] if p["purged"] is None])


def test_json_is_pure(pages: list[str]):
    """Stdout is JSON and nothing else, stderr is quiet, Chinese stays readable."""
    for arguments in (
        ("ls",),
        ("show", pages[0], "--limit", "300"),
        ("search", "配置", "--user", "王芳"),
        ("pin", pages[0]),
        ("unpin", pages[0]),
        ("purge", "--uuid", pages[0], "--yes"),
    ):
        said = pagefile("archive", *arguments, "--json")
        assert (0, "") == (said.code, said.err)
        json.loads(said.out)
        assert "\\u" not in said.out
