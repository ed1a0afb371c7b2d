"""Windows come out, and past turns and archived results come back."""

from typing import Annotated

import anyio
from fastapi import Query

from pagefile.memory import Memory
from pagefile.service.routes.common import MemoryOf, chat_of, router
from pagefile.wire.queries import CallsParams, LoadParams
from pagefile.wire.requests import AskContext, AskLoad, AskRecall
from pagefile.wire.responses import CallOut, HitOut, LoadOut, Page, page_of
from pagefile.wire.windows import WindowOut

routes = router("Windows")

#: How long a listing of calls waits for the newest ones to be written.
_SETTLE_S = 1.0


@routes.post("/context")
async def context(memory: MemoryOf, body: AskContext) -> WindowOut:
    """The messages to send to the model, within one exact token budget, with the receipt."""
    window = await chat_of(memory, body).context(
        body.query,
        turn=body.turn_id,
        window_tokens=body.window_tokens,
        threshold=body.threshold,
        recent_turns=body.recent_turns,
        instructions=body.instructions,
        placement=body.placement,
    )
    return WindowOut.of(window, body.format)


@routes.post("/recall")
async def recall(memory: MemoryOf, body: AskRecall) -> Page[HitOut]:
    """Past turns that answer the query, best first, each with its neighbours."""
    if body.conversation_id is not None:
        chat = memory.conversation(body.conversation_id, user_id=body.user_id, tenant=body.tenant)
        hits = await chat.recall(body.query, body.limit)
    else:
        user_id = body.user_id or ""
        hits = await memory.recall(body.query, user_id=user_id, tenant=body.tenant, limit=body.limit)
    return page_of([HitOut.of(hit) for hit in hits])


@routes.post("/load")
async def load(memory: MemoryOf, body: AskLoad) -> LoadOut:
    """Page in an archived tool result, whole or in part."""
    return await _loaded(memory, body)


@routes.get("/load")
async def load_by_query(memory: MemoryOf, params: Annotated[LoadParams, Query()]) -> LoadOut:
    """The same as POST, for a link."""
    return await _loaded(memory, params)


@routes.get("/calls")
async def calls(memory: MemoryOf, params: Annotated[CallsParams, Query()]) -> Page[CallOut]:
    """The windows handed out lately, newest first."""
    # Calls are written off the read path; under steady load there is always one more, so the wait has an end.
    with anyio.move_on_after(_SETTLE_S):
        await memory.settle()
    found = await chat_of(memory, params).calls(limit=params.limit, after=params.after)
    return page_of([CallOut.of(call) for call in found], found.next)


async def _loaded(memory: Memory, request: AskLoad | LoadParams) -> LoadOut:
    whole = await chat_of(memory, request).load(request.uuid)
    return LoadOut.of(request.uuid, whole, request.offset, request.limit)
