"""Recorded model calls: what a model saw and why, what it would have seen with other settings, and what that cost."""

from fastapi import Response

from pagefile import verbs
from pagefile.engine.replaying import checked_from_afar
from pagefile.service.routes.common import MemoryOf, add_verb, at_verb, chat_of, router, written
from pagefile.wire.explaining import AskReplay, ReplayOut

routes = router("Recorded calls")


@at_verb(routes, verbs.REPLAY)
async def replay(memory: MemoryOf, body: AskReplay) -> Response:
    changes = checked_from_afar(body.changes)
    return written(ReplayOut.of(await chat_of(memory, body).replay(body.call_id, **changes)))


for _verb in (verbs.CALL, verbs.EXPLAIN, verbs.COSTS):
    add_verb(routes, _verb)
