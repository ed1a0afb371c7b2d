"""Conversations as a whole: listings, checkpoints, resets."""

from typing import Annotated

from fastapi import Query

from pagefile.errors import NotFoundError
from pagefile.memory import Memory
from pagefile.ports import EntryQuery, HeadQuery
from pagefile.records import Head, Reset
from pagefile.service.routes.common import MemoryOf, chat_of, router
from pagefile.wire.queries import CheckpointsParams, ConversationParams, ConversationsParams, ResetsParams
from pagefile.wire.requests import MakeCheckpoint, ResetConversation
from pagefile.wire.responses import CheckpointOut, ConversationOut, Page, ResetOut, SessionOut, page_of

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
    return ConversationOut.of(await _head(memory, params))


@routes.get("/session")
async def session(memory: MemoryOf, params: Annotated[ConversationParams, Query()]) -> SessionOut:
    """The session value of a conversation (document 001); 404 when nobody wrote to it, or somebody else."""
    scope = (await _head(memory, params)).scope
    return SessionOut.of(scope, await memory.house.store.sessions.get(scope))


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


@routes.get("/resets")
async def resets(memory: MemoryOf, params: Annotated[ResetsParams, Query()]) -> Page[ResetOut]:
    """Where a conversation began anew, oldest first."""
    scope = chat_of(memory, params).scope
    wanted = EntryQuery(scope, frozenset({"reset"}), after_seq=params.after, limit=params.limit + 1)
    found = [one for one in await memory.house.store.reader.entries(wanted) if isinstance(one, Reset)]
    shown = found[: params.limit]
    following = str(shown[-1].seq) if len(found) > params.limit else None
    return page_of([ResetOut.of(reset) for reset in shown], following)


@routes.post("/reset", status_code=201)
async def reset(memory: MemoryOf, body: ResetConversation) -> ResetOut:
    """Begin anew: what came before leaves the window and stays in the log and in recall."""
    return ResetOut.of(await chat_of(memory, body).reset())


async def _head(memory: Memory, params: ConversationParams) -> Head:
    found = await memory.house.store.reader.heads(HeadQuery(chat_of(memory, params).scope, 1))
    if not found:
        raise NotFoundError("There is no such conversation: GET /v1/conversations lists them.")
    return found[0]
