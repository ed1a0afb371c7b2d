"""`pagefile.wrap(client)`: memory for a vendor's own client, without a server.

It sits below the client, in its HTTP transport. The client's methods, types, streams, retries and tool runners are its own, and
take the same way as requests through the gateway. The HTTP library is the one that the client uses.
"""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import FailOpen, inner_of
from pagefile.engine import Memory
from pagefile.errors import SettingsError
from pagefile.gateway import ADAPTERS, identity
from pagefile.gateway.carrying import Head, carry, carry_blocking
from pagefile.gateway.conversations import Who
from pagefile.gateway.identity import Mode
from pagefile.gateway.session import DEADLINE, Call, Gateway
from pagefile.gateway.sse import request_object

C = TypeVar("C")

_LIBRARIES = ("httpx2", "httpx")
_WRAPPED = "pagefile_wrapped"
#: Written again for the body that is sent, or said of the one that is handed on.
_DROPPED = (
    frozenset({"content-length", "content-encoding", "transfer-encoding", "accept-encoding"}) | identity.OURS
)


def wrap(
    client: C,
    memory: Memory | BlockingMemory,
    *,
    user_id: str | None = None,
    conversation_id: str | None = None,
    tenant: str | None = None,
    mode: Mode | None = None,
    window_tokens: int | None = None,
) -> C:
    """The same client with memory: `OpenAI`, `AsyncOpenAI`, `Anthropic` or `AsyncAnthropic`.

    Requests for chat completions, responses and messages are recorded and get their window, as through the gateway; everything else
    passes. Without a `conversation_id`, conversations are known by their history. `mode` and `window_tokens` override the settings of
    the gateway. If memory fails, the request is sent as it was.

    ```python
    client = pagefile.wrap(OpenAI(), memory, user_id="ada")
    ```
    """
    inner: Any = getattr(client, "_client", None)
    copy = getattr(client, "copy", None)
    library = _library_of(inner)
    if library is None or copy is None or not _speaks_a_protocol(client):
        kind = type(client).__name__
        raise SettingsError(
            f"wrap() takes a client of openai or anthropic, not {kind}: OpenAI(), AsyncAnthropic() …"
        )
    if hasattr(inner, _WRAPPED):
        raise SettingsError("This client is wrapped already: wrap the one that it was made of.")
    if mode not in (None, "on", "record", "off"):
        raise SettingsError(f"mode is {mode!r}: give 'on', 'record' or 'off'.")
    base = inner_of(memory)
    who = Who(user_id, tenant, conversation_id)
    replace(who.scope, conversation=conversation_id)  # refuses names that no memory can have
    given = base.settings.gateway
    settings = given if window_tokens is None else replace(given, window_tokens=window_tokens)
    edge = FailOpen(memory, "pagefile.wrap", timeout_s=settings.deadline_s, limit=DEADLINE)
    asynchronous = isinstance(inner, library.AsyncClient)
    if not asynchronous and not edge.is_reachable:
        raise SettingsError(
            f"A synchronous client cannot reach a Memory whose event loop is not known here: give it a BlockingMemory, "
            f"or wrap Async{type(client).__name__}() instead."
        )
    base.engine.loading.begin()
    session = _Session(Gateway(base, settings), edge, who, mode or given.mode)
    made = _asynchronous(library, inner, session) if asynchronous else _synchronous(library, inner, session)
    kind = library.AsyncClient if asynchronous else library.Client
    outer = kind(transport=made, base_url=inner.base_url, timeout=inner.timeout)
    setattr(outer, _WRAPPED, True)
    return cast("C", copy(http_client=outer))


def _speaks_a_protocol(client: object) -> bool:
    """Not those of Bedrock and Vertex, whose requests and addresses are their clouds' own."""
    own = [
        kind for kind in type(client).__mro__ if kind.__module__.partition(".")[0] in {"openai", "anthropic"}
    ]
    return not own or any(kind.__name__.removeprefix("Async") in {"OpenAI", "Anthropic"} for kind in own)


