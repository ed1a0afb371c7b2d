"""The route of the MCP server: /mcp, with the keys, limits and origins of every other route."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from pagefile import records
from pagefile.errors import InvalidArgumentError, MissingExtraError, PagefileError
from pagefile.gateway import identity
from pagefile.service.auth import about, doing, narrowed, open_memory, principal_of
from pagefile.service.named_route import NamedRoute
from pagefile.service.problems import refused
from pagefile.service.request_guard import MCP
from pagefile.settings import Settings
from pagefile.shapes.skeleton import as_object
from pagefile.text.json_size import MAX_VALUES, THREAD_FROM_BYTES, has_many_values
from pagefile.tiers.base import off_loop

#: A model writes its arguments: none comes near. The transport reads, checks and quotes them on the event loop, 30 MB in nine seconds.
MAX_MESSAGE_BYTES = 1_000_000
#: The names of methods and of our tools.
_WORD = re.compile(r"[A-Za-z_/]{1,40}")


class McpSessions:
    """The server behind the route. It is made at the first request: most services never get one."""

    def __init__(self, settings: Settings, tasks: TaskGroup) -> None:
        self._settings = settings
        self._tasks = tasks
        self._lock = anyio.Lock()
        self._server: Any = None

    async def answer(self, request: Request, send: Send) -> None:
        if find_spec("mcp") is None:
            raise MissingExtraError.of("mcp", "The Model Context Protocol")
        principal, app = principal_of(request), request.app
        who = identity.who(
            request.headers,
            {},
            tenant=principal.tenant,
            user=principal.user,
            default=request.headers.get(identity.PROJECT) or self._settings.mcp.user_id,
        )
        about(request.scope, records.Scope(who.tenant or records.DEFAULT_TENANT, who.user, who.conversation))
        async with self._lock:
            if self._server is None:
                self._server = await self._tasks.start(self._run)
        whose = open_memory(app), cast("str", who.user), who.tenant, who.conversation
        narrow = partial(narrowed, principal=principal, app=app)
        await self._server.answer(whose, narrow, principal.key_id, request.scope, request.receive, send)

    async def _run(self, *, task_status: TaskStatus[Any] = anyio.TASK_STATUS_IGNORED) -> None:
        # It takes half a second, at the first request.
        http: Any = await anyio.to_thread.run_sync(import_module, "pagefile.mcp.http")
        service = self._settings.service
        chosen = self._settings.language
        serving = http.http_server(
            stateless=service.workers > 1,
            max_body_bytes=service.max_body_bytes,
            language="en" if chosen == "auto" else chosen,
        )
        async with serving as server:
            task_status.started(server)
            await anyio.sleep_forever()


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[McpSessions]:
    """The sessions of a running service; they end with it."""
    async with anyio.create_task_group() as tasks:
        yield McpSessions(settings, tasks)
        tasks.cancel_scope.cancel()


class _Endpoint:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            open_memory(request.app)
            if request.method == "POST":
                request = Request(scope, await _bounded(request))
            await cast("McpSessions", request.app.state.mcp).answer(request, send)
        except PagefileError as error:
            await refused(error)(scope, receive, send)


def _asked(body: bytes) -> str:
    """What a message asks for: the method and, of a call, the tool."""
    try:
        message = as_object(json.loads(body)) or {}
    except (ValueError, RecursionError):
        return ""
    params = as_object(message.get("params")) or {}
    return " ".join(
        one
        for one in (message.get("method"), params.get("name"))
        if isinstance(one, str) and _WORD.fullmatch(one)
    )


async def _bounded(request: Request) -> Receive:
    """The request's body once more, unless the transport, which reads it on the event loop, would take long for it."""
    body = await request.body()
    if len(body) > MAX_MESSAGE_BYTES:
        raise InvalidArgumentError(
            f"The message has more than {MAX_MESSAGE_BYTES:,} bytes: use the HTTP API for large texts."
        )
    if await off_loop(partial(has_many_values, body), len(body), THREAD_FROM_BYTES):
        raise InvalidArgumentError(
            f"The message has more than {MAX_VALUES:,} JSON values: split it, or send one string."
        )
    if request.app.state.audit is not None:
        doing(request.scope, await off_loop(partial(_asked, body), len(body), THREAD_FROM_BYTES))
    rest, given = request.receive, False

    async def receive() -> Message:
        nonlocal given
        if given:
            return await rest()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


routes = [NamedRoute(MCP, _Endpoint(), name="mcp", include_in_schema=False)]
