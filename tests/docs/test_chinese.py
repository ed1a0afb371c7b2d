"""The Chinese pages do what the English ones do: the same blocks in the same order, with samples in Chinese."""

import re
from pathlib import Path

import pytest

from .pages import DOCS, Block, blocks

ENGLISH = [DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("*.md"))]
#: What a block prints may be longer or shorter in another language, and may need no block.
OUTPUTS = {"text", "json"}
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def shape(page: Path) -> list[tuple[str, ...]]:
    """What the blocks of a page are: language, file, and the commands of a transcript."""
    return [
        (block.language, block.title or "", *commands(block))
        for block in blocks(page)
        if block.language not in OUTPUTS
    ]


def commands(block: Block) -> list[str]:
    """The commands of a transcript by name: `pagefile archive ls`."""
    if block.language != "console":
        return []
    lines = re.findall(r"^\$ (?:[A-Z_]+=\S+ )*(.+)$", block.text, re.MULTILINE)
    words = [re.sub(r" --db \S+", "", line).split() for line in lines]
    return [" ".join(line[: 3 if line[1] in {"archive", "keys"} else 2]) for line in words]


def headings(page: Path) -> list[int]:
    """How deep the headings of a page are, in order."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]


@pytest.mark.parametrize("page", ENGLISH, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_twin_does_the_same(page: Path):
    """Sections, blocks, files and commands are those of the English page, in the same order."""
    twin = DOCS / "zh" / page.relative_to(DOCS)
    assert headings(page) == headings(twin)
    assert shape(page) == shape(twin)


@pytest.mark.parametrize("page", ENGLISH, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_twin_is_chinese(page: Path):
    """Its prose is, and so are its conversations: no English question is left in what is recorded."""
    twin = DOCS / "zh" / page.relative_to(DOCS)
    prose = re.sub(r"^```.*?^```$", "", twin.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    paragraphs = [part for part in prose.split("\n\n") if part.strip() and not part.startswith("<!--")]
    assert [] == [part for part in paragraphs if not CHINESE.search(part)]
    for block in blocks(twin):
        said = re.findall(r"""(?:user|assistant|--user|--assistant)[= ]f?"([^"]+)\"""", block.text)
        assert [] == [text for text in said if not CHINESE.search(text)], block.where
