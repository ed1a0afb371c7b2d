"""A service loads its encoder when it starts, not when the first question comes."""

import anyio
import pytest

from pagefile import Memory, Settings
from pagefile.models.embedders import MemoryEncoder
from pagefile.service import app as service
from pagefile.testing import HashingEmbedder


@pytest.mark.parametrize("turns", [0, 1])
async def test_the_encoder_is_loaded_at_start(monkeypatch, tmp_path, turns):
    """Where nothing is indexed yet, too: the first turns are compared with the question before they are."""
    url, loaded = f"sqlite:///{tmp_path}/a.db", anyio.Event()

    ours = HashingEmbedder(MemoryEncoder.dimension, name=MemoryEncoder.name)
    manual = Settings(url=url, indexing="manual")
    async with Memory.open(url, embedder=ours, settings=manual) as memory:
        for _ in range(turns):
            await memory.conversation("chat", user_id="ada").record("I adopted a cat", "Lovely")
        await memory.rebuild()

    async def ready(_):
        loaded.set()

    monkeypatch.setattr(MemoryEncoder, "ready", ready)
    app = service.create_app(manual)
    async with app.router.lifespan_context(app):
        with anyio.fail_after(5):
            await loaded.wait()
