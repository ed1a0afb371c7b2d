"""Imports from other memories: mem0, redis agent-memory-server, LangChain's message histories and LangGraph's threads.

Each format has a pure reader from its API's JSON to `Brought`; `take_over` writes that with the public verbs.
None of the packages read from is required.
"""

from pagefile.integrations.imports.readers import from_langchain, from_mem0, from_redis_agent_memory
from pagefile.integrations.imports.shapes import Brought, BroughtFact, BroughtTurn
from pagefile.integrations.imports.writer import FORMATS, read_dump, take_over

__all__ = [
    "FORMATS",
    "Brought",
    "BroughtFact",
    "BroughtTurn",
    "from_langchain",
    "from_mem0",
    "from_redis_agent_memory",
    "read_dump",
    "take_over",
]
