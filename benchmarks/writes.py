"""What it costs to keep a turn: beside the bare transaction, and with many writers beside one."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import anyio

from benchmarks.bare import BareLog, values_of
from benchmarks.corpus import LONG, Author, url_of
from benchmarks.report import Limit, Row
from benchmarks.slow_disk import slow_disk
from benchmarks.timing import fsync_seconds, side_by_side
from pagefile.engine import Conversation, Memory
from pagefile.records import Scope, Turn
from pagefile.settings import Settings
from pagefile.stores.sqlite.database import Synchronous
from pagefile.text.tokens import TokenCounter

BARE_LIMIT = Limit("at most", 2.0)
WRITERS = 64
WRITERS_LIMIT = Limit("at least", 5.0)
#: From here on a commit is worth sharing.
SLOW_FSYNC_S = 0.001

_SCOPE = Scope(user="bench", conversation="chat")


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is written."""

    rounds: int
    calls: int
    #: Rounds of one writer beside 64, and how many turns each of the 64 records in one.
    group_rounds: int
    calls_each: int


async def beside_bare(folder: Path, counter: TokenCounter, synchronous: Synchronous, effort: Effort) -> Row:
    """`record()` beside the same transaction run bare, on a database each, both on one core."""
    turns = Author(counter).turns(_SCOPE, effort.rounds * effort.calls + 1, LONG)
    settings = _settings(synchronous)
    ours_at, bare_at = folder / f"record-{synchronous}.db", folder / f"bare-{synchronous}.db"
    for database in (ours_at, bare_at):
        await _begin(database, settings)
    rows = iter([values_of(turn) | {"id": str(uuid4())} for turn in turns])
    said = iter(turns)
    bare = BareLog(bare_at, synchronous)
    try:
        async with Memory.open(url_of(ours_at), settings=settings) as memory:
            chat = memory.conversation("chat", user_id="bench")
            ours, theirs = await side_by_side(
                lambda: _record(chat, said),
                lambda: bare.write(next(rows)),
                rounds=effort.rounds,
                calls=effort.calls,
            )
    finally:
        bare.close()
    note = f"{theirs * 1e6:,.0f} µs for the same transaction, bare in a one-thread executor; both on one core"
    row = Row(f"record(), synchronous={synchronous.upper()}", ours * 1e6, "µs", ours / theirs, note=note)
    return Row.judged(row, BARE_LIMIT)


def _settings(synchronous: Synchronous) -> Settings:
    """Writing alone: checkpoints, which are made in the background, would be measured in some rounds and not in others."""
    return Settings(recall="never", indexing="manual", checkpoints="manual", synchronous=synchronous)


@dataclass(frozen=True, slots=True)
class _Rates:
    """Turns per second of all writers together and of one alone, and what an fsync took meanwhile."""

    many: float
    one: float
    fsync_s: float

    def row(self, name: str) -> Row:
        note = f"{self.one:,.0f} turns/s with one writer, synchronous=FULL"
        return Row(name, self.many, "turns/s", self.many / self.one, note=note)


async def many_writers(folder: Path, counter: TokenCounter, effort: Effort) -> list[Row]:
    """64 writers beside one, each in a conversation of its own; once more with commits that take 1 ms longer."""
    here = await _rates(folder / "writers.db", counter, effort)
    with slow_disk(SLOW_FSYNC_S):
        slow = await _rates(folder / "writers-slow.db", counter, effort)
    fsync_ms = here.fsync_s * 1e3
    fast_disk = None if here.fsync_s >= SLOW_FSYNC_S else f"an fsync takes {fsync_ms:.1f} ms"
    return [
        Row("fsync of a page on this disk", fsync_ms, "ms", note="an appended page of 4 KiB"),
        Row.judged(here.row(f"{WRITERS} writers"), WRITERS_LIMIT, unless=fast_disk),
        Row.judged(slow.row(f"{WRITERS} writers, each commit 1 ms longer"), WRITERS_LIMIT),
    ]


async def _rates(database: Path, counter: TokenCounter, effort: Effort) -> _Rates:
    """The best of rounds that alternate."""
    alone = 10 * effort.calls_each
    count = effort.group_rounds * (WRITERS * effort.calls_each + alone)
    said = iter(Author(counter).turns(_SCOPE, count, LONG, distinct=5000))
    many, one, fsync_s = 0.0, 0.0, math.inf
    async with Memory.open(url_of(database), settings=_settings("full")) as memory:
        chats = [memory.conversation(f"chat-{number}", user_id="bench") for number in range(WRITERS)]
        for _ in range(effort.group_rounds):
            one = max(one, await _rate(chats[:1], said, alone))
            many = max(many, await _rate(chats, said, effort.calls_each))
            fsync_s = min(fsync_s, fsync_seconds(database.parent, times=20))
    return _Rates(many, one, fsync_s)


async def _rate(chats: Sequence[Conversation], said: Iterator[Turn], calls: int) -> float:
    began = time.perf_counter()
    async with anyio.create_task_group() as writers:
        for chat in chats:
            writers.start_soon(_record_many, chat, said, calls)
    return len(chats) * calls / (time.perf_counter() - began)


async def _record_many(chat: Conversation, said: Iterator[Turn], calls: int) -> None:
    for _ in range(calls):
        await _record(chat, said)


async def _record(chat: Conversation, said: Iterator[Turn]) -> None:
    turn = next(said)
    await chat.record(user=turn.user, assistant=turn.assistant)


async def _begin(database: Path, settings: Settings) -> None:
    """The first turn makes the conversation and its session; what is measured are the turns after it."""
    async with Memory.open(url_of(database), settings=settings) as memory:
        await memory.conversation("chat", user_id="bench").record(user="Hello!", assistant="Hello.")
