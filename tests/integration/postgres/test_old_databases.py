"""Databases as every earlier revision left them come up with nothing lost, whoever is killed, waits or comes at once."""

import json
import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import asyncpg
import pytest
from typer.testing import CliRunner

from pagefile import Memory, Settings
from pagefile.cli.app import app
from pagefile.errors import ErasedError, PagePurgedError, StoreUnavailableError
from pagefile.ports import PageDraft
from pagefile.stores.postgres import migration
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.migration import head
from pagefile.testing.drafts import AT, CHAT, done, page, view
from tests.integration.old_contents import OLD, OPENING, check_contents, check_whole, damage
from tests.servers.forked import Forked
from tests.servers.postgres import installed
from tests.waiting import PATIENCE_S, until

from .serving import fresh_url, opened, server

REVISIONS = [f"{number:04}" for number in range(1, int(head()))]
NEWEST = REVISIONS[-1]
#: One whose migration locks `conversation_summaries`.
LOCKING = "0010"
#: The last whose rows have no digests, and whose migration locks turns before conversations.
UNDIGESTED = "0006"


@asynccontextmanager
async def connected(url):
    """A connection of somebody who knows nothing of Pagefile."""
    place = Place.of(url)
    connection = await asyncpg.connect(place.dsn, server_settings={"search_path": f'"{place.schema}"'})
    try:
        yield connection
    finally:
        await connection.close()


async def made(url, revision):
    """The tables as that revision left them."""
    async with connected(url) as plain:
        await plain.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        await plain.execute(f'CREATE SCHEMA "{Place.of(url).schema}"')
        text = (OLD / f"postgres_{int(revision)}.sql").read_text(encoding="utf-8")
        await plain.execute(text)


#: What revision 0010 does to turns that were given up before it.
GIVEN_UP = "UPDATE ai_message SET tokens = 0 WHERE status = 'aborted'"


async def check(url, clock, revision):
    """Everything that was written is read; SQLite had one schema more by then."""
    store = await opened(url, clock)
    assert (await store.describe())["schema"] == head()
    await check_contents(store, int(revision) + 1)
    threaded, text = await store.pages.load(CHAT, "t")
    assert (text, threaded.thread, threaded.call_hash) == ("第一段\n\n第二段", "thread-1", "call")
    assert (threaded.pinned, threaded.loads, threaded.last_load) == (True, 1, AT + timedelta(hours=1))
    with pytest.raises(PagePurgedError):
        await store.pages.load(CHAT, "x")
    (ended,) = [fact for fact in await store.facts.list(CHAT, retracted=True) if fact.id == "h"]
    assert (ended.valid_to, ended.retracted) == (AT + timedelta(days=1), AT + timedelta(days=2))
    await store.close()


async def tables(plain):
    """Every table of the schema and its columns."""
    rows = await plain.fetch(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND table_name <> 'alembic_version' ORDER BY 1, ordinal_position"
    )
    found = {}
    for table, column in rows:
        found.setdefault(table, []).append(column)
    return found


async def contents(plain, columns):
    """Every row, in these columns, as text."""
    found = {}
    for table, names in columns.items():
        wanted = ", ".join(f'"{name}"::text' for name in names)
        found[table] = sorted(map(repr, await plain.fetch(f'SELECT {wanted} FROM "{table}"')))
    return found


async def defined(plain):
    """Every column with its type, every index and constraint."""
    columns = await plain.fetch(
        "SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default"
        " FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, ordinal_position"
    )
    indexes = await plain.fetch(
        "SELECT replace(indexdef, quote_ident(schemaname), '') FROM pg_indexes"
        " WHERE schemaname = current_schema() ORDER BY 1"
    )
    constraints = await plain.fetch(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = quote_ident(current_schema())::regnamespace ORDER BY 1, 2"
    )
    return columns, indexes, constraints


async def asked(url, statement):
    async with connected(url) as plain:
        return await plain.fetchval(statement)


async def revision_at(url):
    return await asked(url, "SELECT version_num FROM alembic_version")


async def waiting(plain):
    """How many sessions wait for a lock of another one."""
    return await plain.fetchval("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")


