"""How much of large bodies one caller may have in the service at once.

A body of 30 MB takes several times as much memory while it is worked on: twenty at once, by one caller, would be an outage for all.
"""

from dataclasses import dataclass, field

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagefile.errors import TooManyRequestsError
from pagefile.service.auth import caller_of
from pagefile.service.request_guard import UPLOAD
from pagefile.service.vendor_paths import is_vendors
from pagefile.settings import ServiceSettings

#: Smaller ones are not counted.
LARGE_BYTES = 1_000_000
#: How long a large body waits for others of its caller.
WAIT_S = 10.0
_BUSY = "Other large requests of this caller are still in progress: send them one after the other."


@dataclass(slots=True)
class _Held:
    """What one caller has in progress, and the requests that wait for the end of some of it."""

    size: int = 0
    requests: int = 0
    freed: anyio.Condition = field(default_factory=anyio.Condition)


class LargeBodies:
    """Lets a caller have as many bytes of large bodies in progress as one body may have. The next one waits, then is refused.

    Imports are spooled to disk and not counted.
    """

    def __init__(self, app: ASGIApp, *, service: ServiceSettings) -> None:
        self._app = app
        self._most = service.max_body_bytes
        self._callers: dict[str, _Held] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == UPLOAD:
            await self._app(scope, receive, send)
            return
        body = _Body(self._callers, caller_of(scope).key_id or "", self._most)
        declared = Headers(scope=scope).get("content-length", "")
        expected = min(int(declared[:20]), self._most) if declared.isdecimal() else 0

        async def received() -> Message:
            await body.reserve(expected)
            message = await receive()
            body.received += len(message.get("body", b""))
            # A chunked one: how long it will be is known to nobody.
            await body.reserve(body.received, self._most)
            if is_vendors(scope["path"]) and not message.get("more_body"):
                # A provider may think for minutes, and nothing is worked on meanwhile.
                await body.release()
            return message

        async def sent(message: Message) -> None:
            await body.release()
            await send(message)

        try:
            await self._app(scope, received, sent)
        finally:
            await body.release()


@dataclass(slots=True)
class _Body:
    """The body of one request."""

    callers: dict[str, _Held]
    caller: str
    most: int
    received: int = 0
    reserved: int = 0
    is_over: bool = False

    async def reserve(self, size: int, counted_as: int = 0) -> None:
        """Take part of what its caller may have in progress, once, if the body is large."""
        if size <= LARGE_BYTES or self.reserved or self.is_over:
            return
        wanted, held = counted_as or size, self.callers.setdefault(self.caller, _Held())
        held.requests += 1
        try:
            with anyio.fail_after(WAIT_S):
                async with held.freed:
                    while held.size and held.size + wanted > self.most:
                        await held.freed.wait()
                    held.size += wanted
                    self.reserved = wanted
        except TimeoutError:
            busy = TooManyRequestsError(_BUSY, retry_after_s=int(WAIT_S))
            raise HTTPException(429, str(busy), {"Connection": "close"}) from busy
        finally:
            if not self.reserved:
                self._forget(held)

    async def release(self) -> None:
        self.is_over = True
        if not self.reserved:
            return
        held, freed = self.callers[self.caller], self.reserved
        self.reserved = 0
        with anyio.CancelScope(shield=True):
            async with held.freed:
                held.size -= freed
                held.freed.notify_all()
        self._forget(held)

    def _forget(self, held: _Held) -> None:
        held.requests -= 1
        if not held.requests:
            del self.callers[self.caller]
