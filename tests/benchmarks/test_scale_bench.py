"""`pagefile bench scale` grows a PostgreSQL, loses nothing between two processes, and sees a statement that reads everything."""

import json

import pytest

from benchmarks import scale
from benchmarks.growing import Growth
from benchmarks.statements import BareQueries, watched
from pagefile import Memory, Settings
from pagefile.settings import EmbedderSettings
from tests.integration.postgres.serving import fresh_url

PLAIN = Settings(worker="apart", embedder=EmbedderSettings(name="none"))


@pytest.mark.slow
@pytest.mark.waits
def test_every_row_is_there(monkeypatch):
    """At two small sizes: each verb, the disk, what grows, the extrapolation; and both processes' turns."""
    monkeypatch.setattr(scale, "WRITTEN", 2)
    monkeypatch.setattr(scale, "A_USER", 2 * scale.COPIES * scale.TURNS)
    report = scale.run(fresh_url(), (200, 400), effort=scale.Effort(calls=2, written=2))
    rows = {row.name: row for row in report.rows}
    for size in ("200", "400"):
        assert {
            f"{size} turns: {what}" for what in ("record p50", "window p50", "recall p50", "on disk")
        } <= rows.keys()
    assert True is rows["turns of two processes lost or doubled"].ok
    assert 1.0 == rows["record: rows looked at"].ratio
    assert 0 < rows["20,000,000 turns: on disk"].value
    json.dumps(report.to_json())


@pytest.mark.anyio
async def test_a_copy_is_a_user_and_everything_read_is_counted():
    """Conversations and turns of a copied user are read like any other's; a list over all users looks at all of them."""
    url = fresh_url()
    async with Memory.open(url, settings=PLAIN) as memory:
        await memory.conversation("c0", user_id="u").record("My bicycle is green.", "Noted.")
    growth = await Growth.open(url)
    await growth.to(7, 3)
    await growth.close()
    async with Memory.open(url, settings=PLAIN) as memory, BareQueries.open(url) as queries:
        assert ["My bicycle is green."] == [
            t.user for t in await memory.conversation("c0~6.2", user_id="u~6").turns()
        ]
        assert 1 <= len(await memory.recall("What colour is the bicycle?", user_id="u~3"))
        looked_at = {}
        chat = memory.conversation("c0~3.1", user_id="u~3")
        for name, call in (("a turn", chat.turns), ("every conversation", memory.conversations)):
            with watched() as asked:
                await call()
            looked_at[name] = await queries.looked_at(asked)
        assert looked_at["a turn"] <= 3
        assert 1 + 7 * 3 <= looked_at["every conversation"]
