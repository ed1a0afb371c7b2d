"""The processes of the service: one with its background worker, or several on one socket, another for their background work, and the supervisor.

Each worker opens the memory itself; they share the database, the cache and a directory for metrics. A worker that dies is
replaced immediately, one that keeps dying after increasing pauses. Workers exit when the supervisor does, however that
happened.
"""

import gc
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from multiprocessing import connection, get_all_start_methods, get_context, parent_process
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import uvicorn
from uvicorn.config import STARTUP_FAILURE

from pagefile.backoff import Backoff
from pagefile.engine.background import check_shared, look_after
from pagefile.errors import SettingsError
from pagefile.integrations.prometheus import PrometheusMeter
from pagefile.service.app import create_app
from pagefile.service.background import BackgroundWorker
from pagefile.service.connections import BoundedProtocol
from pagefile.service.logs import JsonLines, write_logs
from pagefile.service.stopping import Server, Stopping, ending_s
from pagefile.settings import Settings
from pagefile.settings.sources import handed_down

logger = logging.getLogger("pagefile.service")

#: A worker that lived this long did not fail at startup.
_HEALTHY_S = 10.0
#: How long a worker may take to exit, beyond its requests and background work.
_END_S = 10.0

_METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def check(settings: Settings) -> None:
    """Refuse settings that cannot be served, before a worker fails on them, and those several processes cannot share."""
    create_app(settings)
    if settings.service.workers == 1:
        return
    check_shared(
        settings,
        f"Each of {settings.service.workers} workers would have a memory of its own: name a database, best PostgreSQL, or "
        "start with one worker.",
    )


def serve_one(settings: Settings, listener: socket.socket) -> None:
    """One process that answers requests, and a child that does its background work where processes can share the database."""
    background = BackgroundWorker(settings, listener) if BackgroundWorker.possible(settings) else None
    # uvicorn shuts down cleanly and then raises the signal again: a clean stop must not be reported as "killed".
    signal.signal(signal.SIGTERM, _ended_already)
    if background is None:
        _run(settings, listener)
        return
    try:
        _run(replace(settings, worker="apart"), listener, background=background)
    finally:
        background.stop()


def _ended_already(_signal: int, _frame: FrameType | None) -> None:
    """The server is down by now."""


def _run(
    settings: Settings,
    listener: socket.socket,
    *,
    metrics: Path | None = None,
    background: BackgroundWorker | None = None,
    ready: Event | None = None,
) -> None:
    stopping = Stopping()
    config = uvicorn.Config(
        partial(create_app, settings, metrics=metrics, background=background, stopping=stopping),
        factory=True,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=BoundedProtocol,
    )
    write_logs(settings.service)
    _tune_for_serving()
    Server(config, settings.service, stopping, ready).run(sockets=[listener])


def _tune_for_serving() -> None:
    """Collect garbage less often, and switch threads sooner. Only for a process that runs nothing but the service.

    Everything loaded at startup lives forever, and requests leave next to nothing that reference counting does not free;
    Python's defaults traverse all of it every few dozen windows.

    While a thread extracts a summary or segments words, a request waits to be scheduled whenever it returns from the network
    or the disk, a dozen times in all. At Python's default 5 ms each, one turn in a hundred took over 50 ms.
    """
    gc.collect()
    gc.freeze()
    # A fifth of these made windows 5 % slower, and the process hardly smaller under a steady load.
    gc.set_threshold(50_000, 20, 100)
    sys.setswitchinterval(0.0005)


# -- a worker ----------------------------------------------------------------------------------------------------------


def _work(settings: Settings, listener: socket.socket, metrics: Path, ready: Event) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):
        _run(settings, listener, metrics=metrics, ready=ready)


def _look_after(settings: Settings, _listener: socket.socket, metrics: Path, ready: Event) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    write_logs(settings.service)
    with suppress(KeyboardInterrupt):
        anyio.run(look_after, settings, ready.set, PrometheusMeter(shared=metrics))


def _end_with_parent() -> None:
    """A killed supervisor cannot stop its workers, so they wait for its death."""
    supervisor = parent_process()
    if supervisor is not None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)


