"""The nodes as a graph: START → route → recall → retrieve → generate → persist → END, each with its trace.

`ConversationChat` runs a request through it as a stream of events, and as a turn in the log that ends up either done or aborted.
The user's message is written before anything else, the answer at the end. Whatever ends the stream early (an error, a
disconnect, a cancelled task) leaves the turn aborted. A memory that is down costs the run its memory, never its answer.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias, TypeVar, cast
from uuid import uuid4
from zoneinfo import ZoneInfo

import anyio
from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingTypeStubs] - it is typed, but declares so only for a part of it

from pagefile import standalone
from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import FailOpen
from pagefile.edge.recorder import given_up
from pagefile.engine import Conversation, Memory
from pagefile.errors import ConflictError, InvalidArgumentError, PagefileError, SettingsError
from pagefile.integrations.langgraph import nodes as chat_nodes
from pagefile.integrations.langgraph.speaking import AnyModel
from pagefile.integrations.langgraph.state import ConversationState, NodeTrace, merged, question
from pagefile.standalone.knowledge_base import Retriever, Router
from pagefile.standalone.memory_tools import ToolCaller, memory_tool_schemas
from pagefile.text.sentences import language
from pagefile.window.turn_notes import today_line
from pagefile.window.wording import WORDINGS, Language

logger = logging.getLogger("pagefile")

#: How long aborting a turn may take.
_ABORT_S = 5.0
#: The nodes in the order of the graph.
ORDER = ("route", "recall", "retrieve", "generate", "persist")
_GREETING = {"zh": "你是一个有帮助的助手。", "en": "You are a helpful assistant."}

#: What the nodes of the memory return when it is down.
_WITHOUT_MEMORY: dict[str, ConversationState] = {
    "recall": {
        "memory_context": None,
        "conversation_summary": None,
        "episodic_memory": [],
        "user_snapshot": None,
    },
    "persist": {},
}
_DOWN = "the memory is not available"

T = TypeVar("T")
#: `{"type": "turn"}` first, then `"token"`s and a `"node"` for each completed node, then `"done"`.
ChatEvent: TypeAlias = dict[str, Any]
Node: TypeAlias = Callable[[ConversationState], Awaitable[ConversationState]]


@dataclass(slots=True)
class ConversationNodes:
    """The five nodes over one memory, for the standard graph or one of your own with loops.

    Args:
        model: a LangChain chat model (with its tools bound), a `ChatModel`, or a function from messages to an answer.
        router: decides which knowledge base and which agent answer; without one, no knowledge base is queried.
        memory_service: supplies what is known about a user; by default the memory's facts.
        summarizer: maintains the summary of the conversation; by default over the memory's own log.
        episodic_memory: recalls past turns; by default over the memory's own log.
        callbacks: passed to a LangChain model, for instance Langfuse's.
        window_tokens: the maximum size of a prompt; by default the memory's setting.
        tools: whether the model is offered the tools that load what was paged out, recall and remember; their calls are
            answered inside `generate`.
        timeout_s: how long a node waits for the memory.
    """

    memory: Memory | BlockingMemory
    model: AnyModel
    router: Router | None = None
    retriever: Retriever | None = None
    system_message: str | None = None
    memory_service: chat_nodes.MemoryService | None = None
    summarizer: standalone.ConversationSummarizer | None = None
    episodic_memory: standalone.ConversationEpisodicMemory | None = None
    callbacks: Sequence[Any] = ()
    window_tokens: int | None = None
    tenant: str | None = None
    tools: bool = True
    timeout_s: float = 3.0
    store: standalone.ConversationStore = field(init=False)
    nodes: dict[str, Node] = field(init=False)
    edge: FailOpen = field(init=False)
    #: The tasks in which nodes run, each with its turn.
    _running: set[tuple[str, asyncio.Task[Any] | None]] = field(
        init=False, default_factory=set[tuple[str, "asyncio.Task[Any] | None"]]
    )

    def __post_init__(self) -> None:
        self.edge = FailOpen(self.memory, "langgraph", timeout_s=self.timeout_s)
        memory = self.edge.memory
        self.store = store = standalone.ConversationStore(memory, tenant=self.tenant)
        history = standalone.ConversationHistory(
            store,
            self.summarizer or standalone.ConversationSummarizer(store=store),
            self.episodic_memory or standalone.ConversationEpisodicMemory(store),
        )
        facts = self.memory_service or chat_nodes.FactContext(memory, tenant=self.tenant)
        self.nodes = {
            "route": partial(chat_nodes.route_node, router=self.router),
            "recall": partial(chat_nodes.recall_node, sources=chat_nodes.RecallSources(facts, history)),
            "retrieve": partial(chat_nodes.retrieve_node, retriever=self.retriever),
            "persist": partial(chat_nodes.persist_node, store=store, history=history),
        }

    async def play(
        self, name: str, state: ConversationState, *, blocking: bool = False, reachable: bool = True
    ) -> AsyncGenerator[ChatEvent]:
        """Run one node: yields its tokens as they arrive, and finally its trace with its state update.

        `blocking` calls a LangChain model synchronously. A memory that is not `reachable` is not asked.
        """
        began = perf_counter()
        update: ConversationState = {}
        if name in _WITHOUT_MEMORY:
            update = await self._remembered(name, state, reachable=reachable)
        elif name != "generate":
            update = await self.nodes[name](state)
        else:
            if "episodic_memory" not in state and any(
                one["node"] == "recall" for one in state.get("trace", ())
            ):
                # Resumed from a checkpoint, which has no memory in it.
                state = merged(state, await self._remembered("recall", state, reachable=reachable))
            speech = chat_nodes.generating(
                state,
                model=self.model,
                wording=self._wording(state, await self._zone(state, reachable=reachable)),
                callbacks=self.callbacks,
                tools=self._tools(state) if self.tools and reachable else None,
                blocking=blocking,
            )
            async with aclosing(speech) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str):
                        yield {"type": "token", "text": piece}
                    else:
                        update = piece
        (trace,) = update.pop("trace", [NodeTrace(node=name)])
        trace["duration_ms"] = round((perf_counter() - began) * 1000, 3)
        yield {"type": "node", **trace, "update": update}

    async def _remembered(
        self, name: str, state: ConversationState, *, reachable: bool = True
    ) -> ConversationState:
        """What a node of the memory returns, or what the run does without it."""
        without: ConversationState = {**_WITHOUT_MEMORY[name], "trace": [NodeTrace(node=name, notes=[_DOWN])]}
        if not reachable:
            logger.warning(
                "langgraph: `invoke` on the memory's own event loop runs without it: use `ainvoke`"
            )
            return without
        return await self.attempt(name, lambda: self.nodes[name](state), without)

    async def attempt(self, what: str, work: Callable[[], Awaitable[T]], otherwise: T) -> T:
        """The result of work for the memory, or `otherwise` if it is down. What the caller did wrong is raised."""

        async def tried() -> T | PagefileError:
            try:
                return await work()
            except (ConflictError, InvalidArgumentError, SettingsError) as error:
                return error

        found = await self.edge.attempt(what, tried, otherwise)
        if isinstance(found, PagefileError):
            raise found
        return found

    async def _zone(self, state: ConversationState, *, reachable: bool) -> ZoneInfo:
        """Where the user is: as the conversation says, else the settings."""
        usual, conversation = self.edge.memory.engine.settings.timezone, state.get("conversation_id")

        async def read() -> str:
            scope = await self.store.owned(conversation or "", state.get("user_id") or None)
            return (await self.store.view(scope)).head.timezone or usual

        known = (
            await self.attempt("reading the time zone", read, usual) if reachable and conversation else usual
        )
        return ZoneInfo(known)

    def _wording(self, state: ConversationState, zone: ZoneInfo) -> chat_nodes.Wording:
        engine, spoken = self.edge.memory.engine, self._language(state)
        today = today_line(engine.clock.now().astimezone(zone), WORDINGS[spoken])
        return chat_nodes.Wording(
            f"{self.system_message or _GREETING[spoken]}\n\n{today}",
            self.window_tokens or engine.settings.window_tokens,
            engine.counter.count,
            spoken,
            zone,
        )

    def _language(self, state: ConversationState) -> Language:
        chosen = self.edge.memory.engine.settings.language
        return language(question(state)) if chosen == "auto" else chosen

    def _tools(self, state: ConversationState) -> chat_nodes.MemoryTools:
        memory, spoken = self.edge.memory, self._language(state)
        answers = WORDINGS[spoken].answers

        async def call(name: str, arguments: dict[str, Any]) -> str:
            chat = self.store.conversation(state.get("conversation_id", ""), state.get("user_id") or None)
            asking = ToolCaller(memory, chat)
            try:
                return await self.attempt(name, lambda: asking.answer(name, arguments), answers["no_memory"])
            except PagefileError as error:
                return await asking.refused(name, error)

        return chat_nodes.MemoryTools(memory_tool_schemas(spoken), call)

    def node(self, name: str) -> Runnable[ConversationState, ConversationState]:
        """One node for LangGraph, sync and async: its events go to the stream of mode `custom`."""

        async def played(state: ConversationState, **how: bool) -> ConversationState:
            writer, event = get_stream_writer(), ChatEvent()
            running = state.get("turn_id", ""), asyncio.current_task()
            self._running.add(running)
            try:
                async with aclosing(self.play(name, state, **how)) as events:
                    async for event in events:
                        writer(event)
            finally:
                self._running.discard(running)
            update = update_of(event)
            # The next message of the thread is another turn.
            return {**update, "turn_id": ""} if name == "persist" else update

        async def run(state: ConversationState) -> ConversationState:
            return await played(state)

        def run_blocking(state: ConversationState) -> ConversationState:
            # In a thread of its own: there may be an event loop in this one, and the model may be async only.
            work = partial(played, state, blocking=True, reachable=not self.edge.is_here)
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(copy_context().run, lambda: asyncio.run(work())).result()

        return RunnableLambda(run_blocking, afunc=run, name=name)

    async def stop(self, turn_id: str) -> None:
        """Cancel the nodes still running for a turn, and wait for them.

        LangGraph runs each in its own task. Cancelled from a task group, as web frameworks do, its cleanup is cancelled too.
        """
        others = {task for turn, task in self._running if turn == turn_id and task} - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)


def update_of(event: ChatEvent) -> ConversationState:
    trace = {key: value for key, value in event.items() if key not in {"type", "update"}}
    if "told" in trace:
        # The prompt has what is known about the user, which no saved state may have.
        trace["told"] = {key: value for key, value in trace["told"].items() if key != "prompt"}
    return cast("ConversationState", {**event["update"], "trace": [trace]})


def conversation_builder(nodes: ConversationNodes) -> "StateGraph[ConversationState]":
    """The graph before it is compiled, for adding nodes and edges."""
    builder: StateGraph[ConversationState] = StateGraph(ConversationState)
    for name in ORDER:
        builder.add_node(name, nodes.node(name))  # pyright: ignore[reportUnknownMemberType] - its overloads are partly unknown
    for one, other in zip((START, *ORDER), (*ORDER, END), strict=True):
        builder.add_edge(one, other)
    return builder


def build_conversation_graph(
    memory: Memory | BlockingMemory,
    *,
    model: AnyModel,
    router: Router | None = None,
    retriever: Retriever | None = None,
    checkpointer: Any = None,
    **options: Any,
) -> Any:
    """The compiled graph: `await graph.ainvoke({"messages": [HumanMessage(…)], "conversation_id": …})`.

    `graph.invoke` works in threads that do not run the memory's event loop; give a `BlockingMemory` where there is none.
    `options` are those of `ConversationNodes`. Without `ConversationChat`, a failed or cancelled run leaves nothing in the log.
    """
    nodes = ConversationNodes(memory, model, router, retriever, **options)
    return conversation_builder(nodes).compile(checkpointer=checkpointer)  # pyright: ignore[reportUnknownMemberType] - likewise


# -- a chat -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChatRequest:
    message: str
    user_id: str
    session_id: str
    agent_type: str = "default"
    debug: bool = False
    #: The session's own conversation unless given.
    conversation_id: str | None = None


class ConversationChat:
    """`stream_chat` over the graph or, with the feature flag off, over the same nodes in sequence.

    `graph=False` runs the plain pipeline, with the same answers; by default the setting `chat.graph` decides. `options` are those of `ConversationNodes`.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        model: AnyModel,
        router: Router | None = None,
        retriever: Retriever | None = None,
        graph: bool | None = None,
        **options: Any,
    ) -> None:
        self.nodes = ConversationNodes(memory, model, router, retriever, **options)
        self._stream: Callable[[ConversationState], AsyncGenerator[ChatEvent]] = partial(_plain, self.nodes)
        if self.nodes.store.memory.settings.chat.graph if graph is None else graph:
            compiled: Any = conversation_builder(self.nodes).compile()  # pyright: ignore[reportUnknownMemberType] - its own types are partly unknown
            self._stream = partial(compiled.astream, stream_mode="custom")

    async def answer(self, request: ChatRequest) -> str:
        events = [event async for event in self.stream_chat(request)]
        return str(events[-1]["answer"])

    async def stream_chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent]:
        """The events of one turn. Stopping early (`aclosing`) aborts the turn, as does a node that raises."""
        id_of = self.nodes.store.get_or_create_conversation_id
        conversation = request.conversation_id or await id_of(request.user_id, request.session_id)
        turn_id = str(uuid4())
        state: ConversationState = {
            "messages": [HumanMessage(request.message, id=turn_id)],
            "user_id": request.user_id,
            "session_id": request.session_id,
            "conversation_id": conversation,
            "debug": request.debug,
            "agent_type": request.agent_type,
            "turn_id": turn_id,
        }
        done = False

        async def begun() -> Conversation:
            # Not `append_message`, which acts as the owner if no user is named.
            chat = self.nodes.store.conversation(conversation, request.user_id or None)
            turn = await chat.begin(request.message, id=turn_id)
            nonlocal lease
            if writers is not None:
                lease = await writers.hold(turn.scope, turn_id)
            return chat

        memory = self.nodes.store.memory
        # Without background work here, nothing would renew it.
        writers = memory.engine.dead_writers if memory.settings.worker != "apart" else None
        lease: str | None = None
        asking: Conversation | None = None
        try:
            asking = await self.nodes.attempt("beginning a turn", begun, None)
            yield {"type": "turn", "turn_id": turn_id, "conversation_id": conversation}
            answer: dict[str, Any] = {}
            async with aclosing(self._stream(state)) as events:
                async for event in events:
                    if event.get("node") == "generate":
                        answer["answer"] = str(event["update"]["messages"][-1].text)
                    elif event.get("node") == "persist":
                        done = True
                        answer |= event.get("told", {})
                    yield event
            yield {"type": "done", "conversation_id": conversation, **answer}
        finally:
            with anyio.move_on_after(_ABORT_S, shield=True):
                if not done:
                    await self.nodes.stop(turn_id)
                    if asking is not None:
                        await given_up(asking, turn_id)
                if writers is not None:
                    await writers.let_go(lease)


async def _plain(nodes: ConversationNodes, state: ConversationState) -> AsyncGenerator[ChatEvent]:
    for name in ORDER:
        event: ChatEvent = {}
        async with aclosing(nodes.play(name, state)) as events:
            async for event in events:
                yield event
        state = merged(state, update_of(event))
