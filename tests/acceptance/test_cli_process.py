"""The command line in a process of its own: pipes, terminals, signals."""

import json
import os
import pty
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import anyio
import httpx
import pytest

from pagefile import Memory
from tests.acceptance.cli_calling import pagefile
from tests.servers.forked import Forked, forking
from tests.servers.ports import free_port
from tests.waiting import PATIENCE_S, until_so

COMMAND = [sys.executable, "-m", "pagefile"]


@pytest.fixture(autouse=True)
def _at_a_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("PAGEFILE_URL", "PAGEFILE_CONFIG", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command with pipes on both ends."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env=os.environ | extra,
    )


def test_piped_output_is_plain():
    """No escape codes in a pipe, Chinese as UTF-8, and where stdout has no Chinese, JSON has escapes instead."""
    pagefile("record", "门诊-1", "--user", "我对青霉素过敏", "--assistant", "请避免使用")
    with forking():
        shown = run("show", "门诊-1")
    assert "我对青霉素过敏" in shown.stdout.decode()
    assert b"\x1b" not in shown.stdout + shown.stderr
    latin = run("show", "门诊-1", "--json", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert "我对青霉素过敏" == json.loads(latin.stdout)["turns"][0]["user"]
    assert b"???" in run("show", "门诊-1", PYTHONIOENCODING="latin-1", PYTHONUTF8="0").stdout


def test_bytes_that_are_not_text():
    """An argument that is not UTF-8 is refused with a reason, not with a traceback."""
    done = subprocess.run([*COMMAND, "record", "c", "--user", b"\xff\xfe"], capture_output=True, check=False)
    assert 1 == done.returncode
    assert done.stderr.startswith(b"error: user is not valid Unicode")


def answered(arguments: list[str], answer: bytes) -> int:
    """The exit code of a command at a terminal where somebody types."""
    terminal, theirs = pty.openpty()
    process = Forked(
        [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        asked = b""
        while b"?" not in asked:
            asked += os.read(terminal, 1000)
        if answer:
            os.write(terminal, answer)
            return process.wait(PATIENCE_S)
        return interrupted(process)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def interrupted(process: subprocess.Popen[bytes]) -> int:
    """The exit code after Ctrl-C; pressed again when it fell into the moment before the terminal is read."""
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        try:
            # Time enough to end: a second one that falls into the end of the interpreter is deadly.
            return process.wait(10)
        except subprocess.TimeoutExpired:
            continue
    return process.wait(0)


@pytest.mark.waits
def test_forget_asks_at_a_terminal():
    """No is no, Ctrl-C is 130, yes erases."""
    pagefile("record", "c", "--user", "hi")
    assert 1 == answered(["forget", "c"], b"n\n")
    assert 130 == answered(["forget", "c"], b"")
    assert 0 == pagefile("show", "c").code
    assert 0 == answered(["forget", "c"], b"y\n")
    assert 3 == pagefile("show", "c").code


@pytest.mark.parametrize(
    "command", [COMMAND, [str(Path(sys.executable).with_name("pagefile"))]], ids=["-m", "script"]
)
@pytest.mark.parametrize("module", ["pagefile.records", "pagefile.cli.output"])
def test_ctrl_c_while_it_is_still_imported(tmp_path: Path, command: list[str], module: str):
    """The signal comes with the import of a module of the library, or of the command line: a word, 130, no traceback."""
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    done = subprocess.run(
        [*command, "show"], capture_output=True, check=False, env=os.environ | {"PYTHONPATH": str(tmp_path)}
    )
    assert (130, b"", b"Interrupted.\n") == (done.returncode, done.stdout, done.stderr)


def test_the_hook_of_another_program_is_left_alone():
    """Importing the library changes nothing about how errors are shown."""
    code = "import sys; import pagefile; assert sys.excepthook is sys.__excepthook__"
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode


def _is_being_filled() -> bool:
    """Whether the demo has written its first turn."""
    with (
        suppress(sqlite3.OperationalError),
        closing(sqlite3.connect("file:pagefile.db?mode=ro", uri=True)) as file,
    ):
        return file.execute("SELECT count(*) FROM ai_message").fetchone()[0] > 0
    return False


@pytest.mark.slow
@pytest.mark.waits
def test_an_interrupted_demo_says_how_to_go_on():
    """Ctrl-C in the middle of it: one line, and 130."""
    demo = Forked([*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until_so(_is_being_filled)
        demo.send_signal(signal.SIGINT)
        said = demo.communicate(timeout=60)
        assert ("", "Interrupted. Run `pagefile demo` again: it continues where it stopped.\n") == said
        assert 130 == demo.returncode
    finally:
        demo.kill()
        demo.communicate()


async def _archived() -> str:
    async with Memory.open() as memory:
        step = {"tool": "search", "input": {"q": "血压"}, "result": "高血压患者应少盐。\n\n" * 2000}
        chat = memory.conversation("门诊-1")
        turn = await chat.record("血压？", "见附件。", steps=[step])
        # What is in a window in use is not purged by age.
        await chat.reset()
        return turn.steps[0].page or ""


@pytest.mark.waits
def test_archive_purge_asks_at_a_terminal():
    """No is no, yes leaves a tombstone."""
    uuid = anyio.run(_archived)
    assert 1 == answered(["archive", "purge", "--uuid", uuid], b"n\n")
    assert 0 == pagefile("archive", "show", uuid, "--full").code
    assert 0 == answered(["archive", "purge", "--older-than", "0s", "-c", "门诊-1"], b"y\n")
    assert 3 == pagefile("archive", "show", uuid, "--full").code


@pytest.mark.waits
def test_serve_says_where_and_stops_cleanly():
    """One line with the address, then the API; Ctrl-C ends with 0 and no traceback."""
    port = free_port()
    command = [*COMMAND, "serve", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert f"http://127.0.0.1:{port}" in line
        assert "/docs" in line
        assert 200 == until_it_answers(f"http://127.0.0.1:{port}/healthz")
        assert "server" not in httpx.get(f"http://127.0.0.1:{port}/healthz").headers
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=PATIENCE_S)
        assert (0, "") == (server.returncode, errors)
    finally:
        server.kill()
        server.communicate()


@pytest.mark.slow
@pytest.mark.waits
def test_serve_does_not_wait_for_ever():
    """A client that never finishes its request cannot keep the service from stopping."""
    port = free_port()
    command = [*COMMAND, "serve", "--port", str(port)]
    server = Forked(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert 200 == until_it_answers(f"http://127.0.0.1:{port}/healthz")
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(
                b"POST /v1/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
            )
            # Said when the service begins to read the body.
            assert b"100 Continue" in client.recv(1000)
            client.sendall(b"{")
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=PATIENCE_S)
        assert 0 == server.returncode
    finally:
        server.kill()
        server.communicate()


def until_it_answers(url: str) -> int:
    """The status of the first answer."""
    answers: list[int] = []

    def answers_now() -> bool:
        with suppress(httpx.TransportError):
            answers.append(httpx.get(url, timeout=PATIENCE_S).status_code)
        return bool(answers)

    until_so(answers_now)
    return answers[0]
