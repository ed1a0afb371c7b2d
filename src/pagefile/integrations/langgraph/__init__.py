"""Pagefile in LangGraph: a conversation as a state graph of five nodes. LangGraph's own store is in `langgraph_store`."""

from pagefile.errors import MissingExtraError

try:
    __import__("langgraph.graph")  # checked here once for every module of this package
except ImportError as error:
    raise MissingExtraError.of("langgraph", "The conversation graph") from error

from pagefile.integrations.langgraph.graph import (
    ChatEvent,
    ChatRequest,
    ConversationChat,
    ConversationNodes,
    build_conversation_graph,
    conversation_builder,
)
from pagefile.integrations.langgraph.nodes import (
    FactContext,
    RecallSources,
    generate_node,
    persist_node,
    recall_node,
    retrieve_node,
    route_node,
)
from pagefile.integrations.langgraph.state import ConversationState, NodeTrace, build_prompt_from_state

__all__ = [
    "ChatEvent",
    "ChatRequest",
    "ConversationChat",
    "ConversationNodes",
    "ConversationState",
    "FactContext",
    "NodeTrace",
    "RecallSources",
    "build_conversation_graph",
    "build_prompt_from_state",
    "conversation_builder",
    "generate_node",
    "persist_node",
    "recall_node",
    "retrieve_node",
    "route_node",
]
