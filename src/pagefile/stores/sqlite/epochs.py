"""The numbers of erasures, in the transaction of whoever asks."""

from collections.abc import Iterable, Sequence
from typing import Any

from pagefile.records import Scope
from pagefile.stores.encoding import to_json
from pagefile.stores.epochs import check_epoch, written_keys
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.queries import sql


def check_writable(connection: Connection, epoch: int | None, scopes: Iterable[Scope]) -> None:
    """`ErasedError` when one of the scopes was erased since that epoch; None is not checked."""
    if epoch is not None:
        check_epoch(epoch, newest_epoch(connection, scopes))


def newest_epoch(connection: Connection, scopes: Iterable[Scope]) -> int | None:
    """The number of the last erasure of one of the scopes, None when there was none."""
    newest: Any = connection.execute(sql("epoch_newest"), {"scopes": to_json(written_keys(scopes))}).get
    return newest


def is_noted(connection: Connection, key: str) -> bool:
    """Whether an erasure is noted under a key."""
    return connection.execute(sql("epoch_newest"), {"scopes": to_json([key])}).get is not None


def raise_epoch(connection: Connection, scopes: Sequence[str]) -> None:
    """Note an erasure under the next number."""
    number: Any = connection.execute(sql("epoch_now")).get + 1
    connection.executemany(sql("epoch_raise"), [{"scope": scope, "epoch": number} for scope in scopes])
