"""The passages of archived pages, and their terms."""

from collections.abc import Sequence
from itertools import groupby

from pagefile.ports import PageIndex, PageTerms
from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Row, Values
from pagefile.stores.postgres.rows import keys, part_of


class PostgresPageIndex(PageIndex):
    """Passages in `archive_passage`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def uuids(self, scope: Scope) -> list[str]:
        return [row[0] for row in await self._database.rows(f"uuids_of_{part_of(scope)}", keys(scope))]

    async def read(self, scope: Scope, uuids: Sequence[str]) -> list[PageTerms]:
        rows = await self._database.rows("passages_read", {**keys(scope), "uuids": list(uuids)})
        return [_page_terms(list(group)) for _, group in groupby(rows, key=lambda row: row[0])]

    async def write(self, scope: Scope, uuid: str, terms: Sequence[str]) -> None:
        values: Values = {**keys(scope), "uuid": uuid, "terms": list(terms)}

        async def write(connection: Connection) -> None:
            passages = await connection.row("passages_count", values)
            if passages is not None:
                rules.check_terms(uuid, passages[0], len(terms))
                await connection.count("passages_terms", values)

        await self._database.write(write)


def _page_terms(rows: Sequence[Row]) -> PageTerms:
    """The rows of one page; one without passages has a single row without a number."""
    uuid, number = rows[0][1], rows[0][2]
    if number is None:
        return PageTerms(uuid, (), ())
    terms = [row[5] for row in rows]
    spans = tuple((row[3], row[4]) for row in rows)
    return PageTerms(uuid, spans, None if None in terms else tuple(terms))
