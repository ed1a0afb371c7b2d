"""Background work in a process of its own: it finds what others wrote, survives being killed, and is not done twice."""

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from pagefile import Memory, Settings
from pagefile.cli.app import app
from pagefile.settings import EmbedderSettings, FactSettings
from tests.servers.forked import Forked
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.waits]

APART = Settings(
    worker="apart",
    window_tokens=2000,
    facts=FactSettings(extract="rules"),
    embedder=EmbedderSettings(name="none"),
)
TALK = "My name is Ada and I am allergic to penicillin. " + "We talk about gardens at length. " * 20


@contextmanager
def worker(db):
    """`pagefile worker` over a database, ready."""
    process = Forked(
        [sys.executable, "-m", "pagefile", "worker", "--db", str(db)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PAGEFILE_FACTS__EXTRACT": "rules", "PAGEFILE_EMBEDDER__NAME": "none", "PATH": "/usr/bin:/bin"},
    )
    try:
        assert "background work" in process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_it_does_what_others_leave_to_it(tmp_path):
    """A process that leaves the work to it makes no checkpoint itself, and gets one with the window it asked for."""
    db = tmp_path / "agent.db"
    async with Memory.open(f"sqlite:///{db}", settings=APART) as memory:
        chat = memory.conversation("c", user_id="ada")
        await chat.context("Hello", window_tokens=2000)
        for number in range(20):
            await chat.record(user=f"{number}: {TALK}", assistant="Yes.")
        await chat.context("Hello", window_tokens=2000)
        assert [] == list(await chat.checkpoints())
        assert [] == await memory.facts("ada")
        # The windows are written down by now: from them the other process knows how large they are.
        assert 2 == len(await chat.calls())
        with worker(db):
            await memory.settle()
            assert [1] == [one.version for one in await chat.checkpoints()]
            assert any("penicillin" in fact.text for fact in await memory.facts("ada"))
        window = await chat.context("Hello", window_tokens=2000)
        assert "SUMMARY_N" == window.mode


async def test_killed_it_leaves_the_rest_to_the_next_one(tmp_path):
    """What was written while no worker ran, or after one was killed, is found by the next."""
    db = tmp_path / "agent.db"
    async with Memory.open(f"sqlite:///{db}", settings=APART) as memory:
        with worker(db) as first:
            first.send_signal(signal.SIGKILL)
            first.wait()
        await memory.conversation("c", user_id="bob").record(user="I live in Paris.", assistant="Noted.")
        with worker(db) as second:
            await until(lambda: _has(lambda: memory.facts("bob")))
            second.send_signal(signal.SIGTERM)
            assert 0 == second.wait()


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    """The path was mistyped: a worker over an empty file of its own would look well and do nothing."""
    result = CliRunner().invoke(app, ["worker", "--db", str(tmp_path / "none.db")])
    assert 3 == result.exit_code
    assert "There is no database at" in result.output
    assert "start the service first" in " ".join(result.output.split())
    assert [] == list(tmp_path.iterdir())


def test_a_database_of_one_process_is_refused():
    """A worker beside it would find nothing."""
    ran = subprocess.run(
        [sys.executable, "-m", "pagefile", "worker", "--db", "memory://"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (1, True) == (ran.returncode, "lives in the process that opened it" in ran.stderr)


async def _has(listing):
    return bool(list(await listing()))
