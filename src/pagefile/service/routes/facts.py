"""What is held about users, and how they are forgotten."""

from typing import Annotated

from fastapi import Query

from pagefile.service.routes.common import MemoryOf, router
from pagefile.wire.queries import FactRevisionsParams, FactsParams
from pagefile.wire.requests import Forget, ImportFacts, RememberFact, RetractFact, UndoFacts
from pagefile.wire.responses import ErasureOut, FactOut, ImportedFactsOut, Page, RevisionOut, page_of
from pagefile.wire.texts import behind, cursor_of

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
        attribute=body.attribute,
        subject=body.subject,
        valid_from=body.valid_from,
        project=body.project,
        agent=body.agent,
    )
    return FactOut.of(fact)


@routes.get("/facts")
async def facts(memory: MemoryOf, params: Annotated[FactsParams, Query()]) -> Page[FactOut]:
    """What is held about a user, oldest first; or what was held at a time, or all there ever was."""
    found = await memory.facts(params.user_id, params.tenant, as_of=params.as_of, history=params.history)
    if params.after is not None:
        # A fact may have left the list since, so it goes on behind a moment, not behind a fact.
        start = behind(params.after)
        found = [fact for fact in found if (fact.recorded, fact.id) > start]
    shown = found[: params.limit]
    following = cursor_of(shown[-1].recorded, shown[-1].id) if len(found) > params.limit else None
    return page_of([FactOut.of(fact) for fact in shown], following)


@routes.get("/facts/revisions")
async def revisions(memory: MemoryOf, params: Annotated[FactRevisionsParams, Query()]) -> Page[RevisionOut]:
    """Every change of what is held about a user, oldest first."""
    found = await memory.fact_revisions(params.user_id, params.tenant, after=params.after)
    shown = found[: params.limit]
    following = str(shown[-1].number) if len(found) > params.limit else None
    return page_of([RevisionOut.of(revision) for revision in shown], following)


@routes.post("/facts/undo")
async def undo(memory: MemoryOf, body: UndoFacts) -> RevisionOut:
    """Take back a change of what is held about a user; that can be undone too."""
    return RevisionOut.of(await memory.undo(body.user_id, body.revision, tenant=body.tenant))


@routes.post("/facts/import")
async def import_facts(memory: MemoryOf, body: ImportFacts) -> ImportedFactsOut:
    """Take over the facts and the profile of a deer-flow memory.json; a second time changes nothing."""
    counts = await memory.import_facts(body.memory, user_id=body.user_id, tenant=body.tenant)
    return ImportedFactsOut(**counts)


@routes.post("/facts/retract")
async def retract(memory: MemoryOf, body: RetractFact) -> FactOut:
    """No longer hold a fact; it stays on record as retracted."""
    return FactOut.of(await memory.retract(body.fact_id, user_id=body.user_id, tenant=body.tenant))


@routes.post("/forget")
async def forget(memory: MemoryOf, body: Forget) -> ErasureOut:
    """Erase a conversation, a user or a whole tenant through every tier, and count what went; or one turn or one page alone."""
    erased = await memory.forget(
        user_id=body.user_id,
        conversation_id=body.conversation_id,
        tenant=body.tenant,
        turn_id=body.turn_id,
        page=body.page,
    )
    return ErasureOut.of(erased)
