"""A span of OpenTelemetry for every request, for whoever asks for it.

Spans go to the provider that the process has (`opentelemetry-instrument pagefile serve` brings one). They name the route, never the
path, the query string or anything of a body: those hold ids and what people said.
"""

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagefile.errors import MissingExtraError
from pagefile.settings import ServiceSettings

try:
    from opentelemetry import propagate, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ImportError as error:
    raise MissingExtraError.of("otel", "service.tracing") from error

_FAILED = 500


def traces(_service: ServiceSettings) -> list[Middleware]:
    """What an app needs to make spans."""
    return [Middleware(Traces)]


class Traces:
    """Begins a span for each request, inside the caller's own if it names one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._tracer = trace.get_tracer("pagefile.service")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        caller = propagate.extract(dict(Headers(scope=scope)))
        method = scope["method"]
        with self._tracer.start_as_current_span(
            method, context=caller, kind=SpanKind.SERVER, attributes={"http.request.method": method}
        ) as span:

            async def sent(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = message["status"]
                    span.set_attribute("http.response.status_code", status)
                    if status >= _FAILED:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            try:
                await self._app(scope, receive, sent)
            finally:
                route = getattr(scope.get("route"), "path", None)
                if route is not None:
                    span.update_name(f"{method} {route}")
                    span.set_attribute("http.route", route)
