"""Every error is a problem document of one shape, and none of them repeats what was said."""

import json
import logging

import pytest

import pagefile.engine.memory
from pagefile import Settings, errors
from pagefile.errors import PagefileError
from pagefile.service.problems import kinds
from pagefile.settings import ServiceSettings
from pagefile.stores import InMemoryStore, SystemClock
from pagefile.testing.fakes import FlakyStore

from .http_serving import serving
from .problems import check

JSON = {"Content-Type": "application/json"}
NOBODYS = "00000000-0000-4000-8000-000000000000"
SMALL = Settings(url="memory://", service=ServiceSettings(max_body_bytes=2000))


@pytest.fixture
async def client():
    async with serving(SMALL) as client:
        yield client


def body(**fields):
    return {"content": json.dumps({"conversation_id": "c", **fields}), "headers": JSON}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("method", "path", "request_", "status", "code"),
    [
        ("GET", "/nope", {}, 404, "route-not-found"),
        ("GET", "/v1/turns/", {}, 404, "route-not-found"),
        ("GET", "/problems/nope", {}, 404, "not-found"),
        ("PUT", "/v1/turns", body(), 405, "method-not-allowed"),
        ("DELETE", "/v1/turns", {}, 405, "method-not-allowed"),
        ("PUT", "/v1/session", {}, 415, "media-type"),
        (
            "OPTIONS",
            "/v1/turns",
            {"headers": {"Origin": "https://elsewhere.example"}},
            405,
            "method-not-allowed",
        ),
        ("POST", "/v1/turns", {"content": b"{", "headers": JSON}, 400, "invalid-json"),
        ("POST", "/v1/turns", {"content": b'{"user": "\xff"}', "headers": JSON}, 400, "invalid-json"),
        ("POST", "/v1/turns", {"content": b"[" * 1900, "headers": JSON}, 400, "invalid-json"),
        (
            "POST",
            "/v1/turns",
            {"content": b'{"a": ' + b"9" * 1800 + b"e", "headers": JSON},
            400,
            "invalid-json",
        ),
        ("POST", "/v1/turns", {"content": b"a=b"}, 415, "media-type"),
        (
            "POST",
            "/v1/turns",
            {"content": b"{}", "headers": {"Content-Type": "text/plain"}},
            415,
            "media-type",
        ),
        ("POST", "/v1/turns", {}, 415, "media-type"),
        ("POST", "/v1/turns", {"headers": JSON}, 422, "validation"),
        ("POST", "/v1/turns", {"content": b"[]", "headers": JSON}, 422, "validation"),
        ("POST", "/v1/turns", {"content": b"x" * 2001, "headers": JSON}, 413, "body-too-large"),
        ("POST", "/v1/turns", body(user="hi", usr="hi"), 422, "validation"),
        ("POST", "/v1/turns", body(user="\ud800"), 422, "validation"),
        ("POST", "/v1/turns", body(user="a\0b"), 422, "validation"),
        ("POST", "/v1/turns", body(user="hi", at=5), 422, "validation"),
        ("POST", "/v1/turns", body(user="hi", at="0001-01-01T00:00:00+14:00"), 422, "validation"),
        ("POST", "/v1/turns", body(user="hi", metadata={"\ud800": 1}), 422, "invalid-argument"),
        ("POST", "/v1/turns", body(user="hi", metadata={"a": float("nan")}), 422, "validation"),
        ("POST", "/v1/turns", body(user=" "), 422, "invalid-argument"),
        ("POST", "/v1/turns", body(), 422, "invalid-argument"),
        ("POST", "/v1/turns/complete", body(turn_id="t", assistant="?"), 404, "not-found"),
        ("POST", "/v1/turns/step", body(turn_id="t", tool="x"), 404, "not-found"),
        ("POST", "/v1/context", body(turn_id="t"), 404, "not-found"),
        ("POST", "/v1/context", body(query="hi", window_tokens=1), 422, "budget"),
        ("POST", "/v1/context", body(query="hi", window_tokens="5"), 422, "validation"),
        ("POST", "/v1/context", body(query="hi", window_tokens=10**30), 422, "validation"),
        ("POST", "/v1/context", body(query="hi", threshold=10**400), 422, "validation"),
        ("POST", "/v1/context", body(query="hi", threshold=float("inf")), 422, "validation"),
        ("POST", "/v1/recall", {"json": {"query": "hi"}}, 422, "validation"),
        ("POST", "/v1/load", body(uuid="nope"), 404, "handle-not-found"),
        ("GET", "/v1/load?conversation_id=c&uuid=nope", {}, 404, "handle-not-found"),
        ("POST", "/v1/load", body(uuid=NOBODYS, limit=0), 422, "validation"),
        ("GET", f"/v1/pages/page?conversation_id=c&uuid={NOBODYS}", {}, 404, "handle-not-found"),
        ("GET", "/v1/pages/page?conversation_id=c", {}, 422, "validation"),
        ("GET", "/v1/pages?limit=1001", {}, 422, "validation"),
        ("GET", f"/v1/pages?after={NOBODYS}", {}, 404, "not-found"),
        ("POST", "/v1/pages/search", {"json": {"query": "hi"}}, 422, "validation"),
        ("POST", "/v1/pages/pin", body(uuid="nope"), 404, "handle-not-found"),
        ("POST", "/v1/pages/pin", body(uuid=NOBODYS, pinned="yes"), 422, "validation"),
        ("POST", "/v1/pages/purge", body(), 422, "validation"),
        ("POST", "/v1/pages/purge", body(older_than_s=10**11), 422, "validation"),
        ("POST", "/v1/pages/purge", body(max_bytes=-1), 422, "validation"),
        ("POST", "/v1/tools/call", body(), 422, "validation"),
        ("POST", "/v1/tools/call", body(name="load_tool_history", arguments=[]), 422, "validation"),
        ("POST", "/v1/tools/call", body(name="load_tool_history", turn_id="t"), 404, "not-found"),
        ("POST", "/v1/context", body(query="hi", load="one"), 422, "validation"),
        ("POST", "/v1/context", body(query="hi", load=[" "]), 422, "validation"),
        ("GET", "/v1/turns", {}, 422, "validation"),
        ("GET", "/v1/turns?conversation_id=c&limit=0", {}, 422, "validation"),
        ("GET", "/v1/turns?conversation_id=c&colour=red", {}, 422, "validation"),
        ("GET", "/v1/turns?conversation_id=%00", {}, 422, "validation"),
        ("GET", "/v1/turns?conversation_id=%ff", {}, 400, "invalid-query"),
        ("POST", "/v1/facts/retract", {"json": {"fact_id": "nope"}}, 404, "not-found"),
        ("POST", "/v1/forget", {"json": {}}, 422, "validation"),
        ("GET", "/", {"headers": {"Host": "elsewhere.example"}}, 421, "misdirected"),
    ],
)
async def test_one_shape(client, method, path, request_, status, code):
    """Whatever goes wrong, the answer has the same members."""
    check(await client.request(method, path, **request_), status, code)


