"""Files of the reference memory server and of Anthropic's memory tool, taken over."""

import json

import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool

from pagefile import Memory
from pagefile.compat.imports import take_files, take_graph
from pagefile.compat.knowledge_graph import KnowledgeGraph
from pagefile.compat.memory_files import MemoryFiles
from pagefile.errors import TransferError

LINES = [
    {"type": "entity", "name": "Anna", "entityType": "person", "observations": ["speaks Greek", "sails"]},
    {"type": "entity", "name": "Bern", "entityType": "city", "observations": []},
    {"type": "entity", "name": "Router", "entityType": "thing", "observations": ["password: hunter2-abc!"]},
    {"type": "relation", "from": "Anna", "to": "Bern", "relationType": "lives in"},
]


@pytest.fixture
async def memory():
    async with Memory.open("memory://", embedder="none") as opened:
        yield opened


async def test_a_graph_comes_whole_and_once(memory, tmp_path):
    file = tmp_path / "memory.jsonl"
    file.write_text("\n".join(map(json.dumps, LINES)))
    first = await take_graph(memory, file, "ada")
    assert (3, 1) == (first["fact"], min(1, first["rejected"]))
    graph = await KnowledgeGraph.of(memory, "ada").graph()
    assert ["Anna", "Bern"] == [one["name"] for one in graph["entities"] if one["name"] != "Router"]
    assert [{key: LINES[3][key] for key in ("from", "to", "relationType")}] == graph["relations"]
    assert 0 == (await take_graph(memory, file, "ada"))["fact"]
    assert graph["relations"] == (await KnowledgeGraph.of(memory, "ada").graph())["relations"]


async def test_what_is_no_graph_is_refused(memory, tmp_path):
    for text in ('{"type": "turn"}', "not json", "[1]"):
        (tmp_path / "x.jsonl").write_text(text)
        with pytest.raises(TransferError):
            await take_graph(memory, tmp_path / "x.jsonl", "ada")
    with pytest.raises(TransferError):
        await take_graph(memory, tmp_path / "none", "ada")


async def test_the_memory_tools_folder_comes_whole_and_once(memory, tmp_path):
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path))
    for path, text in (("/memories/a.md", "one\n"), ("/memories/d/中文.md", "二\n")):
        theirs.call({"command": "create", "path": path, "file_text": text})
    assert {"file": 2} == dict(await take_files(memory, tmp_path, "ada"))
    files = MemoryFiles.of(memory, "ada")
    assert "二" in await files.call({"command": "view", "path": "/memories/d/中文.md"})
    assert {"known": 2} == dict(await take_files(memory, tmp_path, "ada"))
    with pytest.raises(TransferError):
        await take_files(memory, tmp_path / "none", "ada")
