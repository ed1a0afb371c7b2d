"""A fork of a process that has imported Pagefile is a process like any other."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.forked import Forked, forking
from tests.servers.ports import free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="takes over children as Linux lets it")
PAGEFILE = [sys.executable, "-m", "pagefile"]


def said(how, *arguments, **more):
    """How a command ended, and what it wrote to each stream."""
    with how(
        [*PAGEFILE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    ) as process:
        out, err = process.communicate()
    return process.returncode, out, err


@pytest.mark.parametrize("arguments", [["--version"], ["doctor", "--nonsense"], ["turns", "c", "--json"]])
def test_it_says_and_ends_as_a_fresh_one(arguments, tmp_path):
    """Code, output and errors; in a folder and with settings of its own."""
    env = {**os.environ, "PAGEFILE_URL": "sqlite:///here.db"}
    assert said(subprocess.Popen, *arguments, cwd=tmp_path, env=env) == said(
        Forked, *arguments, cwd=tmp_path, env=env
    )


def test_it_has_the_folder_and_the_environment_it_was_given(tmp_path):
    """And nothing stays for the next one."""
    env = {**os.environ, "PAGEFILE_URL": "sqlite:///here.db"}
    code, out, err = said(
        Forked, "record", "c", "--user", "Hi", "--user-id", "u", "--json", cwd=tmp_path, env=env
    )
    assert 0 == code, err
    assert json.loads(out)
    assert (tmp_path / "here.db").exists()
    other = tmp_path / "other"
    other.mkdir()
    assert 0 == said(Forked, "doctor", "--db", "sqlite:///there.db", cwd=other, env=os.environ)[0]
    assert [] == list(other.glob("here.db"))


PROGRAM = """
import os, sys
class Here: ...
print(sys.argv, os.getcwd(), os.getsid(0) == os.getpid(), Here.__module__ in sys.modules, sys.modules["__main__"].Here is Here)
raise SystemExit(3)
"""


@pytest.mark.parametrize("session", [True, False])
def test_a_program_runs_as_in_a_fresh_one(session, tmp_path):
    """With its arguments, as the main module, in a session of its own if that was asked for."""
    command = [sys.executable, "-c", PROGRAM, "a", "b"]
    told = []
    for how in (subprocess.Popen, Forked):
        with how(command, cwd=tmp_path, start_new_session=session, stdout=subprocess.PIPE) as process:
            told.append((process.communicate()[0], process.returncode))
    assert told[0] == told[1]
    assert (3, session) == (told[0][1], b" True True True" in told[0][0])


@pytest.mark.waits
def test_it_is_a_child_and_can_be_killed():
    """Its caller waits for it, and hears by what it was ended."""
    command = [*PAGEFILE, "serve", "--db", "memory://", "--port", str(free_port())]
    with Forked(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert "Pagefile serves" in process.stdout.readline()
        assert os.getpid() == int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
        process.kill()
        assert -signal.SIGKILL == process.wait()


def test_what_is_started_afterwards_is_no_fork():
    """Also where two asked for forks at once."""
    popen = subprocess.Popen
    first, second = forking(), forking()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert Forked is subprocess.Popen
    second.__exit__(None, None, None)
    assert popen is subprocess.Popen
