"""Erases everything of a conversation, a user or a tenant."""

from typing import Any

from pagefile.records import Scope
from pagefile.stores.encoding import to_json
from pagefile.stores.epochs import erased_keys
from pagefile.stores.erasing import counted_vectors
from pagefile.stores.sqlite.driver import Connection
from pagefile.stores.sqlite.epochs import raise_epoch
from pagefile.stores.sqlite.queries import sql
from pagefile.stores.sqlite.rows import Values, keys
from pagefile.stores.sqlite.writing import check_owner

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


def erase(connection: Connection, scope: Scope) -> tuple[dict[str, int], tuple[str, ...]]:
    """How many rows went, table by table, and which conversations."""
    whole_tenant = scope.user is None and scope.conversation is None
    gone = going_conversations(connection, scope)
    values: Values = {**keys(scope), "gone": to_json(gone)}
    if scope.conversation is not None:
        values["user"] = None
    blobs: Any = connection.execute(sql("blobs_of_tenant" if whole_tenant else "blobs_of_gone"), values)
    hashes = [row[0] for row in blobs]
    counts = {
        table: _count(connection, f"erase_{table}_of_tenant" if whole_tenant else f"erase_{table}", values)
        for table in _OF_OWNERS
    }
    # Before their conversations, which would take them along uncounted.
    vectors = counted_vectors(_count(connection, "erase_conversation_episodes", values))
    counts |= {table: _count(connection, f"erase_{table}", values) for table in _OF_CONVERSATIONS}
    counts |= vectors
    counts["blobs"] = sum(_count(connection, "erase_blob", {"hash": key}) for key in hashes)
    raise_epoch(connection, erased_keys(scope, gone))
    return counts, tuple(gone)


def going_conversations(connection: Connection, scope: Scope) -> list[str]:
    """The conversations that go; one of another user raises `ConflictError`."""
    if scope.conversation is not None:
        check_owner(connection, scope)
        return [scope.conversation]
    statement = "conversations_of_tenant" if scope.user is None else "conversations_of_user"
    rows: Any = connection.execute(sql(statement), keys(scope))
    return [row[0] for row in rows]


def _count(connection: Connection, statement: str, values: Values) -> int:
    connection.execute(sql(statement), values)
    return connection.changes()
