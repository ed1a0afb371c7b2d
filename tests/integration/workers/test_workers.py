"""Several workers give what one gives: nothing acknowledged is lost, nothing is done twice."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import anyio
import numpy as np
import pytest

from pagefile import Memory, Settings
from pagefile.records import Scope
from pagefile.settings import EmbedderSettings
from tests.integration.postgres.serving import fresh_url, walled_url
from tests.servers.forked import forking
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer
from tests.waiting import until_so

from .serving import exists, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.waits,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc"),
]

WORDS = "高血压患者每天食盐不超过五克，按时服药，每天早晚各测一次血压。" * 6
#: Words are enough, and the encoder's megabytes are not needed in every worker.
PLAIN = {"embedder__name": "none", "window_tokens": 2000, "recent_turns": 2}


@pytest.fixture(scope="module")
def cache():
    with ValkeyServer() as server:
        yield server.url


def user_of(conversation):
    """Who talks there, and so who reads it."""
    return "李雷" if conversation == "shared" else conversation.replace("chat", "user")


def turns_of(service, conversation):
    items, after, whose = [], 0, {"conversation_id": conversation, "user_id": user_of(conversation)}
    while True:
        found = service.get("/v1/turns", **whose, after=after, limit=1000).json()
        items += found["items"]
        if found["next"] is None:
            return items
        after = found["next"]


def checkpoints_of(service, conversation):
    whose = {"conversation_id": conversation, "user_id": user_of(conversation)}
    return service.get("/v1/checkpoints", **whose, limit=1000).json()["items"]


def talk(service, client, turns, acknowledged, failures):
    """A client that records into a conversation of its own and into one that all share, and asks for windows."""
    try:
        for number in range(turns):
            for chat in (f"chat-{client}", "shared"):
                body = {
                    "conversation_id": chat,
                    "user_id": user_of(chat),
                    "id": f"{client}-{number}",
                    "user": f"问题 {client}-{number}",
                    "assistant": f"{WORDS} {client}-{number}",
                }
                answer = service.patiently("/v1/turns", body)
                assert answer.status_code == 201, answer.text
                acknowledged.append((chat, body["id"]))
            asked = {"conversation_id": f"chat-{client}", "user_id": f"user-{client}", "query": "怎么办？"}
            answer = service.patiently("/v1/context", {**asked, "window_tokens": 2000, "recent_turns": 2})
            assert answer.status_code == 200, answer.text
            assert answer.json()["tokens"] <= 2000
    except BaseException as error:
        failures.append(error)
        raise


def all_talk(service, clients, turns, meanwhile=lambda acknowledged: None):
    acknowledged, failures = [], []
    threads = [
        threading.Thread(target=talk, args=(service, client, turns, acknowledged, failures))
        for client in range(clients)
    ]
    for thread in threads:
        thread.start()
    meanwhile(acknowledged)
    for thread in threads:
        thread.join()
    assert failures == []
    return acknowledged


def check_log(service, acknowledged):
    """Every acknowledged turn once, no others, each conversation without a gap; checkpoints one after the other."""
    for chat in sorted({chat for chat, _ in acknowledged}):
        turns = turns_of(service, chat)
        assert sorted(name for other, name in set(acknowledged) if other == chat) == sorted(
            turn["id"] for turn in turns
        )
        made = checkpoints_of(service, chat)
        assert [one["version"] for one in made] == list(range(1, len(made) + 1))
        covered = [one["covered_through_seq"] for one in made]
        assert covered == sorted(set(covered))
        places = sorted([turn["seq"] for turn in turns] + [one["seq"] for one in made])
        assert places == list(range(1, len(places) + 1))


def test_workers_give_what_one_gives(tmp_path, cache):
    """Whoever answers: the same turns, windows, hits and sums; and one process that opens the database sees the same."""
    url = fresh_url()
    with served(tmp_path, url, "--workers", "3", sessions=cache, facts__extract="rules", **PLAIN) as service:
        assert len(service.started()) == 3
        acknowledged = all_talk(service, clients=4, turns=6)
        check_log(service, acknowledged)
        service.post("/v1/turns", conversation_id="chat-0", user_id="user-0", user="我对青霉素过敏。")
        service.post("/v1/settle", timeout_s=60)
        asked = {"conversation_id": "chat-1", "user_id": "user-1", "query": "食盐"}
        windows = [service.post("/v1/context", **asked, window_tokens=2000).json() for _ in range(9)]
        assert all(windows[0]["messages"] == window["messages"] for window in windows)
        hits = [service.post("/v1/recall", query="问题 2-3", user_id="user-2").json() for _ in range(9)]
        assert all(hits[0] == found for found in hits)
        assert "2-3" in hits[0]["items"][0]["text"]
        sums = {count(service.get("/metrics").text, 'pagefile_turns_total{status="done"}') for _ in range(9)}
        assert sums == {len(acknowledged) + 1}
        checkpoints = sum(len(checkpoints_of(service, chat)) for chat in {chat for chat, _ in acknowledged})
        assert checkpoints == count(service.get("/metrics").text, "pagefile_checkpoints_total") > 0
        assert service.stop() == 0, service.said
        assert "Traceback" not in service.said

    async def alone():
        settings = Settings(
            url=url, window_tokens=2000, recent_turns=2, embedder=EmbedderSettings(name="none")
        )
        async with Memory.open(settings=settings) as memory:
            calls = await memory.conversation("chat-1", user_id="user-1").calls(limit=20)
            window = await memory.conversation("chat-1", user_id="user-1").context("食盐")
            return window, calls, await memory.facts("user-0")

    window, calls, facts = anyio.run(alone)
    assert list(window.messages) == windows[0]["messages"]
    # The windows that were handed out last were written down on the way out.
    assert len([call for call in calls if call.query == "食盐"]) == 9
    assert ["过敏" in fact.text for fact in facts] == [True]


def test_a_worker_killed_in_the_middle_costs_nothing(tmp_path, cache):
    """Clients try again and nothing acknowledged is lost or written twice; another worker takes the place at once."""
    with served(tmp_path, fresh_url(), "--workers", "3", sessions=cache, **PLAIN) as service:
        killed = []

        def kill(acknowledged):
            for enough in (5, 25):
                service.until(lambda enough=enough: len(acknowledged) > enough)
                victim = next(pid for pid in service.started() if pid not in killed and exists(pid))
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)

        acknowledged = all_talk(service, clients=6, turns=8, meanwhile=kill)
        assert len(killed) == 2
        service.until(lambda: len(service.started()) == 5)
        check_log(service, acknowledged)
        # The counts of the dead are not lost either; a turn that was written and not acknowledged was counted, or not.
        counted = count(service.get("/metrics").text, 'pagefile_turns_total{status="done"}')
        assert counted >= len(set(acknowledged)) - len(killed) * 6
        assert service.stop() == 0, service.said


def test_vectors_are_made_once(tmp_path):
    """A vector for each turn and no more, whichever workers made them."""
    url = fresh_url()
    with served(tmp_path, url, "--workers", "2") as service:
        ids = []
        for number in range(12):
            answer = service.post(
                "/v1/turns", conversation_id=f"c{number % 3}", user_id="u", user=f"血压 {number}"
            )
            ids.append(answer.json()["id"])
        for _ in range(4):
            service.post("/v1/settle", timeout_s=30)
        assert service.stop() == 0, service.said

    async def collections():
        async with Memory.open(settings=Settings(url=url)) as memory:
            await memory.settle()
            home = memory.engine.kit.index
            return [
                (collection.model, collection.vectors) for collection in await home.collections()
            ], await found(home)

    async def found(home):
        (collection,) = await home.collections()
        vector = np.full(collection.model.dimension, 0.1, np.float32)
        near = await home.search(
            collection.model,
            Scope("default", "u"),
            vector,
            100,
        )
        return sorted(one.turn_id for one in near)

    ((_, vectors),), near = anyio.run(collections)
    assert vectors == 12
    assert near == sorted(ids)


def test_a_rotated_key_ends_for_every_worker(tmp_path):
    """Keys are looked up with each request: old and new work for all until the overlap is over, then the new one only."""
    url = walled_url()
    command = [sys.executable, "-m", "pagefile", "keys", "{}", "backend", "--db", url, "--json"]

    def told(verb, *more):
        asked = [part.format(verb) if part == "{}" else part for part in command]
        with forking():
            return json.loads(subprocess.run([*asked, *more], check=True, capture_output=True).stdout)

    old = told("add")["key"]
    with served(tmp_path, url, "--workers", "3", service__require_keys="true", **PLAIN) as service:

        def codes(key):
            headers = {"Authorization": f"Bearer {key}"}
            return {
                service.call("GET", "/v1/memory/conversations", headers=headers).status_code
                for _ in range(12)
            }

        assert len(service.started()) == 3
        assert codes(old) == {200}
        said = told("rotate", "--overlap", "20s")
        end = datetime.fromisoformat(said["replaces"]["expires"])
        both = codes(old), codes(said["key"])
        assert datetime.now(UTC) < end, "the machine is too slow for this overlap"
        assert both == ({200}, {200})
        time.sleep(max(0, (end - datetime.now(UTC)).total_seconds()))
        assert (codes(old), codes(said["key"])) == ({401}, {200})


def test_workers_end_with_their_supervisor(tmp_path):
    """Killed without a word, it leaves nobody behind, not even a worker that was only just starting."""
    with served(tmp_path, "sqlite:///a.db", "--workers", "2", **PLAIN) as service:
        os.kill(service.started()[0], signal.SIGKILL)
        service.until(lambda: len(service.started()) == 3)
        workers = service.started()
        service.process.kill()
        service.process.wait()
        until_so(lambda: not any(exists(pid) for pid in workers))


def test_one_sqlite_file_for_several_workers(tmp_path):
    """It works, and says what is better."""
    with served(tmp_path, "sqlite:///a.db", "--workers", "2", **PLAIN) as service:
        assert "PostgreSQL is made for it" in service.said
        check_log(service, all_talk(service, clients=3, turns=4))
        assert service.stop() == 0, service.said


def count(text, name):
    """The value of a metric."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_worker_is_replaced_also_after_an_outage(tmp_path):
    """One that dies while the database is away is tried again until it is back; the service as a whole never ends."""
    with (
        PostgresServer() as database,
        served(tmp_path, database.url("x", pool_max=3), "--workers", "2", **PLAIN) as service,
    ):
        first = service.post("/v1/turns", conversation_id="c", user="我对青霉素过敏。")
        assert first.status_code == 201
        database.stop("QUIT")
        for pid in service.started():
            os.kill(pid, signal.SIGKILL)
        service.until(lambda: len(re.findall(r"ended with 3", service.said)) >= 2)
        assert service.process.poll() is None
        database.start()
        service.until_ready()
        turns = service.get("/v1/turns", conversation_id="c").json()["items"]
        assert [first.json()] == turns
        assert service.stop() == 0, service.said


def test_workers_that_cannot_start_end_the_service(tmp_path):
    """Before it ever worked, trying again would not help: one line says what is wrong."""
    with PostgresServer() as database:
        url = database.url("x")
    command = [sys.executable, "-m", "pagefile", "serve", "--db", url, "--workers", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stderr.startswith("error: ")
