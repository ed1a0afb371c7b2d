"""The service in this process: its lifespan and a client, without a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from pagefile import Settings
from pagefile.service.app import create_app

BASE = "http://127.0.0.1:8780"


@asynccontextmanager
async def serving(settings: Settings | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that runs as long as the block."""
    app = create_app(settings or Settings(url="memory://"))
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url=BASE) as client,
    ):
        yield client
