"""The five nodes of the conversation graph, each a plain function from the state to its update.

They are independent of LangGraph and get their dependencies as arguments, so each can be tested, and used, alone.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Protocol, TypeAlias, cast
from uuid import NAMESPACE_URL, uuid4, uuid5

import anyio
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from pagefile import standalone
from pagefile.edge.recorder import begun, completed
from pagefile.engine import Memory
from pagefile.engine.ownership import check_opens
from pagefile.errors import ConflictError, InvalidArgumentError, ModelOutputError, SettingsError
from pagefile.integrations.langchain.messages import asked, happened, said
from pagefile.integrations.langgraph import state as states
from pagefile.integrations.langgraph.speaking import AnyModel, Tools, spoken
from pagefile.integrations.langgraph.state import ConversationState, NodeTrace, question, running
from pagefile.records import Scope, Turn
from pagefile.standalone.fact_injection import injected
from pagefile.standalone.hybrid_history import unique_relevant
from pagefile.standalone.knowledge_base import Retriever, Router, find_route, retrieve
from pagefile.window.wording import Language

logger = logging.getLogger("pagefile")

# -- route ------------------------------------------------------------------------------------------------------------


async def route_node(state: ConversationState, *, router: Router | None = None) -> ConversationState:
    """路由: which knowledge base and which agent answer; without a router, none and the requested agent."""
    found = await find_route(router, question(state), state.get("session_id", ""), state.get("agent_type"))
    return {
        "kb_prefix": found.kb_prefix,
        "agent_type": found.agent_type,
        "use_retrieval": found.use_retrieval,
    }


# -- recall -----------------------------------------------------------------------------------------------------------


class MemoryService(Protocol):
    """Supplies what is known about a user, as text for a prompt."""

    async def recall_context(self, user_id: str, query: str) -> str | None: ...


class FactContext:
    """A `Memory`'s facts relevant to a question, within the configured token limit."""

    def __init__(self, memory: Memory, *, tenant: str | None = None) -> None:
        self._memory = memory
        self._tenant = tenant

    async def recall_context(self, user_id: str, query: str) -> str | None:
        """What is known about the user; None if there is nothing, or the settings disable facts."""
        settings = self._memory.engine.settings.facts
        if not settings.enabled:
            return None
        known = standalone.memory_data_of(await self._memory.facts(user_id, self._tenant))
        return injected(known, settings, query) or None


@dataclass(frozen=True, slots=True)
class RecallSources:
    """Where memory comes from: each source may fail without affecting the others."""

    memory_service: MemoryService
    history: standalone.ConversationHistory


async def recall_node(state: ConversationState, *, sources: RecallSources) -> ConversationState:
    """记忆召回: safety data, facts, the summary, past turns and recent messages, concurrently. Failures are noted in the trace."""
    query, conversation, user = question(state), state.get("conversation_id", ""), state.get("user_id")
    history = sources.history
    # The calls below take no user, so access to the conversation is checked here.
    scope = history.store.scope(conversation, user)
    await check_opens(history.store.reader, scope)
    found: dict[str, Any] = {}
    notes: list[str] = []

    async def look(part: str, work: Awaitable[Any]) -> None:
        found[part] = await history.store.engine.guarded(part, notes.append, work)

    async with anyio.create_task_group() as together:
        together.start_soon(look, "session", history.store.view(scope))
        together.start_soon(look, "recent", history.get_context(conversation))
        if user:
            facts = sources.memory_service.recall_context(user_id=user, query=query)
            together.start_soon(look, "memory", facts)
        if history.summarizer is not None:
            together.start_soon(look, "summary", history.summarizer.get_summary(conversation))
        if history.episodic_memory is not None:
            recall = history.episodic_memory.recall_relevant(
                conversation, query, top_k=history.recall_most, user_id=user or None
            )
            together.start_soon(look, "episodes", recall)
        together.start_soon(look, "pages", _placeholders(history, conversation, user))
    recent: list[Any] = found["recent"]["recent_history"] if found["recent"] else []
    recent = [_with_pages(message, found.get("pages") or {}) for message in recent]
    return {
        "memory_context": found.get("memory"),
        "conversation_summary": found.get("summary"),
        "user_snapshot": found["session"].profile if found["session"] else None,
        "episodic_memory": unique_relevant(found.get("episodes") or [], recent, history.top_k) + recent,
        "trace": [NodeTrace(node="recall", notes=notes)],
    }


async def _placeholders(
    history: standalone.ConversationHistory, conversation: str, user: str | None
) -> dict[str, str]:
    """By turn, the placeholders of the tool results that were paged out, which say how to load them."""
    chat = history.store.conversation(conversation, user or None)
    turns = await chat.turns(newest=True, limit=history.window_messages)
    paged = {turn.id: [step.result for step in turn.steps if step.page and not step.whole] for turn in turns}
    return {turn_id: "\n".join(map(str, texts)) for turn_id, texts in paged.items() if texts}


def _with_pages(message: Any, placeholders: Mapping[str, str]) -> Any:
    found = placeholders.get(message.get("turn_id", ""))
    if not found or message["role"] != "assistant":
        return message
    return {**message, "content": f"{found}\n\n{message['content']}"}


# -- retrieve ---------------------------------------------------------------------------------------------------------


