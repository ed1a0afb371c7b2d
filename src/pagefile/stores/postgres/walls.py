"""The tables that row-level security keeps apart by tenant (decision 0034), and whether it does so for the role of the URL."""

from collections.abc import Sequence
from typing import Any

from pagefile.records import JsonObject
from pagefile.stores.postgres.database import Database

#: Every table that has a column `tenant`.
WALLED = (
    "conversations",
    "ai_message",
    "conversation_summaries",
    "sessions",
    "watermarks",
    "turn_terms",
    "attachments",
    "tool_result_archive",
    "archive_passage",
    "facts",
    "fact_revisions",
    "context_calls",
    "items",
    "api_keys",
    "conversation_episodes",
)
_TO_DO = (
    "Row-level security does not hold this role. Give the service one that it holds, and keep this one for `pagefile upgrade`",
    "Somebody took row-level security away from tables. Put it back",
)


async def walls(database: Database) -> JsonObject:
    """Whether it holds the role of the URL, for `describe`."""
    row: Any = await database.row("describe_walls", {"names": list(WALLED)})
    role, privilege, open_tables, mended = row
    return {
        "role": role,
        "row_security": _found(privilege, open_tables),
        "advice": None if mended is None else f"{_TO_DO[privilege is None]}: {mended}",
    }


def _found(privilege: str | None, open_tables: Sequence[str]) -> str:
    if privilege is not None:
        return f"bypassed by {privilege}"
    return f"off for {', '.join(open_tables)}" if open_tables else "on"
