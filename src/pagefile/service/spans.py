"""The route to which OpenTelemetry's exporters send spans (OTLP over HTTP): model calls in them are recorded as turns.

An instrumented agent needs `OTEL_EXPORTER_OTLP_ENDPOINT` set to this service, and nothing else. Spans that are no model calls are
accepted and dropped.
"""

import json
import zlib
from collections.abc import Sequence
from functools import partial
from itertools import islice
from types import ModuleType

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pagefile.engine import Memory
from pagefile.errors import InvalidArgumentError, PagefileError
from pagefile.integrations.spans import ModelCall, Span, SpanRecorder, model_calls, spans_of
from pagefile.records import DEFAULT_TENANT, Scope
from pagefile.service.auth import about, open_memory, principal_of
from pagefile.service.named_route import NamedRoute
from pagefile.service.problems import answered, problem_of
from pagefile.service.request_guard import PROTOBUF, SPANS
from pagefile.shapes.skeleton import as_object
from pagefile.text.json_size import MAX_VALUES, has_many_values
from pagefile.tiers.base import off_loop

#: Unpacked. An exporter's default batch has 512 spans.
MAX_BYTES = 16_000_000
#: Model calls of one request; an exporter sends the rest in its next batch.
MAX_CALLS = 1_000
_THREAD_FROM_BYTES = 50_000
#: A batch has many small values: as many as a line of an import.
_MAX_VALUES = 10 * MAX_VALUES


async def _endpoint(request: Request) -> Response:
    try:
        return await _recorded(request)
    except PagefileError as error:
        return answered(problem_of(error))


async def _recorded(request: Request) -> Response:
    memory, principal = open_memory(request.app), principal_of(request)
    about(request.scope, Scope(principal.tenant or DEFAULT_TENANT, principal.user))
    binary = request.headers.get("content-type", "").partition(";")[0].strip().lower() == PROTOBUF
    body = _unpacked(await request.body(), request.headers.get("content-encoding", "identity"))
    calls = await off_loop(partial(_calls, body, binary=binary), len(body), _THREAD_FROM_BYTES)
    counts = await _recorder(request, memory).record(
        calls[:MAX_CALLS], tenant=principal.tenant, user=principal.user
    )
    rejected = counts["rejected"] + len(calls) - len(calls[:MAX_CALLS])
    return _answer(rejected, binary=binary)


def _recorder(request: Request, memory: Memory) -> SpanRecorder:
    known: SpanRecorder | None = request.app.state.spans
    if known is None or known.memory is not memory:
        known = request.app.state.spans = SpanRecorder(memory)
    return known


def _unpacked(body: bytes, encoding: str) -> bytes:
    if encoding.strip().lower() == "gzip":
        try:
            body = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(body, MAX_BYTES + 1)
        except zlib.error as error:
            raise InvalidArgumentError("The body is not gzip, as its Content-Encoding says.") from error
    if len(body) > MAX_BYTES:
        raise InvalidArgumentError(
            f"The spans take more than {MAX_BYTES:,} bytes: let the exporter send smaller batches "
            "(OTEL_BSP_MAX_EXPORT_BATCH_SIZE)."
        )
    return body


def _calls(body: bytes, *, binary: bool) -> list[ModelCall]:
    spans = _protobuf().read(body) if binary else _of_json(body)
    return list(islice(model_calls(spans), 2 * MAX_CALLS))


def _of_json(body: bytes) -> list[Span]:
    if has_many_values(body, _MAX_VALUES):
        raise InvalidArgumentError(
            f"The body has more than {_MAX_VALUES:,} JSON values: send smaller batches."
        )
    try:
        return spans_of(as_object(json.loads(body)) or {})
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError("The body is not JSON in UTF-8.") from error


def _protobuf() -> ModuleType:
    from pagefile.service import span_protobuf  # noqa: PLC0415 - the otel extra is only needed for protobuf

    return span_protobuf


def _answer(rejected: int, *, binary: bool) -> Response:
    why = "They belong to another user, or are too large or too many." if rejected else ""
    if binary:
        return Response(_protobuf().answer(rejected, why), media_type=PROTOBUF)
    return JSONResponse(
        {"partialSuccess": {"rejectedSpans": rejected, "errorMessage": why}} if rejected else {}
    )


routes: Sequence[NamedRoute] = (
    NamedRoute(SPANS, _endpoint, methods=["POST"], name="traces", include_in_schema=False),
)
