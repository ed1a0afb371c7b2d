"""A conversation is erased by another process while terms and vectors are made of its turns."""

import numpy as np
import pytest

from pagefile import Memory, Settings
from pagefile.errors import StoreUnavailableError
from pagefile.ports import Embedder
from pagefile.tiers.derivation import BATCH, Derivation
from pagefile.tiers.episodes import Episodes
from tests.findings.security.looking import tables_with
from tests.integration.engine.apart_home import ApartIndex

pytestmark = pytest.mark.anyio
SETTINGS = Settings(indexing="manual")


class Same(Embedder):
    """The same vector for every text; while `gap` is set, something happens before it is made."""

    name = "same"
    dimension = 8
    gap = None

    async def embed(self, texts):
        if self.gap is not None:
            gap, self.gap = self.gap, None
            await gap()
        return np.full((len(texts), self.dimension), self.dimension**-0.5, dtype=np.float32)


@pytest.mark.parametrize("begun_again", [False, True])
async def test_nothing_is_made_of_what_was_erased_meanwhile(tmp_path, begun_again):
    """No term and no vector of it is left, others of the same batch have theirs, and one begun again gets its own."""
    url, embedder = f"sqlite:///{tmp_path}/a.db", Same()
    async with (
        Memory.open(url, settings=SETTINGS, embedder=embedder) as memory,
        Memory.open(url, settings=SETTINGS, embedder=Same()) as other,
    ):
        await memory.conversation("chat", user_id="ada").record("ERASED words", "Noted.")
        await memory.conversation("bobs", user_id="bob").record("KEPT words", "Noted.")

        async def gap():
            await other.forget(user_id="ada")
            if begun_again:
                await other.conversation("chat", user_id="eve").record("NEW words", "Noted.")

        embedder.gap = gap
        counts = await memory.rebuild()
        assert 1 + begun_again == counts["vectors"]
        assert [] == await tables_with(url, "ERASED")
        derivation = memory.engine.tier(Episodes).derivation
        assert 1 + begun_again == (await derivation.vectors.collections())[0]
        await memory.rebuild()
        assert [] == await derivation.behind()


async def test_a_conversation_begun_again_is_read_to_its_own_end(tmp_path):
    """It is shorter than the one that was erased: what is said later has its vectors, too."""
    url, embedder = f"sqlite:///{tmp_path}/a.db", Same()
    async with (
        Memory.open(url, settings=SETTINGS, embedder=embedder) as memory,
        Memory.open(url, settings=SETTINGS, embedder=Same()) as other,
    ):
        for number in range(3):
            await memory.conversation("chat", user_id="ada").record(f"words {number}", "Noted.")
        again = other.conversation("chat", user_id="eve")

        async def gap():
            await other.forget(user_id="ada")
            await again.record("first words", "Noted.")

        embedder.gap = gap
        await memory.rebuild()
        await again.record("second words", "Noted.")
        await memory.rebuild()
        assert 2 == (await memory.engine.tier(Episodes).derivation.vectors.collections())[0]


async def test_what_was_read_before_an_erasure_is_read_again(tmp_path, monkeypatch):
    """A conversation of many batches, of which another process erases a turn between two of them: the others are made again."""
    url, home = f"sqlite:///{tmp_path}/a.db", ApartIndex()
    async with (
        Memory.open(url, settings=SETTINGS, embedder=Same(), vectors=home) as memory,
        Memory.open(url, settings=SETTINGS, embedder=Same(), vectors=home) as other,
    ):
        chat = memory.conversation("chat", user_id="ada")
        for number in range(BATCH + 3):
            await chat.record(f"words {number}", "Noted.", id=f"t{number}")
        batch = Derivation._batch

        async def erased_behind(derivation, derived, plan):
            made = await batch(derivation, derived, plan)
            if home.rows:
                monkeypatch.setattr(Derivation, "_batch", batch)
                await other.forget(conversation_id="chat", user_id="ada", turn_id="t0")
            return made

        monkeypatch.setattr(Derivation, "_batch", erased_behind)
        await memory.rebuild()
        assert set(range(2, BATCH + 4)) == {row.seq for row, _ in home.rows.values()}


@pytest.mark.parametrize("when", ["before it is put", "behind that"])
async def test_a_place_apart_owes_what_was_put_before_work_was_cut_short(tmp_path, monkeypatch, when):
    """The conversation is erased, the place has followed, and the database is away when it is to be noted how far things are."""
    url, home, embedder = f"sqlite:///{tmp_path}/a.db", ApartIndex(), Same()
    async with (
        Memory.open(url, settings=SETTINGS, embedder=embedder, vectors=home) as memory,
        Memory.open(url, settings=SETTINGS, embedder=Same(), vectors=home) as other,
    ):
        await memory.conversation("chat", user_id="ada").record("ERASED words", "Noted.")
        await memory.engine.tier(Episodes).derivation.vectors.prepare()
        late = {}

        async def gap():
            late.update(home.rows)
            await other.forget(user_id="ada")
            home.rows.update(late)

        async def away(scope, tier, *args, **kwargs):
            if not str(tier).startswith("terms"):
                raise StoreUnavailableError("it is away")

        monkeypatch.setattr(memory.engine.store.watermarks, "advance", away)
        if when == "behind that":
            home.behind_put = gap
        else:

            async def everything_away():
                monkeypatch.setattr(memory.engine.store.erasures, "redo", away)

            embedder.gap, home.behind_put = gap, everything_away
        with pytest.raises(StoreUnavailableError):
            await memory.rebuild()
        await other.engine.elsewhere.erase()
        assert {} == home.rows
