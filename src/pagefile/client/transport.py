"""Requests and responses: what is retried when a connection breaks, and how failures become errors."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any, TypeVar
from uuid import uuid4

import anyio
import httpx
from pydantic import BaseModel, ValidationError

from pagefile.client.problems import code_of, error_of
from pagefile.errors import ClosedError, SettingsError, StoreError, StoreUnavailableError
from pagefile.verbs import Verb
from pagefile.wire.responses import LINES

Out = TypeVar("Out", bound=BaseModel)
Json = Mapping[str, object]
#: Produces the upload's content afresh for every attempt.
Content = Callable[[], AsyncIterator[bytes]]

#: After a broken connection the outcome is unknown; the key makes a retry safe.
KEY_HEADER = "Idempotency-Key"
#: Honor `Retry-After` up to this long.
MAX_WAIT_S = 5.0

_FIRST_WAIT_S = 0.1
_LATER = frozenset({429, 503})
_RUNNING = "idempotency-running"


class Caller:
    """One service, with the timeout and retries for calling it."""

    def __init__(
        self,
        url: str,
        api_key: str | None,
        *,
        timeout_s: float,
        retries: int,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise SettingsError(
                f"{url!r} is not the address of a service: give one such as 'http://127.0.0.1:8780'."
            )
        if retries < 0:
            raise SettingsError(f"retries is {retries}: it must be at least 0.")
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        # Proxies and certificates are for the caller to set: nothing is read from the environment.
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=headers,
            timeout=timeout_s,
            transport=transport,
            trust_env=False,
            verify=_authorities() if url.startswith("https://") else SSLContext(PROTOCOL_TLS_CLIENT),
        )
        self._url = url
        self._retries = retries
        self._closed = False

    def check_open(self) -> None:
        """Raise `ClosedError` once closed."""
        if self._closed:
            raise ClosedError("This client is closed: use it inside `async with Client(…)`.")

    async def close(self) -> None:
        """Close the connections. Safe to call twice."""
        self._closed = True
        await self._http.aclose()

    async def ask(self, verb: Verb[..., Any], fields: Json) -> Any:
        """The response to a verb. A change takes effect once, however often it is sent."""
        key = uuid4().hex if verb.changes else None
        params, body = (fields, None) if verb.in_query else (None, fields)
        call = _Call(verb.http_method, verb.path, params=params, body=body, key=key)
        return await self._answered(call, verb.answer)

    async def upload(self, path: str, params: Json, content: Content, out: type[Out]) -> Out:
        """Send a large body. Importing is idempotent, so it can be retried."""
        return await self._answered(_Call("POST", path, params=params, content=content), out)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, params: Json | None = None, body: Json | None = None
    ) -> AsyncGenerator[httpx.Response]:
        """A response that is read as it arrives. Not retried."""
        self.check_open()
        answer: httpx.Response | None = None
        try:
            request = _Call(method, path, params=params, body=body).built(self._http)
            answer = await self._http.send(request, stream=True)
            if not answer.is_success:
                await answer.aread()
                raise error_of(answer)
            yield answer
        except httpx.HTTPError as error:
            raise self._away(error) from error
        finally:
            if answer is not None:
                with anyio.CancelScope(shield=True):
                    await answer.aclose()

    async def _answered(self, call: "_Call", out: type[Out]) -> Out:
        wait = _FIRST_WAIT_S
        for left in range(self._retries, -1, -1):
            self.check_open()
            try:
                answer = await self._http.send(call.built(self._http))
            except httpx.ReadTimeout as error:
                # The service may still be working on it: a retry would only add load.
                raise self._away(error) from error
            except httpx.TransportError as error:
                if not left:
                    raise self._away(error) from error
                pause = wait
            else:
                if answer.is_success:
                    return self._read(answer, out)
                pause = _asked_to_wait(answer)
                if not left or pause is None:
                    raise error_of(answer)
            await anyio.sleep(pause)
            wait *= 2
        raise AssertionError("the last attempt returns or raises")

    def _read(self, answer: httpx.Response, out: type[Out]) -> Out:
        try:
            return out.model_validate_json(answer.content)
        except ValidationError as error:
            raise StoreError(
                f"The service at {self._url} answered with something else than a {out.__name__}: is it Pagefile, and as new as "
                "this client?"
            ) from error

    def _away(self, error: Exception) -> StoreUnavailableError:
        said = str(error) or type(error).__name__
        return StoreUnavailableError(f"The service at {self._url} cannot be reached: {said}.")


@dataclass(frozen=True, slots=True)
class _Call:
    """A request, rebuilt for each attempt."""

    method: str
    path: str
    params: Json | None = None
    body: Json | None = None
    content: Content | None = None
    key: str | None = None

    def built(self, http: httpx.AsyncClient) -> httpx.Request:
        return http.build_request(
            self.method,
            self.path,
            params={name: _param(value) for name, value in (self.params or {}).items()},
            json=self.body,
            content=None if self.content is None else self.content(),
            headers=self._headers(),
        )

    def _headers(self) -> dict[str, str]:
        kind = {} if self.content is None else {"Content-Type": LINES}
        return kind if self.key is None else {**kind, KEY_HEADER: self.key}


def _asked_to_wait(answer: httpx.Response) -> float | None:
    """How long to wait before a retry; None where a retry would not help."""
    if answer.status_code not in _LATER and code_of(answer) != _RUNNING:
        return None
    said = answer.headers.get("retry-after", "")
    wait = float(said) if said.isdecimal() else _FIRST_WAIT_S
    return wait if wait <= MAX_WAIT_S else None


def _param(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _authorities() -> SSLContext:
    """Whom to trust. Reading them takes 50 ms: once in a process, and never for plain HTTP, which trusts nobody."""
    return httpx.create_ssl_context(trust_env=False)
