"""What turns texts into vectors: the bundled encoder, any OpenAI-compatible endpoint, any LangChain object."""

from pagefile.models.embedders.encoder import UniversalSentenceEncoder
from pagefile.models.embedders.endpoint import OpenAIEmbedder
from pagefile.models.embedders.langchain import LangChainEmbedder

__all__ = ["LangChainEmbedder", "OpenAIEmbedder", "UniversalSentenceEncoder"]
