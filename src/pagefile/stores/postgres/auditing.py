"""PostgreSQL's own check of its indexes."""

import logging
from dataclasses import replace

from pagefile.errors import StoreCorruptError, StoreUnavailableError
from pagefile.stores.postgres.database import Database, quoted
from pagefile.stores.postgres.player import PostgresPlayer
from pagefile.stores.postgres.queries import sql
from pagefile.stores.sql.auditor import SqlAuditor

logger = logging.getLogger("pagefile")


class PostgresAuditor(SqlAuditor):
    """Every table, read by its key."""

    keeps_sums = True

    def __init__(self, player: PostgresPlayer, database: Database) -> None:
        super().__init__(player)
        self._database = database

    async def complaints(self, *, full: bool) -> list[str]:
        """Indexes are looked into where somebody made the extension amcheck, and only in full: it reads all of them."""
        found = await self._database.row("audit_amcheck", {})
        if not full or found is None:
            return []
        statement = sql("audit_index")
        statement = replace(statement, text=statement.text.replace("{extension}", quoted(found[0])))
        complaints: list[str] = []
        for (index,) in await self._database.rows("audit_indexes", {}):
            values = {"name": index}
            try:
                await self._database.read(lambda connection, v=values: connection.row(statement, v))
            except StoreCorruptError as error:
                complaints.append(f"index {index}: {error}")
            except StoreUnavailableError as error:
                logger.warning("the indexes of the database are not looked into: %s", error)
                break
        return complaints
