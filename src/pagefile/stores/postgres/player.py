"""Runs verbs on PostgreSQL: what writes in one transaction, each statement awaited on the same connection."""

from collections.abc import Callable
from typing import Any, TypeVar

import anyio.to_thread

from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection
from pagefile.stores.postgres.queries import sql
from pagefile.stores.sql import plays
from pagefile.stores.sql.plays import Ask, Play, Player

T = TypeVar("T")


class PostgresPlayer(Player):
    """Takes a connection of the pool for each verb."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, play: Callable[[], Play[T]]) -> T:
        return await self._database.read(lambda connection: played(connection, play()))

    async def write(self, play: Callable[[], Play[T]], *, again: bool = True, erases: bool = False) -> T:
        return await self._database.write(lambda connection: played(connection, play()), again=again)

    async def compute(self, work: Callable[[], T], *, small: bool = False) -> T:
        self._database.check_open()
        return work() if small else await anyio.to_thread.run_sync(work)


async def played(connection: Connection, play: Play[T]) -> T:
    """What a verb returns, in the transaction that the connection is in."""
    return await plays.played_async(play, lambda ask: _answer(connection, ask))


async def _answer(connection: Connection, ask: Ask) -> Any:
    wanted, name, values = ask
    if not sql(name).text:
        return plays.skipped(wanted)
    match wanted:
        case "row":
            return await connection.row(name, values)
        case "rows":
            return await connection.rows(name, values)
        case "count":
            return await connection.count(name, values)
        case "many":
            return await connection.many(name, values)
