"""The numbers of erasures, in the transaction of whoever asks."""

from collections.abc import Iterable, Sequence

from pagefile.records import Scope
from pagefile.stores.epochs import check_epoch, written_keys
from pagefile.stores.sql.plays import Play, many, row, rows


def check_writable(epoch: int | None, scopes: Iterable[Scope]) -> Play[None]:
    """`ErasedError` when one of the scopes was erased since that epoch; None is not checked.

    Keeps erasures of these tenants away until the transaction ends. Called before any row is locked, as an erasure does.
    """
    if epoch is None:
        return
    asked = tuple(scopes)
    yield from rows("epoch_shared", {"names": sorted({scope.tenant for scope in asked})})
    check_epoch(epoch, (yield from _newest(written_keys(asked))))


def epoch_now() -> Play[int]:
    """The number of the last erasure, 0 before the first."""
    found = yield from row("epoch_now", {})
    return found[0] if found else 0


def newest_epoch(scope: Scope) -> Play[int]:
    """The number of the last erasure of a scope, 0 when there was none."""
    return (yield from _newest(written_keys([scope]))) or 0


def is_noted(key: str) -> Play[bool]:
    """Whether an erasure is noted under a key."""
    return (yield from _newest([key])) is not None


def raise_epoch(scopes: Sequence[str]) -> Play[None]:
    """Note an erasure under the next number."""
    yield from row("epoch_next", {})
    number = 1 + (yield from epoch_now())
    yield from many("epoch_raise", [{"scope": scope, "epoch": number} for scope in scopes])


def _newest(keys: Sequence[str]) -> Play[int | None]:
    found = yield from row("epoch_newest", {"names": keys})
    return found[0] if found else None
