"""Claude Code's hooks and our tools for the Claude Agent SDK."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import claude_agent_sdk as sdk
from claude_agent_sdk.types import HookContext, HookEvent

from pagefile.errors import PagefileError
from pagefile.integrations.claude_code.hooks import SERVER, ClaudeHooks, Hook
from pagefile.standalone.memory_tools import ToolCaller, memory_tool_schemas
from pagefile.window.wording import WORDINGS

#: Raised, because Claude Code would truncate long output or move it to a file before a hook sees it.
_OUTPUT_LIMITS = {"MAX_MCP_OUTPUT_TOKENS": "10000000", "BASH_MAX_OUTPUT_LENGTH": "150000"}


class ClaudeMemory(ClaudeHooks):
    """The memory of one user, for Claude Code sessions.

    Args:
        conversation_id: the conversation all sessions belong to; without one, each session is its own conversation.
        context_chars: the maximum number of characters that memory adds to a prompt.
        excerpt_tokens: how much of a bulky result the model sees at once, alongside its placeholder.
        exempt: tools whose output is never replaced.
        timeout_s: how long a hook may take before the run continues without it.
        language: of what sessions are told ("zh" or "en"); by default that of each conversation. The tools are described once,
            before anything is said: without a language here or in the settings, in English.
    """

    # -- for the SDK ---------------------------------------------------------------------------------------------------

    def options(self, base: sdk.ClaudeAgentOptions | None = None) -> sdk.ClaudeAgentOptions:
        """The options with our hooks and tools added."""
        base = base or sdk.ClaudeAgentOptions()
        hooks: dict[HookEvent, list[sdk.HookMatcher]] = {**(base.hooks or {})}
        for event, matchers in self.hooks().items():
            hooks[event] = [*hooks.get(event, []), *matchers]
        servers = base.mcp_servers
        if not isinstance(servers, dict):
            raise TypeError(
                "mcp_servers names a file: add `claude.server()` to it yourself, under 'pagefile'."
            )
        return replace(
            base,
            hooks=hooks,
            mcp_servers={**servers, SERVER: self.server()},
            allowed_tools=[*base.allowed_tools, *self.tool_names()],
            env={**_OUTPUT_LIMITS, **base.env},
        )

    def hooks(self) -> dict[HookEvent, list[sdk.HookMatcher]]:
        return {
            "UserPromptSubmit": self._guarded("a prompt", self._on_prompt, always=True),
            "PreToolUse": self._guarded("looking up an equal call", self._before_tool),
            "PostToolUse": self._guarded("a tool's result", self._after_tool, always=True),
            "PreCompact": self._guarded("compaction", self._on_compact),
            "Stop": self._guarded("an answer", self._on_stop, always=True),
        }

    def server(self) -> sdk.McpSdkServerConfig:
        """The MCP server with our tools; always loaded, since Claude Code would otherwise hide them behind tool search."""
        config = sdk.create_sdk_mcp_server(SERVER, tools=self.tools())
        return cast("sdk.McpSdkServerConfig", {**config, "alwaysLoad": True})

    def tools(self) -> list[sdk.SdkMcpTool[Any]]:
        """Only the tools: `load_tool_history`, `search_tool_history`, `recall` and `remember`."""
        schemas = memory_tool_schemas(self._memory.engine.languages.default(self._language))
        return [
            sdk.SdkMcpTool(name, schema["description"], schema["parameters"], partial(self._answered, name))
            for name, schema in schemas.items()
        ]

    def tool_names(self) -> list[str]:
        return [f"mcp__{SERVER}__{tool.name}" for tool in self.tools()]

    def remembered(self, tool: sdk.SdkMcpTool[Any]) -> sdk.SdkMcpTool[Any]:
        """Wraps a tool of yours so that a repeated call is answered from memory; pass the result to `create_sdk_mcp_server`.

        For tools of other servers a hook does the same, but it can only answer by denying the call.
        """

        async def answered(arguments: Any) -> dict[str, Any]:
            chat = self._newest().chat
            cached = await self._failing.attempt(
                "looking up an equal call", lambda: chat.workspace().lookup(tool.name, arguments), None
            )
            return await tool.handler(arguments) if cached is None else _content(cached.answer)

        return replace(tool, handler=answered)

    def _guarded(self, what: str, work: Hook, *, always: bool = False) -> list[sdk.HookMatcher]:
        async def hook(given: Any, tool_use_id: str | None, _context: HookContext) -> Any:
            return await self._failing.attempt(what, lambda: work(given, tool_use_id), {}, always=always)

        return [sdk.HookMatcher(hooks=[hook])]

    async def _answered(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        language = self._memory.engine.languages.default(self._language)
        unavailable = {**_content(WORDINGS[language].answers["no_memory"]), "is_error": True}
        return await self._failing.attempt(tool, partial(self._answer_of, tool, arguments), unavailable)

    async def _answer_of(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        session = self._newest()
        caller = ToolCaller(self._memory, session.chat, session.turn, confidence=0.9)
        try:
            return _content(await caller.answer(tool, arguments))
        except PagefileError as error:
            # Raised, it would reach the model in the words of a programmer.
            return {**_content(await caller.refused(tool, error)), "is_error": True}


def _content(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
