"""The tables that row-level security keeps apart by tenant (decision 0034), and whether it does so for the role of the URL."""

from collections.abc import Sequence

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


def row_security(privilege: str | None, open_tables: Sequence[str]) -> str:
    """`on`, or why it does not hold: a privilege of the role that sees past it, or tables where somebody took it away."""
    if privilege is not None:
        return f"bypassed by {privilege}"
    return f"off for {', '.join(open_tables)}" if open_tables else "on"


def advice(schema: str, privilege: str | None, open_tables: Sequence[str]) -> str | None:
    """The SQL that makes it hold, None where it does; `schema` is quoted where it has to be."""
    if privilege is not None:
        return _plain_role(schema)
    if open_tables:
        return "Row-level security was taken away from tables, run: " + " ".join(
            f"ALTER TABLE {schema}.{table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;"
            for table in open_tables
        )
    return None


def _plain_role(schema: str) -> str:
    """What a role needs that only uses the tables."""
    whom = f"IN SCHEMA {schema} TO pagefile_service;"
    return (
        "Row-level security does not hold this role. Give the service one that it holds, and keep this one for `pagefile upgrade`: "
        "CREATE ROLE pagefile_service LOGIN PASSWORD '…' NOSUPERUSER NOBYPASSRLS; "
        f"GRANT USAGE ON SCHEMA {schema} TO pagefile_service; "
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES {whom} "
        f"GRANT USAGE ON ALL SEQUENCES {whom}"
    )
