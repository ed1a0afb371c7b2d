"""What comes over a real socket when a client is slow, broken, or gone: the service refuses or waits, and goes on."""

import json
import random
import socket

import httpx
import pytest

from pagefile import Settings
from pagefile.settings import ServiceSettings
from tests.acceptance.http_server import listening

TURN = {"conversation_id": "诊疗/2026:7", "user": "我对青霉素过敏。", "assistant": "已记录。"}
MAX_BODY = 100_000


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    database = tmp_path_factory.mktemp("wire") / "wire.db"
    settings = Settings(url=f"sqlite:///{database}", service=ServiceSettings(max_body_bytes=MAX_BODY))
    with listening(settings) as url:
        yield httpx.URL(url)


@pytest.fixture
def client(address):
    with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
        yield client
        assert client.get("/healthz").is_success, "it goes on"


@pytest.fixture
def wire(address):
    with socket.create_connection((address.host, address.port), timeout=30) as wire:
        yield wire


def head(path="/v1/turns", *, length, **headers):
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    lines += [f"Content-Length: {length}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer(wire):
    """Status and body of what comes back."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = wire.recv(65536)
        assert more, data
        data += more
    top, _, body = data.partition(b"\r\n\r\n")
    length = int(top.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += wire.recv(65536)
    return int(top.split(b" ")[1]), json.loads(body)


def turns(client, conversation):
    return client.get("/v1/turns", params={"conversation_id": conversation}).json()["items"]


def test_a_slow_client_is_waited_for(client, wire):
    """A request that comes byte by byte is answered like any other, and others are answered meanwhile."""
    body = json.dumps({**TURN, "conversation_id": "slow"}).encode()
    sent = head(length=len(body)) + body
    for number, byte in enumerate(sent):
        wire.send(bytes([byte]))
        if number % 100 == 0:
            assert client.get("/healthz").is_success
    status, told = answer(wire)
    assert (201, "done") == (status, told["status"])


@pytest.mark.parametrize("key", [None, "once"])
@pytest.mark.parametrize("part", [0, 1, 20])
def test_a_client_that_leaves_in_the_middle_writes_nothing(client, wire, part, key):
    """Half a body is not a turn, with a key and without."""
    body = json.dumps({**TURN, "conversation_id": f"left-{part}-{key}"}).encode()
    more = {} if key is None else {"Idempotency-Key": key}
    wire.sendall(head(length=len(body), **more) + body[:part])
    wire.close()
    assert client.get("/healthz").is_success
    assert [] == turns(client, f"left-{part}-{key}")


def test_a_client_that_leaves_before_the_answer_has_its_turn(client, address):
    """What was sent whole is kept whole, whether anybody waits for the answer or not."""
    for number in range(20):
        body = json.dumps({**TURN, "conversation_id": "unheard", "id": f"t{number}"}).encode()
        with socket.create_connection((address.host, address.port), timeout=30) as wire:
            wire.sendall(head(length=len(body)) + body)
    # Sent again they are the same turns; none is there in halves.
    for number in range(20):
        again = client.post("/v1/turns", json={**TURN, "conversation_id": "unheard", "id": f"t{number}"})
        assert 201 == again.status_code
    assert list(range(1, 21)) == [turn["seq"] for turn in turns(client, "unheard")]


def test_a_client_that_leaves_in_the_middle_of_an_export(client, address):
    """The service stops reading for it, and the next one gets all of it."""
    for number in range(40):
        client.post("/v1/turns", json={**TURN, "conversation_id": "long", "user": f"{number} " + "长" * 9000})
    for _ in range(5):
        with socket.create_connection((address.host, address.port), timeout=30) as wire:
            wire.sendall(b"GET /v1/export?conversation_id=long HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert wire.recv(1000)
    lines = client.get("/v1/export", params={"conversation_id": "long"}).text.splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    assert 40 == kinds.count("turn")


@pytest.mark.parametrize("path", ["/v1/turns", "/v1/context", "/v1/import", "/v1/forget"])
def test_bytes_that_are_no_request(client, path):
    """Bad UTF-8, broken JSON, NUL, lone surrogates, deep nesting, long numbers: refused with a problem, never a 500."""
    pick = random.Random(7)
    good = json.dumps(TURN, ensure_ascii=False).encode()
    bodies = [
        b"\xff", b"\x00", b"{", b"[]", b"null", b'"x"', b"1e999", b"-0", b"NaN", b'{"user": NaN}',
        b'{"conversation_id": "c", "user": "\\ud800"}', b'{"conversation_id": "c", "user": "a\\u0000b"}',
        b'{"conversation_id": "\\u0000"}', b"[" * 50_000, b'{"a":' * 20_000, b"9" * 50_000,
        b'{"conversation_id": "c", "conversation_id": "d", "user": {"a": 1}}', '{"\u2028": 1}'.encode(),
        b"\xef\xbb\xbf" + good, good.decode().encode("utf-16"), good + good,
    ]  # fmt: skip
    for _ in range(25):
        broken = bytearray(good)
        for _ in range(pick.randrange(1, 4)):
            broken[pick.randrange(len(broken))] = pick.randrange(256)
        bodies.append(bytes(broken[: pick.randrange(len(broken)) or None]))
    for body in bodies:
        for headers in ({}, {"Idempotency-Key": str(pick.random())}):
            told = client.post(path, content=body, headers={"Content-Type": "application/json", **headers})
            assert told.status_code < 500, (body[:100], told.text)
            if not told.is_success:
                assert "application/problem+json" == told.headers["content-type"]
                told.content.decode()


def test_a_body_without_an_end(client, wire):
    """A client that never stops sending is told so, and the connection is closed."""
    wire.sendall(
        b"POST /v1/turns HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    try:
        for _ in range(100):
            wire.sendall(chunk)
    except OSError:
        pass
    data = wire.recv(65536)
    assert b" 413 " in data.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "text",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /v1/turns?conversation_id=%ff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /v1/turns HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/turns HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n",
    ],
)
def test_what_is_hardly_http(client, wire, text):
    """Refused with a 4xx, or the connection is closed."""
    wire.sendall(text)
    try:
        data = wire.recv(65536)
    except ConnectionResetError:
        data = b""
    assert not data or data.split(b" ")[1].startswith(b"4"), data[:200]
