"""Erases everything of a conversation, a user or a tenant."""

from collections.abc import Iterable

from pagefile.records import Scope
from pagefile.stores import rules
from pagefile.stores.epochs import erased_keys
from pagefile.stores.erasing import counted_vectors
from pagefile.stores.postgres.driver import Connection, Values
from pagefile.stores.postgres.epochs import raise_epoch
from pagefile.stores.postgres.queries import ALL_TENANTS
from pagefile.stores.postgres.rows import keys, part_of

_OF_CONVERSATIONS = (
    "attachments",
    "ai_message",
    "conversation_summaries",
    "sessions",
    "watermarks",
    "turn_terms",
    "conversations",
)
#: These have an owner even where nobody wrote to the conversation.
_OF_OWNERS = ("facts", "fact_revisions", "context_calls", "archive_passage", "tool_result_archive", "items")


async def erase(connection: Connection, scope: Scope) -> tuple[dict[str, int], tuple[str, ...]]:
    """How many rows went, table by table, and which conversations."""
    part = part_of(scope)
    await connection.row("epoch_alone", keys(scope))
    gone = await _conversations(connection, scope)
    values: Values = {**keys(scope), "gone": gone}
    if part == "conversation":
        values["user"] = None
    of_tenant = "_of_tenant" if part == "tenant" else ""
    blobs = await connection.rows("blobs_of_tenant" if of_tenant else "blobs_of_gone", values)
    counts = {table: await connection.count(f"erase_{table}{of_tenant}", values) for table in _OF_OWNERS}
    # Before their conversations, which would take them along uncounted.
    counts |= counted_vectors(await _vectors(connection, values))
    for table in _OF_CONVERSATIONS:
        counts[table] = await connection.count(f"erase_{table}", values)
    # Waits for erasures that are under way: two that share the last uses of a blob would each see the other's.
    await raise_epoch(connection, erased_keys(scope, gone))
    counts["blobs"] = await erase_blobs(connection, (row[0] for row in blobs))
    return counts, tuple(gone)


async def _vectors(connection: Connection, values: Values) -> int:
    """How many went; a database without the extension has no table of them."""
    there = await connection.row("audit_has_vectors", {})
    return await connection.count("erase_conversation_episodes", values) if there and there[0] else 0


async def erase_blobs(connection: Connection, hashes: Iterable[str]) -> int:
    """Remove those that nobody names any more, of whatever tenant."""
    return await connection.count("erase_blobs", {**ALL_TENANTS, "hashes": sorted(set(hashes))})


async def _conversations(connection: Connection, scope: Scope) -> list[str]:
    rows = await connection.rows(f"gone_{part_of(scope)}", keys(scope))
    if scope.conversation is None:
        return [row[0] for row in rows]
    if rows:
        rules.check_owner(scope, rows[0][1])
    return [scope.conversation]
