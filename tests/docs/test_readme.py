"""The READMEs do what they say: their examples run against a provider, and it receives what they show."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pagefile import BlockingMemory, Settings
from tests.gateway.upstream import Said, Upstream

ROOT = Path(__file__).parents[2]
READMES = ["README.md", "README.zh-CN.md"]
DAY = re.compile(r"\d{4}-\d\d-\d\d|\w+day\b|星期.")
#: Prose and code; a row of a table or a link is one line, however long.
MAX_COLUMNS = 105


def blocks(name: str) -> list[tuple[str, str]]:
    """The fenced blocks of a README: language and text."""
    return re.findall(
        r"^```(\w*)\n(.*?)^```$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def ran(code: str, folder: Path, upstream: Upstream) -> str:
    """What a program prints that was pasted into a file, with the keys and addresses of this provider in its environment."""
    (folder / "example.py").write_text(code, encoding="utf-8")
    variables = {
        "OPENAI_BASE_URL": f"{upstream.url}/v1",
        "OPENAI_API_KEY": "sk-none",
        "ANTHROPIC_BASE_URL": upstream.url,
        "ANTHROPIC_API_KEY": "sk-none",
        "PATH": "",
    }
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "example.py"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("name", "answer"), [("README.md", "Noted."), ("README.zh-CN.md", "记下了。")])
def test_the_examples_send_what_the_readme_shows(name, answer, tmp_path):
    """OpenAI's client, then Anthropic's in another process; the second request is what is shown, all of it."""
    found = blocks(name)
    examples = [text for language, text in found if language == "python"]
    (shown,) = [text for language, text in found if language == "text"]
    assert ["OpenAI()", "Anthropic()"] == [re.search(r"\w+\(\)", code)[0] for code in examples]
    with Upstream(lambda body: Said(answer)) as upstream:
        for code in examples:
            assert len(code.splitlines()) <= 10
            assert answer == ran(code, tmp_path, upstream).strip()
        (_, _, first), (_, _, second) = upstream.requests
    assert "<memory>" not in str(first)
    (asked,) = second["messages"]
    received = f"system: {_text(second['system'])}\nuser: {_text(asked['content'])}"
    assert DAY.sub("…", shown.strip()) == DAY.sub("…", received)


@pytest.mark.parametrize(
    ("name", "said", "question", "found"),
    [
        ("README.md", "I'm allergic to peanuts.", "Should I order Kung Pao chicken?", "peanuts"),
        ("README.zh-CN.md", "我对花生过敏。", "我能点宫保鸡丁吗？", "花生"),
    ],
)
def test_the_setting_for_lasting_statements_finds_what_the_readme_says(name, said, question, found):
    """In a new conversation, where no word of the question was ever said; without the setting nothing is found."""
    text = (ROOT / name).read_text(encoding="utf-8")
    (written,) = re.findall(r"`settings=(Settings\(.*?\))`", text)
    assert question in text
    seen = []
    for settings in (Settings(), eval(written, {"Settings": Settings})):
        with BlockingMemory.open("memory://", settings=settings) as memory:
            memory.conversation("first", user_id="ada").record(said, "Noted.")
            memory.settle()
            window = memory.conversation("second", user_id="ada").context(question)
            seen.append("\n".join(window.parts.memory.sections.get("facts", ())))
    assert ("", True) == (seen[0], found in seen[1])


def _text(content: str | list[dict[str, Any]]) -> str:
    """What the model reads: whole, or the texts of its blocks."""
    return content if isinstance(content, str) else "\n".join(block["text"] for block in content)


@pytest.mark.parametrize("name", READMES)
def test_lines_are_short(name):
    """Whoever reads the file itself, in an editor or a diff, reads prose and not walls."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [] == [line for line in text.splitlines() if len(line) > MAX_COLUMNS and not line.startswith("|")]


@pytest.mark.parametrize("name", READMES)
def test_links_lead_somewhere(name):
    """Every relative link and picture of a README is a file in the repository."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)|(?:src|srcset)=\"([^\"]+)\"", text):
        assert (ROOT / "".join(target)).exists(), target


def test_badges_say_what_is_so():
    """The Python versions, the licence and the type checking of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    said = {
        name: (ROOT / "docs" / "images" / f"badge-{name}.svg").read_text(encoding="utf-8")
        for name in ("python", "licence", "types", "telemetry")
    }
    assert f"{project['project']['requires-python'].removeprefix('>=')}+" in said["python"]
    assert project["project"]["license"] in said["licence"]
    assert "src" in project["tool"]["pyright"]["strict"]
    assert "pyright strict" in said["types"]
    assert "none" in said["telemetry"]


@pytest.mark.parametrize("name", READMES)
def test_the_chart_is_described_as_it_is(name: str):
    """Who hears the picture is told its numbers."""
    text = (ROOT / name).read_text(encoding="utf-8")
    ((source, described),) = re.findall(r'<img src="([^"]*costs[^"]*)" alt="([^"]*)"', text)
    chart = (ROOT / source).read_text(encoding="utf-8")
    numbers = re.findall(r"\d[\d,]{4,}", described)
    assert 2 == len(numbers)
    assert [] == [one for one in numbers if one not in chart]
