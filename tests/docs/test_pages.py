"""Every block of every page does what it says."""

import re
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from .pages import DOCS, ROOT, Block, blocks, pages
from .playing import COLUMNS, RUN, SHOWN, Player, matches
from .servers import SERVICE, Servers

#: Blocks that nothing here can run; each says why on the page. No more than these.
MAX_NOT_RUN = 8
#: What in a block needs an extra of Pagefile.
EXTRAS = {
    "langchain": r"^from pagefile\.integrations\.langchain ",
    "langgraph": r"^from pagefile\.integrations\.langgraph",
    "pydantic-ai": r"^from pagefile\.integrations\.pydantic_ai ",
    "claude": r"^from pagefile\.integrations\.claude_agent ",
}


@pytest.fixture(scope="module")
def servers():
    """Those that the pages name, each started once for all pages."""
    with ExitStack() as stack:
        yield Servers(stack)


@pytest.fixture
def player(request, servers, tmp_path, monkeypatch):
    """A reader with an empty folder and no network."""
    page = getattr(request.node, "callspec", None) and request.node.callspec.params.get("page")
    text = page.read_text(encoding="utf-8") if page else SERVICE
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", COLUMNS)
    # A reader who runs pytest has none of the plugins that come with our other tools.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:langsmith_plugin -p no:schemathesis -p no:valkey")
    monkeypatch.setattr(socket.socket, "connect", _at_home(socket.socket.connect))
    with ExitStack() as stack:
        yield Player(servers.named_in(text), stack)


def _at_home(connect):
    """`connect` for addresses of this machine."""

    def connected(self, address):
        assert self.family == socket.AF_UNIX or address[0] in {"127.0.0.1", "::1", "localhost"}, address
        return connect(self, address)

    return connected


PLAYED = [page for page in pages() if any(block.language in RUN for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PLAYED, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_page_does_what_it_says(page: Path, player: Player):
    """Pasted one after the other, its blocks run and print what the page shows."""
    player.play(blocks(page))


def test_every_block_says_what_it_is():
    """A language that the tests know; settings, transcripts and code cannot hide behind another word."""
    unknown = [block.where for page in pages() for block in blocks(page) if block.language not in RUN | SHOWN]
    assert [] == unknown


def test_what_is_not_run_is_counted():
    """A block that cannot be run says why, and there are few."""
    left_out = [block for page in pages() for block in blocks(page) if block.not_run]
    # A Chinese page is left out for the reason of its English twin, which counts once.
    reasons = {block.not_run for block in left_out}
    assert len(reasons) <= MAX_NOT_RUN, reasons
    assert [] == [block.where for block in left_out if len(block.not_run or "") < 20]


def test_chinese_pages_match():
    """The tutorial and every how-to are there in both languages."""
    english = {path.name for path in (DOCS / "howto").glob("*.md")}
    assert english == {path.name for path in (DOCS / "zh" / "howto").glob("*.md")}
    assert (DOCS / "zh" / "tutorial.md").exists()


def missing_extras(page: Path) -> set[str]:
    """What a page's Python and commands need and its own `pip install` does not name; nothing where it has none."""
    found = blocks(page)
    installs = [
        line for one in found if one.language == "sh" for line in one.text.splitlines() if "pip" in line
    ]
    if not installs:
        return set()
    named = {
        extra
        for line in installs
        for extras in re.findall(r"\[([\w,-]+)\]", line)
        for extra in extras.split(",")
    }
    code = "\n".join(one.text for one in found if one.language in {"python", "console"})
    return {extra for extra, needs in EXTRAS.items() if re.search(needs, code, re.MULTILINE)} - named


@pytest.mark.parametrize("page", PLAYED, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_install_line_brings_what_the_page_imports(page: Path):
    """Who followed it to the letter does not stumble over an import further down."""
    assert set() == missing_extras(page)


@pytest.mark.parametrize("page", ["tutorial.md", "zh/tutorial.md"])
def test_the_tutorial_can_be_pasted(page: str):
    """Before Python 3.13 an empty line ends a block at the prompt; only files (those with a title) may have one inside."""
    pasted = [one for one in blocks(DOCS / page) if one.language == "python" and not one.title]
    assert [] == [one.where for one in pasted if re.search(r"\n\n+[ \t]", one.text)]


# -- the tests above can fail -----------------------------------------------------------------------------------------


def block(language: str, text: str, **more) -> Block:
    return Block(page=ROOT / "docs" / "none.md", line=3, language=language, text=text, **more)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a … c\n", "a bb c\n", True),
        ("a … c\n", "a b\nc\n", False),
        ("a\n…\nz\n", "a\nb\nc\nz\n", True),
        ("a\n…\nz\n", "a\nz\n", True),
        ("a\n", "a   \n\n", True),
        ("a\n", "b\n", False),
        ("", "a\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_what_varies(shown: str, printed: str, same: bool):
    """`…` is anything on its line, and alone on a line any lines; everything else is exact."""
    assert same == matches(shown, printed)


@pytest.mark.parametrize(
    "wrong",
    [
        [block("python", "1 / 0\n")],
        [block("python", "print('a')\n")],
        [block("python", "import anyio\nawait anyio.sleep(0)\n")],
        [block("python", "print('a')\n"), block("text", "b\n", follows=True)],
        [block("console", "$ pagefile --version\npagefile 9\n")],
        [block("console", "$ pagefile nonsense\n…\n")],
        [block("console", "$ shutdown now\n")],
        [block("toml", "windowtokens = 1\n")],
        [block("yaml", "memory:\n  enabled: maybe\n")],
        [block("json", "{\n")],
        [block("sh", "pip install 'pagefile[magic]'\n")],
        [block("sh", "make magic\n")],
        [block("sh", "reboot\n")],
        [block("bash", f"curl --fail {SERVICE}/v1/magic\n")],
        [block("text", "$ pagefile show\n")],
        [
            block(
                "python",
                "import socket\nwith socket.socket() as away:\n    away.connect(('192.0.2.1', 80))\n",
            )
        ],
    ],
)
def test_a_wrong_block_is_noticed(player: Player, wrong: list[Block]):
    """Code that fails, output that differs, settings, extras, targets and routes that do not exist."""
    with pytest.raises(BaseException, match=r"."):
        player.play(wrong)


def test_a_missing_extra_is_noticed(tmp_path: Path):
    """The extra that the last block needs is not in the first."""
    page = tmp_path / "page.md"
    text = "```sh\npip install '.[redis]'\n```\n\n```python\nfrom pagefile.integrations.langgraph import ConversationGraph\n```\n"
    page.write_text(text, encoding="utf-8")
    assert {"langgraph"} == missing_extras(page)
    page.write_text(text.replace("redis", "redis,langgraph"), encoding="utf-8")
    assert set() == missing_extras(page)


def test_blocks_share_what_they_made(player: Player, tmp_path: Path):
    """Names, files, the database and the service of a page."""
    player.play(
        [
            block("toml", "language = 'en'\n", title="pagefile.toml"),
            block("console", "$ pagefile record c --user Hello --assistant Hi\n…\n"),
            block("console", "$ pagefile serve\nPagefile serves sqlite:///pagefile.db at …\n…\n"),
            block("bash", f"curl '{SERVICE}/v1/turns?conversation_id=c' | grep -o Hello\n"),
            block("text", "Hello\n", follows=True),
            block("python", "x = 1\n"),
            block("python", "print(x + 1)\n"),
            block("text", "2\n", follows=True),
        ]
    )
    assert re.search("en", (tmp_path / "pagefile.toml").read_text(encoding="utf-8"))
