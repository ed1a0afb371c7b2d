"""Clients of MCP servers in this process, and the pair of streams that a proxy stands between."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp.client.session import ClientSession
from mcp.shared.memory import create_client_server_memory_streams

from pagefile import Memory
from pagefile.edge.fail_open import FailOpen
from pagefile.mcp.calling import Caller
from pagefile.mcp.proxy import Proxy
from pagefile.mcp.server import MemoryServer

USER = "ada"


@asynccontextmanager
async def connected(memory: Memory, user: str = USER, **callbacks) -> AsyncIterator[ClientSession]:
    """A client of the memory's own server, after the handshake."""
    server = MemoryServer(lambda _ctx: Caller(memory, user)).server
    async with served(server, **callbacks) as session:
        yield session


@asynccontextmanager
async def served(server, **callbacks) -> AsyncIterator[ClientSession]:
    async with (
        create_client_server_memory_streams() as (mine, theirs),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *theirs, server.create_initialization_options())
        async with ClientSession(*mine, **callbacks) as session:
            await session.initialize()
            yield session
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def wrapped(memory: Memory, server, *, max_tokens=200, **callbacks) -> AsyncIterator[ClientSession]:
    """A client of another server, with the proxy in between."""
    proxy = Proxy(Caller(memory, USER), FailOpen(memory, "mcp"), max_tokens)
    async with (
        create_client_server_memory_streams() as (mine, before),
        create_client_server_memory_streams() as (behind, theirs),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *theirs, server.create_initialization_options())
        tasks.start_soon(proxy.run, before, behind)
        async with ClientSession(*mine, **callbacks) as session:
            await session.initialize()
            yield session
        tasks.cancel_scope.cancel()


def text_of(result) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
