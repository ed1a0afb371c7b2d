"""A wire with a delay in front of a server, as between two machines of a data centre."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from urllib.parse import urlsplit

_CHUNK = 65_536


@asynccontextmanager
async def delayed(url: str, one_way_s: float) -> AsyncGenerator[str]:
    """The URL of the same server by way of a proxy that holds back every byte for this long, each way."""
    target = urlsplit(url)
    host, port = target.hostname or "127.0.0.1", target.port
    if port is None:
        raise ValueError("A delay needs a URL with a port.")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, port)
        await asyncio.gather(_carry(reader, back, one_way_s), _carry(there, writer, one_way_s))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with AsyncExitStack() as stack:
        stack.callback(server.close)
        own = server.sockets[0].getsockname()[1]
        yield target._replace(netloc=target.netloc.replace(f":{port}", f":{own}")).geturl()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, one_way_s: float) -> None:
    """Chunks are held back side by side, as on a wire, not one after another."""
    loop = asyncio.get_running_loop()
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            loop.call_later(one_way_s, _write, writer, data)
    loop.call_later(one_way_s, writer.close)


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    if not writer.is_closing():
        writer.write(data)
