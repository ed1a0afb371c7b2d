"""The passages of archived pages, and their terms."""

from collections.abc import Sequence
from itertools import groupby

from pagefile.ports import PageIndex, PageTerms
from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.sql.plays import Play, Player, Row, Values, each, many, row, rows
from pagefile.stores.sql.rows import keys, part_of


class SqlPageIndex(PageIndex):
    """Passages in `archive_passage`."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def uuids(self, scope: Scope) -> list[str]:
        statement = f"uuids_of_{part_of(scope)}"
        return await self._player.read(lambda: each(statement, keys(scope), lambda one: one[0]))

    async def read(self, scope: Scope, uuids: Sequence[str]) -> list[PageTerms]:
        def play() -> Play[list[PageTerms]]:
            found = yield from rows("passages_read", {**keys(scope), "uuids": list(uuids)})
            return [_page_terms(list(group)) for _, group in groupby(found, key=lambda one: one[0])]

        return await self._player.read(play)

    async def write(self, scope: Scope, uuid: str, terms: Sequence[str]) -> None:
        written: list[Values] = [
            {"tenant": scope.tenant, "uuid": uuid, "number": number, "terms": text}
            for number, text in enumerate(terms)
        ]

        def play() -> Play[None]:
            passages = yield from row("passages_count", {**keys(scope), "uuid": uuid})
            if passages is not None:
                rules.check_terms(uuid, passages[0], len(written))
                yield from many("passage_terms", written)

        await self._player.write(play)


def _page_terms(found: Sequence[Row]) -> PageTerms:
    """The rows of one page; one without passages has a single row without a number."""
    uuid, number = found[0][1], found[0][2]
    if number is None:
        return PageTerms(uuid, (), ())
    terms = [one[5] for one in found]
    spans = tuple((one[3], one[4]) for one in found)
    return PageTerms(uuid, spans, None if None in terms else tuple(terms))
