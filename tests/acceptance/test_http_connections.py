"""Clients that send half a request keep nobody out."""

import contextlib
import json
import socket
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from pagefile import Settings
from pagefile.service import connections, large_bodies, request_guard
from pagefile.service.connections import BoundedProtocol
from pagefile.settings import EmbedderSettings, ServiceSettings

from .http_server import listening_async
from .http_serving import serving

pytestmark = pytest.mark.anyio

PLAIN = Settings(url="memory://", embedder=EmbedderSettings(name="none"))
HALF = b"POST /v1/turns HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def begun(url, content=HALF):
    place = urlsplit(url)
    one = socket.create_connection((place.hostname, place.port), timeout=10)
    one.sendall(content)
    return one


def ended(connection):
    """Whether the service closes the connection within ten seconds."""
    with connection, contextlib.suppress(ConnectionResetError):
        while connection.recv(1000):
            pass
    return True


@pytest.fixture
async def url(monkeypatch):
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 0.3)
    async with listening_async(PLAIN, http=BoundedProtocol) as url:
        yield url


async def test_a_header_that_does_not_end_is_cut_off(url):
    assert await anyio.to_thread.run_sync(lambda: ended(begun(url)))


async def test_a_second_header_that_does_not_end_is_cut_off(url):
    """Also after a whole request on the same connection."""
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert await anyio.to_thread.run_sync(lambda: ended(begun(url, whole + HALF)))


async def test_a_request_that_takes_long_is_not(url):
    """Only its header has to arrive in time."""
    async with httpx.AsyncClient(base_url=url) as client:
        for _ in range(2):
            assert (await client.get("/healthz")).is_success
            await anyio.sleep(0.5)


async def test_the_longest_waiting_makes_room(url, monkeypatch):
    """When there are as many connections as there may be, one without a whole header goes."""
    monkeypatch.setattr(connections, "most_connections", lambda: 5)
    monkeypatch.setattr(connections, "HEADER_TIMEOUT_S", 60)
    half = await anyio.to_thread.run_sync(lambda: [begun(url) for _ in range(8)])
    async with httpx.AsyncClient(base_url=url) as client:
        assert (await client.get("/healthz")).is_success
    for one in half:
        one.close()


async def test_a_body_that_does_not_end_is_refused(monkeypatch):
    monkeypatch.setattr(request_guard, "_BODY_S", 0.2)

    async def slow():
        yield b'{"conversation_id": "c", '
        await anyio.sleep(5)
        yield b'"user": "x"}'

    async with serving(PLAIN) as client:
        answer = await client.post("/v1/turns", content=slow(), headers={"Content-Type": "application/json"})
    assert (408, "body-too-slow") == (answer.status_code, answer.json()["code"])


CHUNKED = b"POST /v1/turns HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def status_of(url, content):
    """What a request that never ends is answered with, as soon as the service has seen enough of it."""
    with begun(url, content) as connection:
        return connection.recv(100).split()[1]


async def test_a_body_in_pieces_of_a_byte_is_refused(url):
    """Reading each costs thousands of times as much as sending it."""
    crumbs = CHUNKED + b"1\r\n \r\n" * 5_000
    assert b"400" == await anyio.to_thread.run_sync(lambda: status_of(url, crumbs))


async def test_a_body_in_small_pieces_is_read(url):
    async def lines():
        yield b'{"conversation_id": "c", "user": "x", "assistant": ["'
        for _ in range(5_000):
            yield b"a sentence of some forty characters, about"
        yield b'"]}'

    async with httpx.AsyncClient(base_url=url, headers={"Content-Type": "application/json"}) as client:
        assert (await client.post("/v1/turns", content=lines())).status_code == 422


async def test_a_header_without_end_is_refused(url):
    """It is not kept until its time is over."""
    assert b"400" == await anyio.to_thread.run_sync(lambda: status_of(url, HALF + b"x" * 200_000))


LARGE = b'{"conversation_id": "c", "user": "' + b"x" * 3_000_000 + b'"}'


class Gate:
    """A body of which the last byte is sent when the test says so."""

    def __init__(self):
        self.begun, self.open = anyio.Event(), anyio.Event()

    async def body(self):
        yield LARGE[:-1]
        self.begun.set()
        await self.open.wait()
        yield LARGE[-1:]


