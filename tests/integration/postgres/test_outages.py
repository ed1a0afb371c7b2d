"""A server that goes away and comes back, connections that die, and what is said about it."""

from functools import partial

import anyio
import asyncpg
import pytest

from pagefile.errors import MissingExtraError, SettingsError, StoreFullError, StoreUnavailableError
from pagefile.ports import ConversationQuery
from pagefile.records import Scope
from pagefile.stores import open_store
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.driver import translating
from pagefile.stores.sql.rows import keys
from pagefile.testing.drafts import CHAT, completed, done, fact, page, reset, view
from pagefile.testing.drafts import opened as open_turn
from tests.servers.postgres import PostgresServer

from .serving import opened, server


@pytest.fixture(scope="module")
def mortal():
    """A server of its own, for tests that stop it."""
    server()
    with PostgresServer() as running:
        yield running


async def every_port_fails(store, clock):
    for verb in (
        store.log.append(done("b")),
        store.log.advance(completed("b")),
        store.log.mark(reset("r")),
        store.reader.view(view()),
        store.reader.heads(ConversationQuery(Scope("tenant"))),
        store.facts.put(fact("f")),
        store.pages.put(page("p")),
        store.page_keeper.touch(CHAT, ["p"], clock.now()),
        store.calls.list(CHAT),
        store.sessions.put(CHAT, {}),
        store.erase(CHAT),
        store.describe(),
    ):
        with pytest.raises(StoreUnavailableError) as caught:
            await verb
    return str(caught.value)


@pytest.mark.parametrize("how", ["INT", "QUIT"])
async def test_a_store_outlives_its_server(mortal, clock, how):
    """While it is down every verb says so; afterwards the same store works again, and nothing is lost."""
    store = await open_store(mortal.url(f"outage_{how}"), clock=clock)
    await store.log.append(done("a"))
    await store.log.append(open_turn("open"))
    mortal.stop(how)
    said = await every_port_fails(store, clock)
    assert f"127.0.0.1:{mortal.port}" in said
    assert mortal.password not in said
    mortal.start()
    assert (await store.log.append(done("a"))).seq == 1
    assert (await store.log.advance(completed("open"))).seq == 2
    assert [turn.id for turn in (await store.reader.view(view())).turns] == ["a", "open"]
    await store.close()


async def test_a_store_can_be_closed_while_its_server_is_down(mortal, clock):
    """Without a word."""
    store = await opened(mortal.url("closing"), clock)
    mortal.stop("QUIT")
    await store.close()
    mortal.start()


@pytest.mark.parametrize(
    "verb",
    [
        lambda store, clock: store.reader.view(view()),
        lambda store, clock: store.log.append(done("b")),
        lambda store, clock: store.log.mark(reset("r")),
        lambda store, clock: store.pages.put(page("p")),
        lambda store, clock: store.page_keeper.touch(CHAT, ["p"], clock.now()),
        lambda store, clock: store.erase(CHAT),
        lambda store, clock: store.describe(),
    ],
    ids=["view", "append", "mark", "put", "touch", "erase", "describe"],
)
async def test_connections_that_died_unused_are_replaced(store, plain, clock, verb):
    """Nobody is told: the next call finds another connection."""
    await store.log.append(done("a"))
    await plain.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pagefile'"
    )
    await verb(store, clock)


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        (lambda url, port: url.replace(f":{port}/", ":1/"), "check that the server runs"),
        (lambda url, port: url.replace("postgres:", "postgres:wrong"), "check user, password"),
        (lambda url, port: url.replace("/postgres?", "/nowhere?"), "check user, password and database name"),
        (lambda url, port: url.replace("127.0.0.1", "no.such.host.invalid"), "check that the server runs"),
    ],
    ids=["port", "password", "database", "host"],
)
async def test_what_cannot_be_reached_says_what_to_do(url, clock, change, advice):
    """And never shows the password."""
    with pytest.raises(StoreUnavailableError, match=advice) as caught:
        await opened(change(url, server().port), clock)
    assert server().password not in str(caught.value)


