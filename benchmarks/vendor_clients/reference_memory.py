"""The `mcp` client on the reference memory server's tools, ours and the reference server's own, which must answer the same.

Runs in an environment of its own: python reference_memory.py URL, in a folder where `npm install @modelcontextprotocol/server-memory` was run.
"""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from told import tried

ANNA = {"name": "Anna", "entityType": "person", "observations": ["speaks Greek"]}
BERN = {"name": "Bern", "entityType": "city", "observations": []}
LIVES = {"from": "Anna", "to": "Bern", "relationType": "lives in"}
CALLS = [
    ("create_entities", {"entities": [ANNA, BERN]}),
    ("create_entities", {"entities": [ANNA]}),
    ("create_relations", {"relations": [LIVES]}),
    ("add_observations", {"observations": [{"entityName": "Anna", "contents": ["speaks Greek", "sails"]}]}),
    ("add_observations", {"observations": [{"entityName": "Zoe", "contents": ["x"]}]}),
    ("read_graph", {}),
    ("search_nodes", {"query": "GREEK"}),
    ("open_nodes", {"names": ["Bern"]}),
    ("delete_observations", {"deletions": [{"entityName": "Anna", "observations": ["sails"]}]}),
    ("delete_relations", {"relations": [LIVES]}),
    ("delete_entities", {"entityNames": ["Anna"]}),
    ("read_graph", {}),
]


async def answers(server: StdioServerParameters) -> list[object]:
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        names = sorted(tool.name for tool in (await session.list_tools()).tools)
        found: list[object] = [names]
        for name, arguments in CALLS:
            answer = (await session.call_tool(name, arguments)).model_dump(mode="json", by_alias=True)
            structured = None if answer["isError"] else answer["structuredContent"]
            found.append((answer["isError"], structured))
        return found


def main() -> None:
    folder = tempfile.mkdtemp()
    ours = StdioServerParameters(
        command=os.environ["PAGEFILE_PYTHON"],
        args=[
            "-m",
            "pagefile",
            "mcp",
            "serve",
            "--as",
            "reference-memory",
            "--user",
            "ada",
            "--db",
            f"sqlite:///{folder}/m.db",
        ],
    )
    server = Path("node_modules/@modelcontextprotocol/server-memory/dist/index.js").absolute()
    theirs = StdioServerParameters(
        command=shutil.which("node") or "node",
        args=[str(server)],
        env={**os.environ, "MEMORY_FILE_PATH": f"{folder}/m.jsonl"},
    )
    found, expected = asyncio.run(answers(ours)), asyncio.run(answers(theirs))
    for call, one, other in zip(["tools/list", *(name for name, _ in CALLS)], found, expected, strict=True):
        tried(call, lambda one=one: one, lambda value, other=other: value == other)


main()
