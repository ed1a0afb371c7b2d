"""The service behind a real socket: uvicorn in a thread of this process."""

import faulthandler
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio.to_thread
import uvicorn

from pagefile import Settings
from pagefile.service.app import create_app

START_S = 30


@contextmanager
def listening(settings: Settings, **options) -> Iterator[str]:
    """The address of a service that runs as long as the block; it has drained when the block is left."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        create_app(settings), log_level="warning", access_log=False, timeout_graceful_shutdown=5, **options
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="service")
    thread.start()
    try:
        waited = threading.Event()
        for _ in range(START_S * 100):
            if server.started or not thread.is_alive():
                break
            waited.wait(0.01)
        assert server.started, "the service did not start"
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_S)
        listener.close()
        if thread.is_alive():
            # What it waits for is all that can explain it.
            faulthandler.dump_traceback()
            raise AssertionError("the service did not stop")


@asynccontextmanager
async def listening_async(settings: Settings, **options) -> AsyncIterator[str]:
    """The same, without holding up the event loop of the test."""
    service = listening(settings, **options)
    url = await anyio.to_thread.run_sync(service.__enter__)
    try:
        yield url
    finally:
        await anyio.to_thread.run_sync(service.__exit__, None, None, None)
