"""Pagefile in the Claude Agent SDK: what is remembered comes with each prompt, bulky tool output goes to the archive.

claude = ClaudeMemory(memory, user_id="user-456")
async with ClaudeSDKClient(claude.options(ClaudeAgentOptions(model="…"))) as client: ...
"""

from pagefile.errors import MissingExtraError

try:
    __import__("claude_agent_sdk")  # asked for here once, so that every module beside this one has it
except ImportError as error:
    raise MissingExtraError.of("claude", "The Claude Agent SDK integration") from error

from pagefile.integrations.claude_agent.memory import CONTEXT_LIMIT, EXEMPT, ClaudeMemory

__all__ = ["CONTEXT_LIMIT", "EXEMPT", "ClaudeMemory"]
