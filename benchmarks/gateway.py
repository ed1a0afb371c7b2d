"""`pagefile bench gateway`: what the gateway adds to a request, beside a bare proxy that passes the same bytes.

Provider, proxy and gateway are processes of their own; the same clients ask both, in turns. The provider begins its stream after
a fixed time. Clients begin within that time of one another, as people do who know nothing of each other, and once more all in
the same moment, which is told without a limit. What a window takes is measured in the same run, on the conversations that the
gateway has written. Processes that just started are warmed up first: what they load then is loaded once.
"""

import asyncio
import json
import multiprocessing
import os
import random
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import anyio
import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from benchmarks.report import Report, Row, machine_facts
from pagefile.engine import Memory
from pagefile.service.workers import serve_one
from pagefile.settings import GatewaySettings, Settings
from pagefile.text.tokens import open_counter

CLIENTS = (1, 8, 32)
ANSWER_MS = 500
#: How much later than through the bare proxy, beyond what a window takes.
LIMIT_MS = 15.0
FIRST_LIMIT_MS = 5.0

_SAID = "The compressor was replaced on Tuesday, and Anna checked it twice. " * 4
_TURNS = 10
#: Talks before the first measurement.
_WARM_UP = 3
#: How many clients ask in the same moment.
_TOGETHER = 8
Progress = Callable[[str], None]


def _silent(_: str) -> None: ...


def run(*, quick: bool = False, answer_ms: int = ANSWER_MS, progress: Progress | None = None) -> Report:
    """Measure on the disk of the current directory; whatever is written there is removed at the end."""
    began = time.perf_counter()
    tell: Progress = progress or _silent
    counts = CLIENTS[:2] if quick else CLIENTS
    with tempfile.TemporaryDirectory(dir=".") as folder, ExitStack() as running:
        settings = Settings(url=f"sqlite:///{Path(folder).resolve() / 'bench.db'}")
        provider = running.enter_context(serving(_provider, answer_ms))
        bare = running.enter_context(serving(_bare, provider.url))
        gateway = running.enter_context(serving(_gateway, settings, provider.url))
        bench = _Bench((bare, gateway), settings, 1 if quick else 3, answer_ms / 1000)
        tell("warming up")
        anyio.run(bench.asked, 1, _WARM_UP, 0.0)
        rows: list[Row] = []
        for clients in counts:
            tell(f"{clients} clients")
            rows += anyio.run(bench.measured, clients)
        tell(f"{_TOGETHER} clients in the same moment")
        rows += anyio.run(bench.measured, _TOGETHER, True)
    return Report(rows, machine_facts(open_counter().name), quick, time.perf_counter() - began)


