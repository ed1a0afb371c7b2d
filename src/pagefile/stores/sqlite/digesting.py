"""Gives rows of earlier versions their digest, in the transaction that migrates them."""

from pagefile.stores.digesting import ROWS_AT_ONCE, kinds
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import fact_of, page_of, turn_of


def fill_digests(connection: Connection) -> None:
    """Of every turn, page and fact that has none."""
    for kind in kinds(turn_of, page_of, fact_of):
        after = {**kind.before, "limit": ROWS_AT_ONCE}
        while rows := connection.execute(sql(f"{kind.name}s_without_digest"), after).fetchall():
            connection.executemany(sql(f"{kind.name}_digest"), kind.filled(rows))
            after |= kind.key_of(rows[-1])
