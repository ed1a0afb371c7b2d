"""What is known about users, and erasing it."""

from typing import Annotated

from fastapi import Query, Response

from pagefile import verbs
from pagefile.service.routes.common import MemoryOf, add_verb, at_verb, router, written
from pagefile.wire.queries import FactRevisionsParams, FactsParams
from pagefile.wire.responses import FactOut, Page, RevisionOut
from pagefile.wire.texts import behind, cursor_of

routes = router("Facts and forgetting")


@at_verb(routes, verbs.FACTS)
async def facts(memory: MemoryOf, params: Annotated[FactsParams, Query()]) -> Response:
    found = await memory.facts(**verbs.FACTS.arguments(params))
    if params.after is not None:
        # The fact may have left the list since, so paging continues after a point in time, not after a fact.
        start = behind(params.after)
        found = [fact for fact in found if (fact.recorded, fact.id) > start]
    shown = found[: params.limit]
    following = cursor_of(shown[-1].recorded, shown[-1].id) if len(found) > params.limit else None
    return written(Page[FactOut].of(shown, following))


@at_verb(routes, verbs.FACT_REVISIONS)
async def revisions(memory: MemoryOf, params: Annotated[FactRevisionsParams, Query()]) -> Response:
    found = await memory.fact_revisions(**verbs.FACT_REVISIONS.arguments(params))
    shown = found[: params.limit]
    following = str(shown[-1].number) if len(found) > params.limit else None
    return written(Page[RevisionOut].of(shown, following))


for _verb in (verbs.REMEMBER, verbs.RETRACT, verbs.UNDO, verbs.IMPORT_FACTS, verbs.FORGET):
    add_verb(routes, _verb)
