"""The real thing: `pagefile serve` in a process of its own, killed and stopped."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import httpx
import pytest

from tests.gateway.upstream import Fault, Said, Upstream
from tests.servers.forked import Forked
from tests.servers.ports import free_port

pytestmark = pytest.mark.waits
START_S = 60
STOP_S = 60


@contextmanager
def served(folder, start=Forked, **more):
    """A running service, and a client that talks to it through a socket."""
    port = free_port()
    command = [sys.executable, "-m", "pagefile", "serve", "--port", str(port), "--db", "sqlite:///served.db"]
    environ = {**os.environ, **{f"PAGEFILE_{name}": str(value) for name, value in more.items()}}
    process = start(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
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


ASK = {"model": "gpt-5", "messages": [{"role": "user", "content": "Where is the kayak?"}]}


def before_a_slow_provider(upstream, **more):
    return {"GATEWAY__OPENAI_URL": f"{upstream.url}/v1", "SERVICE__LOGS": "text", **more}


def answered_meanwhile(client, process, upstream, **more):
    """What a request gets that is under way when the service is told to end, and the service's words."""
    got = []
    path, body = "/v1/chat/completions", {**ASK, **more}
    asking = threading.Thread(target=lambda: got.append(client.post(path, json=body)))
    asking.start()
    while not upstream.requests:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    asking.join(STOP_S)
    output, _ = process.communicate(timeout=STOP_S)
    return got[0], output


def test_a_request_may_end_within_the_grace(tmp_path):
    """A model that takes two seconds is heard, and the service ends with 0."""
    with Upstream(lambda body: Fault(sleep_s=2, said=Said("On the lake."))) as upstream:
        settings = before_a_slow_provider(upstream, SERVICE__GRACE_S=20)
        with served(tmp_path, **settings) as (client, process):
            answer, output = answered_meanwhile(client, process, upstream)
    assert (200, 0) == (answer.status_code, process.returncode), output
    assert "On the lake." == answer.json()["choices"][0]["message"]["content"]


def test_a_request_that_takes_longer_is_told(tmp_path):
    """In a problem document, and without a traceback in the log."""
    with Upstream(lambda body: Fault(sleep_s=6, said=Said("too late"))) as upstream:
        settings = before_a_slow_provider(upstream, SERVICE__GRACE_S=1)
        with served(tmp_path, **settings) as (client, process):
            answer, output = answered_meanwhile(client, process, upstream)
    assert (503, "closed", 0) == (answer.status_code, answer.json()["code"], process.returncode), output
    assert "stopped before this request was done" in answer.json()["detail"]
    assert "Traceback" not in output
    assert " 503 " in output


def test_a_stream_that_takes_longer_is_told(tmp_path):
    """In an event of the stream."""
    with Upstream(lambda body: Fault(stalls_after=2, stall_s=6, said=Said("one two three"))) as upstream:
        settings = before_a_slow_provider(upstream, SERVICE__GRACE_S=1)
        with served(tmp_path, **settings) as (client, process):
            heard = []

            def listen():
                with client.stream("POST", "/v1/chat/completions", json={**ASK, "stream": True}) as answer:
                    heard.extend(answer.iter_raw())

            asking = threading.Thread(target=lambda: suppressed(listen))
            asking.start()
            while not heard:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            asking.join(STOP_S)
            output, _ = process.communicate(timeout=STOP_S)
    assert "stopped before this request was done" in b"".join(heard).decode()
    assert 0 == process.returncode, output
    assert "Traceback" not in output


def suppressed(work):
    with suppress(httpx.RemoteProtocolError):
        work()


def test_readyz_says_first_that_the_service_ends(tmp_path):
    """It still answers then; a load balancer has time to look elsewhere."""
    with served(tmp_path, SERVICE__STOP_DELAY_S=2) as (client, process):
        assert 200 == client.get("/readyz").status_code
        process.send_signal(signal.SIGTERM)
        said = []
        end = time.monotonic() + STOP_S
        while time.monotonic() < end:
            try:
                said.append(
                    (client.get("/readyz").status_code, client.get("/v1/memory/conversations").status_code)
                )
            except httpx.TransportError:
                break
            time.sleep(0.05)
        process.communicate(timeout=STOP_S)
    assert (503, 200) in said
    assert (503, 200) == said[-1]
    assert 0 == process.returncode
