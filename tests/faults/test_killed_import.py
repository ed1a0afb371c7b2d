"""An import that is killed: every conversation is there as a whole or not at all, and importing again completes the rest."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import anyio

from pagefile import Memory, Settings
from pagefile.settings import EmbedderSettings

PLAIN = Settings(embedder=EmbedderSettings(name="none"), recall="never", indexing="manual")
TURNS = 20


async def filled(url):
    async with Memory.open(settings=replace(PLAIN, url=url)) as memory:
        for number in range(15):
            chat = memory.conversation(f"c{number}", user_id=f"u{number % 5}")
            for turn in range(TURNS):
                await chat.record(f"question {turn} of {number}", "answer")
        for number in range(600):
            await memory.remember(f"Fact {number}", user_id=f"u{number % 5}")


async def exported(url, path):
    async with Memory.open(settings=replace(PLAIN, url=url)) as memory:
        return await memory.export(path)


async def imported(url, path):
    async with Memory.open(settings=replace(PLAIN, url=url)) as memory:
        return await memory.import_(path)


def records(path):
    """The lines of an export without those that an import makes again."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return Counter(
        json.dumps(line, sort_keys=True) for line in lines if line["type"] not in {"session", "watermark"}
    )


CHILD = """
import os, sys
import anyio
from pagefile.stores.sqlite import player
from tests.faults import test_killed_import as here

left, answer = int(sys.argv[1]), player._answer

def counted(connection, ask):
    global left
    left -= 1
    if not left:
        os._exit(9)
    return answer(connection, ask)

player._answer = counted
anyio.run(here.imported, sys.argv[2], sys.argv[3])
print(int(sys.argv[1]) - left)
"""


def child(statements, url, path):
    """Import in a process that is gone after so many statements."""
    call = [sys.executable, "-c", CHILD, str(statements), url, str(path)]
    return subprocess.run(call, capture_output=True, text=True, check=False)


def test_a_killed_import_leaves_whole_conversations(tmp_path):
    """Killed at statements all over the import; then completed; then sent once more, which changes nothing and counts nothing."""
    source, path = f"sqlite:///{tmp_path}/source.db", tmp_path / "all.jsonl"
    anyio.run(filled, source)
    given = anyio.run(exported, source, path)
    whole = child(10**9, f"sqlite:///{tmp_path}/whole.db", path)
    total = int(whole.stdout)
    target, seen = f"sqlite:///{tmp_path}/target.db", []
    for number in [total * part // 100 for part in (4, 10, 25, 60, 90)]:
        killed = child(number, target, path)
        assert killed.returncode in {0, 9}, killed.stderr
        found = anyio.run(conversations, target)
        assert {TURNS} >= {turns for _, turns in found}
        seen.append(len(found))
    assert len(set(seen)) > 2, seen
    anyio.run(imported, target, path)
    again = tmp_path / "again.jsonl"
    anyio.run(exported, target, again)
    assert records(path) == records(again)
    assert 0 == sum(anyio.run(imported, target, path).values())
    assert given == anyio.run(exported, target, again)


async def conversations(url):
    async with Memory.open(settings=replace(PLAIN, url=url)) as memory:
        return [(one.scope.conversation, one.turns) for one in await memory.conversations(limit=100)]
