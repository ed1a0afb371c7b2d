"""The database itself keeps tenants apart (decision 0034): what a statement of ours forgets, row-level security does not."""

import json
import os
import re
import subprocess
from datetime import timedelta

import anyio
import asyncpg
import numpy as np
import pytest
from typer.testing import CliRunner

from pagefile import BlockingMemory
from pagefile.cli.app import app
from pagefile.ports import Claim, EmbeddingModel, ItemWrite, TurnTerms, VectorRow
from pagefile.records import Scope
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import sql, statements
from pagefile.stores.postgres.migration import dump_command
from pagefile.stores.postgres.store import WALLED
from pagefile.stores.registry import server_schema
from pagefile.stores.sql.texts import ALL_TENANTS, type_of
from pagefile.testing.drafts import (
    AT,
    api_key,
    call,
    checkpoint,
    done,
    fact,
    page,
    picturing,
    view,
)
from tests.integration.schemas import CHECKPOINTS, DOCUMENT, SEGMENT
from tests.servers.postgres import installed

from .rows_read import check_rows_read
from .serving import as_role, fresh_url, opened, psql, server, walled_url

MODEL = EmbeddingModel("m", 2)
TENANTS = ("mine", "theirs")
#: What only the other tenant said; everything else of the two is equal, ids too.
SECRET = "secret of theirs"


@pytest.fixture
def url():
    """One connection, so that what it was told for one verb would be found by the next."""
    return walled_url(pool_max=1)


@pytest.fixture
async def filled(store):
    """Two tenants with rows in every table."""
    for tenant in TENANTS:
        await fill(store, tenant, f"secret of {tenant}")
    return store


@pytest.fixture
async def database(url, filled):
    """A connection like the store's own."""
    database = await Database.open(Place.of(url))
    yield database
    await database.close()


@pytest.fixture
async def master(url, filled):
    """A superuser, who sees everything."""
    schema = f'"{Place.of(url).schema}"'
    connection = await asyncpg.connect(server().url(), server_settings={"search_path": schema})
    yield connection
    await connection.close()


async def fill(store, tenant, said):
    """Rows of one tenant; the words of `said` are in all of them that have words."""
    scope = Scope(tenant, "ada", "chat")
    await store.log.append(picturing("a", said.encode(), scope=scope))
    await store.log.append(done("b", said, said, scope=scope))
    await store.log.append(done("c", said, said, scope=scope))
    await store.log.mark(checkpoint("k", 1, scope=scope, summary=said))
    await store.pages.put(page("p", said, scope=scope, spans=((0, 6),), call_hash="h"))
    await store.facts.put(fact("f", said, scope=scope))
    await store.calls.add([call(f"w of {tenant}", scope=scope)], keep=10)
    await store.items.write(Scope(tenant, "ada"), [ItemWrite(("notes",), "n", {"text": said})], now=AT)
    await store.keys.add(api_key(f"key of {tenant}", said, scope=Scope(tenant)))
    await store.leases.claim(Claim(f"lease of {tenant}", scope, said, AT, AT, AT + timedelta(days=9)))
    await store.leases.keep(f"lease of {tenant}", said, said.encode())
    await store.watermarks.advance(scope, "tier", 2, epoch=None)
    await store.terms.write(scope, [TurnTerms("chat", 2, "b", AT, said, said)], "v1")
    await store.vectors().put(MODEL, [VectorRow(scope, 2, "b", AT, np.array([1, 0], np.float32))])


async def walled(connection):
    """The tables that have a tenant."""
    rows = await connection.fetch(
        "SELECT table_name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)"
        " WHERE table_schema = current_schema() AND column_name = 'tenant' AND table_type = 'BASE TABLE' ORDER BY 1"
    )
    return [row[0] for row in rows]


VIEWS = ("memory_checkpoints", "memory_messages", "memory_segment")