@pytest.mark.parametrize("declared", [True, False], ids=["length", "chunked"])
async def test_a_caller_has_one_large_body_in_progress(monkeypatch, declared):
    """The next one waits for it and is refused if that takes too long; small ones are answered meanwhile."""
    monkeypatch.setattr(large_bodies, "WAIT_S", 0.3)
    plain = Settings(
        url="memory://",
        embedder=EmbedderSettings(name="none"),
        service=ServiceSettings(max_body_bytes=4_000_000),
    )
    json_body = {"Content-Type": "application/json"}
    gate, answers = Gate(), []
    async with serving(plain) as client, anyio.create_task_group() as tasks:

        async def first():
            length = {"Content-Length": str(len(LARGE))} if declared else {}
            answers.append(await client.post("/v1/turns", content=gate.body(), headers=json_body | length))

        tasks.start_soon(first)
        await gate.begun.wait()
        second = await client.post("/v1/turns", content=LARGE, headers=json_body)
        assert (429, "too-many-requests") == (second.status_code, second.json()["code"])
        small = await client.post("/v1/turns", json={"conversation_id": "d", "user": "x", "assistant": "y"})
        assert small.status_code == 201
        gate.open.set()
    assert answers[0].status_code == 422
    assert "assistant" in answers[0].text or "chars" in answers[0].text


async def test_large_bodies_of_a_caller_come_one_after_the_other():
    plain = Settings(
        url="memory://",
        embedder=EmbedderSettings(name="none"),
        service=ServiceSettings(max_body_bytes=4_000_000),
    )
    statuses = []
    async with serving(plain) as client, anyio.create_task_group() as tasks:

        async def one():
            answer = await client.post(
                "/v1/turns", content=LARGE, headers={"Content-Type": "application/json"}
            )
            statuses.append(answer.status_code)

        for _ in range(4):
            tasks.start_soon(one)
    assert [429] * 4 != statuses
    assert {422} == set(statuses)


async def test_a_large_message_of_mcp_is_not_read():
    """The transport takes nine seconds for a fact of 30 MB, in which nobody is answered."""
    text = "w " * 600_000
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "remember", "arguments": {"text": text}},
    }
    async with serving(PLAIN) as client:
        answer = await client.post(
            "/mcp", json=call, headers={"Accept": "application/json, text/event-stream"}
        )
    assert 422 == answer.status_code
    assert "1,000,000 bytes" in answer.text


async def test_a_large_form_is_not_read():
    """Its escapes are read in Python: 30 MB of them took five seconds, in which nobody was answered."""
    async with serving(PLAIN) as client:
        answer = await client.post(
            "/inspector/erase",
            content=b"a=" + b"%41" * 400_000,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )
    assert (413, "body-too-large") == (answer.status_code, answer.json()["code"])


MANY = {
    "numbers": b'{"conversation_id":"c","user":"x","metadata":{"a":[' + b"1," * 60_000 + b"1]}}",
    "unknown keys": b'{"conversation_id":"c",'
    + b",".join(b'"k%d":1' % number for number in range(30_000))
    + b"}",
    "steps": b'{"conversation_id":"c","user":"x","steps":['
    + b",".join([b'{"tool":"t","result":"r"}'] * 20_000)
    + b"]}",
}


@pytest.mark.parametrize("body", MANY)
async def test_a_body_of_too_many_values_is_not_read(body):
    async with serving(PLAIN) as client:
        answer = await client.post(
            "/v1/turns", content=MANY[body], headers={"Content-Type": "application/json"}
        )
    assert (413, "body-too-large") == (answer.status_code, answer.json()["code"])
    assert "50,000" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/facts/import", "/v1/context", "/mem0/v3/memories/add/"])
async def test_every_face_refuses_too_many_values(path):
    """The compatible APIs, too."""
    body = b'{"user_id":"u","memory":{"facts":[' + b"1," * 60_000 + b"1]}}"
    async with serving(PLAIN) as client:
        answer = await client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 413, 422}
    assert "50,000" in answer.text


async def test_a_result_of_many_values_is_sent_as_text():
    """The refusal says so, and nothing of the result is lost."""
    rows = [{"id": number, "name": f"user {number}", "city": "Berlin"} for number in range(20_000)]
    step = {"conversation_id": "c", "turn_id": "t", "tool": "sql", "input": {}}
    async with serving(PLAIN) as client:
        await client.post("/v1/turns/begin", json={"conversation_id": "c", "user": "?", "id": "t"})
        refused = await client.post("/v1/turns/step", json={**step, "result": rows})
        assert "one string of JSON" in refused.json()["detail"]
        taken = await client.post("/v1/turns/step", json={**step, "result": json.dumps(rows)})
    assert 200 == taken.status_code, taken.text
