"""A conversation is erased by another process while terms and vectors are made of its turns."""

import numpy as np
import pytest

from pagefile import Memory, Settings
from pagefile.ports import Embedder
from pagefile.tiers.episodes import Episodes
from tests.findings.security.looking import tables_with

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
        assert 1 + begun_again == (await derivation.vectors.shelves())[0]
        await memory.rebuild()
        assert [] == await derivation.behind()
