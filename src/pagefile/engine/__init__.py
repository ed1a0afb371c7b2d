"""The engine: `Memory` and `Conversation`, the flow of a turn in order."""

from pagefile.engine.conversation import Conversation
from pagefile.engine.memory import Memory

__all__ = ["Conversation", "Memory"]
