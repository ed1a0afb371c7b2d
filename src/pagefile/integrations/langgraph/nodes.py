"""The five nodes of the conversation graph, each a plain function from the state to its update.

They are independent of LangGraph and get their dependencies as arguments, so each can be tested, and used, alone.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, Protocol, TypeAlias, cast
from uuid import uuid4

import anyio
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, utils
from langchain_core.runnables import Runnable

from pagefile import standalone
from pagefile.engine import Memory
from pagefile.engine.ownership import check_opens
from pagefile.errors import InvalidArgumentError, ModelOutputError, SettingsError
from pagefile.integrations.langchain.messages import asked, happened, said, structured_text
from pagefile.integrations.langgraph import state as states
from pagefile.integrations.langgraph.state import ConversationState, NodeTrace, question, running
from pagefile.integrations.recorder import begun, completed
from pagefile.ports import ChatModel, ToolCall
from pagefile.records import Scope, Turn
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone.agent_memory import part_of
from pagefile.standalone.fact_injection import injected
from pagefile.standalone.hybrid_history import unique_relevant

#: Knowledge-base prefixes that mean no retrieval.
NO_RETRIEVAL = ("", "general")

#: An object with `route(message=…, session_id=…)`, or such a function; it returns `kb_prefix` and `agent_type`.
Router: TypeAlias = Any
#: An object with `retrieve(query=…, kb_prefix=…)`, such a function, or a LangChain retriever.
Retriever: TypeAlias = Any

# -- route ------------------------------------------------------------------------------------------------------------


async def route_node(state: ConversationState, *, router: Router | None = None) -> ConversationState:
    """路由: which knowledge base and which agent answer; without a router, none and the requested agent."""
    decision: Any = {}
    if router is not None:
        decide = getattr(router, "route", router)
        decision = await _awaited(decide(message=question(state), session_id=state.get("session_id", "")))
    prefix = part_of(decision, "kb_prefix") or ""
    agent = part_of(decision, "agent_type") or state.get("agent_type") or "default"
    return {"kb_prefix": prefix, "agent_type": agent, "use_retrieval": prefix not in NO_RETRIEVAL}


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
    """记忆召回: facts, the summary, past turns and recent messages, concurrently. Failures are noted in the trace."""
    query, conversation, user = question(state), state.get("conversation_id", ""), state.get("user_id")
    history = sources.history
    # The calls below take no user, so access to the conversation is checked here.
    await check_opens(history.store.reader, history.store.scope(conversation, user))
    found: dict[str, Any] = {}
    notes: list[str] = []

    async def look(part: str, work: Awaitable[Any]) -> None:
        found[part] = await history.store.engine.guarded(part, notes.append, work)

    async with anyio.create_task_group() as together:
        together.start_soon(look, "recent", history.get_context(conversation))
        if user:
            facts = sources.memory_service.recall_context(user_id=user, query=query)
            together.start_soon(look, "memory", facts)
        if history.summarizer is not None:
            together.start_soon(look, "summary", history.summarizer.get_summary(conversation))
        if history.episodic_memory is not None:
            recall = history.episodic_memory.recall_relevant(conversation, query, top_k=history.recall_most)
            together.start_soon(look, "episodes", recall)
    recent: list[Any] = found["recent"]["recent_history"] if found["recent"] else []
    return {
        "memory_context": found.get("memory"),
        "conversation_summary": found.get("summary"),
        "episodic_memory": unique_relevant(found.get("episodes") or [], recent, history.top_k) + recent,
        "trace": [NodeTrace(node="recall", notes=notes)],
    }


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
    found: Any
    if isinstance(retriever, Runnable):
        found = await cast("Runnable[str, Any]", retriever).ainvoke(question(state))
    else:
        retrieve = getattr(retriever, "retrieve", retriever)
        found = await _awaited(retrieve(query=question(state), kb_prefix=state.get("kb_prefix")))
    return {"retrieval_results": [_result(one) for one in cast("Sequence[Any]", found or ())]}


def _result(found: Any) -> dict[str, Any]:
    if isinstance(found, Document):
        return {**cast("dict[str, Any]", found.metadata), "content": found.page_content}
    return dict(cast("Mapping[str, Any]", found)) if isinstance(found, Mapping) else {"content": str(found)}


# -- the answer of any kind of model, streamed, and finally the complete message --------------------------------------

Answer: TypeAlias = str | BaseMessage
#: A LangChain model (with its tools bound), a `ChatModel`, or a function from the messages to an answer.
AnyModel: TypeAlias = (
    Runnable[Any, Any] | ChatModel | Callable[[list[BaseMessage]], Answer | Awaitable[Answer]]
)
#: Pieces of an answer, and finally all of it.
Speech: TypeAlias = AsyncGenerator[str | AIMessage]


def spoken(model: AnyModel, prompt: list[BaseMessage], callbacks: Sequence[Any] = ()) -> Speech:
    if isinstance(model, ChatModel):
        return _by_chat_model(model, prompt)
    if isinstance(model, Runnable):
        return _by_runnable(cast("Runnable[Any, Any]", model), prompt, callbacks)
    if callable(model):
        return _by_function(model, prompt)
    raise SettingsError(
        f"model is {type(model).__name__}: give a chat model of LangChain, a ChatModel or a function."
    )


async def _by_runnable(
    model: Runnable[Any, Any], prompt: list[BaseMessage], callbacks: Sequence[Any]
) -> Speech:
    whole: AIMessageChunk | None = None
    value: Any = None
    # Without explicit callbacks, the model uses those of the surrounding run.
    stream: Any = model.astream(prompt, {"callbacks": list(callbacks)} if callbacks else None)
    async with aclosing(stream) as chunks:
        async for chunk in chunks:
            if not isinstance(chunk, BaseMessage):
                # Structured output: each chunk is the whole so far, unless it is text.
                value = (value or "") + chunk if isinstance(chunk, str) else chunk
                continue
            if chunk.text:
                yield str(chunk.text)
            if not isinstance(chunk, AIMessageChunk):
                # A model that cannot stream, wrapped in a runnable that can.
                yield cast("AIMessage", chunk)
                return
            whole = chunk if whole is None else whole + chunk
    if value is not None:
        text = structured_text(value) or ""
        yield text
        yield AIMessage(text)
        return
    yield AIMessage("") if whole is None else cast("AIMessage", utils.message_chunk_to_message(whole))


async def _by_chat_model(model: ChatModel, prompt: list[BaseMessage]) -> Speech:
    texts: list[str] = []
    calls: tuple[ToolCall, ...] = ()
    async with aclosing(model.stream(cast("Any", utils.convert_to_openai_messages(prompt)))) as pieces:
        async for piece in pieces:
            if piece.text:
                texts.append(piece.text)
                yield piece.text
            calls += piece.calls
    yield AIMessage("".join(texts), tool_calls=[_call(call) for call in calls])


async def _by_function(model: Callable[..., Any], prompt: list[BaseMessage]) -> Speech:
    answer = await _awaited(model(prompt))
    message = AIMessage(answer) if isinstance(answer, str) else utils.convert_to_messages([answer])[0]
    if not isinstance(message, AIMessage):
        raise ModelOutputError(
            f"The model returned {type(message).__name__}: an answer is an AIMessage or text."
        )
    if message.text:
        yield str(message.text)
    yield message


def _call(call: ToolCall) -> Any:
    arguments, _ = read_arguments(call.arguments)
    # Arguments that are not a JSON object are passed on as text: the tool's own validation explains what is wrong.
    given = arguments if isinstance(arguments, dict) else {"arguments": call.arguments}
    return {"id": call.id, "name": call.name, "args": given, "type": "tool_call"}


# -- generate ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wording:
    system_message: str
    window_tokens: int | None = None
    count: Callable[[str], int] = len


async def generate_node(
    state: ConversationState, *, model: AnyModel, wording: Wording, callbacks: Sequence[Any] = ()
) -> ConversationState:
    """生成: calls the model with everything in the state, and appends its answer to the messages."""
    speech = generating(state, model=model, wording=wording, callbacks=callbacks)
    return cast("ConversationState", [piece async for piece in speech][-1])


async def generating(
    state: ConversationState, *, model: AnyModel, wording: Wording, callbacks: Sequence[Any] = ()
) -> AsyncGenerator[str | ConversationState]:
    """Like `generate_node`, streamed; the state update comes last."""
    prompt = states.build_prompt_from_state(
        state, system_message=wording.system_message, window_tokens=wording.window_tokens, count=wording.count
    )
    told: dict[str, Any] = {"prompt_tokens": states.prompt_tokens(prompt, wording.count)}
    if state.get("debug"):
        told["prompt"] = [{"role": message.type, "content": str(message.text)} for message in prompt]
    async with aclosing(spoken(model, prompt, callbacks)) as pieces:
        async for piece in pieces:
            if isinstance(piece, str):
                yield piece
            elif not str(piece.text).strip() and not piece.tool_calls:
                raise ModelOutputError("The model gave an empty answer.")
            else:
                yield {"messages": [piece], "trace": [NodeTrace(node="generate", told=told)]}


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
    turn = await begun(chat, asked([human]), state.get("turn_id") or human.id or str(uuid4()))
    turn = await completed(chat, turn, happened(since), said(answer).text)
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


# -- calling user code ------------------------------------------------------------------------------------------------


async def _awaited(answer: Any) -> Any:
    return await answer if isawaitable(answer) else answer
