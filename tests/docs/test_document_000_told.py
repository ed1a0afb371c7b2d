"""What document 000 leaves open or takes from elsewhere, and where its page says so."""

import re

import pytest

from pagefile import Conversation
from pagefile.standalone import HISTORY_TOOL_PROMPT, ToolResultManager, tool_schemas

from .pages import DOCS
from .tables import rows

PAGE = DOCS / "documents" / "000.md"
TEXT = PAGE.read_text(encoding="utf-8")

#: The document's open questions, and what answers each.
ANSWERS = {
    "摘要生成": "archive.synopsis",
    "部分加载": "Conversation.load",
    "跨会话复用": "Conversation.fetched",
    "清理策略": "archive.retention_days",
    "前端展示": "GET /v1/pages",
}
#: The files that the document would change, and what takes the place of each.
FILES = {
    "chat_service.py": ("Conversation.step", Conversation.step),
    "lightrag_service.py": ("ToolResultManager.wrap", ToolResultManager.wrap),
    "configs.py": ("HISTORY_TOOL_PROMPT", HISTORY_TOOL_PROMPT),
    "opdoc.py": ("tool_schemas", tool_schemas),
}


@pytest.mark.parametrize("question", ANSWERS)
def test_every_open_question_has_an_answer(question: str):
    """S0-70 … S0-74: a name that can be used; that it is there is looked up in test_documents.py."""
    (answer,) = [where for says, where, _ in rows(PAGE) if says.startswith(question)]
    assert ANSWERS[question] in answer


def test_every_place_to_integrate_has_its_counterpart():
    """S0-75: the chat loop, the retriever, the agent's configuration and the tool."""
    ((says, _, note),) = [row for row in rows(PAGE) if "`chat_service.py`" in row[0]]
    assert list(FILES) == re.findall(r"`([\w.]+\.py)`", says)
    assert [name for name, _ in FILES.values()] == re.findall(r"`(?:pagefile[\w.]*:)?([\w.]+)`", note)
    assert all(there for _, there in FILES.values())


@pytest.mark.parametrize(
    ("title", "place"),
    [
        ("MemGPT", "research.memgpt.ai"),
        ("Letta", "letta.com"),
        ("Deep Research", "arxiv.org/html/2506.18096"),
    ],
)
def test_what_it_builds_on_is_cited(title: str, place: str):
    """S0-76."""
    assert re.search(rf"\[{title}[^\]]*\]\(https://[^)]*{re.escape(place)}[^)]*\)", TEXT)


@pytest.mark.parametrize("number", range(1, 9))
def test_every_contradiction_is_told(number: int):
    """C0-1 … C0-8: whoever knows the document reads what became of the place."""
    assert re.search(rf"\bC0-{number}\b", TEXT)
