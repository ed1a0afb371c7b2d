"""LangGraph's own conformance suite for checkpointers."""

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

from pagefile import Memory
from pagefile.integrations.langgraph_checkpoints import PagefileSaver

EXPECTED = {"put", "put_writes", "get_tuple", "list", "delete_thread", "copy_thread", "delete_for_runs"}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_every_capability_passes(kind, tmp_path):
    """All that a checkpointer must have, and copying and deleting by run; pruning is not there."""

    @checkpointer_test(name="Pagefile")
    async def saver():
        url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path}/c.db"
        async with Memory.open(url, embedder="none") as memory:
            yield PagefileSaver(memory)

    report = await validate(saver)
    tried = {name: result for name, result in report.results.items() if result.detected}
    assert [] == [(name, result.failures) for name, result in tried.items() if not result.passed]
    assert set(tried) == EXPECTED
