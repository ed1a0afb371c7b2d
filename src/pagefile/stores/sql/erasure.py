"""Erases everything of a conversation, a user or a tenant."""

from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.epochs import erased_keys
from pagefile.stores.erasing import OF_CONVERSATIONS, OF_OWNERS, counted_vectors
from pagefile.stores.sql.epochs import raise_epoch
from pagefile.stores.sql.page_keeper import erase_blobs
from pagefile.stores.sql.plays import Play, Values, count, row, rows
from pagefile.stores.sql.rows import keys, part_of


def erase(scope: Scope) -> Play[tuple[dict[str, int], tuple[str, ...]]]:
    """How many rows went, table by table, and which conversations."""
    yield from row("epoch_alone", keys(scope))
    gone = yield from going_conversations(scope)
    values: Values = {**keys(scope), "gone": gone}
    if scope.conversation is not None:
        values["user"] = None
    of_tenant = "_of_tenant" if part_of(scope) == "tenant" else ""
    blobs = yield from rows("blobs_of_tenant" if of_tenant else "blobs_of_gone", values)
    counts: dict[str, int] = {}
    for table in OF_OWNERS:
        counts[table] = yield from count(f"erase_{table}{of_tenant}", values)
    # Before their conversations, which would take them along uncounted.
    counts |= counted_vectors((yield from erase_vectors("erase_conversation_episodes", values)))
    for table in OF_CONVERSATIONS:
        counts[table] = yield from count(f"erase_{table}", values)
    # Waits for erasures that are under way: two that share the last uses of a blob would each see the other's.
    yield from raise_epoch(erased_keys(scope, gone))
    counts["blobs"] = yield from erase_blobs(key for (key,) in blobs)
    return counts, tuple(gone)


def erase_vectors(statement: str, values: Values) -> Play[int]:
    """How many went of those in this database, which may never have had any."""
    there = yield from row("has_vectors", {})
    return (yield from count(statement, values)) if there and there[0] else 0


def going_conversations(scope: Scope) -> Play[list[str]]:
    """The conversations that go, locked; one of another user raises `ConflictError`."""
    found = yield from rows(f"gone_{part_of(scope)}", keys(scope))
    if scope.conversation is None:
        return [name for name, _ in found]
    if found:
        rules.check_owner(scope, found[0][1])
    return [scope.conversation]
