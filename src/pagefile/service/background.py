"""The background worker of a service that is a single process: a child, so that it does not compete with requests for the interpreter.

Segmenting words, making vectors and extracting facts hold the interpreter's lock for milliseconds at a time; at 64 clients
every request waits for a dozen such pieces. The child has a lock of its own and a lower priority.

It is forked before the service opens anything, and stays a *keeper* that holds nothing: it forks the process that works, forks
another when that one dies, and kills it when the service is gone. Two lines lead to it: a pipe on which the service says go and
stop, and whose end means that the service died; and a socket on which the service says what was written, and the worker sends its
metrics. What is lost on the socket is found by the next scan of the log.
"""

import ctypes
import errno
import json
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import anyio

from pagefile.backoff import Backoff
from pagefile.engine import Memory
from pagefile.engine.background import is_shared, look_after
from pagefile.ports import Meter
from pagefile.records import Scope
from pagefile.service.logs import write_logs
from pagefile.settings import Settings
from pagefile.tiers.episodes import Episodes

logger = logging.getLogger("pagefile")

#: Requests come first when both want the processor.
_NICENESS = 5
#: How often the worker sends what it measured, and how much in a message.
_METRICS_S = 1.0
_METRICS_AT_ONCE = 200
_METRICS_KEPT = 10_000
_MESSAGE_BYTES = 1 << 17
#: A worker that lived this long did not fail at startup.
_HEALTHY_S = 10.0
#: How long a worker may take to exit, beyond what `drain_s` allows.
END_S = 10.0

#: How long threads may take to end before the fork.
_THREADS_END_S = 2.0

_GO, _STOP = b"g", b"s"
#: `PR_SET_PDEATHSIG`.
_END_WITH_PARENT = 1
#: In a message: nothing in particular was written, so look everywhere.
_SCAN = "*"
#: Counted by the child when it has made vectors.
_INDEXED = "pagefile_indexed_turns_total"


class BackgroundWorker:
    """The service's side: starts the worker, hands it what was written, and takes its metrics."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._settings = settings
        self._line, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        heard, self._orders = os.pipe()
        sys.stdout.flush()
        self._keeper = os.fork()
        if not self._keeper:
            # The next service may want the port before this one is gone.
            listener.close()
            self._line.close()
            os.close(self._orders)
            _keep(settings, its, heard)
        its.close()
        os.close(heard)
        self._line.setblocking(False)

    @classmethod
    def possible(cls, settings: Settings) -> bool:
        """Whether background work can be done by a child: by default, on Linux, with a database that processes can share.

        A process with threads is not forked: the child would inherit locks that nothing releases.
        """
        if sys.platform != "linux" or settings.worker != "inside" or not is_shared(settings):
            return False
        # Those that checked the database are on their way out.
        deadline = time.monotonic() + _THREADS_END_S
        while len(threads := [*Path("/proc/self/task").iterdir()]) > 1 and time.monotonic() < deadline:
            time.sleep(0.005)
        if len(threads) > 1:
            logger.warning(
                "background work shares a process with requests: %d threads are running", len(threads)
            )
        return len(threads) == 1

    def go(self) -> None:
        """The database is open: the worker may open it too."""
        self._order(_GO)

    def stop(self) -> None:
        """Let the worker finish what the last requests left, and wait for its end."""
        self._order(_STOP)
        deadline = time.monotonic() + self._settings.drain_s + 2 * END_S
        while os.waitpid(self._keeper, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(self._keeper, signal.SIGKILL)
                os.waitpid(self._keeper, 0)
                break
            time.sleep(0.01)
        os.close(self._orders)
        self._line.close()

    def _order(self, order: bytes) -> None:
        with suppress(BrokenPipeError):
            os.write(self._orders, order)

    @asynccontextmanager
    async def joined(self, memory: Memory, meter: Meter) -> AsyncGenerator[None]:
        """While the block runs, the worker learns what is written here, and its metrics are counted here."""
        memory.engine.worker.hand_over = self._hand_over

        async def receive() -> None:
            await _receive(self._line, partial(_take_over, memory, meter))
            # Only a killed keeper ends the line: it is not forked again from a process with threads.
            logger.error(
                "the background worker's keeper is gone: nothing is indexed until the service is restarted"
            )

        async with anyio.create_task_group() as receiving:
            receiving.start_soon(receive)
            yield
            receiving.cancel_scope.cancel()

    def _hand_over(self, tier: str | None, scope: Scope | None) -> None:
        said = (
            [_SCAN] if tier is None or scope is None else [tier, scope.tenant, scope.user, scope.conversation]
        )
        _send(self._line, said)


def _take_over(memory: Memory, meter: Meter, measured: list[list[Any]]) -> None:
    """Count what the child measured. Where it made vectors, they can be made again here, too: no need to rest any longer."""
    _count(meter, measured)
    if any(one[1] == _INDEXED for one in measured):
        memory.engine.tier(Episodes).derivation.health.well()


# -- the keeper --------------------------------------------------------------------------------------------------------


def _keep(settings: Settings, line: socket.socket, orders: int) -> NoReturn:
    """Never returns: it is a copy of a process that has something else to do."""
    try:
        # Ctrl-C reaches every process of the terminal's group; only the service answers it.
        os.setpgid(0, 0)
        if os.read(orders, 1) == _GO:
            _Keeper(settings, line, orders).run()
    except BaseException as error:
        _tell(f"The background worker's keeper ended with {error!r}.")
        os._exit(1)
    os._exit(0)


@dataclass
class _Keeper:
    """Keeps one worker alive until the service stops or dies."""

    settings: Settings
    line: socket.socket
    orders: int
    pause: Backoff = field(default_factory=lambda: Backoff(first_s=0.2, longest_s=5.0))

    def run(self) -> None:
        order = None
        while order is None:
            began, worker = time.monotonic(), self._forked()
            order = self._waited(worker)
            if order is not None:
                self._end(worker, gently=order == _STOP)
                return
            code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
            if time.monotonic() - began >= _HEALTHY_S:
                self.pause.succeeded()
            else:
                self.pause.failed()
            _tell(f"The background worker (process {worker}) ended with {code}: another takes its place.")
            order = self._ordered(self.pause.left_s)

    def _forked(self) -> int:
        keeper, worker = os.getpid(), os.fork()
        if not worker:
            try:
                os.close(self.orders)
                _end_with(keeper)
                _work(self.settings, self.line)
            except BaseException as error:
                _tell(f"The background worker failed: {error!r}.")
                os._exit(1)
            os._exit(0)
        return worker

    def _waited(self, worker: int) -> bytes | None:
        """The order that came while the worker lived, b"" if the service died; None if the worker ended first."""
        end = os.pidfd_open(worker)
        try:
            ready, _, _ = select.select([self.orders, end], [], [])
            return os.read(self.orders, 1) if self.orders in ready else None
        finally:
            os.close(end)

    def _ordered(self, seconds: float) -> bytes | None:
        ready, _, _ = select.select([self.orders], [], [], seconds)
        return os.read(self.orders, 1) if ready else None

    def _end(self, worker: int, *, gently: bool) -> None:
        """Without the service there is nothing to wait for: whoever comes next does the rest."""
        if gently:
            os.kill(worker, signal.SIGTERM)
            deadline = time.monotonic() + self.settings.drain_s + END_S
            while os.waitpid(worker, os.WNOHANG) == (0, 0):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.01)
            else:
                return
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)


def _end_with(keeper: int) -> None:
    """Without its keeper, even a killed one, a worker would go on for ever beside the next service's."""
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != keeper:
        os._exit(1)


