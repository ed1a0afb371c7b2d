"""Vector stores: similar vectors are found, another scope's never are."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import anyio
import numpy as np
import pytest

from pagefile.errors import ClosedError, VectorIndexError
from pagefile.ports import Collection, EmbeddingModel, Part, Store, Vector, VectorHit, VectorIndex, VectorRow
from pagefile.records import Scope
from pagefile.stores.erasure import scope_key
from pagefile.testing.contracts.base import Contract, refused
from pagefile.testing.drafts import AT, done
from pagefile.testing.scopes import CHAT

MODEL = EmbeddingModel("测试/embedder 1", 4)
#: Tolerance for similarities: stores may use half precision.
_NEAR_ENOUGH = 2e-3
#: Ids designed to be mistaken for each other, or for part of a filter.
_QUOTES = ("a' or '1' == '1", 'a" or true or "', 'a\\" || 1 == 1 || "')
_AWKWARD = ("a", *_QUOTES, "a\\", "a\\\\", "中文：对话 %_{x}", "a\nb\t", "a/b:c")


def vector(*numbers: float) -> Vector:
    return np.array(numbers, np.float32)


async def said(store: Store, scope: Scope, seq: int, direction: Sequence[float]) -> VectorRow:
    """A turn of a conversation as logged, and its vector. Turns of a conversation must come in order."""
    turn_id = f"turn-{seq}"
    await store.log.append(done(turn_id, scope=scope))
    return VectorRow(scope, seq, turn_id, AT, vector(*direction))


def seqs(found: Sequence[VectorHit]) -> list[int]:
    return [near.seq for near in found]


class VectorIndexContract(Contract):
    """`VectorIndex`; the turns that the vectors belong to are in the store."""

    @pytest.fixture
    @abstractmethod
    async def index(self, store: Store) -> Any:
        """An empty vector store beside the store."""

    async def test_a_home_may_tell_who_has_a_vector(self, store: Store, index: VectorIndex) -> None:
        """By position, after one and up to another, in one conversation; None if it cannot tell."""
        await index.prepare(MODEL)
        rows = [await said(store, CHAT, seq, (1, 0, 0, 0)) for seq in range(1, 5)]
        await index.put(MODEL, [*rows[:2], rows[3]])
        found = await index.held(MODEL, CHAT, 1, 4)
        if found is not None:
            fitting = [(one.seq, one.turn_id, one.fits) for one in found]
            assert [(2, "turn-2", True), (4, "turn-4", True)] == fitting
            assert await index.held(EmbeddingModel("unknown", 4), CHAT, 0, 9) == []

    async def test_what_is_near_comes_first(self, store: Store, index: VectorIndex) -> None:
        """With its cosine, whatever the vectors' lengths; as many as requested, or all there are."""
        await index.prepare(MODEL)
        directions = ((1, 0, 0, 0), (1, 1, 0, 0), (0, 1, 0, 0), (-2, 0, 0, 0))
        rows = [await said(store, CHAT, seq, direction) for seq, direction in enumerate(directions, 1)]
        await index.put(MODEL, rows)
        found = await index.search(MODEL, CHAT, vector(3, 0, 0, 0), 10)
        assert ["turn-1", "turn-2", "turn-3", "turn-4"] == [near.turn_id for near in found]
        assert [1, 2, 3, 4] == seqs(found)
        assert {"chat"} == {near.conversation for near in found}
        assert pytest.approx([1, 0.7071, 0, -1], abs=_NEAR_ENOUGH) == [near.similarity for near in found]
        assert [1, 2] == seqs(await index.search(MODEL, CHAT, vector(3, 0, 0, 0), 2))
        assert [] == await index.search(MODEL, CHAT, vector(3, 0, 0, 0), 0)

    async def test_a_scope_gives_its_own(self, store: Store, index: VectorIndex) -> None:
        """A user's, one of their conversations', or a tenant's; a conversation without a user only by name. All others find nothing."""
        owners = {"mine": "ada", "mine too": "ada", "bob's": "bob", "nobody's": None}
        scopes = [*(Scope("t", user, name) for name, user in owners.items()), Scope("other", "ada", "mine")]
        await index.put(MODEL, [await said(store, scope, 1, (1, 2, 3, 4)) for scope in scopes])

        async def found(scope: Scope) -> list[str]:
            near = await index.search(MODEL, scope, vector(1, 2, 3, 4), 10)
            return sorted(one.conversation for one in near)

        assert ["mine", "mine too"] == await found(Scope("t", "ada"))
        assert ["bob's"] == await found(Scope("t", "bob"))
        assert ["mine"] == await found(Scope("t", "ada", "mine"))
        assert [] == await found(Scope("t", None, "bob's"))
        assert ["nobody's"] == await found(Scope("t", None, "nobody's"))
        assert [] == await found(Scope("t", "ada", "nobody's"))
        assert ["bob's", "mine", "mine too", "nobody's"] == await found(Scope("t"))
        assert ["mine"] == await found(Scope("other"))
        for nobody in (("t", "eve"), ("t", "ada", "bob's"), ("t", "ada", "gone"), ("third", "ada")):
            assert [] == await found(Scope(*nobody))

    async def test_ids_are_only_ids(self, store: Store, index: VectorIndex) -> None:
        """Quotes, backslashes, wildcards and other scripts in them change nothing."""
        scopes = [Scope(f"t {name}", f"u {name}", name) for name in _AWKWARD]
        await index.put(MODEL, [await said(store, scope, 1, (1, 0, 0, 0)) for scope in scopes])
        for scope in scopes:
            for asked in (scope, Scope(scope.tenant, scope.user), Scope(scope.tenant)):
                near = await index.search(MODEL, asked, vector(1, 0, 0, 0), 100)
                assert [scope.conversation] == [one.conversation for one in near]
        for scope in scopes:
            assert 1 == await index.erase(Scope(scope.tenant, scope.user))
        assert [Collection(MODEL, 0)] == await index.collections()

    async def test_a_vector_takes_the_place_of_the_one_before(self, store: Store, index: VectorIndex) -> None:
        """In another call, in the same call, and any number of times."""
        row = await said(store, CHAT, 1, (1, 0, 0, 0))
        other = VectorRow(CHAT, 1, "turn-1", AT, vector(0, 1, 0, 0))
        for rows in ([row], [row], [other], [row, other]):
            await index.put(MODEL, rows)
        (near,) = await index.search(MODEL, CHAT, vector(0, 1, 0, 0), 10)
        assert pytest.approx(1, abs=_NEAR_ENOUGH) == near.similarity
        assert [Collection(MODEL, 1)] == await index.collections()

    async def test_what_was_put_is_found_at_once(self, store: Store, index: VectorIndex) -> None:
        """By the next search, sequentially and concurrently."""
        for seq in range(1, 6):
            await index.put(MODEL, [await said(store, CHAT, seq, (1, seq, 0, 0))])
            found = await index.search(MODEL, CHAT, vector(0, 1, 0, 0), 10)
            assert set(range(1, seq + 1)) == set(seqs(found))
        rows = [await said(store, CHAT, seq, (0, 0, 1, seq)) for seq in range(6, 26)]
        async with anyio.create_task_group() as group:
            for row in rows:
                group.start_soon(index.put, MODEL, [row])
        assert set(range(6, 26)) == set(seqs(await index.search(MODEL, CHAT, vector(0, 0, 1, 1), 20)))

    async def test_zeros_are_near_nothing(self, store: Store, index: VectorIndex) -> None:
        """Neither as the query nor as a stored vector."""
        zeros = await said(store, CHAT, 1, (0, 0, 0, 0))
        await index.put(MODEL, [zeros, await said(store, CHAT, 2, (1, 0, 0, 0))])
        assert [2] == seqs(await index.search(MODEL, CHAT, vector(1, 1, 0, 0), 10))
        assert [] == await index.search(MODEL, CHAT, vector(0, 0, 0, 0), 10)
        await index.put(MODEL, [VectorRow(CHAT, 2, "turn-2", AT, vector(0, 0, 0, 0))])
        assert [] == await index.search(MODEL, CHAT, vector(1, 1, 0, 0), 10)

    async def test_another_dimension_is_refused(self, store: Store, index: VectorIndex) -> None:
        """With both numbers and what to do; nothing of the call is stored. So are values that are not numbers."""
        rows = [await said(store, CHAT, 1, (1, 0, 0, 0)), await said(store, CHAT, 2, (1, 0, 0))]
        await refused(VectorIndexError, index.put(MODEL, rows), match=r"3 dimensions.* 4.*pagefile rebuild")
        rows[1] = await said(store, CHAT, 3, (1, 0, float("nan"), 0))
        await refused(VectorIndexError, index.put(MODEL, rows), match="NaN")
        await refused(VectorIndexError, index.search(MODEL, CHAT, vector(1, 0), 10), match="2 dimensions")
        assert [] == await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10)

    async def test_makers_are_side_by_side(self, store: Store, index: VectorIndex) -> None:
        """Each is searched, counted and dropped separately; an unknown one has nothing."""
        other, wider = EmbeddingModel("other", 4), EmbeddingModel(MODEL.name, 5, "2026-02")
        assert [] == await index.collections()
        assert [] == await index.search(other, CHAT, vector(1, 0, 0, 0), 10)
        assert 0 == await index.drop(other)
        for model in (MODEL, wider, other, MODEL):
            await index.prepare(model)
        assert [Collection(other, 0), Collection(MODEL, 0), Collection(wider, 0)] == await index.collections()
        assert [] == await index.models()
        row = await said(store, CHAT, 1, (1, 0, 0, 0))
        await index.put(MODEL, [row, await said(store, CHAT, 2, (1, 0, 0, 0))])
        await index.put(wider, [VectorRow(CHAT, 1, "turn-1", AT, vector(0, 0, 0, 0, 1))])
        assert [1, 2] == sorted(seqs(await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10)))
        assert [1] == seqs(await index.search(wider, CHAT, vector(0, 0, 0, 0, 1), 10))
        assert [] == await index.search(other, CHAT, vector(1, 0, 0, 0), 10)
        assert [Collection(other, 0), Collection(MODEL, 2), Collection(wider, 1)] == await index.collections()
        assert [MODEL, wider] == await index.models()
        assert 2 == await index.drop(MODEL)
        assert [Collection(other, 0), Collection(wider, 1)] == await index.collections()
        assert [] == await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10)
        assert [1] == seqs(await index.search(wider, CHAT, vector(0, 0, 0, 0, 1), 10))
        await index.put(MODEL, [row])
        assert [1] == seqs(await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10))

    async def test_what_is_erased_is_gone(self, store: Store, index: VectorIndex) -> None:
        """A conversation, a user, a tenant; from every model, counted, and nothing else."""
        other = EmbeddingModel("other", 4)
        names = (("t", "ada", "a"), ("t", "ada", "b"), ("t", "bob", "c"), ("t", None, "d"), ("u", "ada", "a"))
        rows = [await said(store, Scope(*name), 1, (1, 0, 0, 0)) for name in names]
        for model in (MODEL, other):
            await index.put(model, rows)

        async def left() -> list[str]:
            found: list[str] = []
            for tenant in ("t", "u"):
                near = await index.search(MODEL, Scope(tenant), vector(1, 0, 0, 0), 10)
                found += sorted(f"{tenant}/{one.conversation}" for one in near)
            return found

        assert ["t/a", "t/b", "t/c", "t/d", "u/a"] == await left()
        assert 0 == await index.erase(Scope("t", "bob", "a"))
        assert 2 == await index.erase(Scope("t", "ada", "a"))
        assert 0 == await index.erase(Scope("t", "ada", "a"))
        assert ["t/b", "t/c", "t/d", "u/a"] == await left()
        assert 2 == await index.erase(Scope("t", "ada"))
        assert ["t/c", "t/d", "u/a"] == await left()
        # Without a user, whoever owns it.
        assert 2 == await index.erase(Scope("t", None, "c"))
        assert 2 == await index.erase(Scope("t"))
        assert ["u/a"] == await left()
        assert [Collection(other, 1), Collection(MODEL, 1)] == await index.collections()

    async def test_vectors_inside_the_database_go_with_what_the_store_erases(
        self, store: Store, index: VectorIndex
    ) -> None:
        """From every model, counted, as part of the erasure: no separate step is needed."""
        if index.apart:
            pytest.skip("it is outside the store's database, and follows its erasures")
        other, kept = EmbeddingModel("other", 4), Scope("t", "bob", "c")
        scopes = [Scope("t", "ada", "a"), Scope("t", "ada", "b"), Scope("t", None, "d"), kept]
        rows = [await said(store, scope, 1, (1, 0, 0, 0)) for scope in scopes]
        for model in (MODEL, other):
            await index.put(model, rows)
        assert 4 == len(await index.search(MODEL, Scope("t"), vector(1, 0, 0, 0), 10))
        assert 4 == (await store.erase(Scope("t", "ada"))).counts["conversation_episodes"]
        assert 2 == (await store.erase(Scope("t", None, "d"))).counts["conversation_episodes"]
        assert "conversation_episodes" not in (await store.erase(Scope("t", "ada"))).counts
        (left,) = await index.search(MODEL, Scope("t"), vector(1, 0, 0, 0), 10)
        assert "c" == left.conversation
        assert [Collection(other, 1), Collection(MODEL, 1)] == await index.collections()
        assert 2 == (await store.erase(kept, Part("turn-1"))).counts["conversation_episodes"]
        assert [] == await index.search(MODEL, Scope("t"), vector(1, 0, 0, 0), 10)
        await index.put(MODEL, [await said(store, kept, 2, (1, 0, 0, 0))])
        assert 1 == (await store.erase(Scope("t"))).counts["conversation_episodes"]

    async def test_what_was_erased_can_be_put_again(self, store: Store, index: VectorIndex) -> None:
        row = await said(store, CHAT, 1, (1, 0, 0, 0))
        for _ in range(2):
            await index.put(MODEL, [row])
            assert [1] == seqs(await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10))
            assert 1 == await index.erase(CHAT)
            assert [] == await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10)

    async def test_a_home_apart_erases_what_was_put_before(self, store: Store, index: VectorIndex) -> None:
        """By the erased keys, from every model; not what was stored since for a user who started again."""
        if not index.apart:
            pytest.skip("it is in the store's own database, and erased with it")
        late = Scope("t", None, "late")
        scopes = (Scope("t", "ada", "a"), Scope("t", "bob", "b"), Scope("u", "ada", "a"), late)
        rows = {scope: await said(store, scope, 1, (1, 0, 0, 0)) for scope in scopes}
        other = EmbeddingModel("another", 4)
        for model in (MODEL, other):
            await index.put(model, list(rows.values()), epoch=4)
        await index.put(MODEL, [await said(store, Scope("t", "ada", "a"), 2, (1, 0, 0, 0))], epoch=5)
        # Each of a user's conversations is named too: this one only got its owner after its vector was stored.
        erased = {scope_key("t", "ada"): 5, scope_key("t", None, "late"): 5}
        assert 4 == await index.erase_before(erased)
        assert 0 == await index.erase_before(erased)

        async def left(scope: Scope) -> list[tuple[str, int]]:
            found = await index.search(MODEL, scope, vector(1, 0, 0, 0), 10)
            return [(near.conversation, near.seq) for near in found]

        assert [("a", 2), ("b", 1)] == await left(Scope("t"))
        assert [("a", 1)] == await left(Scope("u"))
        assert [] == await left(late)
        assert 3 == await index.erase_before({scope_key("t"): 9, scope_key("nobody"): 8})
        assert [] == await left(Scope("t"))
        assert [Collection(other, 1), Collection(MODEL, 1)] == await index.collections()

    async def test_nothing_is_put_with_nothing(self, index: VectorIndex) -> None:
        await index.put(MODEL, [])
        assert [] == await index.search(MODEL, CHAT, vector(1, 0, 0, 0), 10)

    async def test_it_says_what_it_is(self, index: VectorIndex) -> None:
        """A name for receipts, and its kind and location."""
        assert index.name
        assert {"backend", "version", "place"} <= set(await index.describe())

    async def test_a_closed_home_refuses(self, index: VectorIndex) -> None:
        """Every verb raises `ClosedError`; closing is idempotent."""
        for _ in range(2):
            await index.close()
        reads = index.search(MODEL, CHAT, vector(1, 0, 0, 0), 1), index.collections(), index.describe()
        writes = index.prepare(MODEL), index.put(MODEL, []), index.drop(MODEL), index.erase(CHAT)
        await refused(ClosedError, *reads, *writes)
