"""The benchmark compares like with like."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from benchmarks.bare import STATEMENTS, BareLog, values_of
from benchmarks.corpus import LONG, SHORT, Author, fill, url_of
from benchmarks.slow_disk import slow_disk
from benchmarks.timing import fsync_seconds, on_one_core, side_by_side
from pagefile.engine import Memory
from pagefile.records import Scope
from pagefile.settings import Settings
from pagefile.stores.sqlite import database as sqlite_database
from pagefile.stores.sqlite.driver import connect
from pagefile.stores.sqlite.player import sql
from pagefile.text.tokens import open_counter

SCOPE = Scope(user="bench", conversation="chat")

pytestmark = pytest.mark.anyio


async def test_sides_take_turns():
    """One unmeasured call of each side, then rounds that alternate."""
    called: list[str] = []

    def side(name: str):
        async def call() -> None:
            called.append(name)

        return call

    taken = await side_by_side(side("a"), side("b"), rounds=2, calls=3)
    assert "ab" + "aaabbb" * 2 == "".join(called)
    assert 2 == len(taken)


async def test_a_side_counts_as_its_best_round(monkeypatch: pytest.MonkeyPatch):
    """A round is the median of its calls, and what disturbs one round does not count."""
    now = 0.0
    durations = iter([9.0, 2.0, 8.0, 3.0, 5.0, 7.0, 6.0])  # the first is not measured

    async def side() -> None:
        nonlocal now
        now += next(durations)

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    assert (3.0,) == await side_by_side(side, rounds=2, calls=3)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a thread choose its core")
def test_one_core_is_for_a_while():
    """Inside there is one core, afterwards all that were there before."""
    before = os.sched_getaffinity(0)
    with on_one_core():
        assert 1 == len(os.sched_getaffinity(0))
    assert before == os.sched_getaffinity(0)


def test_the_same_seed_writes_the_same_turns():
    """Two runs measure the same words, and the counts in them are exact."""
    counter = open_counter()
    turns = Author(counter).turns(SCOPE, 20, LONG)
    assert turns == Author(counter).turns(SCOPE, 20, LONG)
    assert [(counter.count(turn.user or ""), counter.count(turn.assistant or "")) for turn in turns] == [
        (turn.user_tokens, turn.assistant_tokens) for turn in turns
    ]


def test_a_hundred_long_turns_are_more_than_a_window():
    """So that 100 and 10,000 turns fill the same window; short ones do not."""
    author = Author(open_counter())
    assert sum(turn.tokens for turn in author.turns(SCOPE, 100, LONG)) > Settings().window_tokens
    assert sum(turn.tokens for turn in author.turns(SCOPE, 100, SHORT)) < Settings().window_tokens


async def test_turns_may_share_their_words(tmp_path: Path):
    """Many turns from few texts are still turns of their own."""
    turns = Author(open_counter()).turns(SCOPE, 7, SHORT, distinct=3)
    assert 3 == len({turn.text for turn in turns})
    await fill(tmp_path / "a.db", turns)
    async with Memory.open(url_of(tmp_path / "a.db")) as memory:
        assert turns == list(await memory.conversation("chat", user_id="bench").turns())


async def test_the_bare_transaction_is_that_of_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The same statements in the same order, and rows that differ in nothing but ids, times and the digest over them."""
    opened: list[Any] = []
    monkeypatch.setattr(
        sqlite_database, "connect", lambda *args, **keys: opened.append(connect(*args, **keys)) or opened[-1]
    )
    turn = Author(open_counter()).turns(SCOPE, 1, LONG)[0]
    database = tmp_path / "a.db"
    ran: list[str] = []
    async with Memory.open(
        url_of(database), settings=Settings(checkpoints="manual", indexing="manual")
    ) as memory:
        chat = memory.conversation("chat", user_id="bench")
        await chat.record(user="Hello!")
        writer = opened[0]
        writer.exec_trace = lambda _cursor, statement, _values: ran.append(statement) or True
        await chat.record(user=turn.user, assistant=turn.assistant)
        await memory.settle()
    assert ["BEGIN IMMEDIATE", *(sql(name) for name in STATEMENTS), "COMMIT"] == ran
    bare = BareLog(database, "full")
    await bare.write(values_of(turn))
    bare.close()
    ours, theirs = _rows(database)[1:]
    own = {"message_id", "create_time", "update_time", "at", "seq", "digest"}
    assert {name for name in ours if ours[name] != theirs[name]} == own
    assert (2, 3) == (ours["seq"], theirs["seq"])


def _rows(database: Path) -> list[dict[str, Any]]:
    connection = apsw.Connection(str(database))
    cursor = connection.execute("SELECT * FROM ai_message ORDER BY seq")
    names = [column[0] for column in cursor.get_description()]
    found = [dict(zip(names, row, strict=True)) for row in cursor]
    connection.close()
    return found


async def test_a_slow_disk_waits_at_every_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each turn waits once more and is written all the same; databases opened afterwards do not wait."""
    waited: list[float] = []
    monkeypatch.setattr("benchmarks.slow_disk.time.sleep", waited.append)
    settings = Settings(checkpoints="manual")
    with slow_disk(0.25):
        async with Memory.open(url_of(tmp_path / "a.db"), settings=settings) as memory:
            chat = memory.conversation("chat")
            await chat.record(user="one")
            waited.clear()
            await chat.record(user="two")
            assert [0.25] == waited
    async with Memory.open(url_of(tmp_path / "a.db"), settings=settings) as memory:
        await memory.conversation("chat").record(user="three")
        assert 3 == len(await memory.conversation("chat").turns())
    assert [0.25] == waited


def test_an_fsync_takes_some_time(tmp_path: Path):
    """A positive number, and the disk is not filled with probes."""
    assert 0 < fsync_seconds(tmp_path, times=3)
    assert 3 * 4096 == (tmp_path / "fsync.probe").stat().st_size
