"""What a placeholder says of a result is what a reader needs to know of it, judged on results as tools return them."""

import pytest

from benchmarks.judged import Case, cases
from benchmarks.judged.score import lacking, misleading
from pagefile import Memory
from pagefile.standalone import ToolResultManager
from pagefile.window.placeholder import placeholder_uuid

#: Judged results that are long enough to be archived.
LONG = [
    pytest.param(case, id=case.name)
    for case in cases()
    if len(case.result) > ToolResultManager.ARCHIVE_THRESHOLD
]


@pytest.mark.parametrize("case", LONG)
async def test_what_is_shown_of_a_summary_says_what_is_in_the_result(case: Case):
    """The 200 characters that are shown have the key fact, and nothing misleads, neither there nor as a source."""
    async with Memory.open("memory://") as memory:
        manager = ToolResultManager(memory)
        shown = await manager.process_tool_result(case.tool, case.input, case.result, "c")
        page = await memory.page(placeholder_uuid(shown) or "")
    assert [] == lacking(page.result_summary, case)
    assert [] == misleading(page.result_summary, page.sources, case)
    assert 200 <= len(page.result_summary) <= 500 or case.kind == "odd"
