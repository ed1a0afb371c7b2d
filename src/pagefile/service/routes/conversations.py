"""Conversations as a whole: listings, checkpoints, resets."""

from typing import Annotated, Any

from fastapi import Query, Response

from pagefile import verbs
from pagefile.engine import Memory
from pagefile.engine.reading import Kind
from pagefile.service.once import made_id
from pagefile.service.routes.common import (
    Key,
    MemoryOf,
    add_verb,
    at_verb,
    carried_out,
    chat_of,
    router,
    written,
)
from pagefile.wire.queries import CheckpointsParams, ConversationParams, ResetsParams
from pagefile.wire.requests import ForkConversation
from pagefile.wire.responses import CheckpointOut, Page, ResetOut, SessionOut

routes = router("Conversations")


@at_verb(routes, verbs.FORK)
async def fork(memory: MemoryOf, body: ForkConversation, key: Key = None) -> Response:
    name = body.id or made_id(key, body.tenant, body.conversation_id)
    return await carried_out(verbs.FORK, memory, body, id=name)


@at_verb(routes, verbs.SESSION)
async def session(memory: MemoryOf, params: Annotated[ConversationParams, Query()]) -> Response:
    chat = chat_of(memory, params)
    return written(SessionOut.of((await chat.head()).scope, await chat.session()))


@at_verb(routes, verbs.CHECKPOINTS)
async def checkpoints(memory: MemoryOf, params: Annotated[CheckpointsParams, Query()]) -> Response:
    return written(Page[CheckpointOut].of(*await _marks(memory, params, "checkpoint")))


@routes.get("/v1/resets", response_model=Page[ResetOut])
async def resets(memory: MemoryOf, params: Annotated[ResetsParams, Query()]) -> Response:
    """Where a conversation started over, oldest first."""
    return written(Page[ResetOut].of(*await _marks(memory, params, "reset")))


async def _marks(
    memory: Memory, params: CheckpointsParams | ResetsParams, kind: Kind
) -> tuple[list[Any], str | None]:
    """A page of log entries of one kind."""
    # Fetch one extra to know whether there are more.
    found = list(await chat_of(memory, params).log(kind=kind, after=params.after, limit=params.limit + 1))
    shown = found[: params.limit]
    return shown, str(shown[-1].seq) if len(found) > params.limit else None


for _verb in (verbs.CONVERSATIONS, verbs.HEAD, verbs.LOG, verbs.CHECKPOINT, verbs.RESET):
    add_verb(routes, _verb)
