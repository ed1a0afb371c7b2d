"""Hooks for Claude Code sessions: what they record, and what they tell the model.

Claude Code keeps its own history, and whatever a hook adds to a prompt stays in it. So each prompt brings only what the session
has not been told yet, and a bulky result is replaced once, on arrival, by a placeholder with the passages that answer the
prompt; `load_tool_history` brings back the rest. Our hooks never stop a run: they give up, log once, and count the failure.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from pagefile.edge.fail_open import FailOpen
from pagefile.edge.recorder import Asked, Called, Returned, Said, as_json, completed, kept
from pagefile.engine import Conversation, Memory
from pagefile.engine.page_tools import load_text
from pagefile.errors import SettingsError
from pagefile.integrations.claude_code.shapes import Transcript, pictured, result_text, retold, started_text
from pagefile.lru import Lru
from pagefile.records import Turn
from pagefile.shapes.skeleton import objects_in
from pagefile.shapes.tool_arguments import compact
from pagefile.text.sentences import clip
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.tiers.workspace import Workspace
from pagefile.window.parts import MemoryPart, escape
from pagefile.window.recalled import is_day
from pagefile.window.wording import Choice

#: The most Claude Code accepts with a prompt; beyond it, the model gets the path of a file instead.
CONTEXT_LIMIT = 10_000
#: Tools whose output an agent must see verbatim, or whose output is not worth archiving.
EXEMPT = frozenset({"Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "TodoWrite"})
#: How many of a session's own turns come back after its history was summarized, and how much of each.
_OWN_TURNS, _OWN_CHARS = 3, 600
#: How many sessions' state is kept in memory.
_SESSIONS = 1_000
#: How often the transcript is read for a prompt or a call, and the pause in between.
_TRANSCRIPT_READS, _TRANSCRIPT_PAUSE_S = 6, 0.05
#: Our MCP server, wherever it is set up.
SERVER = "pagefile"
#: The tool through which a model returns structured output.
_ANSWERING = "StructuredOutput"
#: How the agent says that a sub-agent in the background is done: in a prompt.
_NOTIFICATION = "task-notification"

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
    reads: int = _TRANSCRIPT_READS
    #: Whether the agent has replaced its history by a summary.
    compacted: bool = False
    #: What was answered while sub-agents were still working: their results belong to the same turn.
    answered: str | None = None
    #: Whether the last prompt brought the result of a sub-agent.
    notified: bool = False


class ClaudeHooks:
    """The memory of one user, for Claude Code sessions.

    Args:
        conversation_id: the conversation all sessions belong to; without one, each session is its own conversation.
        context_chars: the maximum number of characters that memory adds to a prompt.
        excerpt_tokens: how much of a bulky result the model sees at once, alongside its placeholder.
        exempt: tools whose output is never replaced.
        timeout_s: how long a hook may take before the run continues without it.
        language: of what sessions are told ("zh" or "en"); by default that of each conversation. The tools are described once,
            before anything is said: without a language here or in the settings, in English.
        agent: which agent it is, if not Claude Code itself.
        replaces: whether a hook of the agent can replace a tool's output; Codex's cannot.
        of_many: whether it serves many users, whose ids the log must not tell.
        transcript_reads: how often a hook looks for a prompt or a call in the transcript, which is written with a delay.
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
        agent: str = "claude",
        transcript_reads: int = _TRANSCRIPT_READS,
        replaces: bool = True,
        of_many: bool = False,
    ) -> None:
        if not 0 < context_chars <= CONTEXT_LIMIT:
            raise SettingsError(f"context_chars is {context_chars}: Claude Code takes 1 to {CONTEXT_LIMIT}.")
        self._memory = memory
        self._user, self._tenant, self._conversation = user_id, tenant, conversation_id
        self._language = language
        self._agent, self._reads, self._replaces = agent, transcript_reads, replaces
        self._chars, self._excerpt_tokens, self._exempt = context_chars, excerpt_tokens, exempt
        self._failing = FailOpen(memory, "claude_agent", timeout_s=timeout_s, of_many=of_many)
        self._sessions: Lru[str, _Session] = Lru(_SESSIONS)

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

    # -- for processes that get hooks as JSON ----------------------------------------------------------------------------

    async def answer(self, given: Mapping[str, Any]) -> HookAnswer:
        """What a hook's command prints for its input; nothing for events that are not ours, and where memory fails."""
        known = {
            "SessionStart": ("the start of a session", self._on_start, False),
            "UserPromptSubmit": ("a prompt", self._on_prompt, True),
            "PostToolUse": ("a tool's result", self._after_tool, True),
            "PreCompact": ("compaction", self._on_compact, False),
            "Stop": ("an answer", self._on_stop, True),
        }.get(str(given.get("hook_event_name")))
        if known is None:
            return {}
        what, work, always = known
        call_id = given.get("tool_use_id")
        return await self._failing.attempt(what, lambda: work(given, call_id), HookAnswer(), always=always)

    # -- hooks --------------------------------------------------------------------------------------------------------

    async def _on_start(self, given: Mapping[str, Any], _id: str | None) -> HookAnswer:
        """What is known when a session begins, or goes on after its history was summarized."""
        session = self._session(given)
        async with session.lock:
            if given.get("source") in {"compact", "clear"}:
                session.told.clear()
            # Without a question: what is relevant to one comes with the prompt.
            window = await session.chat.context(recent_turns=1)
            added = unsaid(window.parts.dated_memory, session.told, self._chars)
        return _specific("SessionStart", additionalContext=added) if added else {}

    async def _on_prompt(self, given: Mapping[str, Any], _id: str | None) -> HookAnswer:
        session = self._session(given)
        session.notified = _is_notification(given["prompt"])
        if session.notified:
            # The agent says that a sub-agent is done, and not the user: the turn goes on.
            return {}
        async with session.lock:
            await self._abandon(session, given)
            session.prompt = given["prompt"]
            window = await session.chat.context(session.prompt, recent_turns=1)
            memory = window.parts.dated_memory
            if session.compacted:
                own = await self._compacted(session)
                memory = memory.with_section("episodes", [*memory.sections.get("episodes", ()), *own])
            added = unsaid(memory, session.told, self._chars)
            session.transcript = Transcript(given.get("prompt_id"))
            # The id under which the transcript has the prompt: whoever imports it later finds the turn there already.
            name = given.get("prompt_id") or given.get("turn_id")
            session.turn = await session.chat.begin(session.prompt, id=name)
        return _specific("UserPromptSubmit", additionalContext=added) if added else {}

    async def _abandon(self, session: _Session, given: Mapping[str, Any]) -> None:
        """End a turn that is still open at the next prompt: its sub-agents are still working, or it was interrupted."""
        if session.turn is None:
            return
        turn, session.turn = session.turn, None
        answer, session.answered = session.answered, None
        if answer is None:
            await session.chat.abort(turn)
        else:
            await _completed(session, turn, given, answer)

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
        text = result_text(answer) or started_text(answer)
        blocks = [*([] if text is None else [text]), *pictured(answer)]
        if session.turn is None or not blocks or _ours(name):
            return {}
        async with session.lock:
            result = Returned(Called(name, given["tool_input"], tool_use_id), tuple(blocks))
            said = await _assistant_messages(session, given, tool_use_id)
            turn = await _with_attached(session, session.turn)
            session.turn, step = await kept(session.chat, turn, said, result)
        if step.page is None or step.whole or name in self._exempt or not self._replaces:
            return {}
        passages = await self._passages(session, step.page)
        shown = f"{step.result}\n\n{passages}" if passages else step.result
        return _specific("PostToolUse", updatedToolOutput=retold(answer, shown))

    async def _compacted(self, session: _Session) -> list[str]:
        """The session's own turns that answer the prompt: the agent has only a summary of them."""
        hits = await session.chat.recall(session.prompt, _OWN_TURNS)
        said = [(f"{hit.at:%Y-%m-%d}", " ".join(clip(hit.text, _OWN_CHARS).split())) for hit in hits]
        return [line for day, text in said for line in (day, f"- {escape(text)}")]

    async def _passages(self, session: _Session, page: str) -> str:
        """What the model sees at once of a result that is too long."""
        wanted: dict[str, Any] = {"query": session.prompt, "offset": 0, "limit": None}
        scope, budget = session.chat.scope, self._excerpt_tokens
        return await load_text(self._memory.engine, scope, page, **wanted, budget_tokens=budget)

    async def _on_compact(self, given: Mapping[str, Any], _id: str | None) -> HookAnswer:
        """What the session was told is about to be summarized away, so it may be told again."""
        session = self._session(given)
        session.told.clear()
        session.compacted = True
        return {}

    async def _on_stop(self, given: Mapping[str, Any], _id: str | None) -> HookAnswer:
        session = self._session(given)
        async with session.lock:
            if session.turn is not None and _has_helpers(given):
                session.answered = given.get("last_assistant_message") or ""
                return {}
            session.answered = None
            if session.turn is None and session.notified and given.get("last_assistant_message"):
                # The turn that started the sub-agent is over, or another process has it.
                await session.chat.record(
                    assistant=given["last_assistant_message"], id=given.get("prompt_id")
                )
            elif session.turn is not None:
                turn, session.turn = session.turn, None
                # A session with an `output_format` gives its answer by calling a tool.
                structured = [compact(step.input) for step in turn.steps if step.tool == _ANSWERING]
                answer = structured[-1] if structured else given.get("last_assistant_message")
                await _completed(session, turn, given, answer or None)
        return {}

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
            agent=self._agent,
            language=self._language,
        )
        return _Session(conversation, reads=self._reads)

    def _newest(self) -> _Session:
        """The session whose hook ran last: a tool does not learn which session calls it."""
        return next(reversed(self._sessions.values()), None) or self._opened("claude")


