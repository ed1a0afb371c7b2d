"""An OpenTelemetry span for every request, if enabled.

Spans go to the process's own provider (`opentelemetry-instrument pagefile serve` sets one up). They name the route, never the
path, the query string or anything from a body: those hold ids and user content.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pagefile.errors import MissingExtraError
from pagefile.service.span_keys import SPAN, SPAN_NAME

try:
    from opentelemetry import propagate, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ImportError as error:
    raise MissingExtraError.of("otel", "service.tracing") from error


class Traces:
    """Starts a span for each request, as a child of the caller's if it sends one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._tracer = trace.get_tracer("pagefile.service")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = propagate.extract(dict(Headers(scope=scope)))
        method = scope["method"]
        with self._tracer.start_as_current_span(
            method, context=caller, kind=SpanKind.SERVER, attributes={"http.request.method": method}
        ) as span:
            scope[SPAN] = span

            async def sent(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = message["status"]
                    span.set_attribute("http.response.status_code", status)
                    if status >= 500:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            try:
                await self._app(scope, receive, sent)
            finally:
                route = getattr(scope.get("route"), "path", None)
                if route is not None:
                    span.update_name(scope.get(SPAN_NAME) or f"{method} {route}")
                    span.set_attribute("http.route", route)
