"""The pages of docs/: which there are, and the fenced blocks in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Not pages: how pages are written, and what one of them is generated from.
LEFT_OUT = (DOCS / "README.md", DOCS / "requirements")

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`]*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_NOT_RUN = re.compile(r"^ *<!-- not run: (.+) -->$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, and where it stands."""

    page: Path
    #: The line of its first line of text, counted from 1.
    line: int
    language: str
    text: str
    title: str | None = None
    #: Why it is not run, None when it is.
    not_run: str | None = None
    #: Whether only blank lines are between it and the block before it.
    follows: bool = False

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page of the site."""
    return sorted(
        path for path in DOCS.rglob("*.md") if not any(path.is_relative_to(other) for other in LEFT_OUT)
    )


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return list(_blocks(page, page.read_text(encoding="utf-8").splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    number, last, reason = 0, "", None
    follows = False
    while number < len(lines):
        line = lines[number]
        number += 1
        if not (fence := _FENCE.match(line)):
            if line.strip():
                last, follows = line, False
            continue
        indent, info = len(fence["indent"]), fence["info"].strip()
        reason = _NOT_RUN.match(last)
        begin = number
        while number < len(lines) and lines[number].strip() != "```":
            number += 1
        assert number < len(lines), f"{page}:{begin}: the block has no end"
        text = "".join(f"{one[indent:]}\n" for one in lines[begin:number])
        number += 1
        title = _TITLE.search(info)
        yield Block(
            page=page,
            line=begin + 1,
            language=info.partition(" ")[0],
            text=text,
            title=title[1] if title else None,
            not_run=reason[1] if reason else None,
            follows=follows,
        )
        last, follows = "", True
