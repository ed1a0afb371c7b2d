"""Two processes talk, read and summarise one conversation, in any order, and no turn is lost."""

import json
import random
import re
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio.to_thread
import pytest

from tests.servers.forked import Forked

ROOT = Path(__file__).parents[3]
ACTIONS = 80


@contextmanager
def process(url, sessions):
    """Asks an app in a process of its own."""
    command = [sys.executable, "-m", "tests.integration.short_term.app_process", url, sessions]
    with Forked(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:

        def ask(*request):
            running.stdin.write(json.dumps(request) + "\n")
            running.stdin.flush()
            return json.loads(running.stdout.readline())

        try:
            yield ask
        finally:
            running.stdin.close()
            running.wait(30)


def known(text):
    """The turns that a reader of a history knows of: those of the summary, which names them, and those shown."""
    summary = re.search(r"SUM\[([^\]]*)\]", text)
    told = [int(number) for number in summary[1].split()] if summary else []
    return sorted({*told, *(int(number) for number in re.findall(r"用户: Q(\d+)", text))})


def play(apps, conversation, chance):
    """Random actions, most of them queries; returns the turns that were missing at any time, and how many summaries counted."""
    said, counted, on_their_way, missing = 0, 0, [], set()
    for action in chance.choices(["say", "read", "summary"], [3, 6, 2], k=ACTIONS):
        app = chance.choice(apps)
        if action == "say":
            said += 1
            app("say", conversation, said)
        elif action == "read":
            history, due, token = app("read", conversation)
            missing |= set(range(1, said + 1)) - set(known(history))
            if due:
                on_their_way.append((app, history, token))
        elif on_their_way:
            # In any order, by either process; whoever read it itself may leave the token out.
            reader, history, token = on_their_way.pop(chance.randrange(len(on_their_way)))
            summary = f"SUM[{' '.join(map(str, known(history)))}]"
            given = "" if app is reader and chance.random() < 0.5 else token
            counted += app("summary", conversation, summary, chance.randint(1, 4), given) is True
    history, _, _ = apps[0]("read", conversation, "all")
    return missing | (set(range(1, said + 1)) - set(known(history))), counted


def lost_by_two(url, sessions, seeds):
    with ExitStack() as running:
        apps = [running.enter_context(process(url, sessions)) for _ in range(2)]
        played = {seed: play(apps, f"c{seed}", random.Random(seed)) for seed in seeds}
    # Refusing everything would lose nothing too.
    assert sum(counted for _, counted in played.values()) >= len(seeds)
    return {seed: missing for seed, (missing, _) in played.items() if missing}


def test_two_processes_lose_nothing_on_sqlite(tmp_path):
    """Whoever hands in a summary, early or late. In round 59 one process hands in the summary of a history that another's went as far as."""
    assert {} == lost_by_two(f"sqlite:///{tmp_path}/talk.db", "", [*range(12), 59])


@contextmanager
def stalling(server, chance):
    """The server answers nothing for moments in between, now shorter and now longer than it is waited for."""
    over = threading.Event()

    def stall():
        while not over.wait(chance.uniform(0.05, 1)):
            server.pause()
            time.sleep(chance.uniform(0.1, 0.5))
            server.resume()

    stalls = threading.Thread(target=stall)
    stalls.start()
    try:
        yield
    finally:
        over.set()
        stalls.join()


@pytest.mark.waits
async def test_two_processes_lose_nothing_while_valkey_stalls(url, valkey):
    """A turn that is written is in the next history that anybody reads, also if the cache was not told in time."""
    with stalling(valkey, random.Random(1)):
        assert {} == await anyio.to_thread.run_sync(lost_by_two, url, valkey.url, range(3))


async def test_two_processes_lose_nothing_on_postgres_and_valkey(url, valkey):
    """With the sessions of both in one cache."""
    assert {} == await anyio.to_thread.run_sync(lost_by_two, url, valkey.url, range(6))
