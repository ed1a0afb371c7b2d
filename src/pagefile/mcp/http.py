"""The MCP server over streamable HTTP: sessions of many clients, each within what its key is for."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from pagefile.engine import Memory
from pagefile.mcp.calling import CONVERSATION, Caller, Narrow
from pagefile.mcp.server import MemoryServer
from pagefile.window.wording import Language

#: A memory, a user, a tenant and a conversation.
Whose = tuple[Memory, str, str | None, str | None]

_CALLER = "pagefile.mcp.caller"
#: Sessions of one process; a client that opens more is told so.
_MAX_SESSIONS = 1_000


class HttpServer:
    """Passes requests to the SDK's transport. Whose memory a call uses is decided by its own request, never by its session."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def answer(
        self, whose: Whose, narrow: Narrow, key_id: str | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        memory, user, tenant, conversation = whose
        caller = Caller(memory, user, tenant, conversation or CONVERSATION, narrow=narrow)
        named = {**scope, _CALLER: caller}
        if key_id is not None:
            # The transport refuses a session to any key but the one that opened it.
            named["user"] = AuthenticatedUser(AccessToken(token="", client_id=key_id, scopes=[]))
        await self._manager.handle_request(named, receive, send)


def _caller_in(ctx: ServerRequestContext[Any, Any]) -> Caller:
    if ctx.request is None:
        raise RuntimeError("This request came by another way than HTTP.")
    return ctx.request.scope[_CALLER]


@asynccontextmanager
async def http_server(
    *, stateless: bool, max_body_bytes: int, language: Language
) -> AsyncGenerator[HttpServer]:
    """`stateless` where several processes share the clients: a session would be known to one of them only."""
    manager = StreamableHTTPSessionManager(
        MemoryServer(_caller_in, language).server,
        stateless=stateless,
        max_request_body_size=max_body_bytes,
        max_sessions=_MAX_SESSIONS,
    )
    async with manager.run():
        yield HttpServer(manager)
