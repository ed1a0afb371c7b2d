"""PydanticAI: memory as one capability, `Agent(…, capabilities=[PagefileMemory(memory, user_id="ada")])`.

Every model call sees what memory knows, and none of it is stored in the message history. Tool results are archived as they arrive,
a repeated call of a cacheable tool is answered from memory, and the turn is logged however the run ends.
"""

from pagefile.errors import MissingExtraError

try:
    import pydantic_ai  # noqa: F401  # pyright: ignore[reportUnusedImport] - only to say what is missing
except ImportError as error:
    raise MissingExtraError.of("pydantic-ai", "The PydanticAI integration") from error

from pagefile.integrations.pydantic_ai.capability import PagefileMemory
from pagefile.tiers.workspace import ToolRule

__all__ = ["PagefileMemory", "ToolRule"]
