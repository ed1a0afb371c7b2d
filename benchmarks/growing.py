"""Makes a PostgreSQL database large: copies of one user's rows with ids of their own, written by the server itself."""

from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import RawConnection

#: The user who is copied.
FIRST = "u"
#: Tables of conversations, in the order of their keys, and those of a user.
_OF_CONVERSATIONS = (
    "conversations",
    "ai_message",
    "conversation_summaries",
    "sessions",
    "watermarks",
    "turn_terms",
    "conversation_episodes",
)
_OF_USERS = ("facts", "fact_revisions")
#: Users of one transaction.
_AT_ONCE = 10
_LONGEST_S = 3600.0

_COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'NO' ORDER BY ordinal_position
"""
_USERS = "SELECT count(*) FROM conversations WHERE conversation_id LIKE 'c0~%.0'"
_SIZES = """
SELECT sum(pg_table_size(c.oid))::bigint, sum(pg_indexes_size(c.oid))::bigint
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname = current_schema()
"""
#: How a copy's columns differ: `n` is its user, `k` which copy of that user's conversations it is.
_RENAMED = {
    "conversation_id": "t.conversation_id || '~' || n || '.' || k",
    **dict.fromkeys(
        ("user_id", "owner", "create_by", "update_by"),
        "CASE {column} WHEN 'u' THEN 'u~' || n ELSE {column} END",
    ),
}
#: Ids that are unique in a tenant, not in a conversation.
_ALONE = {"facts": "id", "fact_revisions": "fact_id", "conversation_summaries": "id"}


class Growth:
    """A database with more and more users."""

    def __init__(self, database: Database, users: int) -> None:
        self._database = database
        #: Those that there are, perhaps since an earlier run.
        self.users = users

    @classmethod
    async def open(cls, url: str) -> "Growth":
        database = await Database.open(Place.of(url, "normal"))
        async with database.raw() as connection:
            await connection.execute("SET pagefile.tenants = 'all'")
            return cls(database, await connection.fetchval(_USERS))

    async def close(self) -> None:
        await self._database.close()

    async def to(self, users: int, copies: int) -> None:
        """Make as many users as are asked for, each with several copies of the first one's conversations."""
        async with self._database.raw() as connection:
            await connection.execute("SET pagefile.tenants = 'all'")
            found = [await _copying(connection, table, copies) for table in _OF_CONVERSATIONS]
            found += [await _copying(connection, table, 1) for table in _OF_USERS]
            # Where no vector was ever made, there is no table for them.
            statements = [statement for statement in found if statement is not None]
            while self.users < users:
                until = min(users, self.users + _AT_ONCE)
                async with connection.transaction():
                    for statement in statements:
                        await connection.execute(
                            statement.format(first=self.users, last=until - 1), timeout=_LONGEST_S
                        )
                self.users = until

    async def vacuum(self) -> float:
        """Seconds of a VACUUM with ANALYZE of everything."""
        async with self._database.raw() as connection:
            began = await connection.fetchval("SELECT clock_timestamp()")
            await connection.execute("VACUUM (ANALYZE)", timeout=_LONGEST_S)
            await connection.execute("CHECKPOINT", timeout=_LONGEST_S)
            return (await connection.fetchval("SELECT clock_timestamp()") - began).total_seconds()

    async def sizes(self) -> tuple[int, int]:
        """Bytes of the tables and of their indexes."""
        async with self._database.raw() as connection:
            found = await connection.fetchrow(_SIZES)
            assert found is not None
            return found[0], found[1]


async def _copying(connection: RawConnection, table: str, copies: int) -> str | None:
    """The statement that copies the first user's rows of a table; `{first}` and `{last}` are the new users. None without a table."""
    columns = [str(row[0]) for row in await connection.fetch(_COLUMNS, table)]
    if not columns:
        return None
    values = ", ".join(_value(table, f't."{column}"', column) for column in columns)
    named = ", ".join(f'"{column}"' for column in columns)
    whose = "user_id" if "user_id" in columns else None
    mine = f"t.{whose} = '{FIRST}'" if whose else "t.conversation_id ~ '^c[0-9]+$'"
    return (
        f"INSERT INTO {table} ({named}) SELECT {values} FROM {table} AS t, "  # noqa: S608 - names of our own tables and columns
        f"generate_series({{first}}, {{last}}) AS n, generate_series(0, {copies - 1}) AS k WHERE {mine}"
    )


def _value(table: str, value: str, column: str) -> str:
    if _ALONE.get(table) == column:
        return f"{value} || '~' || n || '.' || k"
    return _RENAMED.get(column, value).replace("{column}", value)
