"""The tables in the pages about the documents."""

import sqlite3
from functools import cache
from pathlib import Path

from pagefile import BlockingMemory


def rows(page: Path) -> list[list[str]]:
    """The rows of the tables of a page, cell by cell."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [cells for cells in found if cells[0] != "in the document" and not cells[0].startswith("--")]


@cache
def tables() -> dict[str, set[str]]:
    """The tables of a new SQLite database and their columns."""
    with BlockingMemory.open("sqlite:///tables.db"):
        pass
    database = sqlite3.connect("tables.db")
    names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: {row[1] for row in database.execute(f"PRAGMA table_info({name})")} for name in names}
    database.close()
    return found
