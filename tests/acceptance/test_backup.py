"""A copy of a database that is in use, and what is in it after it was put in its place."""

import shutil
import stat
import threading

import anyio
import pytest

from pagefile import Memory, Settings
from pagefile.settings import EmbedderSettings

from .cli_calling import pagefile

PLAIN = Settings(embedder=EmbedderSettings(name="none"), indexing="manual")


async def recorded(url, number, told=None, over=None):
    done = 0
    async with Memory.open(url, settings=PLAIN) as memory:
        chat = memory.conversation("chat", user_id="ada")
        while done < number if over is None else not over.is_set():
            await chat.record(f"turn {done}", "yes", id=f"{number}-{done}")
            done += 1
            if told is not None:
                told.append(f"{number}-{done - 1}")
    return done


async def turns(url):
    async with Memory.open(url, settings=PLAIN) as memory:
        return [turn.id for turn in await memory.conversation("chat", user_id="ada").turns(limit=100_000)]


def test_a_copy_is_made_while_others_write_and_is_restored(tmp_path):
    """Whatever was acknowledged before is in it; it opens in the place of a database that is lost."""
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"
    url, told, over = f"sqlite:///{path}", [], threading.Event()
    anyio.run(recorded, url, 20)
    writer = threading.Thread(target=lambda: anyio.run(recorded, url, 0, told, over))
    writer.start()
    while len(told) < 20:
        threading.Event().wait(0.01)
    before = list(told)
    said = pagefile("backup", str(copy), "--db", url)
    over.set()
    writer.join()
    assert 0 == said.code, said.err
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    for file in tmp_path.glob("a.db*"):
        file.unlink()
    shutil.copy(copy, path)
    assert {*before, *(f"20-{number}" for number in range(20))} <= set(anyio.run(turns, url))
    assert 0 == pagefile("verify", "--full", "--db", url).code


@pytest.mark.parametrize("name", ["100%41.db", "a b?mode=ro#c.db", "备份"])
def test_a_copy_has_any_name_and_comes_alone(tmp_path, name):
    """It is checked under its own name, and nothing else is left beside it."""
    url, there = f"sqlite:///{tmp_path}/a.db", tmp_path / "copies"
    there.mkdir()
    anyio.run(recorded, url, 3)
    said = pagefile("backup", str(there / name), "--db", url)
    assert (0, "3 turns" in said.out) == (said.code, True), said.err
    assert [name] == [file.name for file in there.iterdir()]


def test_a_file_that_exists_is_left_alone(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    anyio.run(recorded, url, 1)
    (tmp_path / "mine").write_text("mine")
    assert 1 == pagefile("backup", str(tmp_path / "mine"), "--db", url).code
    assert "mine" == (tmp_path / "mine").read_text()


@pytest.mark.parametrize("url", ["memory://"])
def test_what_has_no_file_is_not_copied(tmp_path, url):
    said = pagefile("backup", str(tmp_path / "copy"), "--db", url)
    assert (1, "ends with its process" in said.err) == (said.code, True)
