"""Processes of `python -m …` and `python -c …` that cost no start: forks of one that has imported Pagefile and done nothing else.

A fresh start takes a second of imports. `Forked` is a `subprocess.Popen`: the process is a child of its caller, with its own input,
output, folder, environment and command line. Where the start itself is what a test is about, `Popen` is the one to take.
"""

import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import random
import runpy
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

_ROOT = Path(__file__).parents[2]
_REQUEST_BYTES = 1 << 20
#: `PR_SET_CHILD_SUBREAPER`: who takes over the children of descendants that died.
_TAKE_OVER = 36
_POPEN = subprocess.Popen
_asking: list[bool] = []


class Forked(subprocess.Popen[Any]):
    """`Forked([sys.executable, "-m", "pagefile", …], cwd=…, env=…, stdout=…)`; a program for `-c` works as well."""

    def _execute_child(self, args: Any, *rest: Any) -> None:
        _, preexec_fn, _, pass_fds, cwd, env, _, _, shell = rest[:9]
        reads, _, _, writes, _, errors = rest[9:15]
        (*_, new_session, group) = rest[15:22]
        python, option, program, *arguments = args
        assert python == sys.executable
        assert option in {"-m", "-c"}
        unknown = [one for one in (preexec_fn, pass_fds, shell, group != -1) if one]
        assert [] == unknown, "a fork knows only folder, environment, streams and session"
        request = {
            "option": option,
            "program": program,
            "new_session": new_session,
            "arguments": [str(one) for one in arguments],
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
        }
        streams = [given if given >= 0 else own for own, given in enumerate((reads, writes, errors))]
        self.pid = _forked(request, streams)
        self._child_created = True
        self._close_pipe_fds(*rest[9:15])


@contextmanager
def forking() -> Iterator[None]:
    """What asyncio starts meanwhile are forks; several tasks may ask for it at once."""
    _asking.append(True)
    subprocess.Popen = Forked
    try:
        yield
    finally:
        _asking.pop()
        if not _asking:
            subprocess.Popen = _POPEN


def _forked(request: dict[str, Any], streams: list[int]) -> int:
    line = _line(os.getpid())
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert 0 == prctl(_TAKE_OVER, 1, 0, 0, 0), os.strerror(ctypes.get_errno())
    try:
        socket.send_fds(line, [json.dumps(request).encode()], streams)
        return int(line.recv(64))
    finally:
        prctl(_TAKE_OVER, 0, 0, 0, 0)


@cache
def _line(_process: int) -> socket.socket:
    """To the process that is forked; it ends when this one does."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        command = [sys.executable, "-m", "tests.servers.forked", str(its.fileno())]
        process = _POPEN(command, pass_fds=[its.fileno()], cwd=_ROOT)

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# -- in the process that is forked -------------------------------------------------------------------------------------


def _requested(line: socket.socket) -> dict[str, Any]:
    """Returns in every fork, with what it was asked for."""
    while True:
        said, streams, _, _ = socket.recv_fds(line, _REQUEST_BYTES, 3)
        if not said:
            sys.exit()
        # The fork of a fork that has ended belongs to the process that asked.
        heard, told = os.pipe()
        between = os.fork()
        if not between:
            process = os.fork()
            if process:
                os.write(told, str(process).encode())
                os._exit(0)
            for own, given in enumerate(streams):
                os.dup2(given, own)
            os.closerange(3, max(line.fileno(), told, *streams) + 1)
            return json.loads(said)
        os.waitpid(between, 0)
        line.send(os.read(heard, 64))
        for open_one in (heard, told, *streams):
            os.close(open_one)


def _become(asked: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.path[0] = asked["cwd"]
    if asked["new_session"]:
        os.setsid()
    sys.argv[1:] = asked["arguments"]
    random.seed()
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")), encoding="utf-8")
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w")), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    if asked["option"] == "-m":
        runpy.run_module(asked["program"], run_name="__main__", alter_sys=True)
    else:
        sys.argv[0] = "-c"
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(asked["program"], main.__dict__)


if __name__ == "__main__":
    for name in (
        "pagefile.cli.app",
        "pagefile.service.workers",
        "pagefile.stores.sqlite",
        "pagefile.stores.postgres",
    ):
        importlib.import_module(name)
    gc.freeze()
    _become(_requested(socket.socket(fileno=int(sys.argv[1]))))
