"""Gives rows of earlier versions their digest, in the transaction that migrates them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pagefile.ports import UNREADABLE
from pagefile.records import Fact, Page, Scope
from pagefile.stores.digests import record_digest, turn_digest
from pagefile.stores.sql.plays import Play, Row, Values, many, rows
from pagefile.stores.sql.rows import of_tenant, turn_of
from pagefile.stores.sql.texts import ALL_TENANTS

ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class _Kind:
    """Rows of a table, read by their key in the statement `<name>s_without_digest`, written in `<name>_digest`.

    A row is the tenant, of a turn the conversation, then the record.
    """

    name: str
    #: Before the first key.
    before: Values
    key_of: Callable[[Row], Values]
    digest_of: Callable[[Row], str | None]

    def filled(self, found: Sequence[Row]) -> list[Values]:
        """The keys and digests of rows. One that cannot be read stays without, and is for `verify` to name."""
        known: list[Values] = []
        for one in found:
            try:
                known.append({**self.key_of(one), "digest": self.digest_of(one)})
            except UNREADABLE:
                continue
        return known


_KINDS = (
    _Kind(
        "turn",
        {"id": "", "conversation": "", "tenant": ""},
        lambda row: {"id": row[3], "conversation": row[1], "tenant": row[0]},
        lambda row: turn_digest(turn_of(row[2:], Scope(row[0], None, row[1]))),
    ),
    _Kind(
        "page",
        {"uuid": "", "tenant": ""},
        lambda row: {"uuid": row[1], "tenant": row[0]},
        lambda row: record_digest(of_tenant(Page, row[0])(row[1:])),
    ),
    _Kind(
        "fact",
        {"tenant": "", "id": ""},
        lambda row: {"tenant": row[0], "id": row[1]},
        lambda row: record_digest(of_tenant(Fact, row[0])(row[1:])),
    ),
)


def fill_digests() -> Play[None]:
    """Of every turn, page and fact that has none."""
    for kind in _KINDS:
        after = kind.before
        while found := (yield from rows(f"{kind.name}s_without_digest", _behind(after))):
            yield from many(f"{kind.name}_digest", kind.filled(found))
            after = kind.key_of(found[-1])


def _behind(key: Values) -> Values:
    return {**ALL_TENANTS, **key, "after_tenant": key["tenant"], "limit": ROWS_AT_ONCE}
