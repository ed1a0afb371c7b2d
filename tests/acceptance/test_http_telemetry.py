"""What the service tells of itself: spans and log lines, with routes and numbers, and without what people said."""

import json
import logging
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pagefile import Settings
from pagefile.service import logs, workers
from pagefile.settings import ServiceSettings

from .http_serving import serving

SAID = {"conversation_id": "诊疗/2026:7", "user_id": "用户-1", "user": "我对青霉素过敏。"}
PRIVATE = ("诊疗", "用户", "青霉素")
CALLER = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def spans(monkeypatch):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


@pytest.mark.anyio
async def test_a_span_for_every_request(spans):
    """Its name is the route, it belongs to the caller's trace, and nothing private is in it."""
    settings = Settings(url="memory://", service=ServiceSettings(tracing=True))
    async with serving(settings) as client:
        caller = {"traceparent": f"00-{CALLER}-b7ad6b7169203331-01"}
        await client.post("/v1/turns", json=SAID, headers=caller)
        await client.get("/v1/turns", params={name: SAID[name] for name in ("conversation_id", "user_id")})
        await client.post("/v1/turns", json={})
        await client.get("/nowhere/青霉素")
    made = spans.get_finished_spans()
    assert ["POST /v1/turns", "GET /v1/turns", "POST /v1/turns", "GET"] == [span.name for span in made]
    assert [201, 200, 422, 404] == [span.attributes["http.response.status_code"] for span in made]
    assert CALLER == f"{made[0].context.trace_id:032x}"
    told = "".join(span.to_json() for span in made)
    assert not [word for word in PRIVATE if word in told or word.encode("unicode_escape").decode() in told]


@pytest.mark.anyio
async def test_no_span_unless_asked_for(spans):
    """Nothing is made that nobody wants."""
    async with serving(Settings(url="memory://")) as client:
        await client.get("/healthz")
    assert () == spans.get_finished_spans()


@pytest.fixture
def unchanged():
    """The loggers are as they were afterwards."""
    logger, root = logging.getLogger("pagefile"), logging.getLogger()
    server = logging.getLogger("uvicorn")
    before = [(one, one.handlers, one.level, one.propagate) for one in (logger, root, server)]
    yield
    for one, handlers, level, propagate in before:
        one.handlers, one.level, one.propagate = handlers, level, propagate


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["json", "text", "none"])
@pytest.mark.usefixtures("unchanged")
async def test_a_line_for_every_request(capsys, kind):
    """As JSON with fields to search by, as text, or not at all; never with contents."""
    service = ServiceSettings(logs=kind)
    logs.write_logs(service)
    async with serving(Settings(url="memory://", service=service)) as client:
        await client.post("/v1/turns", json=SAID)
        await client.get("/v1/turns", params={name: SAID[name] for name in ("conversation_id", "user_id")})
    text = capsys.readouterr().err
    assert not [word for word in PRIVATE if word in text]
    if kind == "json":
        lines = [line for line in map(json.loads, text.splitlines()) if "route" in line]
        assert [("POST", "/v1/turns", 201), ("GET", "/v1/turns", 200)] == [
            (line["method"], line["route"], line["status"]) for line in lines
        ]
        assert 2 == len({line["request"] for line in lines})
        assert {("-", "127.0.0.1")} == {(line["key"], line["client"]) for line in lines}
        assert all(line["ms"] >= 0 and line["level"] == "info" and "T" in line["at"] for line in lines)
    else:
        assert (kind == "text") == ("POST /v1/turns 201" in text)


@pytest.mark.anyio
@pytest.mark.usefixtures("unchanged")
async def test_a_refused_request_names_its_route(capsys):
    """In the log, whose id the answer has, and in the metrics, which count every status."""
    service = ServiceSettings(logs="json", require_keys=True, metrics_key="only-for-prometheus")
    logs.write_logs(service)
    async with serving(Settings(url="memory://", service=service)) as client:
        refused = await client.post("/v1/turns", json=SAID)
        await client.get("/nowhere")
        metrics = (await client.get("/metrics", headers={"Authorization": "Bearer only-for-prometheus"})).text
    first, second, _ = map(json.loads, capsys.readouterr().err.splitlines())
    assert ("/v1/turns", 401, refused.headers["x-pagefile-request"]) == (
        first["route"],
        first["status"],
        first["request"],
    )
    assert ("-", 401) == (second["route"], second["status"])
    assert 'pagefile_http_requests_total{code="401",method="POST",route="/v1/turns"} 1.0' in metrics


@pytest.mark.usefixtures("unchanged")
def test_what_the_supervisor_says_is_a_line_like_the_others(capsys):
    """For a collector; people see it on the terminal as it is."""
    workers._tell("Worker 1 is process 7.")
    assert "Worker 1 is process 7.\n" == capsys.readouterr().out
    logs.write_logs(ServiceSettings(logs="json"))
    workers._tell("Worker 1 (process 7) ended with -9: another takes its place.", logging.WARNING)
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert ("warning", True) == (line["level"], line["message"].startswith("Worker 1 (process 7) ended"))


@pytest.mark.usefixtures("unchanged")
def test_what_a_library_warns_of_is_a_line_like_ours(capsys):
    """Tracebacks too; what it only informs of is left out."""
    logs.write_logs(ServiceSettings(logs="json"))
    library = logging.getLogger("asyncpg.pool")
    library.info("noise")
    try:
        raise ConnectionRefusedError("gone")  # noqa: TRY301 - to have one
    except ConnectionRefusedError:
        library.warning("retrying", exc_info=True)
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert ("asyncpg.pool", "warning", "retrying") == (line["logger"], line["level"], line["message"])
    assert "ConnectionRefusedError" in line["traceback"]


def test_a_traceback_is_a_field():
    """A line stays a line."""
    try:
        raise RuntimeError("boom")  # noqa: TRY301 - to have one
    except RuntimeError:
        record = logging.getLogger("pagefile").makeRecord(
            "pagefile", logging.ERROR, __file__, 1, "failed", (), sys.exc_info()
        )
    line = logs.JsonLines().format(record)
    assert "\n" not in line
    assert "RuntimeError" in json.loads(line)["traceback"]
