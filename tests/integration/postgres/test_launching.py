"""The launcher of `tests.servers.postgres`: a server that is there, and then gone."""

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pagefile.errors import StoreUnavailableError
from pagefile.stores import open_store
from pagefile.testing.drafts import done
from tests.servers.postgres import PostgresServer, installed
from tests.waiting import until_so

from .serving import server

AS_ROOT = os.geteuid() == 0


@pytest.fixture(autouse=True)
def _there():
    server()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def postmaster(running):
    return int((running.folder / "data" / "postmaster.pid").read_text().split()[0])


async def works(running):
    store = await open_store(running.url())
    assert (await store.log.append(done("a"))).seq == 1
    await store.close()


async def test_a_server_is_gone_with_its_folder():
    """Also when the test it served failed."""
    with pytest.raises(ZeroDivisionError), PostgresServer() as running:
        await works(running)
        pid, folder = postmaster(running), running.folder
        raise ZeroDivisionError
    assert not alive(pid)
    assert not folder.exists()


@pytest.mark.skipif(not AS_ROOT, reason="needs root, who alone can run it as somebody else")
async def test_root_s_server_runs_as_nobody():
    """PostgreSQL refuses to run as root."""
    with PostgresServer() as running:
        owner = Path(f"/proc/{postmaster(running)}").stat().st_uid
        assert owner not in {0, os.getuid()}


@pytest.mark.skipif(not AS_ROOT, reason="root's server runs as somebody else, who may not enter root's home")
async def test_binaries_that_cannot_be_reached_are_copied(tmp_path):
    """As with a virtual environment under root's home."""
    package = installed().parent
    closed = tmp_path / "closed"
    shutil.copytree(package, closed / package.name, symlinks=True)
    shutil.copytree(package.with_name(f"{package.name}.libs"), closed / f"{package.name}.libs", symlinks=True)
    closed.chmod(0o700)
    with PostgresServer(install=closed / package.name / installed().name) as running:
        assert running.folder in running.install.parents
        await works(running)
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(
    not AS_ROOT, reason="only root can become somebody else; others run every test of this file so"
)
def test_it_works_for_somebody_who_is_not_root(tmp_path):
    """Nothing in it needs root."""
    script = "from tests.servers.postgres import PostgresServer\nwith PostgresServer() as s: print(s.port)"
    nobody = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    places = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PATH": os.defpath}
    try:
        done = subprocess.run(
            [reachable_python(nobody), "-c", script],
            **nobody,
            cwd="/",
            env=places,
            capture_output=True,
            check=False,
        )
    except PermissionError:
        pytest.skip("nobody may not enter the folder of any Python of this version")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def reachable_python(user):
    """This Python, or the system's of the same version where this one lies in somebody's home."""
    said = "import sys; print(sys.version_info[:2])"
    for python in (sys.executable, "/usr/bin/python3"):
        with suppress(PermissionError, FileNotFoundError):
            told = subprocess.run([python, "-c", said], **user, cwd="/", capture_output=True, check=False)
            if told.stdout.decode().strip() == str(sys.version_info[:2]):
                return python
    raise PermissionError


@pytest.mark.waits
def test_a_killed_process_leaves_no_server(tmp_path):
    """The server notices that nobody holds it any more."""
    script = (
        "import time; from tests.servers.postgres import PostgresServer\n"
        "with PostgresServer() as s: print(s.folder, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    folder = Path(process.stdout.readline().strip())
    pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    process.kill()
    process.communicate()
    until_so(lambda: not alive(pid))
    shutil.rmtree(folder)


def test_a_setting_that_is_none_is_told():
    """With the server's own words."""
    with (
        pytest.raises(StoreUnavailableError, match="no_such_setting"),
        PostgresServer({"no_such_setting": "1"}),
    ):
        pass


def test_it_starts_again_while_clients_knock():
    """They are told `FATAL: the database system is starting up`, which is not the end of the server."""
    with PostgresServer() as running, knocking(running.port):
        for _ in range(3):
            running.stop("QUIT")
            running.start()
            assert alive(postmaster(running))


def test_a_port_that_somebody_else_has_is_told():
    """The server's own end, in its own words."""
    with PostgresServer() as running:
        running.stop()
        with (
            socket.create_server(("127.0.0.1", running.port)),
            pytest.raises(StoreUnavailableError) as raised,
        ):
            running.start()
    assert "Address already in use" in str(raised.value)


@contextmanager
def knocking(port):
    """Somebody who asks for a connection again and again, as a pool does."""
    # The first packet of the protocol: its length, its version 3.0, the user, and two ends.
    said = b"user\0postgres\0\0"
    hello = struct.pack("!ii", 8 + len(said), 196608) + said
    enough = threading.Event()

    def knock():
        while not enough.is_set():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as line:
                line.sendall(hello)
                line.recv(1024)

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
