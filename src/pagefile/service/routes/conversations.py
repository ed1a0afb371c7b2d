"""Conversations as a whole: listings, checkpoints, resets."""

from typing import Annotated

from fastapi import Query

from pagefile.records import Checkpoint, Reset
from pagefile.service.routes.common import MemoryOf, chat_of, router
from pagefile.wire.queries import (
    CheckpointsParams,
    ConversationParams,
    ConversationsParams,
    LogParams,
    ResetsParams,
)
from pagefile.wire.requests import ForkConversation, MakeCheckpoint, ResetConversation
from pagefile.wire.responses import (
    CheckpointOut,
    ConversationOut,
    ForkOut,
    LogPage,
    Page,
    ResetOut,
    SessionOut,
    entry_out,
    page_of,
)

routes = router("Conversations")


@routes.post("/conversations/fork", status_code=201)
async def fork(memory: MemoryOf, body: ForkConversation) -> ForkOut:
    """A new conversation that goes on from a turn of this one, which stays as it is."""
    made = await chat_of(memory, body).fork(body.turn_id, id=body.id, before=body.before)
    return ForkOut(conversation_id=made.id, user_id=made.scope.user, tenant=made.scope.tenant)


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
    """One conversation; 404 when nobody used it, or it is somebody else's."""
    return ConversationOut.of(await chat_of(memory, params).head())


@routes.get("/session")
async def session(memory: MemoryOf, params: Annotated[ConversationParams, Query()]) -> SessionOut:
    """The session value of a conversation (document 001); 404 when nobody used it, or it is somebody else's."""
    chat = chat_of(memory, params)
    return SessionOut.of((await chat.head()).scope, await chat.session())


@routes.get("/log")
async def log(memory: MemoryOf, params: Annotated[LogParams, Query()]) -> LogPage:
    """Turns, checkpoints and resets in the order in which they were written, or those of one kind.

    Of one kind, there may turn out to be nothing behind the last page. Open turns stand last.
    """
    found = await chat_of(memory, params).log(
        kind=params.kind, after=params.after, limit=params.limit, newest=params.newest
    )
    return LogPage(items=tuple(entry_out(entry) for entry in found), next=found.next)


@routes.post("/checkpoints", status_code=201)
async def checkpoint(memory: MemoryOf, body: MakeCheckpoint) -> CheckpointOut:
    """Let a summary speak for all but the last turns; without one, it is extracted from them."""
    chat = chat_of(memory, body)
    return CheckpointOut.of(await chat.checkpoint(body.summary, recent_turns=body.recent_turns))


@routes.get("/checkpoints")
async def checkpoints(memory: MemoryOf, params: Annotated[CheckpointsParams, Query()]) -> Page[CheckpointOut]:
    """Every checkpoint of a conversation, oldest first."""
    # One more tells whether there is more.
    marks = await chat_of(memory, params).log(kind="checkpoint", after=params.after, limit=params.limit + 1)
    found = [made for made in marks if isinstance(made, Checkpoint)]
    shown = found[: params.limit]
    following = str(shown[-1].seq) if len(found) > params.limit else None
    return page_of([CheckpointOut.of(made) for made in shown], following)


@routes.get("/resets")
async def resets(memory: MemoryOf, params: Annotated[ResetsParams, Query()]) -> Page[ResetOut]:
    """Where a conversation began anew, oldest first."""
    marks = await chat_of(memory, params).log(kind="reset", after=params.after, limit=params.limit + 1)
    found = [one for one in marks if isinstance(one, Reset)]
    shown = found[: params.limit]
    following = str(shown[-1].seq) if len(found) > params.limit else None
    return page_of([ResetOut.of(reset) for reset in shown], following)


@routes.post("/reset", status_code=201)
async def reset(memory: MemoryOf, body: ResetConversation) -> ResetOut:
    """Begin anew: what came before leaves the window and stays in the log and in recall."""
    return ResetOut.of(await chat_of(memory, body).reset())
