"""Output: tables for people, JSON for scripts, everything else on stderr."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import ceil
from typing import Literal

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagefile.plain import plain
from pagefile.text.visible import visible

_BAR_CELLS = 40

Justify = Literal["left", "right"]


def out() -> Console:
    """The console for results. User content is never interpreted as markup."""
    return Console(markup=False, highlight=False, emoji=False)


def err() -> Console:
    """The console for progress, questions and errors."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def complain(message: str) -> None:
    """Print an error to stderr, in full however narrow the terminal."""
    err().print(Text("error: ", style="bold red") + Text(visible(message, lines=True)), soft_wrap=True)


def warn(message: str) -> None:
    """Print a warning."""
    err().print(Text("warning: ", style="yellow") + Text(visible(message, lines=True)), soft_wrap=True)


def say(text: str | Text = "") -> None:
    """Print a line of the result."""
    out().print(text, soft_wrap=True)


# -- JSON --------------------------------------------------------------------------------------------------------------


def print_json(value: object) -> None:
    """Print a value as JSON; characters that stdout cannot encode are escaped."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=not utf8, indent=2) + "\n")


# -- tables ------------------------------------------------------------------------------------------------------------


def table(*columns: str, right: Sequence[str] = (), wraps: Sequence[str] = ()) -> Table:
    """A table readable at 80 columns: the last column, and those named in `wraps`, may wrap."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        justify: Justify = "right" if column in right else "left"
        one_line = column != columns[-1] and column not in wraps
        # Chinese has no spaces to break at: folding breaks anywhere, other modes would truncate.
        made.add_column(
            column, justify=justify, no_wrap=one_line, overflow="ellipsis" if one_line else "fold"
        )
    return made


def print_table(made: Table) -> None:
    """Print a table to stdout."""
    out().print(made)


def show_counts(counts: Mapping[str, int]) -> None:
    """Print the number of removed rows by table."""
    made = table("rows", "of", right=("rows",))
    for name, count in counts.items():
        made.add_row(number(count), name)
    made.add_section()
    made.add_row(number(sum(counts.values())), "in all")
    print_table(made)


def clipped(text: str, cells: int = 60) -> str:
    """The beginning of a text on one line, up to a width in cells (a Chinese character takes two)."""
    line = visible(" ".join(text.split()))
    return line if cell_len(line) <= cells else set_cell_size(line, cells - 1).rstrip() + "…"


def moment(at: datetime) -> str:
    """A time in the local time zone."""
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


def number(value: float) -> str:
    """A whole number with thousands separators."""
    return f"{value:,}"


def plural(count: int, word: str) -> str:
    """`1 turn`, `2 turns`, `2 entries`."""
    if count == 1:
        return f"1 {word}"
    return (
        f"{number(count)} {word.removesuffix('y')}ies" if word.endswith("ry") else f"{number(count)} {word}s"
    )


def bar(share: float, cells: int = _BAR_CELLS) -> str:
    """A ratio as a bar."""
    filled = min(cells, ceil(share * cells))
    return "█" * filled + "░" * (cells - filled)
