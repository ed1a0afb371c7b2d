"""The engine: `Memory` and `Conversation`, the flow of a turn in order."""

from pagefile.memory.conversation import Conversation
from pagefile.memory.engine import Memory

__all__ = ["Conversation", "Memory"]
