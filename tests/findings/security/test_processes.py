"""The service as a process: killed uploads, signals, and clients that hold up everybody else."""

import contextlib
import json
import resource
import socket
import threading
import time

import httpx
import pytest

from tests.findings.marks import finding, load
from tests.integration.workers.serving import served

from .looking import NotShownError, files_with, given

PLAIN = {"embedder__name": "none"}
#: How long the others may wait while one request is worked on.
PATIENCE_S = 1.5


@contextlib.contextmanager
def started(*place, **settings):
    """A service; one that does not start is no failed assertion."""
    with contextlib.ExitStack() as stack:
        try:
            service = stack.enter_context(served(*place, **settings))
        except AssertionError as error:
            raise NotShownError("the service did not start") from error
        yield service


def item(number):
    """A line of an export."""
    then = "2026-01-01T00:00:00Z"
    what = {"namespace": ["notes"], "key": f"note {number}", "value": {"text": "ERASED"}}
    return {"type": "item", "user_id": "ada", **what, "created": then, "updated": then}


@finding("security-F10")
def test_a_killed_upload_leaves_nothing(tmp_path):
    """What was uploaded to a service that was killed meanwhile is gone once the service has started again."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    where = {"env": {"TMPDIR": str(folder)}, **PLAIN}
    lines = [{"type": "pagefile-export", "version": 1}] + [item(number) for number in range(4000)]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    url = f"sqlite:///{tmp_path}/a.db"
    with started(tmp_path, url, **where) as service:
        address = service.client.base_url
        head = f"POST /v1/import HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n"
        kind = f"Content-Type: application/x-ndjson\r\nContent-Length: {len(body) + 100}\r\n\r\n"
        with socket.create_connection((address.host, address.port)) as upload:
            upload.sendall((head + kind).encode() + body)
            # Nothing is answered before the whole body is there: what is taken from the socket is all that can be waited for.
            end = time.monotonic() + 3
            while not files_with(folder, "ERASED") and time.monotonic() < end:
                time.sleep(0.02)
            service.process.kill()
            service.process.wait()
    with started(tmp_path, url, **where) as service:
        given(service.post("/v1/forget", user_id="ada").is_success, "an erasure is answered")
    assert [] == files_with(folder, "ERASED")


@finding("security-L6")
def test_the_service_ends_well_when_asked_to(tmp_path):
    """A service with one worker that is told to end by SIGTERM ends with the exit code 0."""
    with started(tmp_path, f"sqlite:///{tmp_path}/a.db", **PLAIN) as service:
        ended = service.stop()
    assert 0 == ended


# -- holding up everybody ----------------------------------------------------------------------------------------------


def of_turn(**more):
    return "/v1/turns", {"conversation_id": "c", "user": "x", **more}


def of_query(path):
    return path, {"user_id": "ada", "query": " ".join(f"w{number}" for number in range(140_000))}


#: Made when they are sent: they are too large to lie about.
HEAVY = {
    "a query of 1 MB": lambda: of_query("/v1/recall"),
    "a search for 1 MB": lambda: of_query("/v1/pages/search"),
    "18 MB of numbers": lambda: of_turn(metadata={"a": [1] * 6_000_000}),
    "a million unknown keys": lambda: of_turn(**{f"k{number}": 1 for number in range(1_000_000)}),
    "100,000 steps": lambda: of_turn(steps=[{"tool": "t", "result": "r"}] * 100_000),
    "2 million Chinese characters": lambda: of_turn(user="中文" * 1_000_000, assistant="x"),
}


class Waits(threading.Thread):
    """A client that asks for little, again and again, and remembers its longest wait."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self._address, self._stop_ = address, threading.Event()
        self.longest = 0.0

    def run(self):
        with httpx.Client(base_url=self._address, timeout=60, trust_env=False) as client:
            while not self._stop_.is_set():
                began = time.monotonic()
                client.get("/healthz")
                self.longest = max(self.longest, time.monotonic() - began)
                self._stop_.wait(0.02)

    def end(self):
        self._stop_.set()
        self.join(60)
        return self.longest


@load
@finding("security-F7")
@pytest.mark.parametrize("name", HEAVY)
def test_nobody_waits_for_the_request_of_another(tmp_path, counted, name):
    """While one heavy request is worked on or refused, other clients get their answers within 1.5 seconds."""
    path, body = HEAVY[name]()
    content = json.dumps(body).encode()
    with served(tmp_path, f"sqlite:///{tmp_path}/a.db", **PLAIN) as service:
        turn = {"conversation_id": "c", "user_id": "ada", "user": "Hello", "assistant": "Hi"}
        assert service.post("/v1/turns", **turn).is_success
        waits = Waits(service.client.base_url)
        waits.start()
        with contextlib.suppress(httpx.TimeoutException):
            # What becomes of the request itself is no matter here.
            service.client.post(
                path, content=content, headers={"Content-Type": "application/json"}, timeout=45
            )
        longest = waits.end()
    wrong = int(longest > PATIENCE_S)
    counted(tries=1, wrong=wrong)
    assert 0 == wrong, f"others waited up to {longest:.1f} s"


@contextlib.contextmanager
def half_sent(address, number):
    """Connections whose header never ends."""
    opened = []
    try:
        for _ in range(number):
            connection = socket.create_connection((address.host, address.port), 3)
            opened.append(connection)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")
        yield
    finally:
        for connection in opened:
            connection.close()


@contextlib.contextmanager
def few_files(number):
    """Processes that are started here may open this many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@load
@finding("security-F7")
def test_half_sent_requests_shut_nobody_out(tmp_path, counted):
    """Clients that never finish their header neither keep others out for half a minute nor fill the log."""
    url = f"sqlite:///{tmp_path}/a.db"
    with few_files(256):
        running = served(tmp_path, url, **PLAIN)
        service = running.__enter__()
    try:
        with half_sent(service.client.base_url, 300):
            answered = answers_within(service.client.base_url, 30)
        lines = len(service.lines)
    finally:
        running.__exit__(None, None, None)
    wrong = [not answered, lines > 10_000].count(True)
    counted(tries=2, wrong=wrong)
    assert 0 == wrong, f"answered: {answered}, lines of log: {lines}"


def answers_within(address, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if httpx.get(f"{address}/healthz", timeout=2, trust_env=False).is_success:
                return True
        except httpx.TransportError:
            time.sleep(0.1)
    return False
