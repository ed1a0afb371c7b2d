"""Gives rows of earlier versions their digest, in the transaction that migrates them."""

from pagefile.stores.digesting import ROWS_AT_ONCE, kinds
from pagefile.stores.postgres.driver import Connection, Values
from pagefile.stores.postgres.queries import ALL_TENANTS
from pagefile.stores.postgres.rows import fact_of, page_of, turn_of


async def fill_digests(connection: Connection) -> None:
    """Of every turn, page and fact that has none."""
    for kind in kinds(turn_of, page_of, fact_of):
        after = kind.before
        while rows := await connection.rows(f"{kind.name}s_without_digest", _behind(after)):
            await connection.many(f"{kind.name}_digest", kind.filled(rows))
            after = kind.key_of(rows[-1])


def _behind(key: Values) -> Values:
    return {**ALL_TENANTS, **key, "after_tenant": key["tenant"], "limit": ROWS_AT_ONCE}
