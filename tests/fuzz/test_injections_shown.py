"""The same texts where people read them: a terminal obeys none of them, a log gains no line, a page gains no element."""

import json
import logging
import unicodedata
from html.parser import HTMLParser

import anyio
import pytest

from pagefile import Memory, Settings
from pagefile.cli.output import clipped, out, table, visible
from pagefile.inspector.markup import document, el
from pagefile.service.logs import _TEXT, JsonLines, TextLines
from pagefile.settings import ArchiveSettings
from tests.acceptance.cli_calling import pagefile

from .injections import ALL

SMALL = Settings(archive=ArchiveSettings(threshold=400))
#: Characters that turn the direction of what follows them, so that a name reads as another.
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
#: What a terminal may be sent.
ALLOWED = "\n"


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal would do something about."""
    kinds = {"Cc", "Cs", "Zl", "Zp"}
    return {c for c in text if (unicodedata.category(c) in kinds and c not in ALLOWED) or c in TURNING}


@pytest.mark.parametrize("text", [*ALL, "\ud800 half a character"])
def test_what_is_visible_does_nothing(text):
    """And what needs no care is left as it is: Chinese, accents, emoji made of several."""
    assert set() == obeyed(visible(text))
    assert set() == obeyed(visible(text, lines=True).replace("\t", ""))
    assert set() == obeyed(clipped(text))
    visible(text).encode()
    made = table("一", "二")
    made.add_row(clipped(text), visible(text))
    console = out()
    with console.capture() as printed:
        console.print(made)
    assert set() == obeyed(printed.get())


def test_plain_words_are_left_alone():
    """Nothing is shown as an escape that is only a letter."""
    for text in ("🧑‍⚕️ 正常", "naïve café", "العربية", "हिन्दी", "a\u200bb"):
        assert text == visible(text)


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> str:
    """A memory full of it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('cli')}/x.db"

    async def filled() -> None:
        async with Memory.open(url, settings=SMALL) as memory:
            for number, text in enumerate(ALL):
                one_line = " ".join(text.split()) or "x"
                chat = memory.conversation(f"{one_line[:60]}{number}", user_id="u")
                steps = [{"tool": f"web {one_line[:40]}", "input": {"q": text}, "result": text * 60}]
                await chat.record(f"密码 {text}", text + "。", steps=steps if number % 4 == 0 else [])
                await memory.remember(f"{number} {text}", user_id="u", category=one_line[:30])
            await memory.conversation("main", user_id="u").context("密码")

    anyio.run(filled)
    return url


@pytest.mark.slow
def test_no_command_passes_it_on_to_the_terminal(database, monkeypatch):
    """Lists, one record, windows, receipts, facts, pages, errors that quote an argument."""
    monkeypatch.setenv("PAGEFILE_URL", database)
    some = json.loads(pagefile("show", "--json").out)[0]["conversation_id"]
    pages = json.loads(pagefile("archive", "ls", "--json").out)["pages"]
    assert pages
    commands = [
        ["show"],
        ["show", some],
        ["context", some, "密码"],
        ["recall", "密码", "--user-id", "u"],
        ["facts", "list", "u"],
        ["facts", "revisions", "u"],
        ["archive", "ls"],
        ["calls", "main"],
        *(["archive", "show", page["uuid"]] for page in pages[:3]),
        *(["show", text] for text in ALL[:: len(ALL) // 6]),
        ["archive", "search", "密码", "--user-id", "u"],
    ]
    for command in commands:
        said = pagefile(*command)
        assert said.code in {0, 1, 3}, (command, said.err)  # 2 is a command that there is not
        assert set() == obeyed(said.out), command
        assert set() == obeyed(said.err.replace("\t", "")), command


@pytest.mark.parametrize("text", ALL)
def test_a_log_has_one_line_for_each_record(text):
    """Whatever an error quotes: a line of the log cannot be forged."""
    record = logging.LogRecord("pagefile", logging.INFO, "x.py", 1, "failed: %s", (text,), None)
    line = JsonLines().format(record)
    assert 1 == len(line.split("\n"))
    assert f"failed: {text}" == json.loads(line)["message"]
    shown = TextLines(_TEXT).format(record)
    assert 1 == len(shown.splitlines())
    assert set() == obeyed(shown)


class Seen(HTMLParser):
    """What a page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


@pytest.mark.parametrize("text", ALL)
def test_a_page_gains_no_element_and_no_attribute(text):
    """In a text, in an attribute, in a title."""
    page = document(el("html", el("body", el("p", text, title=text), el("a", text, href="/x", id=text))))
    seen = Seen()
    seen.feed(page)
    assert ["html", "body", "p", "a"] == [tag for tag in seen.tags if tag not in {"head", "meta"}]
    assert {"title", "href", "id"} >= set(seen.attributes)
