"""The frameworks that are installed: `make test` has those of the main lock, `make frameworks` all others."""

from importlib.util import find_spec

import pytest

from pagefile import BlockingMemory, Memory, Settings

from .attacked import FACT

#: The module that each file needs.
NEEDED = {
    "test_adk.py": "google.adk",
    "test_agent_framework.py": "agent_framework",
    "test_agno.py": "agno",
    "test_claude.py": "claude_agent_sdk",
    "test_crewai.py": "crewai",
    "test_langchain.py": "langchain",
    "test_langgraph.py": "langgraph.graph",
    "test_llama_index.py": "llama_index.core",
    "test_openai_agents.py": "agents",
    "test_pydantic_ai.py": "pydantic_ai",
    "test_smolagents.py": "smolagents",
    "test_strands.py": "strands",
}


def is_installed(module):
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


#: A framework's contract, and its runs beyond it.
collect_ignore = [
    name
    for file, module in NEEDED.items()
    if not is_installed(module)
    for name in (file, file.replace(".py", "_runs.py"))
]
# Those of the main lock are played by tests/docs.
MAIN = {"test_langchain.py", "test_langgraph.py", "test_pydantic_ai.py", "test_claude.py"}
if set(NEEDED) - MAIN <= set(collect_ignore):
    collect_ignore.append("test_examples.py")


@pytest.fixture
async def memory(tmp_path):
    """A memory that knows a fact of the user's."""
    url = f"sqlite:///{tmp_path}/runs.db"
    async with Memory.open(url, settings=Settings(language="en"), embedder="none") as opened:
        await opened.remember(FACT, user_id="ada")
        yield opened


@pytest.fixture
def blocking(tmp_path):
    """The same, for frameworks that wait in threads."""
    url = f"sqlite:///{tmp_path}/blocking.db"
    with BlockingMemory.open(url, settings=Settings(language="en"), embedder="none") as opened:
        opened.remember(FACT, user_id="ada")
        yield opened
