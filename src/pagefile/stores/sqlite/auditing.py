"""SQLite's own check of its file."""

from pagefile.stores.sql.auditor import SqlAuditor
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.lanes import Readers
from pagefile.stores.sqlite.player import SqlitePlayer

#: How many things the file's own check names before it gives up.
_COMPLAINTS = 100


class SqliteAuditor(SqlAuditor):
    """Every table, read by its key."""

    def __init__(self, player: SqlitePlayer, readers: Readers) -> None:
        super().__init__(player)
        self._readers = readers

    async def complaints(self, *, full: bool) -> list[str]:
        check = "integrity_check" if full else "quick_check"

        def read(connection: Connection) -> list[str]:
            rows = connection.execute(f"PRAGMA {check}({_COMPLAINTS})").fetchall()
            return [str(row[0]) for row in rows if row[0] != "ok"]

        return await self._readers.run(read)