@pytest.mark.anyio
async def test_validation_names_the_field_and_not_its_value(client):
    """Where it stands, which field, why; never what was in it."""
    answer = await client.post(
        "/v1/turns", **body(user="hi", usr="密码", steps=[{"tool": "t", "a/b": "密码"}])
    )
    told = check(answer, 422, "validation")
    found = {(error["where"], error["pointer"], error["code"]) for error in told["errors"]}
    assert {("body", "/usr", "extra_forbidden"), ("body", "/steps/0/a~1b", "extra_forbidden")} == found
    assert "/usr" in told["detail"]
    assert "密码" not in answer.text


@pytest.mark.anyio
async def test_an_endless_list_of_errors_is_cut(client):
    """A hostile body cannot blow up the answer."""
    many = {"conversation_id": "c", **{f"{number}": 1 for number in range(150)}, "x" * 500: 1}
    told = check(await client.post("/v1/turns", json=many), 422, "validation")
    assert 20 == len(told["errors"])
    assert told["detail"].endswith("more)")


@pytest.mark.anyio
async def test_a_streamed_body_is_measured_too(client):
    """Without a length up front the bytes are counted as they come, and nothing is recorded."""

    async def chunks():
        for _ in range(10):
            yield b" " * 500

    told = check(await client.post("/v1/turns", content=chunks(), headers=JSON), 413, "body-too-large")
    assert "service.max_body_bytes" in told["detail"]


@pytest.mark.anyio
async def test_a_refused_method_names_the_others(client):
    """Allow lists every method that the path takes."""
    answer = await client.delete("/v1/turns")
    check(answer, 405, "method-not-allowed")
    assert "GET, POST" == answer.headers["allow"]
    assert "GET" == (await client.post("/docs", headers=JSON)).headers["allow"]


@pytest.mark.anyio
async def test_a_conflict(client):
    """The same id with the same text is the same turn; with another text it is a conflict."""
    first = await client.post("/v1/turns", **body(id="t", user="hi"))
    again = await client.post("/v1/turns", **body(id="t", user="hi"))
    assert first.json() == again.json()
    check(await client.post("/v1/turns", **body(id="t", user="ho")), 409, "conflict")


