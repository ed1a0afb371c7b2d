"""Output for people: tables and texts on stdout, everything else on stderr."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from typing import TypeAlias, TypeVar

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagefile.cli.measures import moment, number
from pagefile.text.visible import visible

T = TypeVar("T")
#: What a cell of a table may hold: numbers and times are formatted, None is left empty.
Cell: TypeAlias = str | int | datetime | None


def out() -> Console:
    """The console for results. User content is never interpreted as markup."""
    return Console(markup=False, highlight=False, emoji=False)


def err() -> Console:
    """The console for progress, questions and errors."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def complain(message: str) -> None:
    """Print an error to stderr, in full however narrow the terminal."""
    _print(err(), Text("error: ", style="bold red") + Text(visible(message, lines=True)))


def warn(message: str) -> None:
    _print(err(), Text("warning: ", style="yellow") + Text(visible(message, lines=True)))


def say(text: str | Text = "") -> None:
    _print(out(), text)


def _print(console: Console, text: str | Text) -> None:
    """A terminal would cut words at its edge; a file and a pipe get lines as they are."""
    console.print(text, soft_wrap=not console.is_terminal)


class WordWrap:
    """Writes a text piece by piece, as a model says it, and breaks lines between words; Chinese characters, which take two cells, anywhere.

    What nobody reads any more (`pagefile chat | head`) is dropped: the answer is finished and recorded, and the next line printed ends the command.
    """

    def __init__(self, console: Console) -> None:
        self._file = console.file
        self._width = console.width if console.is_terminal else None
        self._column = 0
        self._word = ""

    def feed(self, text: str) -> None:
        with suppress(BrokenPipeError):
            for character in visible(text, lines=True):
                if character.isspace() or cell_len(character) > 1:
                    self._flush()
                    self._put(character)
                else:
                    self._word += character
            if self._width is None:
                self._flush()
            self._file.flush()

    def end(self) -> None:
        """Write what is left, and end the line if something is on it."""
        with suppress(BrokenPipeError):
            self._flush()
            if self._column:
                self._put("\n")
            self._file.flush()

    def _flush(self) -> None:
        word, self._word = self._word, ""
        if self._width is not None and self._column and self._column + cell_len(word) > self._width:
            self._put("\n")
        self._file.write(word)
        self._column += cell_len(word)

    def _put(self, character: str) -> None:
        if character == "\n":
            self._column = 0
            self._file.write(character)
            return
        wide = cell_len(character)
        if self._width is not None and self._column + wide > self._width:
            self._file.write("\n")
            self._column = 0
            if character.isspace():
                return
        self._file.write(character)
        self._column += wide


def chosen(record: object, names: str) -> dict[str, object]:
    """Some attributes of a record for scripts, named in one string as for `namedtuple`."""
    return {name: getattr(record, name) for name in names.split()}


# -- tables ------------------------------------------------------------------------------------------------------------


def table(*columns: str, right: Sequence[str] = (), wraps: Sequence[str] = ()) -> Table:
    """A table readable at 80 columns: the last column, and those named in `wraps`, may wrap."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        one_line = column != columns[-1] and column not in wraps
        made.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=one_line,
            # Chinese has no spaces to break at: folding breaks anywhere, other modes would truncate.
            overflow="ellipsis" if one_line else "fold",
        )
    return made


def print_table(made: Table) -> None:
    out().print(made)


def show_table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, total: Sequence[Cell] = (), apart: bool = False
) -> None:
    """Print rows under their columns: `>name` is aligned right, `~name` may wrap. A rule comes before `total`; with `apart`, after every row."""
    named = {marker: [one[1:] for one in columns if one.startswith(marker)] for marker in ">~"}
    made = table(*(one.lstrip(">~") for one in columns), right=named[">"], wraps=named["~"])
    for row in rows:
        made.add_row(*map(_cell, row), end_section=apart)
    if total:
        made.add_section()
        made.add_row(*map(_cell, total))
    print_table(made)


def show_records(
    records: Iterable[T], columns: Mapping[str, Callable[[T], Cell]], *, apart: bool = False
) -> None:
    """Print a row per record; a column, marked as in `show_table`, says what it shows of one."""
    show_table([*columns], ([cell(one) for cell in columns.values()] for one in records), apart=apart)


def _cell(value: Cell) -> str:
    if isinstance(value, datetime):
        return moment(value)
    return number(value) if isinstance(value, int) else value or ""


def show_counts(counts: Mapping[str, int], title: str) -> None:
    """What was erased, in words; the tables' own names are in the JSON."""
    say(f"{title}\n")
    words = import_module("pagefile.inspector.page_request").words()
    rows = [(count, words[f"erased.{name}"][0]) for name, count in counts.items() if count]
    show_table((">rows", "of"), rows, total=(sum(counts.values()), "in all"))


# -- cells -------------------------------------------------------------------------------------------------------------


def clipped(text: str, cells: int = 60) -> str:
    """The beginning of a text on one line, up to a width in cells (a Chinese character takes two)."""
    line = visible(" ".join(text.split()))
    return line if cell_len(line) <= cells else set_cell_size(line, cells - 1).rstrip() + "…"


def shortened(text: str, cells: int, *, full: bool) -> str:
    """The whole text with its line breaks if `full`, otherwise its beginning on one line."""
    return visible(text, lines=True) if full else clipped(text, cells)
