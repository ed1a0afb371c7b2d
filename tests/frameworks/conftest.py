"""The frameworks that are installed: `make test` has those of the main lock, `make frameworks` all others."""

from importlib.util import find_spec

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
