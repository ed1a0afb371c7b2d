"""Connections that cannot keep others out: a header must arrive in time, a body in pieces of some size, and there are never more than
the process has files for.

Without this, a thousand connections that send half a header take every file descriptor, for as long as they like, and a body in pieces
of one byte holds everybody up for a quarter of a second with each read.
"""

import asyncio
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if sys.platform == "win32":
    resource = None
else:
    import resource

#: How long a client may take for the header of a request.
HEADER_TIMEOUT_S = 10.0
#: How large it may be, with the line of the request.
MAX_HEADER_BYTES = 65_536
#: Of the files that the process may open, the rest being for the database and for outgoing connections.
_SHARE = 0.6
#: Where the system does not say how many files there may be.
_MOST = 1000
#: So many pieces of a body may be as small as they like; more of them are this large on average. Each costs some microseconds.
_FREE_PIECES, _LEAST_PIECE_BYTES = 4_000, 32


class _Pieces(h11.Connection):
    """HTTP/1.1 without bodies in crumbs."""

    _pieces = _bytes = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._pieces, self._bytes = self._pieces + 1, self._bytes + len(event.data)
            if self._pieces > _FREE_PIECES and self._bytes < self._pieces * _LEAST_PIECE_BYTES:
                raise h11.RemoteProtocolError("the body comes in pieces of a few bytes")
        elif isinstance(event, h11.Request):
            self._pieces = self._bytes = 0
        return event


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP, with a timeout for headers and bounds on connections and on the pieces of a body.

    Always that of h11, which bounds the size of a header: with httptools, where it is installed, a header may be endless.
    """

    #: Connections whose header is incomplete, longest waiting first.
    _waiting: "dict[BoundedProtocol, None]" = {}  # noqa: RUF012 - of the process, on purpose
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = _Pieces(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            # A client that never finishes its header has no claim to a place; a busy service refuses the newest.
            oldest = next(iter(self._waiting), self)
            # The end of the connection takes it from those that wait.
            oldest.transport.abort()
            self._waiting.pop(oldest, None)
            if oldest is self:
                return
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # uvicorn declares it as never None, which it is before the first request.
        if self.cycle and not self.cycle.response_complete:
            self._stop_waiting()
        elif not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._timer is None:
            self._waiting[self] = None
            self._timer = self.loop.call_later(HEADER_TIMEOUT_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        self._waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def most_connections() -> int:
    if resource is None:
        return _MOST
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if files == resource.RLIM_INFINITY else max(16, int(files * _SHARE))
