"""Conversations as a whole: listings, checkpoints, resets."""

from typing import Annotated

from fastapi import Query

from pagefile.errors import NotFoundError
from pagefile.ports import HeadQuery
from pagefile.service.routes.common import MemoryOf, chat_of, router
from pagefile.wire.queries import CheckpointsParams, ConversationParams, ConversationsParams
from pagefile.wire.requests import MakeCheckpoint, ResetConversation
from pagefile.wire.responses import CheckpointOut, ConversationOut, Page, ResetOut, page_of

routes = router("Conversations")


@routes.get("/conversations")
async def conversations(
    memory: MemoryOf, params: Annotated[ConversationsParams, Query()]
) -> Page[ConversationOut]:
    """Conversations, the most recently written first."""
    found = await memory.conversations(
        user_id=params.user_id, tenant=params.tenant, limit=params.limit, after=params.after
    )
    return page_of([ConversationOut.of(head) for head in found], found.next)


@routes.get("/conversations/conversation")
async def conversation(memory: MemoryOf, params: Annotated[ConversationParams, Query()]) -> ConversationOut:
    """One conversation; 404 when nobody wrote to it, or somebody else."""
    scope = chat_of(memory, params).scope
    found = await memory.house.store.reader.heads(HeadQuery(scope, 1))
    if not found:
        raise NotFoundError("There is no such conversation: GET /v1/conversations lists them.")
    return ConversationOut.of(found[0])


@routes.post("/checkpoints", status_code=201)
async def checkpoint(memory: MemoryOf, body: MakeCheckpoint) -> CheckpointOut:
    """Let a summary speak for all but the last turns; without one, it is extracted from them."""
    chat = chat_of(memory, body)
    return CheckpointOut.of(await chat.checkpoint(body.summary, recent_turns=body.recent_turns))


@routes.get("/checkpoints")
async def checkpoints(memory: MemoryOf, params: Annotated[CheckpointsParams, Query()]) -> Page[CheckpointOut]:
    """Every checkpoint of a conversation, oldest first."""
    found = [made for made in await chat_of(memory, params).checkpoints() if made.seq > params.after]
    shown = found[: params.limit]
    following = str(shown[-1].seq) if len(found) > params.limit else None
    return page_of([CheckpointOut.of(made) for made in shown], following)


@routes.post("/reset", status_code=201)
async def reset(memory: MemoryOf, body: ResetConversation) -> ResetOut:
    """Begin anew: what came before leaves the window and stays in the log and in recall."""
    return ResetOut.of(await chat_of(memory, body).reset())