def _tell(line: str) -> None:
    with suppress(OSError):
        os.write(1, f"{line}\n".encode())


# -- the worker --------------------------------------------------------------------------------------------------------


def _work(settings: Settings, line: socket.socket) -> None:
    os.nice(_NICENESS)
    line.setblocking(False)
    write_logs(settings.service)
    meter = _SentMeter(line)

    async def beside(memory: Memory) -> None:
        async with anyio.create_task_group() as lines:
            lines.start_soon(_receive, line, partial(_wake, memory))
            lines.start_soon(meter.run)

    anyio.run(partial(look_after, settings, lambda: None, meter, beside=beside))


def _wake(memory: Memory, said: list[Any]) -> None:
    worker = memory.engine.worker
    if said == [_SCAN]:
        worker.scan()
    else:
        tier, *scope = said
        worker.wake(tier, Scope(*scope))


@dataclass
class _SentMeter(Meter):
    """Sends what it measures, a second's worth at a time."""

    line: socket.socket
    _taken: list[list[Any]] = field(default_factory=list[list[Any]])

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        self._take("count", name, amount, labels)

    def observe(self, name: str, value: float, **labels: str) -> None:
        self._take("observe", name, value, labels)

    def _take(self, *measured: Any) -> None:
        # Nothing reads it while the service is busy elsewhere: bounded.
        if len(self._taken) < _METRICS_KEPT:
            self._taken.append([*measured])

    async def run(self) -> None:
        while True:
            await anyio.sleep(_METRICS_S)
            while self._taken and _send(self.line, self._taken[:_METRICS_AT_ONCE]):
                del self._taken[:_METRICS_AT_ONCE]


def _count(meter: Meter, said: list[Any]) -> None:
    for verb, name, value, labels in said:
        (meter.count if verb == "count" else meter.observe)(name, value, **labels)


# -- the line ----------------------------------------------------------------------------------------------------------


def _send(line: socket.socket, said: list[Any]) -> bool:
    """Whether it was taken: a reader that is behind, or dead, is not waited for."""
    try:
        line.send(json.dumps(said).encode())
    except (BlockingIOError, ConnectionError):
        return False
    except OSError as error:
        if error.errno in {errno.ENOBUFS, errno.EMSGSIZE}:
            return False
        raise
    return True


async def _receive(line: socket.socket, take: Any) -> None:
    while True:
        await anyio.wait_readable(line)
        try:
            said = line.recv(_MESSAGE_BYTES)
        except BlockingIOError:
            continue
        except ConnectionError:
            # Killed with something unread.
            return
        if not said:
            return
        take(json.loads(said))
