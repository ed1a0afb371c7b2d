"""The passages of archived pages, and their terms."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from pagefile.ports import PageIndex, PageTerms
from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.encoding import to_json
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers, Writer
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Row, Values, keys, part_of


class SqlitePageIndex(PageIndex):
    """Passages in `archive_passage`."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def uuids(self, scope: Scope) -> list[str]:
        def read(connection: Connection) -> list[str]:
            return [row[0] for row in connection.execute(sql(f"uuids_of_{part_of(scope)}"), keys(scope))]

        return await self._readers.run(read)

    async def read(self, scope: Scope, uuids: Sequence[str]) -> list[PageTerms]:
        values = {**keys(scope), "uuids": to_json(uuids)}

        def read(connection: Connection) -> list[PageTerms]:
            rows = connection.execute(sql("passages_read"), values)
            return [_page_terms(list(group)) for _, group in groupby(rows, key=lambda row: row[0])]

        return await self._readers.run(read)

    async def write(self, scope: Scope, uuid: str, terms: Sequence[str]) -> None:
        key = {**keys(scope), "uuid": uuid}
        rows: list[Values] = [
            {"tenant": scope.tenant, "uuid": uuid, "number": number, "terms": text}
            for number, text in enumerate(terms)
        ]

        def write(connection: Connection) -> None:
            passages: Any = connection.execute(sql("passages_count"), key).fetchone()
            if passages is not None:
                rules.check_terms(uuid, passages[0], len(rows))
                connection.executemany(sql("passage_terms"), rows)

        await self._writer.run(write)


def _page_terms(rows: Sequence[Row]) -> PageTerms:
    """The rows of one page; one without passages has a single row without a number."""
    uuid, number = rows[0][1], rows[0][2]
    if number is None:
        return PageTerms(uuid, (), ())
    terms = [row[5] for row in rows]
    spans = tuple((row[3], row[4]) for row in rows)
    return PageTerms(uuid, spans, None if None in terms else tuple(terms))
