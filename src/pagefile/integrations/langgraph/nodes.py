"""The five nodes of the conversation graph, each a plain function from the state to its update.

They are independent of LangGraph and get their dependencies as arguments, so each can be tested, and used, alone.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Protocol, TypeAlias, cast
from uuid import NAMESPACE_URL, uuid4, uuid5

import anyio
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage, utils
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.retry import RunnableRetry

from pagefile import standalone
from pagefile.edge.recorder import begun, completed
from pagefile.engine import Memory
from pagefile.engine.ownership import check_opens
from pagefile.errors import ConflictError, InvalidArgumentError, ModelOutputError, SettingsError
from pagefile.integrations.langchain.messages import asked, happened, said, structured_text
from pagefile.integrations.langgraph import state as states
from pagefile.integrations.langgraph.state import ConversationState, NodeTrace, question, running
from pagefile.ports import ChatModel, ToolCall
from pagefile.records import Scope, Turn
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone.fact_injection import injected
from pagefile.standalone.hybrid_history import unique_relevant
from pagefile.standalone.knowledge_base import Retriever, Router, find_route, retrieve
from pagefile.standalone.user_code import called
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


# -- the answer of any kind of model, streamed, and finally the complete message --------------------------------------

Answer: TypeAlias = str | BaseMessage
#: A LangChain model (with its tools bound), a `ChatModel`, or a function from the messages to an answer.
AnyModel: TypeAlias = (
    Runnable[Any, Any] | ChatModel | Callable[[list[BaseMessage]], Answer | Awaitable[Answer]]
)
#: Pieces of an answer, and finally all of it.
Speech: TypeAlias = AsyncGenerator[str | AIMessage]


#: The JSON schemas of tools that a model is offered, by their names.
Tools: TypeAlias = Mapping[str, dict[str, Any]]


def spoken(
    model: AnyModel,
    prompt: list[BaseMessage],
    callbacks: Sequence[Any] = (),
    *,
    tools: Tools | None = None,
    blocking: bool = False,
) -> Speech:
    """`blocking` calls a LangChain model synchronously, for a run without an event loop of its own."""
    if isinstance(model, ChatModel):
        return _by_chat_model(model, prompt, tools or {})
    if isinstance(model, Runnable):
        offering = with_tools(cast("Runnable[Any, Any]", model), tools or {})
        config: Any = {"callbacks": list(callbacks)} if callbacks else None
        if retries(offering):
            return _at_once(offering, prompt, config, blocking=blocking)
        # Without explicit callbacks, the model uses those of the surrounding run.
        return _by_runnable(
            _blocking(offering, prompt, config) if blocking else offering.astream(prompt, config)
        )
    if callable(model):
        return _by_function(model, prompt)
    raise SettingsError(
        f"model is {type(model).__name__}: give a chat model of LangChain, a ChatModel or a function."
    )


def retries(model: Runnable[Any, Any]) -> bool:
    """Whether it tries again after a failure, which LangChain does for whole answers only, never for streams."""
    inner: list[Any] = [*getattr(model, "steps", ()), *getattr(model, "runnables", ())]
    inner += [model.bound] if isinstance(model, RunnableBindingBase) else []
    return isinstance(model, RunnableRetry) or any(map(retries, inner))


def with_tools(model: Runnable[Any, Any], tools: Tools) -> Runnable[Any, Any]:
    """The model with these tools added to its own; unchanged if it takes no tools, as with structured output."""
    if isinstance(model, RunnableBindingBase):
        offering = with_tools(cast("Any", model).bound, tools)
        own: list[Any] = list(model.kwargs.get("tools", ()))
        if own and isinstance(offering, RunnableBindingBase):
            offering = offering.bind(tools=[*own, *_bound_tools(offering)])
            return offering.bind(**{name: value for name, value in model.kwargs.items() if name != "tools"})
        return model.model_copy(update={"bound": offering})
    if not tools or not isinstance(model, BaseChatModel):
        return model
    with suppress(NotImplementedError):
        return cast("Any", model).bind_tools(
            [{"type": "function", "function": tool} for tool in tools.values()]
        )
    return model


def _bound_tools(model: Any) -> list[Any]:
    """The tools of a model in its provider's form, however deep they are bound."""
    if not isinstance(model, RunnableBindingBase):
        return []
    return list(model.kwargs.get("tools", ())) or _bound_tools(cast("Any", model).bound)


async def _blocking(model: Runnable[Any, Any], prompt: list[BaseMessage], config: Any) -> AsyncGenerator[Any]:
    for chunk in model.stream(prompt, config):
        yield chunk


async def _at_once(
    model: Runnable[Any, Any], prompt: list[BaseMessage], config: Any, *, blocking: bool
) -> Speech:
    answer: Any = model.invoke(prompt, config) if blocking else await model.ainvoke(prompt, config)
    message = answer if isinstance(answer, BaseMessage) else AIMessage(structured_text(answer) or "")
    if message.text:
        yield str(message.text)
    yield cast("AIMessage", message)


async def _by_runnable(stream: Any) -> Speech:
    whole: AIMessageChunk | None = None
    value: Any = None
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


async def _by_chat_model(model: ChatModel, prompt: list[BaseMessage], tools: Tools) -> Speech:
    texts: list[str] = []
    calls: tuple[ToolCall, ...] = ()
    messages = cast("Any", utils.convert_to_openai_messages(prompt))
    async with aclosing(model.stream(messages, tools=[*tools.values()])) as pieces:
        async for piece in pieces:
            if piece.text:
                texts.append(piece.text)
                yield piece.text
            calls += piece.calls
    yield AIMessage("".join(texts), tool_calls=[_call(call) for call in calls])


async def _by_function(model: Callable[..., Any], prompt: list[BaseMessage]) -> Speech:
    answer = await called(model, prompt)
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
