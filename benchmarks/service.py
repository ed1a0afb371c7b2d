"""`pagefile bench service`: what a turn and a window cost over HTTP, beside bare FastAPI routes that store and read the same rows.

Both servers are processes of their own, each with its own database on the same disk, asked in turns by the same clients. The
clients speak plain HTTP/1.1 over connections that stay open: a library would cost more than what is measured.
"""

import asyncio
import json
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles

import anyio

from benchmarks.corpus import LONG, Author, fill
from benchmarks.report import Limit, Report, Row, machine_facts
from pagefile.errors import StoreUnavailableError
from pagefile.records import JsonValue, Scope
from pagefile.text.tokens import TokenCounter, open_counter

BARE_LIMIT = Limit("at most", 2.0)
CLIENTS = (1, 8, 64)
QUESTION = "What did Anna decide about the compressor, and when?"
#: Turns in the conversation that windows are made of: what lies behind a checkpoint as a rule.
HELD = 32

_USER = "bench"
_START_S = 60.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Effort:
    """How often each side is asked, and how much in a round."""

    rounds: int
    requests: int


_FULL = _Effort(rounds=15, requests=192)
_QUICK = _Effort(rounds=4, requests=128)


def run(*, quick: bool = False, progress: Progress | None = None) -> Report:
    """Measure on the disk of the current directory; whatever is written there is removed at the end."""
    began = time.perf_counter()
    counter = open_counter()
    with _folder() as folder:
        rows = _measure(Path(folder), counter, _QUICK if quick else _FULL, progress or _noop)
    return Report(rows, machine_facts(counter.name), quick, time.perf_counter() - began)


def _folder() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix=".pagefile-bench-", dir=Path.cwd())
    except OSError as error:
        raise StoreUnavailableError(
            f"The current directory cannot be written ({error.strerror}): run the benchmark where a database may be made."
        ) from error


def _measure(folder: Path, counter: TokenCounter, effort: _Effort, tell: Progress) -> list[Row]:
    sides = {name: folder / f"{name}.db" for name in ("ours", "bare")}
    tell("writing conversations")
    for database in sides.values():
        anyio.run(_filled, database, counter)
    tell("starting two servers")
    with _serving("ours", sides["ours"]) as ours, _serving("bare", sides["bare"]) as bare:
        return anyio.run(_compare, ours, bare, counter, effort, tell)


async def _filled(database: Path, counter: TokenCounter) -> None:
    for number in range(max(CLIENTS)):
        scope = Scope(user=_USER, conversation=f"read-{number}")
        await fill(database, Author(counter).turns(scope, HELD, LONG))


@contextmanager
def _serving(which: str, database: Path) -> Generator[int]:
    """A server in a process of its own; gives the port it listens on."""
    from benchmarks.service_bare import serve  # noqa: PLC0415 - the extra service, which others do not have

    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        # As `pagefile serve` does: a head and a body that wait for each other cost 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(which, database, listener), daemon=True
        )
        process.start()
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.join(_START_S)


async def _compare(ours: int, bare: int, counter: TokenCounter, effort: _Effort, tell: Progress) -> list[Row]:
    said = [(turn.user or "", turn.assistant or "") for turn in Author(counter).turns(Scope(), 200, LONG)]
    rows: list[Row] = []
    for name, ours_path, bare_path, bodies in (
        ("record", "/v1/turns", "/turns", _turns(said)),
        ("context", "/v1/context", "/context", _questions()),
    ):
        for clients in CLIENTS:
            tell(f"{name} with {clients} {'client' if clients == 1 else 'clients'}")
            mine, theirs = _Side(ours, ours_path, bodies), _Side(bare, bare_path, bodies)
            for _ in range(effort.rounds + 1):
                for side in (mine, theirs):
                    await side.round(clients, max(effort.requests // clients, 4))
            rows += _rows(name, clients, mine, theirs)
    return rows


def _turns(said: list[tuple[str, str]]) -> Callable[[int], Iterator[bytes]]:
    def of(client: int) -> Iterator[bytes]:
        for user, assistant in cycle(said):
            yield _body(conversation_id=f"write-{client}", user_id=_USER, user=user, assistant=assistant)

    return of


def _questions() -> Callable[[int], Iterator[bytes]]:
    return lambda client: cycle([_body(conversation_id=f"read-{client}", user_id=_USER, query=QUESTION)])


def _body(**fields: JsonValue) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


@dataclass(slots=True)
class _Side:
    """One server and what was measured of it. The first round warms it up and is not counted."""

    port: int
    path: str
    bodies: Callable[[int], Iterator[bytes]]
    medians: list[float] = field(default_factory=list[float])
    rates: list[float] = field(default_factory=list[float])
    taken: list[float] = field(default_factory=list[float])
    warm: bool = False

    async def round(self, clients: int, calls: int) -> None:
        taken: list[float] = []
        connections = [await _Connection.open(self.port, self.path) for _ in range(clients)]
        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            for number, connection in enumerate(connections):
                group.start_soon(partial(connection.ask, self.bodies(number), calls, taken))
        seconds = time.perf_counter() - began
        for connection in connections:
            await connection.close()
        if self.warm:
            self.medians.append(median(taken))
            self.rates.append(len(taken) / seconds)
            self.taken += taken
        self.warm = True

    @property
    def p50_s(self) -> float:
        """Of the best round: what else the machine does can only make one slower."""
        return min(self.medians)

    @property
    def p99_s(self) -> float:
        return quantiles(self.taken, n=100)[98]

    @property
    def rate(self) -> float:
        return max(self.rates)


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

    async def ask(self, bodies: Iterator[bytes], calls: int, taken: list[float]) -> None:
        """Ask one after the other, and say how long each answer took."""
        for _ in range(calls):
            body = next(bodies)
            began = time.perf_counter()
            self.writer.write(b"%b%d\r\n\r\n%b" % (self.head, len(body), body))
            await self._answer()
            taken.append(time.perf_counter() - began)

    async def _answer(self) -> None:
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = await self.reader.readexactly(length)
        if not head.startswith(b"http/1.1 2"):
            raise StoreUnavailableError(f"A server under measurement failed: {body[:500]!r}.")

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


def _rows(name: str, clients: int, ours: _Side, bare: _Side) -> list[Row]:
    who = f"{clients} client{'' if clients == 1 else 's'}"
    note = f"{bare.p50_s * 1e3:.2f} ms for the bare route; p99 {ours.p99_s * 1e3:.1f} ms beside {bare.p99_s * 1e3:.1f} ms"
    latency = Row(f"{name}, {who}, p50", ours.p50_s * 1e3, "ms", ours.p50_s / bare.p50_s, note=note)
    rate = Row(
        f"{name}, {who}, a second",
        ours.rate,
        "/s",
        ours.rate / bare.rate,
        note=f"{bare.rate:,.0f} for the bare route",
    )
    return [Row.judged(latency, BARE_LIMIT), rate]


def _noop(_: str) -> None:
    return
