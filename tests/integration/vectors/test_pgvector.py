"""Vectors in PostgreSQL: filters that return all they should, processes that prepare at once, servers that lack something."""

import anyio
import asyncpg
import numpy as np
import pytest

from pagefile.errors import SchemaVersionError, VectorIndexError
from pagefile.ports import EmbeddingModel, VectorRow
from pagefile.records import Scope
from pagefile.stores import open_vectors
from pagefile.stores.postgres.driver import sql
from pagefile.testing.contracts.vectors import MODEL, said, seqs, vector
from pagefile.testing.drafts import AT, CHAT, done
from tests.integration.postgres.serving import fresh_url, opened, server

TENANTS = 100
WIDE = EmbeddingModel("wide", 64)


@pytest.fixture
async def store(clock):
    store = await opened(fresh_url(), clock)
    yield store
    await store.close()


@pytest.mark.slow
async def test_every_one_of_a_hundred_tenants_gets_its_ten(store):
    """The ten that are nearest of their own, whatever lies nearer among other tenants' and other users'."""
    index, random = store.vectors(), np.random.default_rng(7)
    near_all = random.normal(size=WIDE.dimension).astype(np.float32)
    truth = {}
    for tenant in range(TENANTS):
        rows = []
        for user in ("ada", "bob"):
            # All of a tenant lie in its own direction: near the question for few, far from it for most.
            centre = near_all + random.normal(size=WIDE.dimension) * tenant / 10
            scope = Scope(f"tenant-{tenant}", user, f"chat of {user}")
            for seq in range(1, 13):
                await store.log.append(done(f"turn-{seq}", scope=scope))
                vector = (centre + random.normal(size=WIDE.dimension)).astype(np.float32)
                rows.append(VectorRow(scope, seq, f"turn-{seq}", AT, vector))
        await index.put(WIDE, rows)
        truth[tenant] = rows
    for tenant, rows in truth.items():
        for user in ("ada", "bob"):
            mine = [row for row in rows if row.scope.user == user]
            similarity = {row.seq: cosine(row.vector, near_all) for row in mine}
            found = await index.search(WIDE, Scope(f"tenant-{tenant}", user), near_all, 10)
            assert 10 == len(found)
            assert {f"chat of {user}"} == {near.conversation for near in found}
            worst = sorted(similarity.values())[-10]
            assert all(similarity[near.seq] >= worst - 2e-3 for near in found)
            assert pytest.approx([similarity[near.seq] for near in found], abs=2e-3) == [
                near.similarity for near in found
            ]


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


async def test_several_processes_may_prepare_at_once(clock):
    """The extension and the tables are made once; schemas side by side share the extension."""
    url, elsewhere = fresh_url(), fresh_url()
    stores = [await opened(place, clock) for place in (url, url, url, elsewhere)]
    async with anyio.create_task_group() as group:
        for store in stores:
            group.start_soon(store.vectors().prepare, MODEL)
    for store in (stores[0], stores[3]):
        await store.vectors().put(MODEL, [await said(store, CHAT, 1, (1, 0, 0, 0))])
    for store in stores:
        assert [1] == seqs(await store.vectors().search(MODEL, CHAT, vector(1, 0, 0, 0), 10))
        await store.close()


async def test_vectors_go_with_the_log(store):
    """Also the ones that a late writer brings, and when the name comes back."""
    index = store.vectors()
    row = await said(store, CHAT, 1, (1, 0, 0, 0))
    await index.put(MODEL, [row])
    await store.erase(CHAT)
    assert 0 == (await index.collections())[0].vectors
    await store.log.append(done("another", scope=CHAT))
    await index.put(MODEL, [row])
    assert [] == await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10)


async def test_a_users_vectors_are_found_by_key(store):
    """Never by reading everybody's: each conversation of theirs is looked up."""
    index = store.vectors()
    for number in range(30):
        scope = Scope("t", f"user-{number}", f"chat-{number}")
        await index.put(MODEL, [await said(store, scope, 1, (1, 0, 0, number))])
    statement = sql("episodes_near_user", store._database.extension)
    values = {"tenant": "t", "user": "user-3", "maker": MODEL.key, "vector": [1, 0, 0, 0], "limit": 10}
    async with store._database.raw() as connection:
        rows = await connection.fetch(f"EXPLAIN {statement.text}", *statement.given(values))
    plan = "\n".join(row[0] for row in rows)
    assert "Index Scan using conversation_episodes_pkey" in plan
    assert "(conversation_id = c.conversation_id)" in plan
    assert "Seq Scan" not in plan


@pytest.fixture
async def bare():
    """A database without pgvector, and a role that may make tables there but no extension."""
    place = f"127.0.0.1:{server().port}/bare"
    admin = await asyncpg.connect(server().url())
    await admin.execute("CREATE DATABASE bare")
    await admin.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
    inside = await asyncpg.connect(f"postgresql://postgres:{server().password}@{place}")
    await inside.execute("GRANT CREATE ON SCHEMA public TO plain")
    yield inside, f"postgresql://plain:plain@{place}"
    await inside.close()
    await admin.execute("DROP DATABASE bare WITH (FORCE)")
    await admin.execute("DROP ROLE plain")
    await admin.close()


async def test_a_role_without_the_right_is_told_what_to_do(bare, clock):
    """And all is well once somebody did it."""
    admin, url = bare
    store = await opened(url, clock)
    index = open_vectors(None, store)
    assert [] == await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10)
    with pytest.raises(VectorIndexError, match="CREATE EXTENSION vector"):
        await index.put(MODEL, [await said(store, CHAT, 1, (1, 0, 0, 0))])
    await admin.execute("CREATE EXTENSION vector")
    await index.put(MODEL, [await said(store, CHAT, 2, (1, 0, 0, 0))])
    assert [2] == seqs(await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10))
    await store.close()


async def test_a_server_without_the_extension_is_told_apart(bare, clock):
    """What is missing is a package, not a right; the store itself goes on."""
    admin, url = bare
    await admin.execute("ALTER ROLE plain SET extension_control_path = '/nowhere'")
    store = await opened(url, clock)
    index = store.vectors()
    with pytest.raises(VectorIndexError, match="does not have pgvector: install"):
        await index.prepare(MODEL)
    await store.log.append(done("still", scope=CHAT))
    assert (await index.describe())["version"] is None
    await store.close()


async def test_tables_that_somebody_removed_are_missed(store):
    """The error says how they come back."""
    index = store.vectors()
    await index.prepare(MODEL)
    async with store._database.raw() as connection:
        await connection.execute("DROP TABLE conversation_episodes")
    with pytest.raises(SchemaVersionError, match="Open the store again"):
        await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10)
    again = store.vectors()
    await again.put(MODEL, [await said(store, CHAT, 1, (1, 0, 0, 0))])
    assert [1] == seqs(await again.search(MODEL, CHAT, vector(1, 0, 0, 0), 10))
