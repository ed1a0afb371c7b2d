"""Runs a chat request as a stream of events, and as a turn in the log that ends up either done or aborted.

The user's message is written before anything else, the answer at the end. Whatever ends the stream early (an error, a
disconnect, a cancelled task) leaves the turn aborted: it enters no window, summary or index.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import anyio
from langchain_core.messages import HumanMessage

from pagefile.engine import Memory
from pagefile.errors import ConflictError, NotFoundError, PagefileError
from pagefile.integrations.langgraph.graph import (
    ORDER,
    ChatEvent,
    ConversationNodes,
    conversation_builder,
    update_of,
)
from pagefile.integrations.langgraph.nodes import Retriever, Router
from pagefile.integrations.langgraph.speaking import AnyModel
from pagefile.integrations.langgraph.state import ConversationState, merged

logger = logging.getLogger("pagefile")

#: How long aborting a turn may take.
_ABORT_S = 5.0


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A client's request."""

    message: str
    user_id: str
    session_id: str
    agent_type: str = "default"
    debug: bool = False
    #: The session's own conversation unless given.
    conversation_id: str | None = None


class ConversationChat:
    """`stream_chat` over the graph or, with the feature flag off, over the same nodes in sequence.

    Args:
        graph: False runs the plain pipeline, without LangGraph; the answers are the same.
        options: those of `ConversationNodes`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        model: AnyModel,
        router: Router | None = None,
        retriever: Retriever | None = None,
        graph: bool = True,
        **options: Any,
    ) -> None:
        self.nodes = ConversationNodes(memory, model, router, retriever, **options)
        self._graph: Any = conversation_builder(self.nodes).compile() if graph else None  # pyright: ignore[reportUnknownMemberType] - its own types are partly unknown

    async def answer(self, request: ChatRequest) -> str:
        """The complete answer."""
        async with aclosing(self.stream_chat(request)) as events:
            last = [event async for event in events][-1]
        return str(last["answer"])

    async def stream_chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent]:
        """The events of one turn. Stopping early (`aclosing`) aborts the turn, as does a node that raises."""
        conversation = request.conversation_id or await self.nodes.store.get_or_create_conversation_id(
            request.user_id, request.session_id
        )
        turn_id = str(uuid4())
        state = _initial(request, conversation, turn_id)
        done = False
        try:
            # Not `append_message`, which acts as the owner if no user is named.
            asking = self.nodes.store.conversation(conversation, request.user_id or None)
            await asking.begin(request.message, id=turn_id)
            yield {"type": "turn", "turn_id": turn_id, "conversation_id": conversation}
            answer: dict[str, Any] = {}
            async with aclosing(self._events(state)) as events:
                async for event in events:
                    done = done or event.get("node") == "persist"
                    _note_answer(answer, event)
                    yield event
            yield {"type": "done", "conversation_id": conversation, **answer}
        finally:
            if not done:
                await self._give_up(conversation, turn_id)

    async def _events(self, state: ConversationState) -> AsyncGenerator[ChatEvent]:
        stream = (
            _plain(self.nodes, state)
            if self._graph is None
            else self._graph.astream(state, stream_mode="custom")
        )
        async with aclosing(stream) as events:
            async for event in events:
                yield event

    async def _give_up(self, conversation: str, turn_id: str) -> None:
        with anyio.move_on_after(_ABORT_S, shield=True):
            await self.nodes.stop(turn_id)
            try:
                await self.nodes.store.abort_turn(conversation, turn_id)
            except (ConflictError, NotFoundError):
                # Completed at the last moment, or never begun.
                return
            except PagefileError:
                logger.exception(
                    "a turn that broke off could not be aborted; it stays open, and out of every window"
                )


def _initial(request: ChatRequest, conversation: str, turn_id: str) -> ConversationState:
    return {
        "messages": [HumanMessage(request.message, id=turn_id)],
        "user_id": request.user_id,
        "session_id": request.session_id,
        "conversation_id": conversation,
        "debug": request.debug,
        "agent_type": request.agent_type,
        "turn_id": turn_id,
    }


def _note_answer(answer: dict[str, Any], event: ChatEvent) -> None:
    if event.get("node") == "generate":
        answer["answer"] = str(event["update"]["messages"][-1].text)
    elif event.get("node") == "persist":
        answer |= event["told"]


async def _plain(nodes: ConversationNodes, state: ConversationState) -> AsyncGenerator[ChatEvent]:
    """Runs the nodes in sequence and yields their events."""
    for name in ORDER:
        event: ChatEvent = {}
        async with aclosing(nodes.play(name, state)) as events:
            async for event in events:
                yield event
        state = merged(state, update_of(event))
