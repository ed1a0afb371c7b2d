"""Looks after archived pages: pins, uses, equal calls, purging."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from pagefile.ports import PageKeeper, PurgeRequest
from pagefile.records import Page, Scope, utc
from pagefile.stores import rules
from pagefile.stores.sql.parameters import ALL_TENANTS
from pagefile.stores.sql.plays import Play, Player, Values, count, each, first, many, rows
from pagefile.stores.sql.rows import keys, page_of, part_of


class SqlPageKeeper(PageKeeper):
    """The columns of `tool_result_archive` that change."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def page(self, scope: Scope, uuid: str) -> Page:
        page = await self._player.read(lambda: page_reached(scope, uuid))
        if page is None:
            raise rules.no_page(uuid)
        return page

    async def pin(self, scope: Scope, uuid: str, *, pinned: bool) -> Page:
        values = {**keys(scope), "uuid": uuid, "pinned": pinned}

        def play() -> Play[Page]:
            yield from count("page_pin", values)
            page = yield from page_reached(scope, uuid)
            if page is None:
                raise rules.no_page(uuid)
            return rules.check_living(page)

        return await self._player.write(play)

    async def touch(self, scope: Scope, uuids: Sequence[str], at: datetime) -> None:
        # In one order, so that two who touch the same pages do not wait for each other in a circle.
        touched: list[Values] = [{**keys(scope), "uuid": uuid, "at": utc(at)} for uuid in sorted(uuids)]
        # A lost connection may have counted it already, and twice would be wrong.
        await self._player.write(lambda: many("page_touch", touched), again=False)

    async def pinned(self, scope: Scope) -> list[Page]:
        statement = f"pinned_of_{part_of(scope)}"
        return await self._player.read(
            lambda: each(statement, keys(scope), lambda one: page_of(one, scope.tenant))
        )

    async def tenants(self) -> list[str]:
        return await self._player.read(lambda: each("page_tenants", ALL_TENANTS, lambda one: one[0]))

    async def equal_call(self, scope: Scope, call_hash: str, since: datetime) -> Page | None:
        values = {**keys(scope), "call_hash": call_hash, "since": utc(since)}
        return await self._player.read(
            lambda: first("page_of_call", values, lambda one: page_of(one, scope.tenant))
        )

    async def purge(self, request: PurgeRequest) -> list[Page]:
        # Most often nothing is due: then nothing is locked, and no log is emptied.
        if not await self._player.read(lambda: _due(request)):
            return []
        return await self._player.write(lambda: _purge(request), again=False, erases=True)

    async def erase(self, scope: Scope, uuids: Sequence[str]) -> int:
        return await self._player.write(lambda: _erase(scope, uuids), erases=True)


def page_reached(scope: Scope, uuid: str) -> Play[Page | None]:
    """A page that the scope may use, if there is one."""
    values = {**keys(scope), "uuid": uuid}
    return (yield from first("page_reached", values, lambda one: page_of(one, scope.tenant)))


def erase_blobs(hashes: Iterable[str]) -> Play[int]:
    """Remove those that no page and no attachment of any tenant refers to; returns how many."""
    return (yield from count("erase_blobs", {**ALL_TENANTS, "hashes": sorted(set(hashes))}))


def _erase(scope: Scope, uuids: Sequence[str]) -> Play[int]:
    found = yield from rows("pages_reached", {**keys(scope), "uuids": sorted(set(uuids))})
    values: Values = {"tenant": scope.tenant, "uuids": [uuid for uuid, _ in found]}
    yield from count("passages_drop", values)
    yield from count("pages_erase", values)
    yield from erase_blobs(blob for _, blob in found if blob)
    return len(found)


def _purge(request: PurgeRequest) -> Play[list[Page]]:
    due = yield from _due(request)
    values: Values = {"tenant": request.scope.tenant, "at": utc(request.at)}
    named = {**values, "uuids": [page.uuid for _, page in due]}
    # Those that were pinned or purged meanwhile stay as they are.
    buried = set((yield from each("pages_bury", named, lambda one: one[0])))
    gone = [(blob, page) for blob, page in due if page.uuid in buried]
    yield from count("passages_drop", {**values, "uuids": [page.uuid for _, page in gone]})
    yield from erase_blobs(blob for blob, _ in gone)
    return [replace(page, purged=utc(request.at)) for _, page in gone]


def _due(request: PurgeRequest) -> Play[list[tuple[str, Page]]]:
    """The pages to purge, oldest first, each with the key of its text."""
    scope = request.scope
    values: Values = {
        **keys(scope),
        "uuids": sorted(request.uuids or ()),
        "before": request.before and utc(request.before),
        "max_bytes": request.max_bytes,
    }
    return (
        yield from each(
            f"due_of_{part_of(scope)}", values, lambda one: (one[0], page_of(one[1:], scope.tenant))
        )
    )
