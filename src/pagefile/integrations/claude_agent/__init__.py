"""Pagefile in the Claude Agent SDK: memories come with each prompt, bulky tool output goes to the archive.

claude = ClaudeMemory(memory, user_id="user-456")
async with ClaudeSDKClient(claude.options(ClaudeAgentOptions(model="…"))) as client: ...
"""

from pagefile.errors import MissingExtraError

try:
    __import__("claude_agent_sdk")  # checked here once for every module of this package
except ImportError as error:
    raise MissingExtraError.of("claude", "The Claude Agent SDK integration") from error

from pagefile.integrations.claude_agent.memory import ClaudeMemory
from pagefile.integrations.claude_agent.session_store import PagefileSessionStore
from pagefile.integrations.claude_code.hooks import CONTEXT_LIMIT, EXEMPT

__all__ = ["CONTEXT_LIMIT", "EXEMPT", "ClaudeMemory", "PagefileSessionStore"]