def _library_of(inner: object) -> Any:
    """The HTTP library that a client is built on; which one depends on the client's version."""
    names = {kind.__module__.partition(".")[0] for kind in type(inner).__mro__}
    return next((sys.modules[name] for name in _LIBRARIES if name in names), None)


@dataclass(frozen=True, slots=True)
class _Session:
    gateway: Gateway
    edge: FailOpen
    who: Who
    mode: Mode

    def call(self, request: Any, raw: bytes) -> Call | None:
        """What memory has to do with a request; None if it only passes."""
        path = request.url.path
        adapter = next((one for end, one in ADAPTERS.items() if path.endswith(end)), None)
        body = request_object(raw) if adapter is not None and request.method == "POST" else None
        if adapter is None or body is None:
            return None
        given = identity.who(request.headers, body, tenant=self.who.tenant, user=None, default=None)
        who = Who(self.who.user or given.user, self.who.tenant, given.conversation or self.who.conversation)
        return Call(self.gateway, adapter, who, raw, body, identity.mode(request.headers, self.mode))


def _again(library: Any, request: Any, body: bytes) -> Any:
    """The request with another body."""
    headers = [(name, value) for name, value in request.headers.items() if name not in _DROPPED]
    headers += [("accept-encoding", "identity")]
    return library.Request(
        request.method, request.url, headers=headers, content=body, extensions=request.extensions
    )


def _told(head: Head, call: Call) -> list[tuple[str, str]]:
    kept = [(name, value) for name, value in head.headers.items() if name.lower() not in _DROPPED]
    return [*kept, *call.headers().items()]


@dataclass(frozen=True, slots=True)
class _Response:
    """A response of the client's HTTP library, as a carrier reads it."""

    inner: Any

    @property
    def status(self) -> int:
        return self.inner.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self.inner.headers

    def pieces(self) -> AsyncIterator[bytes]:
        return self.inner.aiter_bytes()

    def pieces_now(self) -> Iterator[bytes]:
        return self.inner.iter_bytes()


def _synchronous(library: Any, inner: Any, session: _Session) -> Any:
    class Body(library.SyncByteStream):
        def __init__(self, pieces: Generator[Head | bytes]) -> None:
            self._pieces = pieces

        def __iter__(self) -> Iterator[bytes]:
            return cast("Iterator[bytes]", self._pieces)

        def close(self) -> None:
            self._pieces.close()

    class Transport(library.BaseTransport):
        def handle_request(self, request: Any) -> Any:
            call = session.call(request, request.read())
            if call is None:
                return inner.send(request, stream=True)

            @contextmanager
            def post(body: bytes) -> Generator[_Response]:
                response = inner.send(_again(library, request, body), stream=True)
                try:
                    yield _Response(response)
                finally:
                    response.close()

            pieces = carry_blocking(call, session.edge, post)
            head = cast("Head", next(pieces))
            return library.Response(head.status, headers=_told(head, call), stream=Body(pieces))

        def close(self) -> None:
            inner.close()

    return Transport()


def _asynchronous(library: Any, inner: Any, session: _Session) -> Any:
    class Body(library.AsyncByteStream):
        def __init__(self, pieces: AsyncGenerator[Head | bytes]) -> None:
            self._pieces = pieces

        def __aiter__(self) -> AsyncIterator[bytes]:
            return cast("AsyncIterator[bytes]", self._pieces)

        async def aclose(self) -> None:
            await self._pieces.aclose()

    class Transport(library.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            call = session.call(request, await request.aread())
            if call is None:
                return await inner.send(request, stream=True)

            @asynccontextmanager
            async def post(body: bytes) -> AsyncGenerator[_Response]:
                response = await inner.send(_again(library, request, body), stream=True)
                try:
                    yield _Response(response)
                finally:
                    await response.aclose()

            pieces = carry(call, session.edge, post)
            head = cast("Head", await anext(pieces))
            return library.Response(head.status, headers=_told(head, call), stream=Body(pieces))

        async def aclose(self) -> None:
            await inner.aclose()

    return Transport()
