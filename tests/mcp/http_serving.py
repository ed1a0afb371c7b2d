"""The service in this process, and a client of its /mcp that sends what a test wants to see refused."""

import json
from contextlib import asynccontextmanager

import httpx

from pagefile import Settings
from pagefile.service.app import create_app
from pagefile.settings import ServiceSettings
from tests.acceptance.http_serving import BASE

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
BEGIN = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class McpClient:
    """A client that sends what a test wants to see refused."""

    def __init__(self, http, headers=()):
        self.http, self.headers = http, {**HEADERS, **dict(headers)}

    async def send(self, method, params=None, *, number=1, **headers):
        body = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if number is not None:
            body["id"] = number
        return await self.http.post("/mcp", json=body, headers={**self.headers, **headers})

    async def begin(self):
        said = await self.send("initialize", BEGIN)
        assert 200 == said.status_code, said.text
        self.headers |= {
            "mcp-session-id": said.headers["mcp-session-id"],
            "mcp-protocol-version": "2025-11-25",
        }
        await self.send("notifications/initialized", number=None)
        return self

    async def call(self, tool, **arguments):
        said = await self.send("tools/call", {"name": tool, "arguments": arguments}, number=2)
        assert 200 == said.status_code, said.text
        [line] = [line for line in said.text.splitlines() if line.startswith("data: {")]
        return json.loads(line.removeprefix("data: "))["result"]


@asynccontextmanager
async def serving(**service):
    settings = Settings(url="memory://", service=ServiceSettings(**service))
    async with serving_with(settings) as http:
        yield http.app, http


@asynccontextmanager
async def serving_with(settings):
    """A client of the service; its `app` is the service's."""
    app = create_app(settings)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=BASE) as http,
    ):
        http.app = app
        yield http
