"""Adds the digest to rows of earlier versions, in the transaction that migrates them."""

from collections.abc import Callable

from pagefile.ports import UNREADABLE
from pagefile.records import Fact, Page, Scope
from pagefile.stores.digests import record_digest, turn_digest
from pagefile.stores.sql.plays import Play, Row, Values, many, rows
from pagefile.stores.sql.rows import of_tenant, turn_of
from pagefile.stores.sql.texts import ALL_TENANTS

ROWS_AT_ONCE = 1000

#: By the kind of a row: the columns of its key in the statement `<kind>s_without_digest`, and its digest. A row is the tenant, of a
#: turn the conversation, then the record.
_KINDS: dict[str, tuple[dict[str, int], Callable[[Row], str | None]]] = {
    "turn": (
        {"id": 3, "conversation": 1, "tenant": 0},
        lambda row: turn_digest(turn_of(row[2:], Scope(row[0], None, row[1]))),
    ),
    "page": ({"uuid": 1, "tenant": 0}, lambda row: record_digest(of_tenant(Page, row[0])(row[1:]))),
    "fact": ({"tenant": 0, "id": 1}, lambda row: record_digest(of_tenant(Fact, row[0])(row[1:]))),
}


def fill_digests() -> Play[None]:
    """Fill in the digest of every turn, page and fact that has none."""
    for kind, (columns, digest_of) in _KINDS.items():
        key: Values = dict.fromkeys(columns, "")
        while found := (yield from rows(f"{kind}s_without_digest", _behind(key))):
            keys = [{name: row[place] for name, place in columns.items()} for row in found]
            digests = [_readable(digest_of, row) for row in found]
            known = zip(keys, digests, strict=True)
            yield from many(f"{kind}_digest", [{**one, "digest": digest} for one, digest in known if digest])
            key = keys[-1]


def _readable(digest_of: Callable[[Row], str | None], row: Row) -> str | None:
    """The digest of a row; one that cannot be read stays without, and `verify` reports it."""
    try:
        return digest_of(row)
    except UNREADABLE:
        return None


def _behind(key: Values) -> Values:
    return {**ALL_TENANTS, **key, "after_tenant": key["tenant"], "limit": ROWS_AT_ONCE}
