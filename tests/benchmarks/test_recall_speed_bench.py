"""The speed of recall is measured, judged by ratios of one run, and told as every other benchmark is."""

import json

from benchmarks import recall_speed
from pagefile.text.tokens import open_counter


async def test_every_promise_has_a_row(tmp_path):
    """Size, company, a cold start with their limits; numpy's scan, memory, pauses and the encoder's own numbers to be known."""
    told = []
    effort = recall_speed._Effort(many=60, few=20, most=80, others=3, encoded=4, rounds=1, calls=2)
    rows = await recall_speed._measured(tmp_path, open_counter(), effort, told.append)
    assert [row.limit for row in rows] == [3.0, *[None] * 5, 1.2, None, None, 0.5]
    assert [row.unit for row in rows] == [*["ms"] * 5, "MB", "ms", "ms", "turns/s", "s"]
    assert all(row.value > 0 for row in rows)
    assert "60 turns" in rows[0].name
    assert len(told) == 8
    json.dumps([row.note for row in rows])