def opening(url, before=""):
    """A process that opens the store."""
    command = [sys.executable, "-c", before + OPENING, url]
    return Forked(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_no_row_of_an_earlier_revision_is_changed(url, clock, revision):
    """Every column that was there has, in every row, what it had; turns given up then get no tokens, and so do not count."""
    await made(url, revision)
    async with connected(url) as plain:
        await plain.execute(GIVEN_UP)
        columns = await tables(plain)
        before = await contents(plain, columns)
        # The code of the first revision did not write marks yet, though it had the table.
        empty = [table for table, rows in before.items() if not rows]
        assert empty == (["watermarks"] if revision == "0001" else [])
        store = await opened(url, clock)
        await store.close()
        assert await contents(plain, columns) == before


@pytest.mark.parametrize("revision", REVISIONS)
async def test_everything_of_an_earlier_revision_is_there(url, clock, revision):
    """Read through the ports; the rows got what this revision adds, and the log goes on."""
    await made(url, revision)
    await check(url, clock, revision)
    async with connected(url) as plain:
        ended = "ai_message WHERE kind = 'turn' AND status <> 'open' AND"
        for table in (ended, "tool_result_archive WHERE", "facts WHERE"):
            assert await plain.fetchval(f"SELECT count(*) FROM {table} digest IS NULL") == 0
        owners = await plain.fetch("SELECT conversation_id, owner FROM conversations ORDER BY 1")
        since_files = [("scan", "eve")] if revision >= "0007" else []
        assert [tuple(row) for row in owners] == [
            ("chat", "ada"),
            ("nobody", None),
            ("other", "bob"),
            *since_files,
        ]
    store = await opened(url, clock)
    assert (await store.log.append(done("new"))).seq == 6
    epoch = (await store.reader.view(view())).head.epoch
    await store.erase(CHAT)
    with pytest.raises(ErasedError):
        await store.pages.put(PageDraft(page("late").page, "the whole result", epoch=epoch))
    await store.close()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_earlier_revision_is_whole_and_works(tmp_path, url, revision):
    """`verify` finds no damage, recall finds a turn, and an export holds every turn."""
    await made(url, revision)
    await check_whole(url, tmp_path / "out.jsonl")


async def test_tables_are_as_if_they_were_made_today(url, clock):
    """Migrated or new, there is one schema."""
    await made(url, REVISIONS[0])
    fresh = fresh_url()
    for place in (url, fresh):
        await (await opened(place, clock)).close()
    async with connected(url) as old, connected(fresh) as new:
        assert await defined(old) == await defined(new)


class TestDigests:
    """What `verify` makes of digests that old rows got, or did not get."""

    async def test_a_row_that_was_changed_afterwards_is_named(self, url, clock):
        """The digest of an old row tells as much as that of a new one."""
        await made(url, UNDIGESTED)
        await (await opened(url, clock)).close()
        async with connected(url) as plain:
            await plain.execute("UPDATE ai_message SET query = 'else' WHERE message_id = 'n'")
            await plain.execute("UPDATE tool_result_archive SET result_summary = 'else' WHERE uuid = 'x'")
            await plain.execute("UPDATE facts SET content = 'else' WHERE id = 'g'")
        async with Memory.open(url, settings=Settings(indexing="manual")) as memory:
            assert {"log-digest", "page-digest", "fact-digest"} <= set(await damage(memory))

    async def test_rows_without_one_are_not_held_against_anything(self, url, clock):
        """As a worker of the earlier version, still running, writes them."""
        await made(url, UNDIGESTED)
        await (await opened(url, clock)).close()
        async with connected(url) as plain:
            for table in ("ai_message", "tool_result_archive", "facts"):
                await plain.execute(f"UPDATE {table} SET digest = NULL")
        async with Memory.open(url, settings=Settings(indexing="manual")) as memory:
            assert [kind for kind in await damage(memory) if "digest" in kind] == []

    async def test_a_row_that_nobody_can_read_stays_without(self, url, clock):
        """It does not keep the others from theirs, nor the database from opening; `verify` names it."""
        await made(url, UNDIGESTED)
        async with connected(url) as plain:
            await plain.execute("UPDATE ai_message SET steps = '[5]' WHERE message_id = 'n'")
        await (await opened(url, clock)).close()
        async with connected(url) as plain:
            left = await plain.fetch(
                "SELECT message_id FROM ai_message WHERE kind = 'turn' AND status <> 'open' AND digest IS NULL"
            )
        assert [row[0] for row in left] == ["n"]
        async with Memory.open(url, settings=Settings(indexing="manual")) as memory:
            assert "log-unreadable" in await damage(memory)

    async def test_more_rows_than_are_read_at_once(self, url, clock, monkeypatch):
        """Each gets its own."""
        monkeypatch.setattr("pagefile.stores.sql.auditor.ROWS_AT_ONCE", 2)
        await made(url, UNDIGESTED)
        await check(url, clock, UNDIGESTED)
        ended = await asked(url, "SELECT count(*) FROM ai_message WHERE kind = 'turn' AND status <> 'open'")
        assert 6 == ended == await asked(url, "SELECT count(DISTINCT digest) FROM ai_message")


#: Dies as by `kill -9` in the middle of the migration: behind the statements, before they are committed.
DYING = """
import os, signal
from pagefile.stores.postgres import migration
def die():
    os.kill(os.getpid(), signal.SIGKILL)
migration.fill_digests = die
"""


@pytest.mark.waits
class TestOthers:
    """Somebody dies, is slow, or comes at the same time."""

    @pytest.mark.parametrize("revision", REVISIONS)
    async def test_a_process_killed_in_the_middle_leaves_a_database_that_opens(self, url, clock, revision):
        """What was not committed is not there; the next one does it."""
        await made(url, revision)
        died = opening(url, DYING)
        _, errors = await anyio.to_thread.run_sync(died.communicate)
        assert died.returncode == -9, errors
        assert await revision_at(url) == revision
        await check(url, clock, revision)

    async def test_a_process_killed_while_it_waits_for_a_table(self, url, clock):
        """The server goes on for it until it notices: whoever opens the database meanwhile waits for that."""
        await made(url, REVISIONS[0])
        async with connected(url) as plain, anyio.create_task_group() as group, plain.transaction():
            await plain.execute("LOCK TABLE conversations IN ACCESS SHARE MODE")
            killed = opening(url)
            await until(lambda: waiting(plain))
            killed.kill()
            killed.communicate()
            group.start_soon(check, url, clock, REVISIONS[0])
            await until(lambda: _both_wait(plain))
            assert await revision_at(url) == REVISIONS[0]

    async def test_four_processes_at_once_migrate_it_once(self, url, clock):
        """All four are at it before the first can go on; each finds the revision of today, and nothing is there twice."""
        await made(url, REVISIONS[0])
        async with connected(url) as plain:
            await plain.execute(GIVEN_UP)
            columns = await tables(plain)
            before = await contents(plain, columns)
            async with plain.transaction():
                await plain.execute("LOCK TABLE conversations IN ACCESS SHARE MODE")
                racers = [opening(url) for _ in range(4)]
                await until(lambda: _four_wait(plain))
            told = [await anyio.to_thread.run_sync(racer.communicate) for racer in racers]
            assert [out.strip() for out, _ in told] == [head().encode()] * 4, told
            assert [racer.returncode for racer in racers] == [0] * 4
            assert await contents(plain, columns) == before
            assert await plain.fetchval("SELECT count(*) FROM alembic_version") == 1
        await check(url, clock, REVISIONS[0])

    async def test_who_came_first_is_waited_for_longer_than_a_statement_may_take(self, url, clock):
        """A large database takes its time, and the other workers come up behind it."""
        await made(url, LOCKING)
        async with connected(url) as plain, anyio.create_task_group() as group:
            async with plain.transaction():
                await plain.execute("LOCK TABLE conversation_summaries IN ACCESS SHARE MODE")
                first = opening(url)
                await until(lambda: waiting(plain))
                group.start_soon(check, f"{url}&command_timeout=0.5", clock, LOCKING)
                await until(lambda: _both_wait(plain))
                await anyio.sleep(1)
            await anyio.to_thread.run_sync(first.communicate)
        assert first.returncode == 0

    async def test_a_migration_may_take_longer_than_a_statement(self, url, clock, monkeypatch):
        """`command_timeout` is for the statements of a day."""
        await made(url, LOCKING)
        script = migration._script
        monkeypatch.setattr(migration, "_script", lambda *given: f"{script(*given)}; SELECT pg_sleep(1)")
        await check(f"{url}&command_timeout=0.5", clock, LOCKING)

    async def test_a_table_that_somebody_holds_is_not_waited_for_without_end(self, url, clock):
        """Everybody else would wait behind it: it is told, and everything is as it was."""
        await made(url, LOCKING)
        async with connected(url) as plain, plain.transaction():
            await plain.execute("LOCK TABLE conversation_summaries IN ACCESS SHARE MODE")
            with anyio.fail_after(PATIENCE_S), pytest.raises(StoreUnavailableError, match="locks"):
                await opened(f"{url}&command_timeout=0.5", clock)
        assert await revision_at(url) == LOCKING
        await check(url, clock, LOCKING)

    async def test_a_deadlock_with_an_older_version_is_tried_again(self, url, clock):
        """It holds a conversation and wants to write a turn, while the tables are changed under its hands."""
        await made(url, UNDIGESTED)
        async with connected(url) as plain, connected(url) as looking, anyio.create_task_group() as group:
            # So that the other one is the first to notice.
            await plain.execute("SET deadlock_timeout = '1h'")
            async with plain.transaction():
                await plain.execute("SELECT 1 FROM conversations FOR UPDATE")
                group.start_soon(check, url, clock, UNDIGESTED)
                await until(lambda: waiting(looking))
                await plain.execute("UPDATE ai_message SET update_by = update_by")


async def _both_wait(plain):
    return await waiting(plain) == 2


async def _four_wait(plain):
    return await waiting(plain) == 4


class TestUpgrade:
    """`pagefile upgrade`."""

    @staticmethod
    def upgraded(url, *more):
        return CliRunner().invoke(app, ["upgrade", "--db", url, *more])

    def test_the_command_for_a_copy_is_named_before_anything_changes(self, url):
        """With the schema of the URL, and without its password."""
        anyio.run(made, url, "0003")
        result = self.upgraded(url)
        assert result.exit_code == 1
        assert "schema 0003" in result.output
        assert "pg_dump" in result.output
        assert "Nothing was changed" in result.output
        assert server().password not in result.output
        assert anyio.run(revision_at, url) == "0003"

    @pytest.mark.slow
    def test_the_copy_that_the_command_makes_is_all_there_was(self, tmp_path, url, clock, monkeypatch):
        """Run as it was printed; what it holds opens and upgrades in another database."""
        monkeypatch.setenv("PATH", f"{installed() / 'bin'}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("PGPASSWORD", server().password)
        anyio.run(made, url, "0005")
        copy = tmp_path / "the copy"
        (command,) = re.findall(
            "`(PGOPTIONS=.*? pg_dump .*?)`", self.upgraded(url, "--backup", str(copy)).output
        )
        run(command, shell=True)
        assert self.upgraded(url, "--no-backup").exit_code == 0
        restored = f"restored_{os.getpid()}"
        base = server().url()
        run(["createdb", f"--maintenance-db={base}", restored])
        target = f"{base.rpartition('/')[0]}/{restored}"
        run(["psql", "--quiet", "--command=CREATE EXTENSION vector", target])
        run(["pg_restore", "--no-owner", f"--dbname={target}", str(copy)])
        there = url.replace("/postgres?", f"/{restored}?")
        assert anyio.run(revision_at, there) == "0005"
        anyio.run(check, there, clock, "0005")

    def test_it_says_where_pg_dump_comes_from(self, url, monkeypatch):
        """Where it is not installed."""
        monkeypatch.setenv("PATH", "")
        anyio.run(made, url, NEWEST)
        assert "client programs" in self.upgraded(url).output
        monkeypatch.setenv("PATH", str(installed() / "bin"))
        assert "client programs" not in self.upgraded(url).output

    def test_without_a_backup_and_twice(self, url, clock):
        """The second time there is nothing to do."""
        anyio.run(made, url, "0002")
        first = self.upgraded(url, "--no-backup")
        assert (first.exit_code, f"at schema {head()} now (before: 0002)" in first.output) == (0, True)
        again = self.upgraded(url)
        assert (again.exit_code, "nothing to do" in again.output) == (0, True)
        anyio.run(check, url, clock, "0002")

    def test_as_json(self, url):
        """What it was, what it is, and that there is no copy of ours."""
        anyio.run(made, url, NEWEST)
        result = self.upgraded(url, "--no-backup", "--json")
        assert json.loads(result.stdout) == {"from": NEWEST, "to": head(), "backup": None}

    def test_a_newer_schema_is_left_alone(self, url, clock):
        """And how to go on is told."""
        anyio.run(made, url, NEWEST)
        anyio.run(asked, url, "UPDATE alembic_version SET version_num = '9999'")
        for more in ([], ["--no-backup"]):
            result = self.upgraded(url, *more)
            assert (result.exit_code, "pip install --upgrade" in result.output) == (1, True)
        assert anyio.run(revision_at, url) == "9999"


def run(command, **how):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    assert done.returncode == 0, done.stderr
