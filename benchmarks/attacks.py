"""What one client can do to the others: the p99 of small requests, and the memory of the service, while somebody attacks it.

    python -m benchmarks.attacks [NAME…] [--json FILE]

Every attack is a request, or many connections, that a careless or hostile client may send with an ordinary key. Meanwhile another
client asks for small windows and `/healthz`. The service has the default settings, without the encoder. Limits: others' p99 at most 250 ms,
peak memory at most 400 MB above idle.
"""

import argparse
import http.client
import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

P99_MS = 250.0
PEAK_MB = 400
_JSON = "application/json"
_LINES = "application/x-ndjson"
_FORM = "application/x-www-form-urlencoded"
_HERE = {"conversation_id": "attacker", "user_id": "mallory"}
_WORDS = " ".join(f"w{number}" for number in range(140_000))
_HEADER = b'{"type":"pagefile-export","version":1}\n'
_TIMES = b'"created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z"'


@dataclass(frozen=True)
class Request:
    path: str
    body: Any
    kind: str = _JSON
    method: str = "POST"

    def content(self) -> bytes | None:
        if self.body is None:
            return None
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    def written(self) -> "Request":
        return replace(self, body=self.content())


def _turn(**more: Any) -> Request:
    return Request("/v1/turns", {**_HERE, "user": "x", "assistant": "y", **more})


def _raw(middle: bytes) -> Request:
    return Request(
        "/v1/turns", b'{"conversation_id":"attacker","user_id":"mallory","user":"x",' + middle + b"}"
    )


def _many_facts() -> bytes:
    line = b'{"type":"fact","id":"f%d","user_id":"mallory","text":"I like number %d","recorded":"2026-01-01T00:00:00Z","valid_from":"2026-01-01T00:00:00Z","confidence":1,"category":null,"tokens":5,"counter":"o200k_base","valid_to":null,"retracted":null,"source_turn":null,"source_quote":null,"subject":null,"attribute":null,"supersedes":null,"conversation_id":null}\n'
    return _HEADER + b"".join(line % (number, number) for number in range(100_000))