async def retrieve_node(state: ConversationState, *, retriever: Retriever | None = None) -> ConversationState:
    """检索: queries the knowledge base if the route says so; an earlier question's results are discarded."""
    if not state.get("use_retrieval"):
        return {"retrieval_results": None}
    if retriever is None:
        raise SettingsError(
            f"The router wants the knowledge base {state.get('kb_prefix')!r}, but there is no retriever: give one, or "
            "let the router answer 'general'."
        )
    try:
        return {"retrieval_results": await retrieve(retriever, question(state), state.get("kb_prefix"))}
    except Exception as error:
        # It costs its block, never the answer.
        logger.exception("the retriever failed; the question is answered without it")
        notes = [f"retriever failed: {type(error).__name__}"]
    return {"retrieval_results": [], "trace": [NodeTrace(node="retrieve", notes=notes)]}


# -- generate ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wording:
    system_message: str
    window_tokens: int | None = None
    count: Callable[[str], int] = len
    language: Language = "zh"
    zone: tzinfo = UTC


#: Answers a model's call of a memory tool, by its name and arguments.
CallTool: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[str]]
#: After this many rounds of calls of memory tools the model must answer with what it has.
MAX_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class MemoryTools:
    """Pagefile's own tools, whose calls are answered inside `generate`."""

    schemas: Tools
    call: CallTool


async def generate_node(
    state: ConversationState,
    *,
    model: AnyModel,
    wording: Wording,
    callbacks: Sequence[Any] = (),
    tools: MemoryTools | None = None,
) -> ConversationState:
    """生成: calls the model with everything in the state, and appends its answer to the messages."""
    speech = generating(state, model=model, wording=wording, callbacks=callbacks, tools=tools)
    return cast("ConversationState", [piece async for piece in speech][-1])


async def generating(
    state: ConversationState,
    *,
    model: AnyModel,
    wording: Wording,
    callbacks: Sequence[Any] = (),
    tools: MemoryTools | None = None,
    blocking: bool = False,
) -> AsyncGenerator[str | ConversationState]:
    """Like `generate_node`, streamed; the state update comes last. Calls of memory tools are answered on the way."""
    told: dict[str, Any] = {}
    said: list[BaseMessage] = []
    for number in range(MAX_ROUNDS + 1):
        prompt = states.build_prompt_from_state(
            states.merged(state, {"messages": said}),
            system_message=wording.system_message,
            window_tokens=wording.window_tokens,
            count=wording.count,
            language=wording.language,
            zone=wording.zone,
        )
        told = {"prompt_tokens": states.prompt_tokens(prompt, wording.count)}
        if state.get("debug"):
            told["prompt"] = [{"role": message.type, "content": str(message.text)} for message in prompt]
        offered = tools.schemas if tools and number < MAX_ROUNDS else None
        async with aclosing(spoken(model, prompt, callbacks, tools=offered, blocking=blocking)) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    yield piece
                else:
                    said.append(piece)
        answer = cast("AIMessage", said[-1])
        if not str(answer.text).strip() and not answer.tool_calls:
            raise ModelOutputError("The model gave an empty answer.")
        own = offered is not None and all(call["name"] in offered for call in answer.tool_calls)
        # Calls of anybody else's tools are for the graph around this node, and ours among them too.
        if not answer.tool_calls or not own or tools is None:
            break
        for call in answer.tool_calls:
            result = await tools.call(call["name"], call["args"])
            said.append(ToolMessage(result, tool_call_id=call["id"] or "", name=call["name"]))
    yield {"messages": said, "trace": [NodeTrace(node="generate", told=told)]}


# -- persist ----------------------------------------------------------------------------------------------------------


async def persist_node(
    state: ConversationState,
    *,
    store: standalone.ConversationStore,
    history: standalone.ConversationHistory | None = None,
) -> ConversationState:
    """持久化: both sides of the turn are on disk when this returns. Idempotent.

    Steps are written with it. Indexing and summarizing follow in the background; a failure there does not affect the turn.
    """
    human, since = running(state)
    answer = since[-1] if since else None
    if not isinstance(answer, AIMessage) or answer.tool_calls:
        raise InvalidArgumentError(
            "The last message is not an answer of the model: run its tool calls before the turn is persisted."
        )
    chat = store.conversation(state.get("conversation_id", ""), state.get("user_id") or None)
    named = human.id or str(uuid4())
    try:
        turn = await begun(chat, asked([human]), state.get("turn_id") or named)
    except ConflictError:
        if not state.get("turn_id"):
            raise
        # The id of an earlier message, whose run failed and left it in the state.
        turn = await begun(chat, asked([human]), named)
    text = said(answer).text
    if turn.status == "aborted" or (turn.status == "done" and turn.assistant != text):
        # Asked again under its id: a turn that is over does not change, so the new answer has one of its own.
        turn = await begun(chat, asked([human]), str(uuid5(NAMESPACE_URL, f"{turn.id}\n{text}")))
    turn = await completed(chat, turn, happened(since), text)
    if history is not None:
        _index_later(history, turn)
    told = {"turn_id": turn.id, "seq": turn.seq, "tokens": turn.tokens}
    return {"turn_id": turn.id, "trace": [NodeTrace(node="persist", told=told)]}


def _index_later(history: standalone.ConversationHistory, turn: Turn) -> None:
    conversation, episodes = turn.scope.conversation or "", history.episodic_memory
    if episodes is not None:

        async def index(_: Scope) -> None:
            await episodes.index_episode(conversation, turn.user or "", turn.assistant or "", turn_id=turn.id)

        history.store.engine.worker.do(turn.scope, index)
    if history.summarizer is not None:
        history.summarizer.schedule_update(conversation)
