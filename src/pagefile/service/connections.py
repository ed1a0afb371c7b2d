"""Connections that cannot keep others out: a header must arrive in time, and there are never more than the process has files for.

Without this, a thousand connections that send half a header take every file descriptor, for as long as they like.
"""

import asyncio
import sys
from typing import TYPE_CHECKING

from uvicorn.protocols.http.auto import AutoHTTPProtocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Protocol
else:
    _Protocol = AutoHTTPProtocol

if sys.platform == "win32":
    resource = None
else:
    import resource

#: How long a client may take for the header of a request.
HEADER_TIMEOUT_S = 10.0
#: Of the files that the process may open, the rest being for the database and for outgoing connections.
_SHARE = 0.6
#: Where the system does not say how many files there may be.
_MOST = 1000


class BoundedProtocol(_Protocol):
    """uvicorn's HTTP, with a timeout for headers and a bound on connections."""

    #: Connections whose header is incomplete, longest waiting first.
    _waiting: "dict[BoundedProtocol, None]" = {}  # noqa: RUF012 - of the process, on purpose
    _timer: asyncio.TimerHandle | None = None

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
