"""A service that is killed in the middle of an answer, and two workers that are asked for the same one."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from tests.servers.ports import free_port
from tests.waiting import PATIENCE_S

from .event_stream import events_in, words
from .model_stub import ModelStub

pytestmark = [pytest.mark.waits, pytest.mark.slow]

ASKED = {"conversation_id": "c", "user_id": "u", "message": "写一首诗", "id": "t"}
WHOLE = "床前明月光，疑是地上霜。"
START_S = 60


@contextmanager
def served(folder, stub, *flags):
    """A running service in a process group of its own, and a client."""
    port = free_port()
    model = {"NAME": "stub", "BASE_URL": stub.url, "API_KEY": "k"}
    chosen = {f"PAGEFILE_MODEL__{name}": value for name, value in model.items()}
    command = [sys.executable, "-m", "pagefile", "serve", "--port", str(port), "--db", "sqlite:///served.db"]
    with subprocess.Popen(
        [*command, *flags],
        cwd=folder,
        env={**os.environ, **chosen, "PAGEFILE_EMBEDDER__NAME": "none"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            base = f"http://127.0.0.1:{port}"
            with httpx.Client(base_url=base, timeout=START_S, trust_env=False) as client:
                wait_for(client)
                yield client
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def wait_for(client):
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            if client.get("/healthz").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail(f"the service did not answer within {START_S} s")


def begun(client):
    """Read the first words, and lose the line."""
    text = ""
    with client.stream("POST", "/v1/chat/stream", json=ASKED) as answer:
        for chunk in answer.iter_text():
            text += chunk
            if "明月光" in text:
                return events_in(text[: text.rindex("\n\n") + 2])
    raise AssertionError(text)


def again(client, first):
    answer = client.post("/v1/chat/stream", json=ASKED, headers={"Last-Event-ID": first[-1]["id"]})
    return events_in(answer.text)


@contextmanager
def poem():
    """A model that stops in the middle of its answer until it is told to go on."""
    goes_on = threading.Event()

    def script(_request):
        yield "床前"
        yield "明月光，"
        goes_on.wait(PATIENCE_S)
        yield "疑是地上霜。"

    try:
        with ModelStub(script) as stub:
            yield stub, goes_on
    finally:
        goes_on.set()


def test_a_killed_service_answers_when_it_is_back(tmp_path):
    """The question was on disk: asked again under its id it is answered, from the start, which `turn` says."""
    with poem() as (stub, goes_on):
        with served(tmp_path, stub) as client:
            first = begun(client)
        goes_on.set()
        with served(tmp_path, stub) as client:
            events = again(client, first)
            turns = client.get("/v1/turns", params={"conversation_id": "c", "user_id": "u"}).json()["items"]
    assert ("turn", WHOLE, "done") == (events[0]["event"], words(events), events[-1]["event"])
    assert [("t", "done", WHOLE)] == [(turn["id"], turn["status"], turn["assistant"]) for turn in turns]


def test_two_workers_ask_the_model_once(tmp_path):
    """Whichever worker a reader comes back to, it gets the answer that the other one makes."""
    with poem() as (stub, goes_on), served(tmp_path, stub, "--workers", "2") as client:
        first = begun(client)
        with ThreadPoolExecutor(8) as readers:
            answers = [readers.submit(again, client, first) for _ in range(8)]
            time.sleep(1)
            goes_on.set()
            events = [answer.result() for answer in answers]
    for one in events:
        whole = words(one) if one[0]["event"] == "turn" else words(first) + words(one)
        assert (WHOLE, "done") == (whole, one[-1]["event"])
    assert 1 == len(stub.requests)
