"""The nodes as a graph: START → route → recall → retrieve → generate → persist → END, each with its trace.

`ConversationChat` runs a request through it as a stream of events, and as a turn in the log that ends up either done or aborted.
The user's message is written before anything else, the answer at the end. Whatever ends the stream early (an error, a
disconnect, a cancelled task) leaves the turn aborted: it enters no window, summary or index.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias, cast
from uuid import uuid4

import anyio
from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingTypeStubs] - it is typed, but declares so only for a part of it
from langgraph.types import StreamWriter

from pagefile import standalone
from pagefile.engine import Memory
from pagefile.integrations.langgraph import nodes as chat_nodes
from pagefile.integrations.langgraph.state import ConversationState, NodeTrace, merged
from pagefile.integrations.recorder import given_up

#: How long aborting a turn may take.
_ABORT_S = 5.0
#: The nodes in the order of the graph.
ORDER = ("route", "recall", "retrieve", "generate", "persist")
_GREETING = {"zh": "你是一个有帮助的助手。", "en": "You are a helpful assistant."}

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
    """

    memory: Memory
    model: chat_nodes.AnyModel
    router: chat_nodes.Router | None = None
    retriever: chat_nodes.Retriever | None = None
    system_message: str | None = None
    memory_service: chat_nodes.MemoryService | None = None
    summarizer: standalone.ConversationSummarizer | None = None
    episodic_memory: standalone.ConversationEpisodicMemory | None = None
    callbacks: Sequence[Any] = ()
    window_tokens: int | None = None
    tenant: str | None = None
    store: standalone.ConversationStore = field(init=False)
    nodes: dict[str, Node] = field(init=False)
    wording: chat_nodes.Wording = field(init=False)
    #: The tasks in which nodes run, each with its turn.
    _running: set[tuple[str, asyncio.Task[Any] | None]] = field(
        init=False, default_factory=set[tuple[str, "asyncio.Task[Any] | None"]]
    )

    def __post_init__(self) -> None:
        engine = self.memory.engine
        self.store = store = standalone.ConversationStore(self.memory, tenant=self.tenant)
        history = standalone.ConversationHistory(
            store,
            self.summarizer or standalone.ConversationSummarizer(store=store),
            self.episodic_memory or standalone.ConversationEpisodicMemory(store),
        )
        facts = self.memory_service or chat_nodes.FactContext(self.memory, tenant=self.tenant)
        self.wording = chat_nodes.Wording(
            self.system_message or _GREETING["en" if engine.settings.language == "en" else "zh"],
            self.window_tokens or engine.settings.window_tokens,
            engine.counter.count,
        )
        self.nodes = {
            "route": partial(chat_nodes.route_node, router=self.router),
            "recall": partial(chat_nodes.recall_node, sources=chat_nodes.RecallSources(facts, history)),
            "retrieve": partial(chat_nodes.retrieve_node, retriever=self.retriever),
            "persist": partial(chat_nodes.persist_node, store=store, history=history),
        }

    async def play(self, name: str, state: ConversationState) -> AsyncGenerator[ChatEvent]:
        """Run one node: yields its tokens as they arrive, and finally its trace with its state update."""
        began = perf_counter()
        update: ConversationState = {}
        if name != "generate":
            update = await self.nodes[name](state)
        else:
            speech = chat_nodes.generating(
                state, model=self.model, wording=self.wording, callbacks=self.callbacks
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

    def node(self, name: str) -> Callable[[ConversationState, StreamWriter], Awaitable[ConversationState]]:
        """One node as a LangGraph function: its events go to the stream of mode `custom`."""

        async def run(state: ConversationState, writer: StreamWriter) -> ConversationState:
            event: ChatEvent = {}
            running = state.get("turn_id", ""), asyncio.current_task()
            self._running.add(running)
            try:
                async with aclosing(self.play(name, state)) as events:
                    async for event in events:
                        writer(event)
            finally:
                self._running.discard(running)
            return update_of(event)

        return run

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
    return cast("ConversationState", {**event["update"], "trace": [trace]})


def conversation_builder(nodes: ConversationNodes) -> "StateGraph[ConversationState]":
    """The graph before it is compiled, for adding nodes and edges."""
    builder: StateGraph[ConversationState] = StateGraph(ConversationState)
    for name in ORDER:
        builder.add_node(name, cast("Any", nodes.node(name)))  # pyright: ignore[reportUnknownMemberType] - its overloads are partly unknown
    for one, other in zip((START, *ORDER), (*ORDER, END), strict=True):
        builder.add_edge(one, other)
    return builder


def build_conversation_graph(
    memory: Memory,
    *,
    model: chat_nodes.AnyModel,
    router: chat_nodes.Router | None = None,
    retriever: chat_nodes.Retriever | None = None,
    checkpointer: Any = None,
    **options: Any,
) -> Any:
    """The compiled graph: `await graph.ainvoke({"messages": [HumanMessage(…)], "conversation_id": …})`.

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

    `graph=False` runs the plain pipeline, with the same answers; `options` are those of `ConversationNodes`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        model: chat_nodes.AnyModel,
        router: chat_nodes.Router | None = None,
        retriever: chat_nodes.Retriever | None = None,
        graph: bool = True,
        **options: Any,
    ) -> None:
        self.nodes = ConversationNodes(memory, model, router, retriever, **options)
        self._stream: Callable[[ConversationState], AsyncGenerator[ChatEvent]] = partial(_plain, self.nodes)
        if graph:
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
        # Not `append_message`, which acts as the owner if no user is named.
        asking = self.nodes.store.conversation(conversation, request.user_id or None)
        try:
            await asking.begin(request.message, id=turn_id)
            yield {"type": "turn", "turn_id": turn_id, "conversation_id": conversation}
            answer: dict[str, Any] = {}
            async with aclosing(self._stream(state)) as events:
                async for event in events:
                    if event.get("node") == "generate":
                        answer["answer"] = str(event["update"]["messages"][-1].text)
                    elif event.get("node") == "persist":
                        done = True
                        answer |= event["told"]
                    yield event
            yield {"type": "done", "conversation_id": conversation, **answer}
        finally:
            if not done:
                with anyio.move_on_after(_ABORT_S, shield=True):
                    await self.nodes.stop(turn_id)
                    await given_up(asking, turn_id)


async def _plain(nodes: ConversationNodes, state: ConversationState) -> AsyncGenerator[ChatEvent]:
    for name in ORDER:
        event: ChatEvent = {}
        async with aclosing(nodes.play(name, state)) as events:
            async for event in events:
                yield event
        state = merged(state, update_of(event))