@dataclass(slots=True)
class _Times:
    """Milliseconds until the first bytes and until the end, and CPU of the serving process."""

    first: list[float] = field(default_factory=list[float])
    whole: list[float] = field(default_factory=list[float])
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    pid: int

    def cpu_ms(self) -> float:
        """What it has used since it began; Linux tells in ticks of about 10 ms."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Bench:
    #: The bare proxy and the gateway.
    sides: tuple[Server, Server]
    settings: Settings
    repeats: int
    answer_s: float

    async def measured(self, clients: int, together: bool = False) -> list[Row]:
        bare, ours = await self.asked(clients, self.repeats, 0.0 if together else self.answer_s)
        return list(_rows(clients, bare, ours, await _window_ms(self.settings), together))

    async def asked(self, clients: int, repeats: int, within_s: float) -> tuple[_Times, _Times]:
        """Both sides in turns; the clients begin within this time."""
        times = _Times(), _Times()
        for _ in range(repeats):
            for server, mine in zip(self.sides, times, strict=True):
                before = server.cpu_ms()
                limits = httpx.Limits(max_connections=None)
                async with (
                    httpx.AsyncClient(timeout=60, limits=limits) as client,
                    anyio.create_task_group() as group,
                ):
                    for number in range(clients):
                        name = f"{clients}-{number}-{time.time_ns()}"
                        group.start_soon(_talk, client, server.url, name, mine, random.random() * within_s)
                mine.cpu += server.cpu_ms() - before
        return times


async def _talk(client: httpx.AsyncClient, url: str, name: str, times: _Times, after_s: float) -> None:
    await anyio.sleep(after_s)
    messages: list[dict[str, str]] = [{"role": "system", "content": "Be brief."}]
    for number in range(_TURNS):
        question = f"{name}: what did Anna decide about compressor {number}, and when?"
        messages.append({"role": "user", "content": question})
        body = {"model": "gpt-5", "stream": True, "messages": messages, "user": name}
        began = time.perf_counter()
        first = 0.0
        async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as response:
            async for _ in response.aiter_bytes():
                first = first or time.perf_counter() - began
        times.first.append(first * 1000)
        times.whole.append((time.perf_counter() - began) * 1000)
        messages.append({"role": "assistant", "content": _SAID})


async def _window_ms(settings: Settings) -> float:
    """The median of `chat.context()` over the conversations that were just written."""
    took: list[float] = []
    async with Memory.open(settings=settings) as memory:
        for head in await memory.conversations(limit=20):
            chat = memory.conversation(str(head.scope.conversation), user_id=head.scope.user)
            for _ in range(3):
                began = time.perf_counter()
                await chat.context("What did Anna decide about the compressor?", window_for="gpt-5")
                took.append((time.perf_counter() - began) * 1000)
    return median(took)


def _rows(clients: int, bare: _Times, ours: _Times, window: float, together: bool) -> Iterator[Row]:
    who = f"{clients} client{'s' * (clients > 1)}" + ", all in the same moment" * together
    for name, limit, mine, theirs in (
        ("whole answer", LIMIT_MS, ours.whole, bare.whole),
        ("first bytes", FIRST_LIMIT_MS, ours.first, bare.first),
    ):
        beyond = median(mine) - median(theirs) - window
        note = (
            f"{who}, p50 {median(mine):.1f} ms, p95 {_p95(mine):.1f} ms; bare proxy {median(theirs):.1f} and "
            f"{_p95(theirs):.1f}; a window takes {window:.1f} ms"
        )
        judged = clients <= _TOGETHER and not together
        bound = {"limit": limit, "bound": "at most", "ok": beyond <= limit} if judged else {}
        yield Row(f"{name}, added beyond the window", beyond, "ms", note=note, **bound)  # type: ignore[arg-type]
    cpu, bare_cpu = (times.cpu / len(times.whole) for times in (ours, bare))
    yield Row("CPU of a request", cpu, "ms", note=f"{who}; bare proxy {bare_cpu:.2f} ms")


def _p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1]


# -- processes ----------------------------------------------------------------------------------------------------------


def _provider(listener: socket.socket, answer_ms: int) -> None:
    pieces = [{"role": "assistant", "content": ""}, *({"content": f"{word} "} for word in _SAID.split())]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5"}
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in pieces
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    lines = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]

    async def answer(request: Request) -> StreamingResponse:
        await request.body()
        await asyncio.sleep(answer_ms / 1000)

        async def said() -> AsyncIterator[bytes]:
            for line in lines:
                yield line

        return StreamingResponse(said(), media_type="text/event-stream")

    _serve(Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])]), listener)


def _bare(listener: socket.socket, provider: str) -> None:
    client = httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=None))

    async def passed(request: Request) -> StreamingResponse:
        asked = client.build_request("POST", f"{provider}{request.url.path}", content=await request.body())
        response = await client.send(asked, stream=True)
        return StreamingResponse(response.aiter_raw(), media_type="text/event-stream")

    _serve(Starlette(routes=[Route("/v1/chat/completions", passed, methods=["POST"])]), listener)


def _gateway(listener: socket.socket, settings: Settings, provider: str) -> None:
    serve_one(replace(settings, gateway=GatewaySettings(openai_url=f"{provider}/v1")), listener)


def _serve(app: Any, listener: socket.socket) -> None:
    config = uvicorn.Config(app, log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def serving(target: Callable[..., None], *given: Any) -> Generator[Server]:
    """A server in a process of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        # Otherwise every answer waits 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        child = multiprocessing.get_context("fork").Process(
            target=target, args=(listener, *given), daemon=True
        )
        child.start()
        try:
            # Connections wait in the backlog until it serves.
            yield Server(f"http://127.0.0.1:{listener.getsockname()[1]}", child.pid or 0)
        finally:
            child.terminate()
            child.join(10)
