"""Tables in text: CSV, Markdown, the clients of databases, columns aligned by spaces."""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, zip_longest

from pagefile.text.synopsis.kinds import delimiter, line_count
from pagefile.text.synopsis.records import ASKED, Flat, example, extremes, notable, tallies
from pagefile.text.synopsis.wording import Voice, squeeze

#: Beyond this, rows are counted by line ends.
_COUNTED_CHARS = 2_000_000
_MOST_LINES = 50_000
_LINE_CHARS = 1_000
_RULE = re.compile(r"[ \t:|+=┌├└╞┏┡┣┬┼┴╪╇━─┐┤┘╡┓┩┫-]{3,}+$")
_CELLS = re.compile(r"[|│┃]")
_NUMBER = re.compile(r"[-+]?[\d.,:/]+(?:[KMGTkmgi]{1,3}B?|%|ms|[smhdy]\d*[smh]?)?$")
#: The line above a row that is printed one value a line, and such a value.
_ROW_TITLE = re.compile(r"(?m)^(?:\*{3,} \d+\. row \*{3,}|-\[ RECORD \d+ \][-+]*)[ \t]*$")
_NAMED_CELL = re.compile(r"(?m)^[ \t]*([^\n:|]{1,60}?)[ \t]*[:|][ \t]*([^\n]*)$")
_COUNTS = re.compile(
    r"(?i)\b(?:total|found)\b.*\d|\d+ (?:vulnerabilit|issues|errors|findings)|[共合总]计?\s*\d"
)
#: What begins a row that sums up the others.
_TOTAL = re.compile(r"(?i)(?:grand |sub)?totals?|sum|overall|all files|[合总共小]计")
#: What divides columns whose values have spaces.
_WIDE_GAP = r" {2,}|\t"
#: How far from the end such a row may be.
_LAST_ROWS = 5
_FOOTER = re.compile(r"\(?(\d[\d,]*) (?:rows?|行)(?: in set| affected|记录)?.*$")


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: its header, its first rows, and how many it has in all."""

    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    count: int
    exact: bool = True
    title: str = ""
    #: A line above it that counts.
    counts: str = ""
    #: Its last rows, where there are more than `rows`.
    last: Sequence[Sequence[str]] = ()


def describe_grid(grid: Grid, say: Voice) -> list[str]:
    header = [name or str(at + 1) for at, name in enumerate(grid.header)]
    columns = say.listed(header, len(header), most=110, name_chars=40)
    about = "" if grid.exact else say("约 ", "about ")
    kind = say(f"{grid.name} 表格" if grid.name else "表格", f"{grid.name} table" if grid.name else "Table")
    title = say(f"《{grid.title}》", f'"{grid.title}", ') if grid.title else ""
    rows = [row for row in grid.rows if not _sums_up(row)]
    flats: list[Flat] = [dict(zip_longest(header, row[: len(header)], fillvalue="")) for row in rows]
    sums = [" ".join(row) for row in [*grid.rows[-_LAST_ROWS:], *grid.last] if _sums_up(row)]
    return [
        squeeze(grid.counts, 90),
        squeeze(sums[-1], 90) if sums else "",
        say(
            f"{title}{kind}，{about}{grid.count:,} 行数据，",
            f"{title}{kind}, {about}{grid.count:,} rows, ".lstrip(),
        )
        + say(f"{len(header)} 列：{columns}", f"{len(header)} columns: {columns}"),
        extremes(flats, say) or notable(flats, say),
        tallies(flats, say, most=160),
        say("首行：", "First row: ") + _first_row(flats, say) if flats else "",
    ]


def _sums_up(row: Sequence[str]) -> bool:
    return bool(row) and _TOTAL.fullmatch(row[0].strip(" :*")) is not None


def _first_row(flats: Sequence[Flat], say: Voice) -> str:
    return example(flats[0], [], say, most=160)


def grid_in(text: str) -> Grid | None:
    """The table that a text consists of, drawn or aligned; None if it is none."""
    lines = [line[:_LINE_CHARS] for line in text[:64_000].splitlines() if line.strip()]
    return _drawn(text, lines) or _ruled_by_header(text, lines) or _aligned(text, lines)


def vertical_grid(text: str) -> Grid | None:
    r"""Rows printed one below the other, each value behind the name of its column: `\G` in mysql, `\x` in psql."""
    if not _ROW_TITLE.search(text[:_LINE_CHARS]):
        return None
    rows: list[dict[str, str]] = [
        {cell[1]: cell[2] for cell in _NAMED_CELL.finditer(part)}
        for part in islice(_ROW_TITLE.split(text[:_COUNTED_CHARS]), 1, ASKED + 1)
    ]
    if len(rows) < 2 or not rows[0]:
        return None
    header = list(rows[0])
    shown = [[row.get(name, "") for name in header] for row in rows]
    return Grid("SQL", header, shown, sum(1 for _ in _ROW_TITLE.finditer(text)))


def csv_grid(text: str) -> Grid:
    mark = delimiter(text)
    header, *rows = [*islice(_rows(text, mark), ASKED + 1), []][: ASKED + 1]
    count, exact = _count_rows(text, mark)
    last = [line.split(mark) for line in _last_lines(text)]
    return Grid(
        "TSV" if mark == "\t" else "CSV", header, [row for row in rows if row], count, exact, last=last
    )


def _last_lines(text: str) -> list[str]:
    return text[-_LAST_ROWS * _LINE_CHARS :].rstrip().splitlines()[-_LAST_ROWS:]


def _drawn(text: str, lines: Sequence[str]) -> Grid | None:
    """Cells between strokes, below a rule: Markdown, psql, mysql, rich."""
    celled = [line for line in lines if _CELLS.search(line) and not _RULE.match(line)]
    ruled = next(
        (at for at, line in enumerate(lines) if _RULE.match(line) and re.search(r"[-─━=]{3}", line)), None
    )
    if ruled is None or ruled > 8 or len(celled) < 3 or len(celled) < 0.7 * len(lines):
        return None
    header = _cells(celled[0])
    rows = [_cells(line) for line in celled[1 : ASKED + 1]]
    even = sum(len(row) == len(header) for row in rows)
    if len(header) < 2 or even < 0.7 * len(rows):
        return None
    total = (
        sum(
            bool(_CELLS.search(line)) and not _RULE.match(line[:_LINE_CHARS])
            for line in text.splitlines()[:_MOST_LINES]
        )
        - 1
    )
    footer = _FOOTER.match(lines[-1].strip()) if len(text) <= 64_000 else None
    count = int(footer[1].replace(",", "")) if footer else total
    above = [line for line in lines[: lines.index(celled[0])] if not _RULE.match(line)]
    last = [_cells(line) for line in _last_lines(text)]
    return Grid(_drawn_by(lines[ruled], celled[0]), header, rows, count, True, *_above(above), last)


def _drawn_by(rule: str, header: str) -> str:
    """Markdown, the client of a database, or "" for what other programs draw."""
    if rule.lstrip().startswith("|") and not rule.lstrip().startswith("|+"):
        return "Markdown"
    return "SQL" if "|" in header else ""


def _above(lines: Sequence[str]) -> tuple[str, str]:
    """The title of a table (a heading, else the line before it, if it is short), and a line that counts."""
    headings = [line for line in lines if line.lstrip().startswith("#")]
    title = [line.strip(" #*\t") for line in headings or lines][-1:]
    counts = [line.strip() for line in lines if _COUNTS.search(line) and line.strip() not in title]
    longest = 80 if headings else 40
    return title[0] if title and len(title[0]) <= longest else "", counts[-1] if counts else ""


def _cells(line: str) -> list[str]:
    inner = line.strip().strip("|│┃")
    return [cell.strip() for cell in _CELLS.split(inner)]


def _ruled_by_header(text: str, lines: Sequence[str]) -> Grid | None:
    """Columns that begin where their names do, two spaces apart: `docker ps`, `kubectl get`."""
    names = list(re.finditer(r"\S+(?: \S+)*", lines[0])) if lines else []
    starts = [name.start() for name in names]
    shown = lines[1:ASKED]
    if len(names) < 3 or not shown or not lines[0].isascii() or not lines[0].replace(" ", "").isupper():
        return None
    even = sum(all(line[at - 1 : at] in ("", " ") for at in starts[1:]) for line in shown)
    if even < 0.9 * len(shown):
        return None
    rows = [
        [line[at:end].strip() for at, end in zip(starts, [*starts[1:], None], strict=True)] for line in shown
    ]
    return Grid("", [name[0] for name in names], rows, line_count(text.strip("\n")) - 1)


def _aligned(text: str, lines: Sequence[str]) -> Grid | None:
    """Columns below a header without numbers: two spaces apart, or one of them with nothing but numbers."""
    if len(lines) < 3 or not re.search(r"\S {2,}\S", lines[0]) or lines[0].startswith((" ", "\t")):
        return None
    ruled = _RULE.match(lines[1]) is not None
    shown = lines[1 + ruled : ASKED]
    # Where names and values have spaces, two of them divide columns.
    for gap in (_WIDE_GAP, r"\s+"):
        header = re.split(gap, lines[0].strip())
        # The last column may have spaces, but not two.
        most = len(header) - 1 if gap != _WIDE_GAP else 0
        rows = [re.split(gap, line.strip(), maxsplit=most) for line in shown]
        full = [row for row in rows if len(row) == len(header)]
        if len(header) > 2 and len(full) >= 0.9 * len(rows):
            break
    if len(header) < 3 or any(_NUMBER.match(name) for name in header) or len(full) < 0.9 * len(rows):
        return None
    numeric = any(all(_NUMBER.match(row[at]) for row in full[:40]) for at in range(len(header)))
    if not numeric and gap != _WIDE_GAP:
        return None
    last = [re.split(gap, line.strip(), maxsplit=most) for line in _last_lines(text)]
    return Grid("", header, full, line_count(text.strip("\n")) - 1 - ruled, last=last)


def _rows(text: str, mark: str) -> Iterator[list[str]]:
    """The rows at the beginning, up to the first that cannot be parsed."""
    lines = text[:64_000].lstrip("\ufeff").splitlines(keepends=True)
    with suppress(csv.Error):
        yield from filter(None, csv.reader(lines, delimiter=mark))


def _count_rows(text: str, mark: str) -> tuple[int, bool]:
    """The number of rows below the header, and whether it is exact."""
    lines = line_count(text.strip("\n")) - 1
    if '"' not in text:
        return lines, True
    if len(text) <= _COUNTED_CHARS:
        with suppress(csv.Error):
            return sum(map(bool, csv.reader(text.splitlines(keepends=True), delimiter=mark))) - 1, True
    return lines, False
