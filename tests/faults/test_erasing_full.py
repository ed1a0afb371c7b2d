"""Erasing on a disk that is full: it works, in pieces if it must, and what does not fit is said."""

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import anyio
import pytest

from pagefile import BlockingMemory, Memory, Settings
from pagefile.errors import StoreError, StoreFullError
from pagefile.records import Scope
from pagefile.settings import ArchiveSettings, EmbedderSettings
from pagefile.stores.sqlite import database
from pagefile.testing import HashingEmbedder
from tests.findings.security.looking import files_with

from .disk import fill_the_rest

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="mounts a file system of its own"),
]
MARKER = "XMARKER4711"
SETTINGS = Settings(
    embedder=EmbedderSettings(name="none"), archive=ArchiveSettings(threshold=400), checkpoints="manual"
)


@pytest.fixture
def disk(tmp_path):
    """A file system of 40 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def told(memory, turns, chars=400):
    """Users ada and bob in turn, with words that do not compress."""
    for number in range(turns):
        for user in ("ada", "bob"):
            words = f"{MARKER if user == 'ada' else 'kept'} {number} " + random_words(number, chars)
            chat = memory.conversation(f"{user}-{number % 3}", user_id=user)
            chat.record(words, words[::-1], steps=[{"tool": "t", "result": words * 2}], id=f"t{number}")


def random_words(number, chars):
    state = number * 2654435761 + 1
    letters = []
    for _ in range(chars):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        letters.append("abcdefghijklmnopqrstuvwxyz 0123456789"[(state >> 33) % 37])
    return "".join(letters)


def filled(folder, memory):
    """No room is left, and turns are refused."""
    fill_the_rest(folder / "rest")
    with pytest.raises(StoreError):
        for number in range(2000):
            memory.conversation("more", user_id="bob").record(f"{number} " * 400, "x " * 400)
    with suppress(OSError):
        fill_the_rest(folder / "rest2")


def nothing_is_left(disk, receipt):
    """Of ada, in any file: copies that SQLite made of rows may be, which the receipt says, until there is room to rewrite the file."""
    assert receipt.pending or [] == files_with(disk, MARKER)
    for rest in disk.glob("rest*"):
        rest.unlink()

    async def scrubbed():
        async with Memory.open(f"sqlite:///{disk}/a.db", settings=SETTINGS) as memory:
            return await memory.engine.erase(Scope(user="ada"), scrub=True)

    assert () == anyio.run(scrubbed).pending
    assert [] == files_with(disk, MARKER)


@pytest.mark.parametrize(("turns", "larger"), [(60, False), pytest.param(300, True, marks=pytest.mark.slow)])
def test_a_user_is_erased_on_a_full_disk(disk, turns, larger, monkeypatch):
    """However much of it there is; nothing of theirs is left in any file, and the others keep everything."""
    monkeypatch.setattr(database, "MOST_BYTES", 2**20)
    with BlockingMemory.open(f"sqlite:///{disk}/a.db", settings=SETTINGS) as memory:
        told(memory, turns, 1000 if larger else 400)
    with BlockingMemory.open(f"sqlite:///{disk}/a.db", settings=SETTINGS) as memory:
        assert larger == ((disk / "a.db").stat().st_size > 2 * database.MOST_BYTES)
        filled(disk, memory)
        receipt = memory.forget(user_id="ada")
        assert (turns, 3, turns) == tuple(
            receipt.counts[name] for name in ("ai_message", "conversations", "tool_result_archive")
        )
        assert [] == list(memory.conversations(user_id="ada"))
        assert turns == sum(
            head.turns for head in memory.conversations(user_id="bob") if head.scope.conversation != "more"
        )
    nothing_is_left(disk, receipt)
    with BlockingMemory.open(f"sqlite:///{disk}/a.db", settings=SETTINGS) as memory:
        memory.conversation("ada-0", user_id="ada").record("new words", "ok")
    with BlockingMemory.open(f"sqlite:///{disk}/a.db", settings=SETTINGS) as memory:
        assert (disk / "a.db-reserve").exists()
        assert 1 == memory.conversation("ada-0", user_id="ada").head().turns


@pytest.mark.parametrize("turns", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_vectors_are_erased_on_a_full_disk_too(disk, turns, monkeypatch):
    """They are in the same database, and go with the rest: of a turn, and of a user; also where they are several times the reserve."""
    monkeypatch.setattr(database, "MOST_BYTES", 3 * 2**20)
    settings = replace(SETTINGS, embedder=EmbedderSettings())
    url = f"sqlite:///{disk}/a.db"
    with BlockingMemory.open(url, settings=settings, embedder=HashingEmbedder()) as memory:
        told(memory, turns, 1000)
        memory.settle()
        assert (turns == 400) == ((disk / "a.db").stat().st_size > 2 * database.MOST_BYTES)
        filled(disk, memory)
        assert 1 == memory.forget(conversation_id="ada-0", turn_id="t0").counts["conversation_episodes"]
        with suppress(OSError):
            fill_the_rest(disk / "rest3")
        receipt = memory.forget(user_id="ada")
        counts = receipt.counts
        assert (turns, turns - 1) == (counts["ai_message"], counts["conversation_episodes"])
    nothing_is_left(disk, receipt)


def test_a_turn_is_erased_on_a_full_disk(disk):
    """Alone, with its page."""
    with BlockingMemory.open(f"sqlite:///{disk}/a.db", settings=SETTINGS) as memory:
        told(memory, 60)
        filled(disk, memory)
        receipt = memory.forget(conversation_id="ada-0", turn_id="t0")
        assert (1, 1) == (receipt.counts["ai_message"], receipt.counts["tool_result_archive"])
        assert [] == files_with(disk, f"{MARKER} 0 ")


def test_without_a_reserve_it_is_said_what_to_do(disk):
    """Nothing is half erased by a refusal, and it works once there is room."""
    with BlockingMemory.open(f"sqlite:///{disk}/a.db", settings=SETTINGS) as memory:
        told(memory, 60)
        filled(disk, memory)
        memory.forget(user_id="nobody")  # empties the write-ahead log
        (disk / "a.db-reserve").unlink()
        with suppress(OSError):
            fill_the_rest(disk / "rest3")
        with pytest.raises(StoreFullError, match="free some"):
            memory.forget(user_id="ada")
        assert 60 == sum(head.turns for head in memory.conversations(user_id="ada"))
        (disk / "rest").unlink()
        assert 60 == memory.forget(user_id="ada").counts["ai_message"]
