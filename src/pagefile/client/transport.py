"""Requests and responses: what is retried when a connection breaks, and how failures become errors."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cache, partial
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any, TypeVar, get_args
from uuid import uuid4

import anyio
import httpx
from pydantic import BaseModel, ValidationError

from pagefile import errors
from pagefile.backoff import Backoff
from pagefile.engine.importer import lines_of
from pagefile.verbs import Verb
from pagefile.wire.chat import ChatDone, ChatEvent
from pagefile.wire.responses import LINES, Problem, kinds_of_error

_REFUSED = ("validation", "invalid-json", "invalid-query", "media-type", "body-too-large")
#: Codes without an error class: the request was refused for its content, or was sent to the wrong place.
_OTHER: dict[str, type[errors.PagefileError]] = {
    **dict.fromkeys(_REFUSED, errors.InvalidArgumentError),
    "route-not-found": errors.NotFoundError,
    "misdirected": errors.SettingsError,
    # The service is starting or stopping: to its caller, it is temporarily unavailable.
    errors.ClosedError.code: errors.StoreUnavailableError,
}


def error_of(answer: httpx.Response) -> errors.PagefileError:
    """The error for a response; one that is not a problem document came from a proxy in between."""
    known = errors.StoreUnavailableError if answer.status_code in {502, 503, 504} else errors.PagefileError
    said = f"The service answered with {answer.status_code} and no problem document: is it Pagefile?"
    return error_in(answer.content, known(said))


def error_in(document: bytes, otherwise: errors.PagefileError | None = None) -> errors.PagefileError:
    """The error for a problem document; `otherwise` if it is not one."""
    problem = _problem(document)
    if problem is not None:
        # A subclass inside the service may have no code of its own; its parent's then applies.
        known = {kind.code: kind for kind in kinds_of_error() if "code" in vars(kind)} | _OTHER
        error = known.get(problem.code, errors.PagefileError)(problem.detail)
        if isinstance(error, errors.TooManyRequestsError):
            error.retry_after_s = problem.retry_after_s or error.retry_after_s
        return error
    return otherwise or errors.PagefileError(
        "The service reported a problem that cannot be read: is it as new as this client?"
    )


def _problem(document: bytes) -> Problem | None:
    try:
        return Problem.model_validate_json(document)
    except ValidationError:
        return None


@contextmanager
def reading(what: str) -> Generator[None]:
    """Turns the failure to read something from the service into an error that says `what` came instead."""
    try:
        yield
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise errors.StoreError(f"{what}: is it Pagefile, and as new as this client?") from error


Out = TypeVar("Out", bound=BaseModel)
Json = Mapping[str, object]
#: Produces the upload's content afresh for every attempt.
Content = Callable[[], AsyncIterator[bytes]]

#: Honor `Retry-After` up to this long.
MAX_WAIT_S = 5.0

_FIRST_WAIT_S = 0.1


class Caller:
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
            raise errors.SettingsError(
                f"{url!r} is not the address of a service: give one such as 'http://127.0.0.1:8780'."
            )
        if retries < 0:
            raise errors.SettingsError(f"retries is {retries}: it must be at least 0.")
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        # Proxies and certificates are for the caller to set: nothing is read from the environment.
        ssl = _authorities() if url.startswith("https://") else SSLContext(PROTOCOL_TLS_CLIENT)
        self._http = httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout_s, transport=transport, trust_env=False, verify=ssl
        )
        self._url = url
        self._retries = retries
        self._closed = False

    def check_open(self) -> None:
        if self._closed:
            raise errors.ClosedError("This client is closed: use it inside `async with Client(…)`.")

    async def close(self) -> None:
        self._closed = True
        await self._http.aclose()

    async def ask(self, verb: Verb[..., Any], fields: Json) -> Any:
        """The response to a verb. A change takes effect once, however often it is sent."""
        # After a broken connection the outcome is unknown; the key makes a retry safe.
        headers = {"Idempotency-Key": uuid4().hex} if verb.changes else {}
        sent: dict[str, Any] = {"params" if verb.in_query else "json": fields}
        build = partial(self._http.build_request, verb.http_method, verb.path, headers=headers)
        return await self._answered(lambda: build(**sent), verb.answer)

    async def upload(self, path: str, params: Json, content: Content, out: type[Out]) -> Out:
        """Send a large body. Importing is idempotent, so it can be retried."""
        build = partial(self._http.build_request, "POST", path, params=dict[str, Any](params))
        return await self._answered(lambda: build(content=content(), headers={"Content-Type": LINES}), out)

    @asynccontextmanager
    async def stream(self, method: str, path: str, **sent: Any) -> AsyncGenerator[httpx.Response]:
        """A response that is read as it arrives; `sent` are the `params` or the `json` of the request. Not retried."""
        self.check_open()
        answer: httpx.Response | None = None
        try:
            answer = await self._http.send(self._http.build_request(method, path, **sent), stream=True)
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

    async def events(self, path: str, body: Json) -> AsyncGenerator[ChatEvent]:
        """The events of an answer. A line that breaks is taken up again after the last event, as often as a request is tried again."""
        reader, left, rest = EventReader(), self._retries, Backoff(first_s=_FIRST_WAIT_S)
        while True:
            seen, broke = (
                reader.headers,
                errors.StoreUnavailableError("The stream ended before the answer did."),
            )
            try:
                async with self.stream("POST", path, json=body, headers=seen) as answer:
                    async for event in reader.read(lines_in(answer.aiter_bytes())):
                        yield event
            except errors.StoreUnavailableError as error:
                broke = error
            if reader.done:
                return
            if reader.headers is not seen:
                left, rest = self._retries, Backoff(first_s=_FIRST_WAIT_S)
            if not left:
                raise broke
            left -= 1
            rest.lengthen()
            await anyio.sleep(rest.left_s)

    async def _answered(self, request: Callable[[], httpx.Request], out: type[Out]) -> Out:
        """The response to a request, which is built again for each attempt."""
        rest = Backoff(first_s=_FIRST_WAIT_S)
        for left in range(self._retries, -1, -1):
            self.check_open()
            try:
                answer = await self._http.send(request())
            except httpx.ReadTimeout as error:
                # The service may still be working on it: a retry would only add load.
                raise self._away(error) from error
            except httpx.TransportError as error:
                if not left:
                    raise self._away(error) from error
                rest.lengthen()
                pause = rest.left_s
            else:
                if answer.is_success:
                    with reading(
                        f"The service at {self._url} answered with something else than a {out.__name__}"
                    ):
                        return out.model_validate_json(answer.content)
                pause = _asked_to_wait(answer)
                if not left or pause is None:
                    raise error_of(answer)
            await anyio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _away(self, error: Exception) -> errors.StoreUnavailableError:
        said = str(error) or type(error).__name__
        return errors.StoreUnavailableError(f"The service at {self._url} cannot be reached: {said}.")


def _asked_to_wait(answer: httpx.Response) -> float | None:
    """How long to wait before a retry; None where a retry would not help."""
    problem = _problem(answer.content)
    if answer.status_code not in {429, 503} and (problem is None or problem.code != "idempotency-running"):
        return None
    said = answer.headers.get("retry-after", "")
    wait = float(said) if said.isdecimal() else _FIRST_WAIT_S
    return wait if wait <= MAX_WAIT_S else None


@cache
def _authorities() -> SSLContext:
    """Whom to trust. Reading them takes 50 ms: once in a process, and never for plain HTTP, which needs none."""
    return httpx.create_ssl_context(trust_env=False)


_KINDS = {kind.event: kind for kind in get_args(ChatEvent)}


async def lines_in(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    """The lines of a response, without their ends."""
    async for line in lines_of(chunks):
        yield line.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


class EventReader:
    """The events of a stream, over as many connections as it takes."""

    def __init__(self) -> None:
        #: The last event that was read, for the next connection.
        self.headers: dict[str, str] = {}
        self.done = False

    async def read(self, lines: AsyncIterator[str]) -> AsyncGenerator[ChatEvent]:
        """A problem is raised; unknown kinds, which a newer service may send, are skipped."""
        name = ""
        data: list[str] = []
        async for line in lines:
            field, _, value = line.partition(":")
            if field == "event":
                name = value.removeprefix(" ")
            elif field == "id":
                self.headers = {"Last-Event-ID": value.removeprefix(" ")}
            elif field == "data":
                data.append(value.removeprefix(" "))
            elif not line:
                text = "\n".join(data)
                if name == "error":
                    raise error_in(text.encode())
                if name in _KINDS:
                    with reading(f"The service sent a {name!r} that cannot be read"):
                        event = _KINDS[name].model_validate_json(text)
                    self.done = isinstance(event, ChatDone)
                    yield event
                name, data = "", []
