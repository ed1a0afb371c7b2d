"""Server-sent events: what a task reports as it happens, heartbeats while it is silent, and its end.

The framework would run the work in a generator, which may stay unclosed when the client disconnects. Here it is a task:
a disconnect cancels it, whatever it is doing, and cleanup runs afterwards.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from pydantic import BaseModel
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

#: A comment, which every client ignores.
HEARTBEAT = b": heartbeat\n\n"
HEARTBEAT_S = 15.0
#: How long a client is asked to wait before it reconnects.
RETRY_MS = 1000
#: How many events are buffered for a slow client before the task blocks.
_WAITING = 16
#: How long cleanup may take.
CLEAN_UP_S = 5.0

#: Sends an event in wire format.
SendEvent: TypeAlias = Callable[[bytes], Awaitable[None]]


class EventStream(StreamingResponse):
    """A response whose body is the events that `work` sends, which must handle its own failures.

    `clean_up` is called once at the end, whatever happened, and shielded from cancellation; `gone` as soon as the client disconnects.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        work: Callable[[SendEvent], Awaitable[None]],
        clean_up: Callable[[], Awaitable[None]],
        *,
        gone: Callable[[], None] = lambda: None,
        heartbeat_s: float = HEARTBEAT_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        # A buffering proxy would hold back the words until the end.
        kept = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__((), headers={**kept, **(headers or {})})
        self._work = work
        self._clean_up = clean_up
        self._gone = gone
        self._heartbeat_s = heartbeat_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        into, out_of = anyio.create_memory_object_stream[bytes](_WAITING)
        try:
            async with anyio.create_task_group() as together, into, out_of:
                together.start_soon(self._until_gone, receive, together.cancel_scope)
                together.start_soon(self._worked, into.clone())
                into.close()
                await self._sent(out_of, send)
                together.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(CLEAN_UP_S, shield=True):
                await self._clean_up()

    async def _worked(self, into: MemoryObjectSendStream[bytes]) -> None:
        async with into:
            await self._work(into.send)

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone()
        scope.cancel()

    async def _sent(self, out_of: MemoryObjectReceiveStream[bytes], send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while True:
            data = HEARTBEAT
            try:
                # The timeout only ends the wait, never the work.
                with anyio.move_on_after(self._heartbeat_s):
                    data = await out_of.receive()
            except anyio.EndOfStream:
                break
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def encoded(name: str, data: BaseModel, event_id: str | None = None, *, retry_ms: int | None = None) -> bytes:
    """An event in wire format; encoded JSON contains no line breaks."""
    named = "" if event_id is None else f"id: {event_id}\n"
    retry = "" if retry_ms is None else f"retry: {retry_ms}\n"
    return f"{retry}event: {name}\n{named}data: {data.model_dump_json()}\n\n".encode()
