"""Rewrites the files of the tables: PostgreSQL leaves the bytes of deleted rows in them, also after a plain VACUUM."""

from collections.abc import Sequence

from pagefile.stores.postgres.database import quoted
from pagefile.stores.postgres.driver import FORBIDDEN, Connection

#: What no command of ours reaches.
LOGGED = (
    "PostgreSQL's write-ahead log, until the server has recycled it, and backups and replicas made before"
)
#: Before that, what an erasure leaves.
FREED = "PostgreSQL's table files, which keep the bytes of deleted rows: `pagefile forget … --scrub` rewrites them"
#: A table may be as large as it likes.
_LONGEST_S = 24 * 3600.0


async def scrub(connection: Connection) -> Sequence[str]:
    """Rewrite our tables, samples of their values in the statistics too; says what may not be done with the role of the URL."""
    raw = connection.raw
    rows = await raw.fetch(
        "SELECT current_schema(), tablename FROM pg_tables WHERE schemaname = current_schema()"
    )
    for schema, table in rows:
        await raw.execute(f"VACUUM (FULL, ANALYZE) {quoted(schema)}.{quoted(table)}", timeout=_LONGEST_S)
    left = [LOGGED]
    # A VACUUM that is not allowed is a warning; whether it is, only the owner of the catalogue knows.
    if not await raw.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        return [
            *left,
            "samples of values in PostgreSQL's statistics: a superuser runs `VACUUM FULL pg_statistic`",
        ]
    await raw.execute("VACUUM FULL pg_catalog.pg_statistic", timeout=_LONGEST_S)
    try:
        await raw.execute("CHECKPOINT", timeout=_LONGEST_S)
    except FORBIDDEN:
        left.append("files that the server has not written yet: its next checkpoint does")
    return left
