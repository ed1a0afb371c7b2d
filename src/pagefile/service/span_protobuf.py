"""Spans in protobuf, as OpenTelemetry's exporters send them unless they are told to send JSON."""

from collections.abc import Iterable
from typing import Any

from pagefile.errors import InvalidArgumentError, MissingExtraError
from pagefile.integrations.spans import NAMES, PREFIXES, Span

try:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
        ExportTraceServiceResponse,
    )
except ImportError as error:
    raise MissingExtraError.of("otel", "OTLP in protobuf") from error


def read(body: bytes) -> list[Span]:
    try:
        data = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise InvalidArgumentError("The body is not an ExportTraceServiceRequest in protobuf.") from error
    return [
        _span(one)
        for resource in data.resource_spans
        for scope in resource.scope_spans
        for one in scope.spans
    ]


def answer(rejected: int, why: str) -> bytes:
    told = ExportTraceServiceResponse()
    if rejected:
        told.partial_success.rejected_spans, told.partial_success.error_message = rejected, why
    return told.SerializeToString()


def _span(one: Any) -> Span:
    return Span(
        one.trace_id.hex(),
        one.span_id.hex(),
        one.parent_span_id.hex(),
        one.start_time_unix_nano,
        _attributes(one.attributes),
        [_attributes(event.attributes) for event in one.events],
    )


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    return {
        pair.key: _value(pair.value) for pair in pairs if pair.key.startswith(PREFIXES) or pair.key in NAMES
    }


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)
