"""Pagefile in LangChain: one middleware, and its parts for use with LangChain's own middleware."""

from pagefile.errors import MissingExtraError

try:
    __import__("langchain.agents")  # checked here once for every module of this package
except ImportError as error:
    raise MissingExtraError.of("langchain", "The LangChain middleware") from error

from pagefile.integrations.langchain.context_edit import ArchiveToolUsesEdit
from pagefile.integrations.langchain.history import PagefileChatMessageHistory
from pagefile.integrations.langchain.middleware import PagefileMiddleware
from pagefile.integrations.langchain.retriever import PagefileRetriever
from pagefile.integrations.langchain.summaries import LangChainChat, pagefile_summarizer
from pagefile.integrations.langchain.tools import memory_tools
from pagefile.tiers.workspace import ToolRule

__all__ = [
    "ArchiveToolUsesEdit",
    "LangChainChat",
    "PagefileChatMessageHistory",
    "PagefileMiddleware",
    "PagefileRetriever",
    "ToolRule",
    "memory_tools",
    "pagefile_summarizer",
]
