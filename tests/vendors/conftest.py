"""Vendors' own suites, each where what it tests is installed: `make test` has those of the main lock, `make frameworks` all others."""

from importlib.util import find_spec

NEEDED = {
    "test_adk_services.py": ("google.adk",),
    "test_claude_session_store.py": ("claude_agent_sdk",),
    "test_langchain_standard.py": ("langchain_tests", "langchain"),
    "test_langgraph_checkpointer.py": ("langgraph.checkpoint.conformance",),
    "test_langgraph_store.py": ("langgraph.graph",),
    "test_openai_agents_session.py": ("agents",),
}


def _is_installed(module):
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


collect_ignore = [file for file, modules in NEEDED.items() if not all(map(_is_installed, modules))]
