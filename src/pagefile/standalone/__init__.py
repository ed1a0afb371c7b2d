"""The design documents' own APIs, one capability at a time, over the same engine."""

from pagefile.standalone.agent_app import AgentApp, NewAgentApp, SessionClient
from pagefile.standalone.agent_memory import (
    AgentMemory,
    AgentMemoryConfig,
    AgentWithMemory,
    ContentChunk,
    ToolRule,
)
from pagefile.standalone.conversation_store import (
    ConversationMessage,
    ConversationStore,
    ConversationSummary,
    format_messages,
)
from pagefile.standalone.conversation_summarizer import SUMMARY_PROMPT, ConversationSummarizer
from pagefile.standalone.episodic_memory import ConversationEpisodicMemory
from pagefile.standalone.fact_injection import (
    FactRanker,
    _count_tokens,  # pyright: ignore[reportPrivateUsage] - document 004's name
    format_memory_for_injection,
    get_memory_data,
    memory_data_of,
)
from pagefile.standalone.general_prompt import PromptMessage, build_general_prompt
from pagefile.standalone.history_text import format_prompt
from pagefile.standalone.hybrid_history import ConversationContext, ConversationHistory
from pagefile.standalone.memory_middleware import (
    MEMORY_NAME,
    MemoryMiddleware,
    _extract_conversation_context,  # pyright: ignore[reportPrivateUsage] - document 004's name
    extract_text,
    memory_config,
)
from pagefile.standalone.queries import (
    defaultMemoryRecentTurns,
    defaultMemoryTokenThresholdRatio,
    defaultModelContextWindow,
)
from pagefile.standalone.remembering import REMEMBER_TOOL, answer_remember, remember_schema
from pagefile.standalone.session import (
    FULL_HISTORY,
    SESSION_KEY,
    SUMMARY_N,
    AgentRequest,
    AIMessage,
    FlowContext,
    GlobalState,
    MemoryContext,
    MemoryModeFullHistory,
    MemoryModeSummaryN,
    MemoryQueryRequest,
    MemoryWriteRequest,
    MemoryWriteResult,
    Message,
    MessageContext,
    MetaInfo,
    PendingAction,
    SessionValue,
    SharedEntities,
    UserProfile,
)
from pagefile.standalone.tool_results import (
    ARCHIVE_THRESHOLD,
    HISTORY_TOOL_PROMPT,
    ToolResultArchive,
    ToolResultManager,
    load_tool_history_schema,
    search_tool_history_schema,
)
from pagefile.standalone.tool_schemas import tool_schemas

__all__ = [
    "ARCHIVE_THRESHOLD",
    "FULL_HISTORY",
    "HISTORY_TOOL_PROMPT",
    "MEMORY_NAME",
    "REMEMBER_TOOL",
    "SESSION_KEY",
    "SUMMARY_N",
    "SUMMARY_PROMPT",
    "AIMessage",
    "AgentApp",
    "AgentMemory",
    "AgentMemoryConfig",
    "AgentRequest",
    "AgentWithMemory",
    "ContentChunk",
    "ConversationContext",
    "ConversationEpisodicMemory",
    "ConversationHistory",
    "ConversationMessage",
    "ConversationStore",
    "ConversationSummarizer",
    "ConversationSummary",
    "FactRanker",
    "FlowContext",
    "GlobalState",
    "MemoryContext",
    "MemoryMiddleware",
    "MemoryModeFullHistory",
    "MemoryModeSummaryN",
    "MemoryQueryRequest",
    "MemoryWriteRequest",
    "MemoryWriteResult",
    "Message",
    "MessageContext",
    "MetaInfo",
    "NewAgentApp",
    "PendingAction",
    "PromptMessage",
    "SessionClient",
    "SessionValue",
    "SharedEntities",
    "ToolResultArchive",
    "ToolResultManager",
    "ToolRule",
    "UserProfile",
    "_count_tokens",
    "_extract_conversation_context",
    "answer_remember",
    "build_general_prompt",
    "defaultMemoryRecentTurns",
    "defaultMemoryTokenThresholdRatio",
    "defaultModelContextWindow",
    "extract_text",
    "format_memory_for_injection",
    "format_messages",
    "format_prompt",
    "get_memory_data",
    "load_tool_history_schema",
    "memory_config",
    "memory_data_of",
    "remember_schema",
    "search_tool_history_schema",
    "tool_schemas",
]
