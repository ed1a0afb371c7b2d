"""Writes what the blocks of a page print into the page: `python -m tests.docs.filling docs/tutorial.md`.

Only what no longer matches is replaced; ids, times and hashes become `…`. Read the result before you commit it: what the page
shows is what the tests hold it to.
"""

import os
import re
import socket
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from .pages import Block, blocks
from .playing import COLUMNS, Player, matches
from .servers import Servers

_VARIES = [
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    r"\b[0-9a-f]{8}-[0-9a-f]{4}…",
    r"\b[0-9a-f]{8}…",
    r"\bcall_[0-9a-f]{12}",
    r"\b\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)?",
    r"\b\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?",
    r"\b20\d\d-\d\d-\d\d\b",
    r"(?m)^[0-9a-z]{12}(?=  )",
    r"(?<=prefix )[0-9a-f]{12}",
    r"(?m)^[0-9a-f]{8}(?=   )",
    r"(?<=pagefile explain )[0-9a-f]{8}\b",
    r"\bpf_\w+",
]


class Filler(Player):
    """A player that takes notes instead of complaining."""

    def __init__(self, addresses: dict[str, str], stack: ExitStack) -> None:
        super().__init__(addresses, stack)
        #: First and last line (counted from 0, the last not included) and what is to be there.
        self.edits: list[tuple[int, int, list[str]]] = []

    def printed(self, block: Block, text: str, output: Block | None) -> None:
        if output is None:
            if text:
                end = block.line - 1 + len(block.text.splitlines()) + 1
                self.edits.append((end, end, ["", "```text", *tidied(text), "```"]))
        elif not matches(output.text, self.shown(text, output)):
            begin = output.line - 1
            end = begin + len(output.text.splitlines())
            self.edits.append((begin, end, tidied(self.shown(text, output))))

    def compared(self, line: int, shown: str, text: str, where: str) -> None:
        if not matches(shown, text):
            self.edits.append((line, line + len(shown.splitlines()), tidied(text)))


def tidied(text: str) -> list[str]:
    """Lines with `…` for what differs from run to run."""
    for pattern in _VARIES:
        text = re.sub(pattern + "(?=  )", lambda found: "…".ljust(len(found[0])), text)
        text = re.sub(pattern, "…", text)
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def fill(page: Path) -> None:
    """Play a page and write what was printed."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        servers = Servers(stack)
        here = Path.cwd()
        os.chdir(folder)
        filler = Filler(servers.named_in(page.read_text(encoding="utf-8")), stack)
        try:
            filler.play(blocks(page))
        finally:
            os.chdir(here)
            lines = page.read_text(encoding="utf-8").splitlines()
            for begin, end, text in sorted(filler.edits, reverse=True):
                lines[begin:end] = text
            page.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            print(f"{page}: {len(filler.edits)} outputs written")


if __name__ == "__main__":
    os.environ["COLUMNS"] = COLUMNS
    socket.setdefaulttimeout(60)
    for name in sys.argv[1:]:
        fill(Path(name).resolve())
