"""What the PostgreSQL store asks its server: which statements, how many rows they touch, and what they cost run bare."""

import json
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, cast

from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Row, sql

#: The table of the turns.
LOG = "ai_message"


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement that was run, with its values."""

    text: str
    values: Sequence[Any]

    @classmethod
    def of(cls, name: str, values: Mapping[str, Any], extension: str = "") -> "Asked":
        """The statement of this name."""
        statement = sql(name, extension)
        return cls(statement.text, statement.given(values))


@contextmanager
def watched() -> Generator[list[Asked]]:
    """Every statement that any store of this process runs inside, in order."""
    seen: list[Asked] = []
    rows, row, count, many = Connection.rows, Connection.row, Connection.count, Connection.many

    async def watched_rows(self: Connection, name: str, values: Mapping[str, Any]) -> list[Row]:
        seen.append(Asked.of(name, values, self.extension))
        return await rows(self, name, values)

    async def watched_row(self: Connection, name: str, values: Mapping[str, Any]) -> Row | None:
        seen.append(Asked.of(name, values, self.extension))
        return await row(self, name, values)

    async def watched_count(self: Connection, name: str, values: Mapping[str, Any]) -> int:
        seen.append(Asked.of(name, values, self.extension))
        return await count(self, name, values)

    async def watched_many(self: Connection, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        seen.extend(Asked.of(name, values, self.extension) for values in rows)
        await many(self, name, rows)

    Connection.rows, Connection.row = watched_rows, watched_row
    Connection.count, Connection.many = watched_count, watched_many
    try:
        yield seen
    finally:
        Connection.rows, Connection.row, Connection.count, Connection.many = rows, row, count, many


class BareQueries:
    """The same statements on connections of a pool like the store's own; no record is made of what comes back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncGenerator["BareQueries"]:
        """Connections for the length of a `with` block."""
        database = await Database.open(Place.of(url))
        try:
            yield cls(database)
        finally:
            await database.close()

    async def run(self, asked: Sequence[Asked]) -> int:
        """Run them, and tell how many rows came back."""
        found = 0
        for one in asked:
            async with self._database.raw() as connection:
                found += len(await connection.fetch(one.text, *one.values))
        return found

    async def rows_read(self, asked: Sequence[Asked], table: str = LOG) -> int:
        """How many rows of a table the server looks at for them, those it throws away included; they are run for it."""
        read = 0
        for one in asked:
            async with self._database.raw() as connection:
                told = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {one.text}", *one.values)
            read += touched(json.loads(told)[0]["Plan"], table)
        return read

    async def looked_at(self, asked: Sequence[Asked], written: str = "") -> int:
        """How many rows of all tables the server looks at for them, by whatever plan; what they write is undone.

        The id that they wrote is taken by now, so another one takes its place.
        """
        found = 0
        for one in asked:
            async with self._database.raw() as connection:
                transaction = connection.transaction()
                await transaction.start()
                values = [f"{value} again" if value == written else value for value in one.values]
                told = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {one.text}", *values)
                await transaction.rollback()
            plan = json.loads(told)[0]["Plan"]
            found += sum(touched(plan, table) for table in relations(plan))
        return found


def relations(plan: Mapping[str, Any]) -> set[str]:
    """The tables that a plan reads."""
    inner = cast("Sequence[Mapping[str, Any]]", plan.get("Plans", ()))
    named = {str(plan["Relation Name"])} if "Relation Name" in plan else set[str]()
    return named.union(*map(relations, inner))


def touched(plan: Mapping[str, Any], table: str) -> int:
    """Rows of a table that a plan looked at, as PostgreSQL tells it in JSON."""
    inner = cast("Sequence[Mapping[str, Any]]", plan.get("Plans", ()))
    below = sum(touched(one, table) for one in inner)
    if plan.get("Relation Name") != table:
        return below
    looked_at = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    each = sum(float(plan.get(name, 0)) for name in looked_at)
    return below + round(each * float(plan["Actual Loops"]))
