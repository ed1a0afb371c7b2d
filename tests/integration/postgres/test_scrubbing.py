"""`pagefile forget --scrub` on PostgreSQL while somebody else's transaction still sees what was erased."""

import anyio
import asyncpg
import pytest

from pagefile import Memory
from pagefile.records import Scope
from pagefile.stores.postgres import store as scrubbing
from tests.findings.security.looking import PLAIN, files_with
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server():
    """A server of its own: its files are read."""
    with PostgresServer() as running:
        yield running


async def watching(url):
    """A transaction that sees what is there now."""
    connection = await asyncpg.connect(url.partition("?")[0])
    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await connection.fetchval("SELECT count(*) FROM pg_class")
    return connection


async def told(memory, mark):
    for number in range(30):
        await memory.conversation("chat", user_id="ada").record(f"{mark} words {number}", "Noted.")


async def test_a_transaction_that_ends_is_waited_for(server):
    """Nothing of what it saw is in the files afterwards."""
    url = server.url(schema="waited")
    async with Memory.open(url, settings=PLAIN) as memory, anyio.create_task_group() as tasks:
        await told(memory, "WAITED")
        other = await watching(url)
        tasks.start_soon(_ended, other)
        receipt = await memory.engine.erase(Scope("default", "ada"), scrub=True)
    assert scrubbing.WATCHED not in receipt.pending
    assert [] == files_with(server.folder / "data" / "base", "WAITED")


async def _ended(connection):
    await anyio.sleep(1)
    await connection.close()


async def test_a_transaction_that_does_not_end_is_told(server, monkeypatch):
    """The receipt says what is left and what to do; done, nothing is left."""
    monkeypatch.setattr(scrubbing, "OTHERS_S", 0.5)
    url, base = server.url(schema="told"), server.folder / "data" / "base"
    async with Memory.open(url, settings=PLAIN) as memory:
        await told(memory, "WATCHED")
        other = await watching(url)
        receipt = await memory.engine.erase(Scope("default", "ada"), scrub=True)
        assert scrubbing.WATCHED in receipt.pending
        assert [] != files_with(base, "WATCHED")
        await other.close()
        receipt = await memory.engine.erase(Scope("default", "ada"), scrub=True)
        assert scrubbing.WATCHED not in receipt.pending
    assert [] == files_with(base, "WATCHED")


async def test_no_sample_of_an_emptied_table_is_left(server):
    """ANALYZE changes nothing where no row is left to look at, and the samples of before would stay."""
    url = server.url(schema="sampled")
    async with Memory.open(url, settings=PLAIN) as memory:
        await told(memory, "SAMPLED")
        plain = await asyncpg.connect(url.partition("?")[0])
        await plain.execute("ANALYZE")
        await plain.close()
        await memory.engine.erase(Scope("default", "ada"), scrub=True)
    assert [] == files_with(server.folder / "data" / "base", "SAMPLED")


async def test_a_role_that_does_not_own_the_tables_is_told(server):
    """VACUUM passes over them with a warning; the receipt says what is left, and who can do it."""
    url, base = server.url(schema="owned"), server.folder / "data" / "base"
    async with Memory.open(url, settings=PLAIN) as memory:
        await told(memory, "OWNED")
        advice = (await memory.describe())["store"]["advice"]
    plain = await asyncpg.connect(url.partition("?")[0])
    await plain.execute(advice.partition(": ")[2].replace("…", "pagefile_service"))
    service = url.replace(f"postgres:{server.password}", "pagefile_service:pagefile_service")
    async with Memory.open(service, settings=PLAIN) as memory:
        receipt = await memory.engine.erase(Scope("default", "ada"), scrub=True)
        assert scrubbing.OWNED in receipt.pending
    await plain.execute("CHECKPOINT")
    await plain.close()
    assert [] != files_with(base, "OWNED")
    async with Memory.open(url, settings=PLAIN) as memory:
        receipt = await memory.engine.erase(Scope("default", "ada"), scrub=True)
        assert scrubbing.OWNED not in receipt.pending
    assert [] == files_with(base, "OWNED")