# -- a store that fails ------------------------------------------------------------------------------------------------


@pytest.fixture
def flaky(monkeypatch):
    """The store under the next service, which fails when told to."""
    store = FlakyStore(InMemoryStore(SystemClock()))

    async def opened(*_args, **_kwargs):
        return store

    monkeypatch.setattr(pagefile.engine.memory, "open_store", opened)
    return store


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.StoreUnavailableError("Cannot reach postgres://me:secret@db"), 503),
        (errors.StoreFullError("secret"), 507),
        (errors.StoreCorruptError("secret"), 500),
        (errors.SchemaVersionError("secret"), 500),
        (errors.ClosedError("secret"), 503),
        (errors.ModelOutputError("secret"), 502),
        (errors.ModelUnavailableError("secret"), 503),
    ],
)
async def test_what_the_service_must_mend(flaky, caplog, error, status):
    """A 5xx says what it means; the rest is for the log, which names the same occurrence."""
    async with serving() as client:
        flaky.fail(["log.append"], error=error)
        answer = await client.post("/v1/turns", **body(user="hi"))
    told = check(answer, status, error.code)
    assert "secret" not in answer.text
    assert any(told["instance"] in line and "secret" in line for line in caplog.messages)
    assert answer.headers.get("retry-after") == ("1" if status == 503 else None)
    assert told["retry_after_s"] == (1 if status == 503 else None)


@pytest.mark.anyio
async def test_health_when_the_store_is_gone(flaky):
    """The service lives on and is not ready, and recovers with the store: nobody restarts it for an outage elsewhere."""
    async with serving() as client:
        flaky.fail(["describe"], times=2)
        alive = await client.get("/healthz")
        assert (200, "ok", None) == (alive.status_code, alive.json()["status"], alive.json()["store"])
        check(await client.get("/readyz"), 503, "store-unavailable")
        assert 200 == (await client.get("/readyz")).status_code
        assert "memory" == (await client.get("/healthz")).json()["store"]["backend"]


@pytest.mark.anyio
async def test_the_last_handler_keeps_silent(flaky, caplog):
    """What nobody foresaw is a 500 that says nothing of contents, in the answer and in the log."""
    caplog.set_level(logging.INFO)
    async with serving() as client:
        flaky.fail(["log.append"], error=RuntimeError("我对青霉素过敏"))
        answer = await client.post("/v1/turns", **body(user="我对青霉素过敏"))
    told = check(answer, 500, "internal")
    assert "青霉素" not in answer.text + caplog.text
    line = next(line for line in caplog.messages if told["instance"] in line)
    assert "RuntimeError" in line
    assert "File " in line


@pytest.mark.anyio
async def test_logs_hold_no_contents(caplog):
    """One line a request: method, route, status, time and the request's own id; no id of a user's, no query string, no path of a stranger."""
    caplog.set_level(logging.INFO, logger="pagefile")
    async with serving() as client:
        await client.post("/v1/turns", **body(user="密码"))
        await client.get("/v1/turns?conversation_id=病历")
        await client.get("/病历%0a密码")
    lines = [record.getMessage() for record in caplog.records if record.name == "pagefile.service"]
    assert ["POST /v1/turns 201", "GET /v1/turns 200", "GET - 404"] == [
        line.partition(" ms ")[0].rpartition(" ")[0] for line in lines
    ]
    assert not {"密码", "病历"} & set(caplog.text)


@pytest.mark.anyio
async def test_before_the_start_and_after_the_end():
    """A service whose memory is not open says so, and is not broken by it."""
    async with serving() as client:
        transport = client._transport
        transport.app.state.memory = None
        told = check(await client.get("/readyz"), 503, "closed")
        assert 200 == (await client.get("/healthz")).status_code
    assert "starting or stopping" in told["detail"]


@pytest.mark.anyio
async def test_every_problem_has_a_page(client):
    """The type of a problem leads to its explanation."""
    for code, kind in kinds().items():
        page = await client.get(f"/problems/{code}")
        assert 200 == page.status_code
        assert str(kind.status) in page.text


def test_every_error_of_ours_has_a_status():
    """Every class has a code of its own and a status that means an error."""

    def family(known):
        return [known, *(member for child in known.__subclasses__() for member in family(child))]

    ours = [known for known in family(PagefileError) if known.__module__ == "pagefile.errors"]
    assert all(400 <= kinds()[known.code].status < 600 for known in ours)
