"""What looking at rows as they lie there has in common, in every database."""

from collections.abc import Callable, Sequence
from typing import Any

from pagefile.ports import UNREADABLE, Counters, KeptEntry, KeptPage, Stray
from pagefile.records import Checkpoint, Entry, Fact, Page, Scope, Turn
from pagefile.stores.digests import fact_digest, page_digest, turn_digest
from pagefile.stores.encoding import to_json

#: Columns of the fragment `entry`.
ENTRY_COLUMNS = 15
#: What is not derived is never dropped: a session is somebody's own, and a text may be all that is left of a page.
_KEPT = frozenset({"session", "text"})


def kept_entry(
    row: Sequence[Any], scope: Scope, entry_of: Callable[[Sequence[Any], Scope], Entry]
) -> KeptEntry:
    """The fragment `entry`, then who wrote it, its digest and, where it is kept, what came before."""
    own, (writer, digest, *sums) = row[:ENTRY_COLUMNS], row[ENTRY_COLUMNS:]
    before = sums[0] if sums else None
    try:
        entry = entry_of(own, scope)
        altered = digest is not None and isinstance(entry, Turn) and turn_digest(entry) != digest
    except UNREADABLE as error:
        return KeptEntry(own[1], own[2], own[0], None, repr(error), writer, before)
    return KeptEntry(own[1], own[2], own[0], entry, None, writer, before, altered)


def kept_page(row: Sequence[Any], page_of: Callable[[Sequence[Any], str], Page]) -> KeptPage:
    """The tenant, the key and the size of the text, the digest, then the fragment `page`."""
    tenant, blob, size, digest, uuid = row[:5]
    try:
        page = page_of(row[4:], tenant)
        altered = digest is not None and page_digest(page) != digest
    except UNREADABLE as error:
        return KeptPage(tenant, uuid, None, repr(error), blob, size)
    return KeptPage(tenant, uuid, page, None, blob, size, altered)


def altered_facts(
    rows: Sequence[Sequence[Any]], tenant: str, fact_of: Callable[[Sequence[Any], str], Fact]
) -> list[str]:
    """The ids of those whose digest, the first column, is not that of the fragment `fact` behind it."""
    found: list[str] = []
    for digest, *row in rows:
        try:
            if fact_digest(fact_of(row, tenant)) != digest:
                found.append(row[0])
        except UNREADABLE:
            continue
    return found


def droppable(strays: Sequence[Stray]) -> list[Stray]:
    """Those that can be made again, or belong to nothing that ever will."""
    return [stray for stray in strays if stray.kind not in _KEPT]


def told(stray: Stray) -> dict[str, Any]:
    """A stray as the parameters of the statement that drops it."""
    return {
        "tenant": stray.tenant,
        "conversation": stray.conversation,
        "seq": stray.seq,
        "name": stray.name,
    }


def counter_values(counters: Counters) -> dict[str, Any]:
    """The parameters of the statement `audit_recount`, without times."""
    return {
        "last_seq": counters.last_seq,
        "reset_seq": counters.reset_seq,
        "covered": counters.covered_through_seq,
        "turns": counters.turns,
        "live_turns": counters.live_turns,
        "live_tokens": counters.live_tokens,
        "checkpoint": counters.checkpoint_id,
        "versions": counters.checkpoint_version,
    }


def summary_values(checkpoint: Checkpoint) -> dict[str, Any]:
    """The parameters of the statement that writes the summary in force, without its time."""
    return {
        "id": checkpoint.id,
        "summary": checkpoint.summary,
        "seq": checkpoint.seq,
        "version": checkpoint.version,
        "covered": checkpoint.covered_through_seq,
        "covered_turns": checkpoint.covered_turns,
        "anchors": to_json(checkpoint.anchors),
        "archive_refs": to_json(checkpoint.archive_refs),
        "tokens": checkpoint.tokens,
        "counter": checkpoint.counter,
    }
