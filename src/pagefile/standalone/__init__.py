"""The design documents' own APIs, one capability at a time, over the same engine."""

from pagefile.standalone.tool_results import (
    ARCHIVE_THRESHOLD,
    HISTORY_TOOL_PROMPT,
    ToolResultArchive,
    ToolResultManager,
    load_tool_history_schema,
    search_tool_history_schema,
)

__all__ = [
    "ARCHIVE_THRESHOLD",
    "HISTORY_TOOL_PROMPT",
    "ToolResultArchive",
    "ToolResultManager",
    "load_tool_history_schema",
    "search_tool_history_schema",
]