# -- the supervisor ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Place:
    """A slot for one worker, and the restart history of its predecessors."""

    #: Shown in messages: a worker's number, or its role.
    name: str
    target: Callable[..., None]
    process: BaseProcess | None = None
    ready: Event | None = None
    began: float = 0.0
    #: Before the next one starts, if the last died young.
    pause: Backoff = field(default_factory=lambda: Backoff(first_s=0.2, longest_s=5.0))


class Supervisor:
    """Keeps the configured number of workers alive on one socket."""

    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self._listener = listener
        self._places = [_Place(f"Worker {number + 1}", _work) for number in range(settings.service.workers)]
        if settings.worker == "inside":
            # Done once for all workers, not by each alongside its requests.
            self._places.append(_Place("The background worker", _look_after))
            settings = replace(settings, worker="apart")
        self._settings = settings
        self._stopping = False
        #: Whether any worker ever started: if not, retrying would not help.
        self._worked = False

    def run(self) -> None:
        """Supervise the workers until told to stop; raises `SettingsError` if none of them can start."""

        def stop(_signal: int, _frame: FrameType | None) -> None:
            self._stopping = True

        write_logs(self._settings.service)
        with tempfile.TemporaryDirectory(prefix="pagefile-metrics-") as folder:
            before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
            handed_down(_METRICS_VARIABLE, folder)
            try:
                self._look_after(Path(folder))
            finally:
                # The background work of their last requests is still to be done.
                self._end(_work)
                self._end(_look_after)
                handed_down(_METRICS_VARIABLE, None)
                for one, handler in before.items():
                    signal.signal(one, handler)

    def _look_after(self, metrics: Path) -> None:
        while not self._stopping:
            for place in self._places:
                if place.process is None and not place.pause.left_s:
                    self._start(place, metrics)
            connection.wait([place.process.sentinel for place in self._places if place.process], timeout=0.1)
            for place in self._places:
                self._check(place)

    def _start(self, place: _Place, metrics: Path) -> None:
        context = _starting()
        place.ready = context.Event()
        args = (self._settings, self._listener, metrics, place.ready)
        process: BaseProcess = context.Process(target=place.target, args=args, name=place.name)
        process.start()
        # Only now: one that could not start cannot be ended either.
        place.process, place.began = process, time.monotonic()
        _tell(f"{place.name} is process {process.pid}.")

    def _check(self, place: _Place) -> None:
        if place.ready is not None and not self._worked and place.target is _work:
            self._worked = place.ready.is_set()
        process = place.process
        if process is None or process.is_alive() or self._stopping:
            return
        process.join()
        code, place.process = process.exitcode, None
        if code == STARTUP_FAILURE and not self._worked:
            raise SettingsError("The workers cannot start: the lines above say why.")
        if time.monotonic() - place.began >= _HEALTHY_S:
            place.pause.succeeded()
        else:
            place.pause.failed()
        _tell(
            f"{place.name} (process {process.pid}) ended with {code}: another takes its place.",
            logging.WARNING,
        )

    def _end(self, target: Callable[..., None]) -> None:
        """Let workers of a kind finish, and kill those that do not."""
        left = [place.process for place in self._places if place.process and place.target is target]
        for process in left:
            process.terminate()
        deadline = time.monotonic() + ending_s(self._settings.service) + self._settings.drain_s + _END_S
        for process in left:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                _tell(f"Process {process.pid} did not end in time and was killed.", logging.WARNING)
                process.kill()
                process.join()


def _tell(line: str, level: int = logging.INFO) -> None:
    """To people who look at the terminal; to a collector, a line like the others."""
    if any(isinstance(one.formatter, JsonLines) for one in logging.getLogger("pagefile").handlers):
        logger.log(level, line)
        return
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@cache
def _starting() -> Any:
    """How workers start: not as forks of this process, which would inherit held locks without the threads that hold them.

    They are forks of one that has imported everything and holds nothing, so a new worker takes no time and shares its code.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def serve_many(settings: Settings, listener: socket.socket) -> None:
    Supervisor(settings, listener).run()