async def _completed(session: _Session, turn: Turn, given: Mapping[str, Any], answer: str | None) -> None:
    said = await _assistant_messages(session, given)
    await completed(session.chat, await _with_attached(session, turn), said, answer)


async def _with_attached(session: _Session, turn: Turn) -> Turn:
    """The turn with what its prompt showed: a hook is given only the words, and the transcript is written after it."""
    if session.transcript is None or not session.transcript.attached:
        return turn
    shown, session.transcript.attached = tuple(session.transcript.attached), []
    return await session.chat.extend(turn, [as_json(Asked(shown).json())])


async def _assistant_messages(
    session: _Session, given: Mapping[str, Any], call_id: str | None = None
) -> list[Said]:
    """What the model said since the prompt, according to the transcript; calls of our own tools do not count as steps.

    Claude Code writes the transcript with a delay: a prompt or a call that is not in it yet is waited for briefly.
    """
    transcript, path = session.transcript, given.get("transcript_path")
    if given.get("agent_id") is not None:
        # A sub-agent's words are in a transcript of its own.
        return []
    if transcript is None or not path:
        # Not every agent has one: nothing is waited for.
        return []
    for left in reversed(range(session.reads)):
        await anyio.to_thread.run_sync(transcript.read, str(path))
        if transcript.has(call_id):
            break
        if left:
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


def _is_notification(prompt: str) -> bool:
    told = prompt.strip()
    return told.startswith(f"<{_NOTIFICATION}>") and told.endswith(f"</{_NOTIFICATION}>")


def _has_helpers(given: Mapping[str, Any]) -> bool:
    """Whether sub-agents go on working after the answer."""
    tasks = objects_in(given.get("background_tasks"))
    return any(task.get("type") == "subagent" and task.get("status") == "running" for task in tasks)


def _specific(event: str, **fields: Any) -> HookAnswer:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def _ours(tool: str) -> bool:
    return tool.startswith(f"mcp__{SERVER}__") or tool in LOADING_TOOLS
