"""What requirements ask to be told: which plans were not taken, in which order the phases stand, where a document's files went."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from pagefile import Memory, Settings
from pagefile.settings import FactSettings
from tests.integration.langchain.models import Recorder
from tests.integration.pydantic_ai.agents import Script

from .pages import DOCS
from .tables import rows, tables

#: What document 002 leaves to choose from and we did not choose: a name of it, and the column that there would be.
NOT_TAKEN = {
    "summary_updated_at": ("conversations", "summary"),
    "summary_message_count": ("conversations", "summary_message_count"),
    "vector_cosine_ops": ("ai_message", "embedding"),
}
#: The files that documents 003 and 004 list as changed.
FILES = {
    "003": ["memory.py", "pydantic_agent.py", "claude_agent.py"],
    "004": [
        "src/agents/memory/prompt.py",
        "src/agents/lead_agent/prompt.py",
        "src/agents/lead_agent/agent.py",
        "pyproject.toml",
        "docs/MEMORY_IMPROVEMENTS.md",
        "CLAUDE.md",
        "config.example.yaml",
    ],
}
PHASES = [
    "pagefile.standalone.conversation_summarizer",
    "pagefile.standalone.episodic_memory",
    "pagefile.integrations.langgraph.graph",
]


def page(document: str) -> Path:
    return DOCS / "documents" / f"{document}.md"


def imports(module: str) -> set[str]:
    """The modules and names that a module imports, at its top or inside, and what it uses of the modules."""
    source = Path(str(find_spec(module).origin)).read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    found = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    plain = {name.name for node in found if isinstance(node, ast.Import) for name in node.names}
    places = {
        name.name: node.module for node in found if isinstance(node, ast.ImportFrom) for name in node.names
    }
    plain |= {
        f"{places[node.value.id]}.{node.value.id}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in places
    }
    return plain.union(
        *(
            {str(node.module), *(f"{node.module}.{name.name}" for name in node.names)}
            for node in found
            if isinstance(node, ast.ImportFrom)
        )
    )


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_a_plan_that_was_not_taken_is_told(name, tmp_path, monkeypatch):
    """S2-12, S2-31: with the reason, and it is so: no column of a database is it."""
    monkeypatch.chdir(tmp_path)
    (where,) = [where for says, where, _ in rows(page("002")) if name in says]
    assert where.startswith("not taken: ")
    table, column = NOT_TAKEN[name]
    assert column not in tables()[table]


def test_the_phases_stand_in_the_documents_order():
    """S2-54, S2-55: told one after the other, and none leans on a later one, so that each could be had before the next."""
    text = page("002").read_text(encoding="utf-8")
    places = [text.index(f"### Phase {number}:") for number in (1, 2, 3)]
    assert sorted(places) == places
    summary, episodes, graph = map(imports, PHASES)
    names = {"pagefile.standalone.ConversationSummarizer", "pagefile.standalone.ConversationEpisodicMemory"}
    assert names <= graph
    for early in (summary, episodes):
        assert set() == {name for name in early if "langgraph" in name or "integrations" in name}
    assert set() == {name for name in summary if "episodic" in name.lower()}


@pytest.mark.parametrize("document", FILES)
def test_every_file_of_a_document_has_its_place(document):
    """S3-47, S4-43: where its work is done here, or why it is not; that the place exists is looked up elsewhere."""
    told = {says: where for says, where, _ in rows(page(document))}
    for file in FILES[document]:
        (where,) = {where for says, where in told.items() if f"`{file}`" in says}
        assert "`" in where or where.startswith("not taken: ")


async def test_what_document_003s_files_do_is_done_where_it_is_told():
    """S3-47: a search that returns a mapping, as the document's own tool does, is in memory in each of the places named."""
    places = {says.strip("`"): where.strip("`") for says, where, _ in rows(page("003"))}
    found = {
        "result": [
            {"page_num": 85, "snippet": "母线失压时先断开断路器。", "reg_id": "angui_2024", "score": 0.0163}
        ]
    }
    agent = import_module(places["memory.py"]).AgentWithMemory()
    agent._update_memory("smart_search", found)
    module, _, name = places["pydantic_agent.py"].partition(":")
    script = Script(("smart_search", {"query": "母线"}), "先断开断路器。", "再说一遍。")
    async with Memory.open("memory://") as memory:
        capability = getattr(import_module(module), name)(
            memory, user_id="u", conversation_id="c", history=False
        )
        run = script.agent(capability)
        run.tool_plain(lambda query: found, name="smart_search")
        for question in ("母线失压怎么办？", "然后呢？"):
            await run.run(question)
    assert "## [1] angui_2024 P85\n母线失压时先断开断路器。" in agent.ask("然后呢？")
    assert "## [1] angui_2024 P85\n母线失压时先断开断路器。" in script.sent[-1].memory


async def test_what_document_004s_files_do_is_done_where_it_is_told():
    """S4-43: each place that is named chooses the fact that the question is about, and leaves the others out."""
    places = {says: where.strip("`") for says, where, _ in rows(page("004"))}
    prompt = import_module(places["`src/agents/memory/prompt.py`"])
    facts = [f"The user keeps bees on roof number {number}" for number in range(200)]
    about = "The user is allergic to penicillin"
    data = {"facts": [{"content": fact, "confidence": 0.8} for fact in (*facts, about)]}
    said = prompt.format_memory_for_injection(data, max_tokens=200, current_context="penicillin allergy?")
    assert about in said
    assert facts[-1] not in said
    agents = "`src/agents/lead_agent/prompt.py`, `src/agents/lead_agent/agent.py`"
    module, _, name = places[agents].partition(":")
    model = Recorder(script=[AIMessage("No.")])
    async with Memory.open(
        "memory://", settings=Settings(facts=FactSettings(max_injection_tokens=200))
    ) as memory:
        for fact in (*facts[:40], about):
            await memory.remember(fact, user_id="u", category="context")
        middleware = getattr(import_module(module), name)(memory, user_id="u", conversation_id="c")
        agent = create_agent(model, [], middleware=[middleware])
        await agent.ainvoke({"messages": [HumanMessage("May I take penicillin, with my allergy?")]})
    sent = "\n".join(message.text for message in model.calls[-1])
    assert about in sent
    assert sum(fact in sent for fact in facts) < 40