async def test_a_unix_socket_is_a_host(clock):
    """As in every PostgreSQL URL."""
    running = server()
    base = f"postgres://postgres:{running.password}@/postgres?host={running.folder}&port={running.port}"
    store = await opened(f"{base}&schema=socket", clock)
    assert (await store.log.append(done("a"))).seq == 1
    assert (await store.describe())["place"] == f"postgresql://{running.folder}/postgres"
    await store.close()


@pytest.mark.parametrize(
    "query", ["pool_min=3&pool_max=2", "pool_max=0", "pool_max=many", "command_timeout=-1", "schema="]
)
def test_options_are_checked(query):
    """Before anything is opened."""
    with pytest.raises(SettingsError):
        Place.of(f"postgresql://host/db?{query}")


def test_the_rest_of_the_query_is_postgresql_s():
    """Ours is taken out, theirs is passed on."""
    place = Place.of("postgresql://u:p@h:1/db?sslmode=require&schema=a%20b&pool_max=7&statement_cache=0")
    assert place.dsn == "postgresql://u:p@h:1/db?sslmode=require"
    assert (place.schema, place.pool_max, place.statement_cache) == ("a b", 7, 0)
    assert place.shown == "postgresql://h:1/db"


def test_a_full_disk_is_named():
    """PostgreSQL's code 53100."""
    with pytest.raises(StoreFullError, match="free some space"), translating("here"):
        raise asyncpg.DiskFullError("could not extend file")


@pytest.mark.waits
async def test_a_statement_that_takes_too_long_ends(url, store, plain, clock):
    """`command_timeout` holds for waiting too."""
    impatient = await opened(f"{url}&command_timeout=2", clock)
    await impatient.log.append(done("a"))
    async with plain.transaction():
        await plain.execute("SELECT 1 FROM conversations FOR UPDATE")
        with pytest.raises(StoreUnavailableError, match="command_timeout"):
            await impatient.log.append(done("b"))
    assert (await impatient.log.append(done("b"))).seq == 2
    await impatient.close()


async def test_without_the_extra_the_url_says_what_to_install(monkeypatch):
    """The exact command."""
    import importlib.util
    import sys

    for name in [name for name in sys.modules if name.startswith("pagefile.stores.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("pagefile.stores.postgres", raising=False)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *rest: None if name == "asyncpg" else found(name, *rest)
    )
    with pytest.raises(MissingExtraError, match=r"pip install 'pagefile\[postgres\]'"):
        await open_store("postgresql://host/db")


@pytest.mark.waits
async def test_cancelled_work_leaves_no_transaction_open(store, caplog):
    """Whoever gives up in the middle gives the connection back clean: nothing is written, nothing is said."""

    written = anyio.Event()

    async def slow(connection):
        await connection.count("watermark_advance", {**keys(CHAT), "tier": "t", "seq": 1})
        written.set()
        await anyio.sleep_forever()

    await store.log.append(done("a"))
    async with anyio.create_task_group() as group:
        group.start_soon(partial(store._database.run, slow, in_transaction=True))
        await written.wait()
        group.cancel_scope.cancel()
    assert await store.watermarks.known(CHAT, "t") == {}
    await store.log.append(done("b"))
    assert [] == [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("error", [asyncpg.DeadlockDetectedError, asyncpg.InvalidCachedStatementError])
async def test_what_meets_a_migration_is_done_again(store, error):
    """A read or a write that the server gave up for somebody who changes the tables."""
    await store.log.append(done("a"))
    tried = []

    async def overtaken(connection):
        tried.append(1)
        if len(tried) % 2:
            raise error("deadlock detected")
        return await connection.row("owner", keys(CHAT))

    for in_transaction in (False, True):
        found = await store._database.run(overtaken, in_transaction=in_transaction)
        assert found[0] == CHAT.user
    assert len(tried) == 4
