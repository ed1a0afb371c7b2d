"""What a newcomer reads is in the words of the field, and says nothing that only the authors know."""

import re
from pathlib import Path

import pytest

from .pages import DOCS, ROOT, pages

#: Written for maintainers, about the design documents or about names: they may use every word.
_NOT_FOR_NEWCOMERS = ("documents", "decisions", "reference", "traceability.md", "renamed.md", "benchmarks")
READ_FIRST = [
    *(ROOT / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "examples").glob("*.py")),
    *(page for page in pages() if page.relative_to(DOCS).parts[0] not in _NOT_FOR_NEWCOMERS),
]
#: Words of the design documents, names of constants, and English that reads as translated.
UNKNOWN_TO_A_NEWCOMER = re.compile(
    r"document 00\d|surgery_history|\b(?:FULL_HISTORY|SUMMARY_N)\b"
    r"|\b(?:anew|so many|costs memory|is told|are told|nobody is|whoever|is held about|stands for itself|nothing comes back)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("page", READ_FIRST, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_words_are_those_of_the_field(page: Path):
    lines = page.read_text(encoding="utf-8").splitlines()
    found = [
        f"{number}: {line}" for number, line in enumerate(lines, 1) if UNKNOWN_TO_A_NEWCOMER.search(line)
    ]
    assert [] == found


def test_a_private_word_is_noticed():
    """The test above can fail."""
    assert UNKNOWN_TO_A_NEWCOMER.search("A memory that is down costs memory, never the run.")
    assert UNKNOWN_TO_A_NEWCOMER.search("mode FULL_HISTORY")
    assert not UNKNOWN_TO_A_NEWCOMER.search("If memory is down, the agent keeps running without it.")
