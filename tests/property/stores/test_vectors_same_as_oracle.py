"""Vector indexes find what the oracle finds, whatever was put, replaced, claimed, erased and dropped before."""

import asyncio
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagefile.errors import ConflictError
from pagefile.ports import EmbeddingModel, VectorRow
from pagefile.records import Scope
from pagefile.stores import StoreOptions, open_store
from pagefile.testing import FakeClock
from pagefile.testing.drafts import AT, done
from tests.integration.postgres.serving import fresh_url, opened
from tests.oracle import OracleStore

TENANTS = ("t", "t'")
USERS = (None, "ada", "bob")
NAMES = ("c1", "c2", "c3")
MAKERS = (EmbeddingModel("a", 3), EmbeddingModel("b", 3))

scopes = st.builds(Scope, st.sampled_from(TENANTS), st.sampled_from(USERS), st.sampled_from((None, *NAMES)))
chats = st.builds(Scope, st.sampled_from(TENANTS), st.sampled_from(USERS), st.sampled_from(NAMES))
# Few directions, so that ties, replacements and zeros are common.
directions = st.tuples(*[st.integers(-2, 2)] * 3)
models = st.sampled_from(MAKERS)


@dataclass(frozen=True)
class Say:
    scope: Scope
    direction: tuple
    model: EmbeddingModel


@dataclass(frozen=True)
class Replace:
    number: int
    direction: tuple
    model: EmbeddingModel


@dataclass(frozen=True)
class Ask:
    scope: Scope
    direction: tuple
    model: EmbeddingModel
    limit: int


@dataclass(frozen=True)
class Erase:
    scope: Scope
    with_the_log: bool


@dataclass(frozen=True)
class Drop:
    model: EmbeddingModel


says = st.builds(Say, chats, directions, models)
asks = st.builds(Ask, scopes, directions, models, st.integers(0, 6))
deeds = st.lists(
    st.one_of(
        says,
        says,
        says,
        st.builds(Replace, st.integers(0, 20), directions, models),
        asks,
        asks,
        st.builds(Erase, scopes, st.booleans()),
        st.builds(Drop, models),
    ),
    max_size=40,
)


class Side:
    """A store, its index, and the turns that were said."""

    def __init__(self, store, index):
        self.store, self.index = store, index
        self.rows = []

    async def do(self, deed, number):
        """What a deed returns, as something that can be compared."""
        try:
            return await getattr(self, type(deed).__name__.lower())(deed, number)
        except ConflictError:
            return ConflictError

    async def say(self, deed, number):
        turn = await self.store.log.append(done(f"turn-{number}", scope=deed.scope))
        row = VectorRow(turn.scope, turn.seq, turn.id, AT, np.array(deed.direction, np.float32))
        self.rows.append(row)
        await self.index.put(deed.model, [row])

    async def replace(self, deed, number):
        if self.rows:
            row = self.rows[deed.number % len(self.rows)]
            vector = np.array(deed.direction, np.float32)
            await self.index.put(
                deed.model, [VectorRow(row.scope, row.seq, row.turn_id, AT, vector), self.rows[-1]]
            )

    async def ask(self, deed, number):
        found = await self.index.search(
            deed.model, deed.scope, np.array(deed.direction, np.float32), deed.limit
        )
        similarities = [round(near.similarity, 2) for near in found]
        # Who is as near as the last of a full answer may be there as well as another; an index keeps half precision.
        sure = [
            near for near in found if len(found) < deed.limit or round(near.similarity, 2) > similarities[-1]
        ]
        return similarities, {(near.conversation, near.seq, near.turn_id) for near in sure}

    async def erase(self, deed, number):
        count = await self.index.erase(deed.scope)
        if deed.with_the_log:
            await self.store.erase(deed.scope)
        return count

    async def drop(self, deed, number):
        return await self.index.drop(deed.model), await self.index.collections()


async def compare(doing, store):
    oracle = OracleStore(FakeClock())
    first, second = Side(oracle, oracle.vectors()), Side(store, store.vectors())
    everything = [Ask(Scope(tenant), (1, 0, 0), model, 100) for tenant in TENANTS for model in MAKERS]
    for side in (first, second):
        for model in MAKERS:
            await side.index.drop(model)
            await side.index.prepare(model)
    for number, deed in enumerate([*doing, *everything]):
        assert await first.do(deed, number) == await second.do(deed, number), deed
    assert await first.index.collections() == await second.index.collections()
    await store.close()


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(deeds)
def test_sqlite_finds_what_the_oracle_finds(tmp_path_factory, doing):
    """Owners, ties, limits, counts and errors included."""

    async def run():
        url = f"sqlite:///{tmp_path_factory.mktemp('vectors')}/memory.db"
        options = StoreOptions(synchronous="normal", readers=1)
        await compare(doing, await open_store(url, clock=FakeClock(), options=options))

    asyncio.run(run())


@cache
def url():
    """One schema for all examples: emptying it is much faster than making another."""
    return fresh_url(pool_min=1)


@pytest.mark.slow
@settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)
@given(deeds)
def test_pgvector_finds_what_the_oracle_finds(doing):
    """Owners, ties, limits, counts and errors included."""

    async def run():
        store = await opened(url(), FakeClock())
        for tenant in TENANTS:
            await store.erase(Scope(tenant))
        await compare(doing, store)

    asyncio.run(run())
