"""Models that Pagefile may use: chat models, summarizers and embedders. None of them is required."""

from pagefile.models.chat import OpenAIChat
from pagefile.models.embedders import (
    LangChainEmbedder,
    MemoryEncoder,
    OpenAIEmbedder,
    UniversalSentenceEncoder,
)
from pagefile.models.summarizers import CallableSummarizer, ChatSummarizer, ChatSynopsis, ExtractiveSummarizer

__all__ = [
    "CallableSummarizer",
    "ChatSummarizer",
    "ChatSynopsis",
    "ExtractiveSummarizer",
    "LangChainEmbedder",
    "MemoryEncoder",
    "OpenAIChat",
    "OpenAIEmbedder",
    "UniversalSentenceEncoder",
]