#: Sent before the attack, and not measured.
PREPARED: dict[str, Callable[[], Request]] = {
    "window of 100,000 facts": lambda: Request("/v1/import", _many_facts(), _LINES),
    "inspector, 100,000 facts": lambda: Request("/v1/import", _many_facts(), _LINES),
}
ATTACKS: dict[str, Callable[[], Request]] = {
    "recall query, 1 MB": lambda: Request("/v1/recall", {"user_id": "mallory", "query": _WORDS}),
    "recall query, 30 MB": lambda: Request("/v1/recall", {"user_id": "mallory", "query": "上周我说了什么 " * 1_300_000}),
    "page search query, 1 MB": lambda: Request("/v1/pages/search", {"user_id": "mallory", "query": _WORDS}),
    "window query, 1 MB": lambda: Request("/v1/context", {**_HERE, "query": _WORDS, "window_tokens": 1_000_000}),
    "unknown keys, 30 MB": lambda: _raw(b",".join(b'"k%d":1' % number for number in range(2_000_000))),
    "numbers, 30 MB": lambda: _raw(b'"metadata":{"a":[' + b"1," * 14_900_000 + b"1]}"),
    "one number, 30 MB": lambda: _raw(b'"metadata":{"a":' + b"9" * 30_000_000 + b"}"),
    "steps, 100,000": lambda: _turn(steps=[{"tool": "t", "result": "r"}] * 100_000),
    "nested 100,000 deep": lambda: _raw(b'"metadata":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "Chinese turn, 2 MB": lambda: _turn(user="中文" * 330_000),
    "turn of words, 2 MB": lambda: _turn(user=_WORDS * 2),
    "tool result, 30 MB": lambda: _turn(steps=[{"tool": "t", "result": "line of text number one\n" * 1_250_000}]),
    "tool result of numbers, 30 MB": lambda: _turn(steps=[{"tool": "t", "result": "[" + "1," * 14_000_000 + "1]"}]),
    "instructions, 30 MB": lambda: Request("/v1/context", {**_HERE, "query": "x", "instructions": "be good. " * 3_300_000}),
    "summary, 30 MB": lambda: Request("/v1/checkpoints", {**_HERE, "summary": "s " * 15_000_000, "recent_turns": 0}),
    "facts of a memory.json, 30 MB": lambda: Request(
        "/v1/facts/import", b'{"user_id":"mallory","memory":{"facts":[' + b",".join([b'{"content":"a","confidence":1}'] * 900_000) + b"]}}"
    ),
    "window of 100,000 facts": lambda: Request("/v1/context", {**_HERE, "query": "What do I like?"}),
    "inspector, 100,000 facts": lambda: Request("/inspector/facts?user_id=mallory", None, method="GET"),
    "import line, 200 MB": lambda: Request(
        "/v1/import", _HEADER + b'{"type":"item","user_id":"a","namespace":["a"],"key":"k","value":"' + b"x" * 200_000_000 + b'",' + _TIMES + b"}\n", _LINES
    ),
    "mem0, escaped text, 30 MB": lambda: Request(
        "/mem0/v1/memories/", b'{"user_id":"mallory","messages":[{"role":"user","content":"' + b"\\n," * 10_000_000 + b'"}]}'
    ),
    "form of escapes, 30 MB": lambda: Request("/inspector/erase", b"a=" + b"%41%2c" * 5_000_000, _FORM),
}  # fmt: skip


# -- the service -------------------------------------------------------------------------------------------------------


@contextmanager
def service(folder: Path) -> Generator[tuple[int, int]]:
    """Its port and process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "pagefile.toml").write_text(f'url = "sqlite:///{folder}/a.db"\n[embedder]\nname = "none"\n')
    command = [sys.executable, "-m", "pagefile", "serve", "--port", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)  # noqa: S603 - our own command
        try:
            end = time.monotonic() + 60
            while sent(port, Request("/readyz", None, method="GET"), 2)[0] != 200:
                if time.monotonic() > end:
                    raise SystemExit((folder / "log").read_text())
                time.sleep(0.1)
            yield port, process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def sent(port: int, request: Request, timeout_s: float) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    headers = {} if request.body is None else {"Content-Type": request.kind}
    try:
        connection.request(request.method, request.path, request.content(), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, repr(error).encode()
    finally:
        connection.close()


def _memory_mb(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) // 1024


class Others(threading.Thread):
    """Another client, who asks for little, over and over."""

    ASKED = (
        Request("/healthz", None, method="GET"),
        Request("/v1/context", {"conversation_id": "mine", "user_id": "ada", "query": "Hello"}),
    )

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._over = threading.Event()
        self.waits: list[float] = []
        self.failed = 0

    def run(self) -> None:
        while not self._over.is_set():
            for request in self.ASKED:
                began = time.monotonic()
                status, _ = sent(self._port, request, 120)
                self.waits.append((time.monotonic() - began) * 1000)
                self.failed += status != 200
            time.sleep(0.01)

    def end(self) -> list[float]:
        self._over.set()
        self.join()
        return sorted(self.waits)


@dataclass(frozen=True)
class Measured:
    attack: str
    status: int
    took_s: float
    others_p50_ms: float
    others_p99_ms: float
    others_worst_ms: float
    others_failed: int
    above_idle_mb: int
    log_mb: float

    @property
    def holds(self) -> bool:
        return self.others_p99_ms <= P99_MS and self.above_idle_mb <= PEAK_MB and not self.others_failed


def measured(name: str) -> Measured:
    with tempfile.TemporaryDirectory() as made, service(Path(made)) as (port, pid):
        sent(
            port,
            Request(
                "/v1/turns", {"conversation_id": "mine", "user_id": "ada", "user": "Hi", "assistant": "Ho"}
            ),
            20,
        )
        if name in PREPARED:
            status, said = sent(port, PREPARED[name](), 300)
            if status != 200:
                raise SystemExit(f"{name}: cannot be prepared: {status} {said[:300]!r}")
            time.sleep(1)
        others = Others(port)
        for _ in range(20):
            # The first windows load what later ones have.
            sent(port, Others.ASKED[1], 20)
        # Written now: to write 30 MB holds up the other client, which is a thread of this process.
        attack = None if name in BY_HAND else ATTACKS[name]().written()
        # What was prepared does not count as peak.
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        idle = _memory_mb(pid, "VmRSS")
        others.start()
        time.sleep(0.5)
        began = time.monotonic()
        status = BY_HAND[name](port) if attack is None else sent(port, attack, 120)[0]
        took, waits = time.monotonic() - began, others.end()
        peak, log = _memory_mb(pid, "VmHWM"), (Path(made) / "log").stat().st_size / 1e6
    p50, p99 = (waits[min(len(waits) - 1, int(len(waits) * part))] for part in (0.5, 0.99))
    return Measured(name, status, took, p50, p99, waits[-1], others.failed, peak - idle, log)


def _begun(port: int, most: int, begin: bytes) -> list[socket.socket]:
    """Connections that send this and go on."""
    connections: list[socket.socket] = []
    with suppress(OSError):
        for _ in range(most):
            one = socket.create_connection(("127.0.0.1", port), timeout=2)
            connections.append(one)
            one.sendall(begin)
    return connections


def _half_sent(port: int) -> int:
    """Connections that begin a header and never end it, for twenty seconds; how many were opened."""
    connections = _begun(port, 1100, b"POST /v1/turns HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
    time.sleep(20)
    for one in connections:
        one.close()
    return len(connections)


_POSTED = b"POST /v1/turns HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def _crumbs(port: int) -> int:
    """A body in chunks of one byte; how many were taken before the service had enough."""
    (connection,) = _begun(port, 1, _POSTED + b"Transfer-Encoding: chunked\r\n\r\n")
    sent_chunks, end = 0, time.monotonic() + 15
    with connection, suppress(OSError):
        while time.monotonic() < end:
            connection.sendall(b"1\r\n \r\n" * 40_000)
            sent_chunks += 40_000
    return sent_chunks


def _unfinished(port: int) -> int:
    """Sixty bodies of 30 MB at once, none of which is sent to its end."""
    connections = _begun(port, 60, _POSTED + b"Content-Length: 31000000\r\n\r\n")
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for one in connections:
            one.settimeout(0.1)
            with suppress(OSError):
                one.send(b" " * 1_000_000)
    for one in connections:
        one.close()
    return len(connections)


#: Attacks that are no requests, and what they count instead of a status.
BY_HAND: dict[str, Callable[[int], int]] = {
    "half-sent headers, 1,100": _half_sent,
    "body in chunks of a byte": _crumbs,
    "unfinished bodies of 30 MB, 60": _unfinished,
}


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("names", nargs="*", help="Attacks to try; by default all.")
    given.add_argument("--json", type=Path, help="Write the figures to this file too.")
    asked = given.parse_args()
    names = asked.names or [*ATTACKS, *BY_HAND]
    print(
        f"{'':4} {'attack':32} {'status':>6} {'took':>7} {'p50':>7} {'p99':>8} {'worst':>8} {'failed':>6} {'memory':>8} {'log':>6}"
    )
    found: list[Measured] = []
    for name in names:
        one = measured(name)
        found.append(one)
        print(
            f"{'ok' if one.holds else 'SLOW':4} {name:32} {one.status:6} {one.took_s:6.1f}s {one.others_p50_ms:5.0f}ms {one.others_p99_ms:6.0f}ms "
            f"{one.others_worst_ms:6.0f}ms {one.others_failed:6} {one.above_idle_mb:5} MB {one.log_mb:4.1f}MB",
            flush=True,
        )
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) | {"holds": one.holds} for one in found], indent=1))
    sys.exit(not all(one.holds for one in found))


if __name__ == "__main__":
    main()