@pytest.mark.parametrize("view", VIEWS)
async def test_views_show_a_tenant_its_own_rows(database, view):
    """Whoever owns them: the views that short-term memory's SQL reads are read with the reader's rights."""

    async def seen(connection, tenant):
        await connection.raw.execute("SELECT set_config('pagefile.tenant', $1, true)", tenant)
        return {row[0] for row in await connection.raw.fetch(f"SELECT tenant FROM {view}")}

    found = [
        await database.run(lambda connection, tenant=tenant: seen(connection, tenant), in_transaction=True)
        for tenant in (*TENANTS, "")
    ]
    # The checkpoint of these rows is the last of them.
    shown = [set(), set()] if view == "memory_segment" else [{"mine"}, {"theirs"}]
    assert [*shown, set()] == found


async def rows_of(connection, tenant):
    """Everything that a tenant has, table by table."""
    return {
        table: sorted(map(repr, await connection.fetch(f"SELECT * FROM {table} WHERE tenant = $1", tenant)))
        for table in await walled(connection)
    }


async def test_every_table_with_a_tenant_is_walled_for_its_owner_too(master):
    """Also one that a later revision adds, and that of the vectors."""
    rows = await master.fetch(
        "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
        " WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relname = ANY($1)",
        tables := await walled(master),
    )
    assert dict.fromkeys(tables, True) == {row[0]: row[1] for row in rows}
    assert sorted(WALLED) == tables
    for tenant in TENANTS:
        assert all((await rows_of(master, tenant)).values()), "a table without rows proves nothing"


async def test_who_names_no_tenant_sees_and_changes_nothing(database, filled, master):
    """On the connection that served a tenant a moment ago; the tenant of a statement ends with its transaction."""
    tables = await walled(master)
    async with database.raw() as raw:
        for table in tables:
            assert await raw.fetchval(sql("owner").text, *keys_of("owner")) == "ada"
            assert await raw.fetch(f"SELECT * FROM {table}") == []
            assert await raw.execute(f"UPDATE {table} SET tenant = tenant") == "UPDATE 0"
            assert await raw.execute(f"DELETE FROM {table}") == "DELETE 0"
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await raw.execute(f"INSERT INTO {table} (tenant) VALUES ('mine')")
    assert all((await rows_of(master, "theirs")).values())


async def test_who_names_a_tenant_sees_and_changes_only_that_one(database, master):
    """Whatever the statement says about tenants, or does not say."""
    tables, theirs = await walled(master), await rows_of(master, "theirs")
    async with database.raw() as raw:
        for table in tables:
            async with raw.transaction():
                await raw.execute("SET LOCAL pagefile.tenant = 'mine'")
                assert {row[0] for row in await raw.fetch(f"SELECT tenant FROM {table}")} == {"mine"}
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with raw.transaction():
                    await raw.execute("SET LOCAL pagefile.tenant = 'mine'")
                    await raw.execute(f"UPDATE {table} SET tenant = 'theirs'")
    assert await rows_of(master, "theirs") == theirs


def keys_of(name, **more):
    """Values for a statement, such that it finds what both tenants have."""
    values = {
        "tenant": "mine",
        "user": "ada",
        "conversation": "chat",
        "id": "b",
        "uuid": "p",
        "hash": SECRET,
        "uuids": ["p"],
        "ids": ["a", "b"],
        "names": ["chat"],
        "gone": ["chat"],
        "seqs": [2],
        "kinds": ["turn"],
        "statuses": ["done", "open"],
        "status": "aborted",
        "counter": "words",
        "call_hash": "h",
        "tier": "tier",
        "analyzer": "v1",
        "namespace": "/notes/",
        "prefix": "/",
        "beyond": "0",
        "key": "n",
        "maker": MODEL.key,
        "vector": [1.0, 0.0],
        "after": None,
        "since": AT - timedelta(days=1),
        "before": AT + timedelta(days=1),
        "now": AT - timedelta(days=1),
        "after_seq": 0,
        "reset_seq": 0,
        "skip": 0,
        "after_tenant": "",
        "place": None,
        **more,
    }
    by_type = {"bigint": 9, "timestamptz": AT, "boolean": True, "json": "{}", "integer": 2}
    return [values.get(one, by_type.get(type_of(one))) for one in sql(name).names]


