"""The READMEs do what they say: their example runs, and prints what they show."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pagefile import Conversation, Memory

ROOT = Path(__file__).parents[2]
READMES = ["README.md", "README.zh-CN.md"]
UUIDS = re.compile(r"[0-9a-f]{8}-")


def blocks(name: str) -> list[tuple[str, str]]:
    """The fenced blocks of a README: language and text."""
    return re.findall(
        r"^```(\w*)\n(.*?)^```$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize("name", READMES)
def test_the_example_prints_what_the_readme_shows(name, tmp_path):
    """Run as a user would: pasted into a file, in an empty folder."""
    found = blocks(name)
    at = next(n for n, (language, _) in enumerate(found) if language == "python")
    code, shown = found[at][1], found[at + 1][1]
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", "example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert UUIDS.sub("…", shown) == UUIDS.sub("…", ran.stdout)


@pytest.mark.parametrize("name", READMES)
def test_the_list_of_verbs_is_complete(name):
    """Every verb that the README lists exists, and every verb that exists is listed."""
    section = re.split(r"^## ", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE)[3]
    lists = [span for span in re.findall(r"`([^`]+)`", section) if "·" in span]
    listed = {verb for span in lists for verb in re.findall(r"[a-z_]+", span)}
    verbs = {verb for face in (Memory, Conversation) for verb in dir(face) if not verb.startswith("_")}
    # What makes a handle, and what is no verb.
    assert {"conversation", "open", "id", "scope", "settings"} == verbs - listed
    assert set() == listed - verbs


@pytest.mark.parametrize("name", READMES)
def test_links_lead_somewhere(name):
    """Every relative link of a README is a file in the repository."""
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target
