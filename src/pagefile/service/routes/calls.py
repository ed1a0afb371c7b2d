"""Recorded calls: what a model saw and why, what it would have seen with other settings, and what that cost."""

from typing import Annotated

from fastapi import Query, Response

from pagefile.engine.replaying import checked_from_afar
from pagefile.service.routes.common import MemoryOf, chat_of, router
from pagefile.wire.explaining import (
    AskReplay,
    CallParams,
    CostOut,
    CostsParams,
    ExplainParams,
    ExplanationOut,
    ReplayOut,
)
from pagefile.wire.responses import CallOut, Page, page_of

routes = router("Recorded calls")


@routes.get("/calls/call")
async def call(memory: MemoryOf, params: Annotated[CallParams, Query()]) -> CallOut:
    """One recorded call by its id; it says of which conversation it is. 404 when it is no longer kept, or another's."""
    return CallOut.of(await memory.call(params.call_id, user_id=params.user_id, tenant=params.tenant))


@routes.get("/explain", response_model=ExplanationOut)
async def explain(memory: MemoryOf, params: Annotated[ExplainParams, Query()]) -> Response:
    """What the model saw in a recorded call, and why: the bill, every verdict, and the messages, made again from the log."""
    found = await chat_of(memory, params).explain(params.call_id)
    # Written out here: the framework would look at every message again first.
    return Response(ExplanationOut.of(found).model_dump_json(), media_type="application/json")


@routes.post("/replay", response_model=ReplayOut)
async def replay(memory: MemoryOf, body: AskReplay) -> Response:
    """A recorded call as it would have been with other settings, beside what it was. Nothing is written."""
    found = await chat_of(memory, body).replay(body.call_id, **checked_from_afar(body.changes))
    return Response(ReplayOut.of(found).model_dump_json(), media_type="application/json")


@routes.get("/costs")
async def costs(memory: MemoryOf, params: Annotated[CostsParams, Query()]) -> Page[CostOut]:
    """What the newest calls cost, oldest first, each beside what it would have cost without Pagefile."""
    found = await chat_of(memory, params).costs(limit=params.limit)
    return page_of([CostOut.of(cost) for cost in found])