def without_predicate(text):
    """A statement of which somebody forgot the tenant; its parameter is still bound."""
    return re.sub(r"(\w+\.)?\btenant = (\$\d+::pagefile_tenant)\b", r"\2 IS NOT NULL", text)


#: What binds a tenant and puts no new rows in.
READING = sorted(
    name
    for name, statement in statements().items()
    if "tenant" in statement.names and "INSERT" not in statement.text
)


async def outcome(connection, text, given):
    """The rows of a statement and what it left of the other tenant; nothing of it stays."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        rows = await connection.fetch(text.replace("{extension}", "public"), *given)
        await connection.execute("SET LOCAL pagefile.tenants = 'all'")
        return sorted(map(repr, rows)), await rows_of(connection, "theirs")
    finally:
        await transaction.rollback()


async def test_a_statement_that_forgets_its_tenant_gives_away_nothing(database, master):
    """Sabotage: each of ours without its predicate sees and changes what it would with it.

    A superuser, whom nothing holds, sees or changes what is theirs by most of them.
    """
    # Else a page could not go before its passages.
    await master.execute("ALTER TABLE archive_passage DROP CONSTRAINT archive_passage_uuid_tenant_fkey")
    through = set()
    async with database.raw() as raw:
        for name in READING:
            text, given = sql(name).text, keys_of(name)
            honest = await outcome(raw, text, given)
            assert (name, honest) == (name, await outcome(raw, without_predicate(text), given))
            assert SECRET not in repr(honest[0])
            if honest != await outcome(master, without_predicate(text), given):
                through.add(name)
    # The others find a single row, none with these values, or only lock.
    assert len(READING) >= 120
    assert len(through) >= 90, sorted(set(READING) - through)


async def test_a_statement_without_a_tenant_is_never_written():
    """Each that touches a walled table binds a tenant, or says in its text that it wants all of them."""
    walls = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE) ({'|'.join(WALLED)})\b")
    forgotten = {
        name
        for name, statement in statements().items()
        if walls.search(statement.text) and not {"tenant", "tenants"} & set(statement.names)
    }
    assert forgotten == set()
    for statement in statements().values():
        assert "tenants" not in statement.names or "::pagefile_tenants IS NULL" in statement.text


async def test_no_verb_takes_a_round_trip_more(filled):
    """A turn and a view are one statement each, outside of any transaction: the tenant is told as the parameter is bound."""
    seen = []

    async with filled._database.raw() as raw:
        raw.add_query_logger(lambda record: seen.append(record.query))
    scope = Scope("mine", "ada", "chat")
    await filled.log.append(done("d", scope=scope))
    await filled.reader.view(view(scope=scope))
    assert seen == [sql("append").text, sql("view").text]


async def test_statements_read_what_they_return_behind_the_wall_too(store, plain):
    """The policy is a filter beside the index, and keeps no index from being used."""
    await check_rows_read(store, plain)


async def test_all_tenants_are_seen_by_who_says_so(database, filled):
    """Those who look after the whole database; the next statement that names a tenant is behind the wall again."""
    async with database.raw() as raw, raw.transaction():
        statement = sql("keys_all")
        assert len(await raw.fetch(statement.text, *statement.given(ALL_TENANTS))) == 2
        assert await raw.fetchval(sql("owner").text, *keys_of("owner")) == "ada"
        assert {row[0] for row in await raw.fetch("SELECT tenant FROM api_keys")} == {"mine"}
    assert [size > 0 for size in (await filled.audit.size(None), await filled.audit.size("mine"))] == [
        True
    ] * 2
    assert await filled.audit.size(None) == 2 * await filled.audit.size("mine")


async def test_a_tenant_may_be_called_anything(store):
    """Also as the words that mean something to the wall."""
    for name in ("*", "all", "'; DROP TABLE facts; --", "名\n字"):
        await store.log.append(done("a", name, scope=Scope(name, "ada", "chat")))
    for name in ("*", "all", "'; DROP TABLE facts; --", "名\n字"):
        found = await store.reader.view(view(scope=Scope(name, "ada", "chat")))
        assert [turn.user for turn in found.turns] == [name]


async def test_equal_bytes_of_another_tenant_stay(filled, master):
    """What two tenants have in common goes when the second one goes, and not before: an erasure looks at all of them."""
    shared = {tenant: Scope(tenant, "ada", "shared") for tenant in TENANTS}
    for scope in shared.values():
        await filled.pages.put(page("q", "the same text", scope=scope))
    await filled.erase(Scope("mine"))
    assert (await filled.pages.load(shared["theirs"], "q"))[1] == "the same text"
    await filled.page_keeper.erase(shared["theirs"], ["q"])
    await filled.erase(Scope("theirs"))
    assert await master.fetch("SELECT hash FROM blobs") == []


@pytest.fixture
async def reporter(url, filled):
    """Another program, with a role of its own that may only read, and one tenant set for it."""
    place = Place.of(url)
    psql(
        "DROP ROLE IF EXISTS reporter; CREATE ROLE reporter LOGIN PASSWORD 'reporter';"
        f' GRANT USAGE ON SCHEMA "{place.schema}" TO reporter; GRANT SELECT ON ALL TABLES IN SCHEMA "{place.schema}" TO reporter;'
        " ALTER ROLE reporter SET pagefile.tenant = 'mine'"
    )
    connection = await asyncpg.connect(
        Place.of(as_role(url, "reporter")).dsn, server_settings={"search_path": f'"{place.schema}"'}
    )
    yield connection
    await connection.close()
    psql("DROP OWNED BY reporter; DROP ROLE reporter")


async def test_another_program_says_whose_rows_it_wants(reporter):
    """One tenant or all of them, said once for the role or for a session."""
    tenants = "SELECT DISTINCT tenant FROM ai_message ORDER BY 1"
    assert [row[0] for row in await reporter.fetch(tenants)] == ["mine"]
    await reporter.execute("SET pagefile.tenant = 'theirs'")
    assert [row[0] for row in await reporter.fetch(tenants)] == ["theirs"]
    await reporter.execute("SET pagefile.tenants = 'all'")
    assert [row[0] for row in await reporter.fetch(tenants)] == ["mine", "theirs"]


async def test_the_document_s_statements_run_verbatim_for_who_said_the_tenant(reporter, filled):
    """They know of no tenants; of another one they find nothing."""
    await filled.log.append(done("m0", scope=DOCUMENT))
    await filled.log.append(done("m1", scope=DOCUMENT))
    await filled.log.mark(checkpoint("checkpoint-message-id", 1, scope=DOCUMENT))
    await filled.log.append(done("m2", scope=DOCUMENT))
    assert await reporter.fetch(CHECKPOINTS) == await reporter.fetch(SEGMENT) == []
    await reporter.execute(f"SET pagefile.tenant = '{DOCUMENT.tenant}'")
    assert [row[0] for row in await reporter.fetch(CHECKPOINTS)] == ["checkpoint-message-id"]
    assert [row[0] for row in await reporter.fetch(SEGMENT)] == ["m2"]


async def test_a_pooler_that_shares_connections_mixes_no_tenants(clock):
    """Without prepared statements too: a tenant is told with each statement and forgotten behind it."""
    store = await opened(walled_url(pool_max=1, statement_cache=0), clock)
    for tenant in TENANTS:
        await store.log.append(done("a", tenant, scope=Scope(tenant, "ada", "chat")))
    for tenant in (*TENANTS, *TENANTS):
        found = await store.reader.view(view(scope=Scope(tenant, "ada", "chat")))
        assert [turn.user for turn in found.turns] == [tenant]
    await store.close()


def examined(url):
    """What `doctor` finds out about the database, which it leaves as it is: the tables are made before."""
    made = CliRunner().invoke(app, ["upgrade", "--no-backup", "--db", url])
    assert made.exit_code == 0, made.output
    told = CliRunner().invoke(app, ["doctor", "--json", "--db", url])
    assert told.exit_code == 0, told.output
    (check,) = [one for one in json.loads(told.stdout)["checks"] if one["name"] == "database"]
    return check


class TestDoctor:
    """`pagefile doctor` says whether the wall holds for the role of the URL."""

    def test_an_empty_database_is_left_empty(self):
        """Whoever looks first has not decided anything."""
        url = walled_url()
        told = CliRunner().invoke(app, ["doctor", "--json", "--db", url])
        (check,) = [one for one in json.loads(told.stdout)["checks"] if one["name"] == "database"]
        assert ("ok", True) == (check["state"], check["found"].endswith(": empty"))
        assert anyio.run(server_schema, url).found is None

    def test_a_plain_role_is_well(self):
        """Also as the owner of the tables, since they are forced."""
        check = examined(walled_url())
        assert (check["state"], check["advice"]) == ("ok", "")
        assert "role walled, row_security on" in check["found"]

    @pytest.mark.parametrize(("privilege", "told"), [("SUPERUSER", "superuser"), ("BYPASSRLS", "BYPASSRLS")])
    def test_a_role_that_sees_past_it_is_named_with_the_sql_for_a_better_one(self, privilege, told):
        """The SQL works as it stands: with the new role everything works, and doctor is content."""
        psql(f"DROP ROLE IF EXISTS mighty; CREATE ROLE mighty LOGIN PASSWORD 'mighty' {privilege}")
        psql("GRANT CREATE ON DATABASE postgres TO mighty")
        url = as_role(fresh_url(), "mighty")
        check = examined(url)
        assert check["state"] == "note"
        assert f"row_security bypassed by {told}" in check["found"]
        statements = check["advice"].partition("upgrade`: ")[2]
        psql("DROP ROLE IF EXISTS pagefile_service")
        psql(statements.replace("…", "pagefile_service"))
        service = as_role(url, "pagefile_service")
        assert examined(service)["state"] == "ok"
        with BlockingMemory.open(service) as memory:
            memory.conversation("c1", user_id="ada", tenant="clinic").record(user="Hi.", assistant="Hello.")
            memory.remember("Ada likes tea.", user_id="ada", tenant="clinic")
            assert memory.recall("tea", user_id="ada", tenant="shop") == []
            assert len(memory.facts(user_id="ada", tenant="clinic")) == 1
        psql("DROP OWNED BY pagefile_service, mighty; DROP ROLE pagefile_service, mighty")

    def test_an_owner_whom_nothing_holds_is_named_with_the_tables(self):
        """Where somebody took FORCE away, the owner is past the wall; the SQL puts it back."""
        url = walled_url()
        assert examined(url)["state"] == "ok"
        schema = Place.of(url).schema
        psql(f'ALTER TABLE "{schema}".facts NO FORCE ROW LEVEL SECURITY')
        psql(f'ALTER TABLE "{schema}".items DISABLE ROW LEVEL SECURITY')
        check = examined(url)
        assert check["state"] == "note"
        assert "row_security off for facts, items" in check["found"]
        psql(check["advice"].partition("Put it back: ")[2])
        assert examined(url)["state"] == "ok"


def test_the_copy_that_upgrade_names_holds_everybody_s_rows(tmp_path, monkeypatch):
    """`pg_dump` refuses the owner of walled tables, unless it is told what the command that is printed tells it."""
    monkeypatch.setenv("PATH", f"{installed() / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PGPASSWORD", "walled")
    url, copy = walled_url(), tmp_path / "the copy"
    with BlockingMemory.open(url) as memory:
        for tenant in TENANTS:
            memory.conversation("c", user_id="ada", tenant=tenant).record(user=tenant, assistant="Hi.")
    subprocess.run(dump_command(url, copy), shell=True, check=True)
    told = subprocess.run(
        ["pg_restore", "--file=-", "--table=ai_message", copy], check=True, capture_output=True
    )
    assert all(tenant.encode() in told.stdout for tenant in TENANTS)
