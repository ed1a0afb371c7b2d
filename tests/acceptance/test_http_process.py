"""The real thing: `pagefile serve` in a process of its own, killed and stopped."""

import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from tests.servers.forked import Forked
from tests.servers.ports import free_port

pytestmark = pytest.mark.waits
START_S = 60
STOP_S = 60


@contextmanager
def served(folder, start=Forked):
    """A running service, and a client that talks to it through a socket."""
    port = free_port()
    command = [sys.executable, "-m", "pagefile", "serve", "--port", str(port), "--db", "sqlite:///served.db"]
    process = start(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=START_S, trust_env=False) as client:
            wait_for(client, process)
            yield client, process
    finally:
        process.kill()
        process.communicate(timeout=STOP_S)


def wait_for(client, process):
    """Returns when the service answers."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, process.communicate()[0]
        try:
            if client.get("/healthz").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail(f"the service did not answer within {START_S} s")


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill(tmp_path):
    """Start, record, kill -9, start again: the turn is there. Ctrl-C then ends it with 0, within seconds."""
    here = {"conversation_id": "诊疗/2026:7"}
    with served(tmp_path, start=subprocess.Popen) as (client, process):
        turn = client.post("/v1/turns", json={**here, "user": "我对青霉素过敏。", "assistant": "已记录。"})
        assert 201 == turn.status_code
        process.kill()
        process.wait(STOP_S)

    with served(tmp_path) as (client, process):
        assert [turn.json()] == client.get("/v1/turns", params=here).json()["items"]
        assert client.post("/v1/context", json={**here, "query": "还有呢？"}).is_success
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=STOP_S)
        assert 0 == process.returncode, output
        assert "Traceback" not in output
        assert "青霉素" not in output

    with served(tmp_path) as (client, _process):
        # The window that was handed out just before the end was written down on the way out.
        assert ["还有呢？"] == [
            call["query"] for call in client.get("/v1/calls", params=here).json()["items"]
        ]


@pytest.mark.slow
def test_a_large_body_is_refused_on_the_wire(tmp_path):
    """A client that announces too much, or just keeps sending, gets 413 and the service goes on."""

    def endless():
        for _ in range(40):
            yield b" " * 1_000_000

    headers = {"Content-Type": "application/json"}
    with served(tmp_path) as (client, _process):
        for content in (b" " * 33_000_000, endless()):
            answer = client.post("/v1/turns", content=content, headers=headers)
            assert (413, "body-too-large") == (answer.status_code, answer.json()["code"])
        assert client.get("/healthz").is_success
