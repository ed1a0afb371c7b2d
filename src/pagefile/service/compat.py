"""The routes of other vendors' memory APIs: a request is read, its handler called, and a failure told in the vendor's shape."""

import json
from functools import partial
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from pagefile.compat.agent_memory import AgentMemory
from pagefile.compat.api import Answer, Api, Asked, Refusal
from pagefile.compat.mem0 import Mem0
from pagefile.compat.memory_stores import MemoryStores
from pagefile.errors import InvalidArgumentError, PagefileError
from pagefile.records import DEFAULT_TENANT, Scope
from pagefile.service.auth import about, open_memory, principal_of
from pagefile.service.named_route import NamedRoute
from pagefile.service.problems import problem_of
from pagefile.text.json_size import MAX_VALUES, THREAD_FROM_BYTES, has_many_values
from pagefile.tiers.base import off_loop

_APIS: tuple[type[Api], ...] = (Mem0, AgentMemory, MemoryStores)


class _Face:
    """The endpoint of one vendor."""

    def __init__(self, api: type[Api]) -> None:
        self._api = api

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answered(request)
        except Refusal as refusal:
            problem = self._api.problem(refusal.status, str(refusal), refusal.kind)
            answer = Answer(problem, refusal.status)
        except PagefileError as error:
            told = problem_of(error)
            answer = Answer(self._api.problem(told.status, told.detail), told.status)
        await self._response(answer)(scope, receive, send)

    async def _answered(self, request: Request) -> Answer:
        path = cast("str", request.scope["path"]).removeprefix(self._api.prefix)
        found = self._api.found(request.method, path)
        if found is None:
            return Answer(self._api.problem(404, "There is no such route here."), 404)
        handler, names = found
        return await handler(await self._asked(request), **names)

    async def _asked(self, request: Request) -> Asked:
        principal, raw = principal_of(request), await request.body()
        query = request.query_params
        tenant = DEFAULT_TENANT if principal.tenant is None else principal.tenant
        body = await off_loop(partial(_read, raw), len(raw), THREAD_FROM_BYTES) if raw else None
        named: object = cast("dict[str, object]", body).get("user_id") if isinstance(body, dict) else None
        named = principal.user or named or query.get("user_id")
        about(request.scope, Scope(tenant, named if isinstance(named, str) and named else None))
        return Asked(
            open_memory(request.app),
            tenant,
            principal.user,
            principal.key_id,
            dict(query),
            {name: query.getlist(name) for name in query},
            body,
        )

    def _response(self, answer: Answer) -> Response:
        return JSONResponse(answer.body, answer.status)


def _read(raw: bytes) -> Any:
    if has_many_values(raw):
        raise InvalidArgumentError(
            f"The body has more than {MAX_VALUES:,} JSON values: split it into several requests."
        )
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError("The body is not JSON in UTF-8.") from error


routes = [
    route
    for api in _APIS
    for route in (
        NamedRoute(api.prefix, _Face(api), name=api.__name__, include_in_schema=False),
        NamedRoute(f"{api.prefix}/{{rest:path}}", _Face(api), name=api.__name__, include_in_schema=False),
    )
]
