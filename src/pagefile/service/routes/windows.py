"""Windows come out, and past turns come back."""

from typing import Annotated

from fastapi import Query, Response

from pagefile.service.routes.common import MemoryOf, chat_of, router
from pagefile.wire.queries import CallsParams
from pagefile.wire.requests import AskContext, AskRecall
from pagefile.wire.responses import CallOut, HitOut, Page, page_of
from pagefile.wire.windows import WindowOut, window_json

routes = router("Windows")


@routes.post("/context", response_model=WindowOut)
async def context(memory: MemoryOf, body: AskContext) -> Response:
    """The messages to send to the model, within one exact token budget, with the receipt."""
    window = await chat_of(memory, body).context(
        body.query,
        turn=body.turn_id,
        window_tokens=body.window_tokens,
        window_for=body.window_for,
        tools=body.tools,
        answer_tokens=body.answer_tokens,
        threshold=body.threshold,
        recent_turns=body.recent_turns,
        load=body.load,
        instructions=body.instructions,
        placement=body.placement,
    )
    # Written out here: the framework would look at every message again first.
    return Response(window_json(window, body.format), media_type="application/json")


@routes.post("/recall")
async def recall(memory: MemoryOf, body: AskRecall) -> Page[HitOut]:
    """Past turns that answer the query, best first, each with its neighbours."""
    if body.conversation_id is not None:
        chat = memory.conversation(body.conversation_id, user_id=body.user_id, tenant=body.tenant)
        hits = await chat.recall(body.query, body.limit, at=body.at)
    else:
        user_id = body.user_id or ""
        hits = await memory.recall(
            body.query, user_id=user_id, tenant=body.tenant, limit=body.limit, at=body.at
        )
    return page_of([HitOut.of(hit) for hit in hits])


@routes.get("/calls")
async def calls(memory: MemoryOf, params: Annotated[CallsParams, Query()]) -> Page[CallOut]:
    """The windows handed out lately, newest first."""
    found = await chat_of(memory, params).calls(limit=params.limit, after=params.after)
    return page_of([CallOut.of(call) for call in found], found.next)
