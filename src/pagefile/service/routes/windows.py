"""Building windows, and recalling past turns."""

from fastapi import Response

from pagefile import verbs
from pagefile.service.routes.common import MemoryOf, add_verb, at_verb, chat_of, router
from pagefile.wire.requests import AskContext
from pagefile.wire.windows import window_json

routes = router("Windows")


@at_verb(routes, verbs.CONTEXT)
async def context(memory: MemoryOf, body: AskContext) -> Response:
    window = await chat_of(memory, body).context(**verbs.CONTEXT.arguments(body))
    return Response(window_json(window, body.format), media_type="application/json")


add_verb(routes, verbs.RECALL, within=verbs.CHAT_RECALL)
add_verb(routes, verbs.CALLS)
