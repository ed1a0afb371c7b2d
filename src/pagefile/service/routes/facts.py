"""What is held about users, and how they are forgotten."""

from typing import Annotated

from fastapi import Query

from pagefile.service.routes.common import MemoryOf, router
from pagefile.wire.queries import FactsParams
from pagefile.wire.requests import Forget, RememberFact, RetractFact
from pagefile.wire.responses import ErasureOut, FactOut, Page, page_of

routes = router("Facts and forgetting")


@routes.post("/facts", status_code=201)
async def remember(memory: MemoryOf, body: RememberFact) -> FactOut:
    """Write down a lasting statement about a user."""
    fact = await memory.remember(
        body.text,
        user_id=body.user_id,
        tenant=body.tenant,
        category=body.category,
        confidence=body.confidence,
        source=body.source,
    )
    return FactOut.of(fact)


@routes.get("/facts")
async def facts(memory: MemoryOf, params: Annotated[FactsParams, Query()]) -> Page[FactOut]:
    """What is held about a user, oldest first."""
    return page_of([FactOut.of(fact) for fact in await memory.facts(params.user_id, params.tenant)])


@routes.post("/facts/retract")
async def retract(memory: MemoryOf, body: RetractFact) -> FactOut:
    """No longer hold a fact; it stays on record as retracted."""
    return FactOut.of(await memory.retract(body.fact_id, tenant=body.tenant))


@routes.post("/forget")
async def forget(memory: MemoryOf, body: Forget) -> ErasureOut:
    """Erase a conversation, a user or a whole tenant through every tier, and count what went."""
    erased = await memory.forget(
        user_id=body.user_id, conversation_id=body.conversation_id, tenant=body.tenant
    )
    return ErasureOut.of(erased)
