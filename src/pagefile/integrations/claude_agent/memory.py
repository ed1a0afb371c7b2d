"""Hooks and tools for Claude Code sessions.

Claude Code keeps its own history, and whatever a hook adds to a prompt stays in it. So each prompt brings only what the session
has not been told yet, and a bulky result is replaced once, on arrival, by a placeholder with the passages that answer the
prompt; `load_tool_history` brings back the rest. Our hooks never stop a run: they give up, log once, and count the failure.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import anyio
import anyio.to_thread
import claude_agent_sdk as sdk
from claude_agent_sdk.types import HookContext, HookEvent

from pagefile.engine import Conversation, Memory
from pagefile.engine.page_tools import load_text
from pagefile.errors import PagefileError, SettingsError
from pagefile.integrations.claude_agent.shapes import Transcript, pictured, result_text, retold
from pagefile.integrations.fail_open import FailOpen
from pagefile.integrations.recorder import Called, Returned, Said, completed, kept
from pagefile.lru import Lru
from pagefile.records import Turn
from pagefile.shapes.tool_arguments import compact
from pagefile.standalone.memory_tools import ToolCaller, memory_tool_schemas
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.tiers.workspace import Workspace
from pagefile.window.parts import MemoryPart
from pagefile.window.recalled import is_day
from pagefile.window.wording import Choice

#: The most Claude Code accepts with a prompt; beyond it, the model gets the path of a file instead.
CONTEXT_LIMIT = 10_000
#: Tools whose output an agent must see verbatim, or whose output is not worth archiving.
EXEMPT = frozenset({"Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "TodoWrite"})
#: Raised, because Claude Code would truncate long output or move it to a file before a hook sees it.
_OUTPUT_LIMITS = {"MAX_MCP_OUTPUT_TOKENS": "10000000", "BASH_MAX_OUTPUT_LENGTH": "150000"}
#: How many sessions' state is kept in memory.
_SESSIONS = 1_000
#: How often the transcript is read for a call, and the pause in between.
_TRANSCRIPT_READS, _TRANSCRIPT_PAUSE_S = 6, 0.05
_SERVER = "pagefile"
#: The tool through which a model returns structured output.
_ANSWERING = "StructuredOutput"

HookAnswer = dict[str, Any]
Hook = Callable[[Mapping[str, Any], str | None], Awaitable[HookAnswer]]


@dataclass(slots=True)
class _Session:
    chat: Conversation
    turn: Turn | None = None
    prompt: str = ""
    transcript: Transcript | None = None
    #: Lines of memory the session has already been told.
    told: set[str] = field(default_factory=set[str])
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class ClaudeMemory:
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

    def __init__(
        self,
        memory: Memory,
        *,
        user_id: str,
        conversation_id: str | None = None,
        tenant: str | None = None,
        context_chars: int = CONTEXT_LIMIT - 500,
        excerpt_tokens: int = 1_500,
        exempt: frozenset[str] = EXEMPT,
        timeout_s: float = 5.0,
        language: Choice | None = None,
    ) -> None:
        if not 0 < context_chars <= CONTEXT_LIMIT:
            raise SettingsError(f"context_chars is {context_chars}: Claude Code takes 1 to {CONTEXT_LIMIT}.")
        self._memory = memory
        self._user, self._tenant, self._conversation = user_id, tenant, conversation_id
        self._language = language
        self._chars, self._excerpt_tokens, self._exempt = context_chars, excerpt_tokens, exempt
        self._failing = FailOpen(memory, "claude_agent", timeout_s=timeout_s)
        self._sessions: Lru[str, _Session] = Lru(_SESSIONS)

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
            mcp_servers={**servers, _SERVER: self.server()},
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
        config = sdk.create_sdk_mcp_server(_SERVER, tools=self.tools())
        return cast("sdk.McpSdkServerConfig", {**config, "alwaysLoad": True})

    def tools(self) -> list[sdk.SdkMcpTool[Any]]:
        """Only the tools: `load_tool_history`, `search_tool_history`, `recall` and `remember`."""
        schemas = memory_tool_schemas(self._memory.engine.languages.default(self._language))
        return [
            sdk.SdkMcpTool(name, schema["description"], schema["parameters"], partial(self._answered, name))
            for name, schema in schemas.items()
        ]

    def tool_names(self) -> list[str]:
        return [f"mcp__{_SERVER}__{tool.name}" for tool in self.tools()]

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

    # -- resets -------------------------------------------------------------------------------------------------------

    def reset(self, session_id: str | None = None) -> None:
        """Clear the results found so far, for one session or all; tables of contents stay."""
        self._reset(Workspace.reset, session_id)

    def reset_all(self, session_id: str | None = None) -> None:
        """Clear everything found so far, including tables of contents."""
        self._reset(Workspace.reset_all, session_id)

    def _reset(self, clear: Callable[[Workspace], object], session_id: str | None) -> None:
        for name, session in self._sessions.items():
            if session_id in (None, name):
                clear(session.chat.workspace())
                session.told.clear()

    # -- hooks --------------------------------------------------------------------------------------------------------

    async def _on_prompt(self, given: Mapping[str, Any], _id: str | None) -> HookAnswer:
        session = self._session(given)
        async with session.lock:
            if session.turn is not None:
                # Still open at the next prompt: it was interrupted.
                turn, session.turn = session.turn, None
                await session.chat.abort(turn)
            session.prompt = given["prompt"]
            window = await session.chat.context(session.prompt, recent_turns=1)
            added = unsaid(window.parts.memory, session.told, self._chars)
            session.transcript = Transcript(str(given.get("prompt_id")))
            session.turn = await session.chat.begin(session.prompt)
        return _specific("UserPromptSubmit", additionalContext=added) if added else {}

    async def _before_tool(self, given: Mapping[str, Any], _id: str | None) -> HookAnswer:
        """Answer a repeated call of a cacheable tool. A hook can only do so as the reason for denying the call.

        A call that may change something ends the answers it concerns; what the agent must see verbatim is read again.
        """
        if _ours(given["tool_name"]):
            return {}
        workspace = self._session(given).chat.workspace().trusted(self._failing.failures)
        cached = await workspace.lookup(given["tool_name"], given["tool_input"])
        if cached is None or given["tool_name"] in self._exempt:
            return {}
        return _specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=cached.answer)

    async def _after_tool(self, given: Mapping[str, Any], tool_use_id: str | None) -> HookAnswer:
        session = self._session(given)
        name, answer = given["tool_name"], given["tool_response"]
        text = result_text(answer)
        blocks = [*([] if text is None else [text]), *pictured(answer)]
        if session.turn is None or not blocks or _ours(name):
            return {}
        async with session.lock:
            result = Returned(Called(name, given["tool_input"], tool_use_id), tuple(blocks))
            session.turn, step = await kept(
                session.chat, session.turn, await _assistant_messages(session, given, tool_use_id), result
            )
        if step.page is None or step.whole or name in self._exempt:
            return {}
        passages = await self._passages(session, step.page)
        shown = f"{step.result}\n\n{passages}" if passages else step.result
        return _specific("PostToolUse", updatedToolOutput=retold(answer, shown))

    async def _passages(self, session: _Session, page: str) -> str:
        """What the model sees at once of a result that is too long."""
        wanted: dict[str, Any] = {"query": session.prompt, "offset": 0, "limit": None}
        scope, budget = session.chat.scope, self._excerpt_tokens
        return await load_text(self._memory.engine, scope, page, **wanted, budget_tokens=budget)

    async def _on_compact(self, given: Mapping[str, Any], _id: str | None) -> HookAnswer:
        """What the session was told is about to be summarized away, so it may be told again."""
        self._session(given).told.clear()
        return {}

    async def _on_stop(self, given: Mapping[str, Any], _id: str | None) -> HookAnswer:
        session = self._session(given)
        async with session.lock:
            if session.turn is not None:
                turn, session.turn = session.turn, None
                # A session with an `output_format` gives its answer by calling a tool.
                structured = [compact(step.input) for step in turn.steps if step.tool == _ANSWERING]
                answer = structured[-1] if structured else given.get("last_assistant_message")
                await completed(session.chat, turn, await _assistant_messages(session, given), answer or None)
        return {}

    def _guarded(self, what: str, work: Hook, *, always: bool = False) -> list[sdk.HookMatcher]:
        async def hook(given: Any, tool_use_id: str | None, _context: HookContext) -> Any:
            return await self._failing.attempt(what, lambda: work(given, tool_use_id), {}, always=always)

        return [sdk.HookMatcher(hooks=[hook])]

    async def _answered(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        session = self._newest()
        caller = ToolCaller(self._memory, session.chat, session.turn, confidence=0.9)
        try:
            return _content(await caller.answer(tool, arguments))
        except PagefileError as error:
            # Raised, it would reach the model in the words of a programmer.
            return {**_content(await caller.refused(tool, error)), "is_error": True}

    # -- sessions -----------------------------------------------------------------------------------------------------

    def _session(self, given: Mapping[str, Any]) -> _Session:
        name = str(given["session_id"])
        if name not in self._sessions:
            self._sessions[name] = self._opened(name)
        return self._sessions[name]

    def _opened(self, name: str) -> _Session:
        conversation = self._memory.conversation(
            self._conversation or name,
            user_id=self._user,
            tenant=self._tenant,
            agent="claude",
            language=self._language,
        )
        return _Session(conversation)

    def _newest(self) -> _Session:
        """The session whose hook ran last: a tool does not learn which session calls it."""
        return next(reversed(self._sessions.values()), None) or self._opened("claude")


async def _assistant_messages(
    session: _Session, given: Mapping[str, Any], call_id: str | None = None
) -> list[Said]:
    """What the model said since the prompt, according to the transcript; calls of our own tools do not count as steps.

    Claude Code writes the transcript while it runs tools: where a call is not in it yet, it is waited for briefly.
    """
    transcript = session.transcript
    if transcript is None:
        return []
    for _ in range(_TRANSCRIPT_READS):
        await anyio.to_thread.run_sync(transcript.read, str(given.get("transcript_path")))
        if call_id is None or any(call.call_id == call_id for one in transcript.said for call in one.calls):
            break
        await anyio.sleep(_TRANSCRIPT_PAUSE_S)
    return [one for one in transcript.said if not any(_ours(call.tool) for call in one.calls)]


def unsaid(memory: MemoryPart, said: set[str], most: int) -> str:
    """The lines of memory not told yet, up to a number of characters; from then on they count as told.

    The note that memories are not instructions comes before the first of them and is not repeated either.
    """
    told = MemoryPart(language=memory.language, note=not said)
    for block, texts in memory.sections.items():
        kept: list[str] = []
        day = ""
        for line in "\n".join(texts).split("\n"):
            if is_day(line):
                # The heading of what follows: it comes again with whatever is new of that day.
                day = line
                continue
            new = [day, line] if day and day not in kept else [line]
            if line not in said and len(told.with_section(block, [*kept, *new]).text) <= most:
                said.add(line)
                kept += new
        told = told.with_section(block, kept)
    return told.text


def _content(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _specific(event: str, **fields: Any) -> HookAnswer:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def _ours(tool: str) -> bool:
    return tool.startswith(f"mcp__{_SERVER}__") or tool in LOADING_TOOLS
