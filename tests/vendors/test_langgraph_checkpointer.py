"""LangGraph's own conformance suite for checkpointers, capability by capability."""

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

from pagefile import Memory
from pagefile.integrations.langgraph_checkpoints import PagefileSaver

#: All that a checkpointer must have, and copying and deleting by run. Pruning, which is optional, is not there.
CAPABILITIES = ("put", "put_writes", "get_tuple", "list", "delete_thread", "copy_thread", "delete_for_runs")


def saver_over(url):
    @checkpointer_test(name="Pagefile")
    async def saver():
        async with Memory.open(url, embedder="none") as memory:
            yield PagefileSaver(memory)

    return saver


@pytest.fixture(params=["memory", "sqlite"])
def saver(request, tmp_path):
    return saver_over("memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/c.db")


@pytest.mark.parametrize("capability", CAPABILITIES)
async def test_a_capability_passes(saver, capability):
    report = await validate(saver, capabilities={capability})
    result = report.results[capability]
    assert result.detected
    assert result.passed, result.failures


async def test_no_other_capability_is_claimed():
    report = await validate(saver_over("memory://"))
    assert set(CAPABILITIES) == {name for name, result in report.results.items() if result.detected}
