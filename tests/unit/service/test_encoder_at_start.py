"""A service loads its encoder when it starts, not when the first question comes."""

import anyio
import pytest

from pagefile import Memory, Settings
from pagefile.models.embedders import UniversalSentenceEncoder
from pagefile.service import app as service
from pagefile.testing import HashingEmbedder


@pytest.mark.parametrize(("turns", "loads"), [(0, False), (1, True)])
async def test_the_encoder_is_loaded_when_there_are_vectors(monkeypatch, tmp_path, turns, loads):
    """Where there is nothing to find, no question needs it."""
    url, loaded = f"sqlite:///{tmp_path}/a.db", anyio.Event()

    ours = HashingEmbedder(UniversalSentenceEncoder.dimension, name=UniversalSentenceEncoder.name)
    manual = Settings(url=url, indexing="manual")
    async with Memory.open(url, embedder=ours, settings=manual) as memory:
        for _ in range(turns):
            await memory.conversation("chat", user_id="ada").record("I adopted a cat", "Lovely")
        await memory.rebuild()

    async def ready(_):
        loaded.set()

    monkeypatch.setattr(UniversalSentenceEncoder, "ready", ready)
    app = service.create_app(manual)
    async with app.router.lifespan_context(app):
        with anyio.move_on_after(5 if loads else 0.3):
            await loaded.wait()
    assert loads is loaded.is_set()
