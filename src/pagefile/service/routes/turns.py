"""Recording turns."""

from fastapi import Response

from pagefile import verbs
from pagefile.service.once import made_id
from pagefile.service.routes.common import Key, MemoryOf, add_verb, at_verb, carried_out, router
from pagefile.wire.requests import AddStep, BeginTurn, RecordTurn

routes = router("Turns")


@at_verb(routes, verbs.RECORD)
async def record(memory: MemoryOf, body: RecordTurn, key: Key = None) -> Response:
    turn_id = body.id or made_id(key, body.tenant, body.conversation_id)
    return await carried_out(verbs.RECORD, memory, body, id=turn_id)


@at_verb(routes, verbs.BEGIN)
async def begin(memory: MemoryOf, body: BeginTurn, key: Key = None) -> Response:
    turn_id = body.id or made_id(key, body.tenant, body.conversation_id)
    return await carried_out(verbs.BEGIN, memory, body, id=turn_id)


@at_verb(routes, verbs.STEP)
async def step(memory: MemoryOf, body: AddStep, key: Key = None) -> Response:
    return await carried_out(verbs.STEP, memory, body, call_id=body.call_id or made_id(key, body.turn_id))


for _verb in (verbs.EXTEND, verbs.COMPLETE, verbs.ABORT, verbs.MESSAGES, verbs.CHAT_TURNS, verbs.TURNS):
    add_verb(routes, _verb)
