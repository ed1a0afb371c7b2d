"""Rewrites the files of the tables: PostgreSQL leaves the bytes of deleted rows in them, also after a plain VACUUM."""

from collections.abc import Sequence
from time import monotonic

import anyio

from pagefile.stores.postgres.database import quoted
from pagefile.stores.postgres.driver import FORBIDDEN, Connection

#: What no command of ours reaches.
LOGGED = (
    "PostgreSQL's write-ahead log, until the server has recycled it, and backups and replicas made before"
)
#: Before that, what an erasure leaves.
FREED = "PostgreSQL's table files, which keep the bytes of deleted rows: `pagefile forget … --scrub` rewrites them"
#: What VACUUM passes over with a warning: it rewrites the tables of its own role alone.
OWNED = (
    "PostgreSQL's table files, which keep the bytes of deleted rows: run `pagefile forget … --scrub` with the URL of the role "
    "that owns the tables"
)
#: What a transaction that does not end keeps.
WATCHED = (
    "rows that a transaction on the server can still see: end it, then run `pagefile forget … --scrub` again"
)
#: So long transactions are waited for that began before the erasure.
OTHERS_S = 30.0
_LOOK_S = 0.1
#: A table may be as large as it likes.
_LONGEST_S = 24 * 3600.0


async def scrub(connection: Connection) -> Sequence[str]:
    """Rewrite our tables, samples of their values in the statistics too; says what may not be done with the role of the URL."""
    raw = connection.raw
    watched = await _watched(connection)
    before = await _files(connection)
    rows = list(before)
    for schema, table in rows:
        await raw.execute(f"VACUUM (FULL, ANALYZE) {quoted(schema)}.{quoted(table)}", timeout=_LONGEST_S)
    kept = set(before.items()) & set((await _files(connection)).items())
    left = [LOGGED, *([WATCHED] if watched else []), *([OWNED] if kept else [])]
    if not await raw.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        return [
            *left,
            "samples of values in PostgreSQL's statistics: a superuser runs `VACUUM FULL pg_statistic`",
        ]
    # Of a table that is empty now, ANALYZE leaves the samples from before.
    await connection.count("scrub_samples", {})
    if await _watched(connection) and WATCHED not in left:
        left.append(WATCHED)
    await raw.execute("VACUUM FULL pg_catalog.pg_statistic", timeout=_LONGEST_S)
    for schema, table in rows:
        await raw.execute(f"ANALYZE {quoted(schema)}.{quoted(table)}", timeout=_LONGEST_S)
    try:
        await raw.execute("CHECKPOINT", timeout=_LONGEST_S)
    except FORBIDDEN:
        left.append("files that the server has not written yet: its next checkpoint does")
    return left


async def _files(connection: Connection) -> dict[tuple[str, str], int]:
    """The file of each of our tables: another one once it is rewritten."""
    found = await connection.raw.fetch(
        "SELECT n.nspname, r.relname, r.relfilenode::bigint FROM pg_class AS r JOIN pg_namespace AS n ON n.oid = r.relnamespace"
        " WHERE r.relkind = 'r' AND n.nspname = current_schema()"
    )
    return {(schema, table): number for schema, table, number in found}


async def _watched(connection: Connection) -> bool:
    """Wait until nobody sees the erased rows any more: VACUUM would copy them into the new files. True when somebody still does."""
    now = (await connection.rows("scrub_now", {}))[0][0]
    limit = monotonic() + OTHERS_S
    while await connection.row("scrub_watched", {"id": now}) is not None:
        if monotonic() > limit:
            return True
        await anyio.sleep(_LOOK_S)
    return False
