"""What the how-tos say of the tools that a model is offered."""

from pathlib import Path

import pytest

from pagefile.integrations.langchain import PagefileMiddleware
from tests.findings.marks import finding

DOCS = Path(__file__).parents[3] / "docs" / "howto"


@pytest.fixture
def offered(blocking):
    return {tool.name for tool in PagefileMiddleware(blocking).tools}


@finding("frameworks-F24")
def test_six_tools_are_offered(offered):
    """A model can load, search, recall, remember, correct and retract."""
    assert {"load_tool_history", "search_tool_history", "recall", "remember", "correct", "retract"} == offered


@finding("frameworks-F24")
@pytest.mark.parametrize("page", ["langchain.md", "pydantic-ai.md"])
def test_the_how_to_names_every_tool(offered, page):
    """Each tool that a model is offered is named in the how-to."""
    told = (DOCS / page).read_text(encoding="utf-8")
    assert offered
    assert [] == [name for name in sorted(offered) if f"`{name}`" not in told]


@finding("frameworks-F24")
@pytest.mark.parametrize("page", ["langchain.md", "claude-agent-sdk.md"])
def test_the_how_to_counts_the_tools_rightly(offered, page):
    """The how-to does not say that there are three tools when there are six."""
    told = (DOCS / page).read_text(encoding="utf-8")
    assert len(offered) == 6
    assert "three tools" not in told
