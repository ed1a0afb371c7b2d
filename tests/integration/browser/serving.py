"""A service that a browser can open."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from pagefile import Settings
from pagefile.service.app import create_app


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """The service on a port of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    config: Any = uvicorn.Config(create_app(settings), log_level="warning", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive(), "the service ended before it began"
        assert time.monotonic() < until, "the service did not begin"
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(15)
