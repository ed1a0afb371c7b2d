"""Which rows of earlier versions get a digest, and how: the same in every database, each in its own statements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pagefile.ports import UNREADABLE
from pagefile.records import Fact, Page, Scope, Turn
from pagefile.stores.digests import fact_digest, page_digest, turn_digest

ROWS_AT_ONCE = 1000

Row = Sequence[Any]
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """Rows of a table, read by their key in the statement `<name>s_without_digest`, written in `<name>_digest`."""

    name: str
    #: Before the first key.
    before: Values
    key_of: Callable[[Row], Values]
    digest_of: Callable[[Row], str | None]

    def filled(self, rows: Sequence[Row]) -> list[Values]:
        """The keys and digests of rows. One that cannot be read stays without, and is for `verify` to name."""
        known: list[Values] = []
        for row in rows:
            try:
                known.append({**self.key_of(row), "digest": self.digest_of(row)})
            except UNREADABLE:
                continue
        return known


def kinds(
    turn_of: Callable[[Row, Scope], Turn],
    page_of: Callable[[Row, str], Page],
    fact_of: Callable[[Row, str], Fact],
) -> tuple[Kind, ...]:
    """Turns, pages and facts, as a database reads them; a row is the tenant, of a turn the conversation, then the record."""
    return (
        Kind(
            "turn",
            {"id": "", "conversation": "", "tenant": ""},
            lambda row: {"id": row[3], "conversation": row[1], "tenant": row[0]},
            lambda row: turn_digest(turn_of(row[2:], Scope(row[0], None, row[1]))),
        ),
        Kind(
            "page",
            {"uuid": "", "tenant": ""},
            lambda row: {"uuid": row[1], "tenant": row[0]},
            lambda row: page_digest(page_of(row[1:], row[0])),
        ),
        Kind(
            "fact",
            {"tenant": "", "id": ""},
            lambda row: {"tenant": row[0], "id": row[1]},
            lambda row: fact_digest(fact_of(row[1:], row[0])),
        ),
    )
