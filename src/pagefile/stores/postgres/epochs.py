"""The numbers of erasures, in the transaction of whoever asks."""

from collections.abc import Iterable, Sequence

from pagefile.records import Scope
from pagefile.stores.epochs import check_epoch, written_keys
from pagefile.stores.postgres.driver import Connection


async def check_writable(connection: Connection, epoch: int | None, scopes: Iterable[Scope]) -> None:
    """`ErasedError` when one of the scopes was erased since that epoch; None is not checked.

    Until the transaction ends nobody erases anything of these tenants. Asked for before any row is locked, as an erasure does.
    """
    if epoch is None:
        return
    asked = tuple(scopes)
    await connection.rows("epoch_shared", {"names": sorted({scope.tenant for scope in asked})})
    row = await connection.row("epoch_newest", {"names": written_keys(asked)})
    check_epoch(epoch, None if row is None else row[0])


async def is_noted(connection: Connection, key: str) -> bool:
    """Whether an erasure is noted under a key."""
    row = await connection.row("epoch_newest", {"names": [key]})
    return row is not None and row[0] is not None


async def raise_epoch(connection: Connection, scopes: Sequence[str]) -> None:
    """Note an erasure under the next number."""
    await connection.row("epoch_next", {})
    row = await connection.row("epoch_now", {})
    await connection.count("epoch_raise", {"names": scopes, "epoch": 1 + (row[0] if row else 0)})
