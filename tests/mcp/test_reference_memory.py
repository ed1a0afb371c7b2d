"""`pagefile mcp --as reference-memory`: the tools of the MCP reference memory server."""

import json
import sys

import jsonschema_rs
import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from pagefile import Memory
from pagefile.compat.knowledge_graph import TOOLS, KnowledgeGraph
from pagefile.mcp.reference_memory import RESOURCE, ReferenceMemory

from .clients import served, text_of

ANNA = {"name": "Anna", "entityType": "person", "observations": ["speaks Greek"]}
LIVES = {"from": "Anna", "to": "Bern", "relationType": "lives in"}


@pytest.fixture
async def client():
    async with (
        Memory.open("memory://", embedder="none") as memory,
        served(ReferenceMemory(KnowledgeGraph.of(memory, "ada")).server) as session,
    ):
        yield session


async def test_the_nine_tools_answer_as_their_schemas_say(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(TOOLS) == list(tools)
    calls = [
        ("create_entities", {"entities": [ANNA]}),
        ("create_relations", {"relations": [LIVES]}),
        ("add_observations", {"observations": [{"entityName": "Anna", "contents": ["sails"]}]}),
        ("read_graph", {}),
        ("search_nodes", {"query": "greek"}),
        ("open_nodes", {"names": ["Anna"]}),
        ("delete_observations", {"deletions": [{"entityName": "Anna", "observations": ["sails"]}]}),
        ("delete_relations", {"relations": [LIVES]}),
        ("delete_entities", {"entityNames": ["Anna"]}),
    ]
    for name, arguments in calls:
        jsonschema_rs.validate(tools[name].input_schema, arguments)
        answer = await client.call_tool(name, arguments)
        assert not answer.is_error
        jsonschema_rs.validate(tools[name].output_schema, answer.structured_content)
    assert {"entities": [], "relations": []} == (await client.call_tool("read_graph", {})).structured_content


async def test_mistakes_are_told_to_the_model(client):
    unknown = {"observations": [{"entityName": "Zoe", "contents": ["x"]}]}
    answer = await client.call_tool("add_observations", unknown)
    assert (True, "Entity with name Zoe not found") == (answer.is_error, text_of(answer))
    assert (await client.call_tool("create_entities", {"entities": 7})).is_error
    with pytest.raises(MCPError, match="create_entities"):
        await client.call_tool("drop_everything", {})


async def test_the_graph_is_a_resource(client):
    await client.call_tool("create_entities", {"entities": [ANNA]})
    (resource,) = (await client.list_resources()).resources
    assert RESOURCE == str(resource.uri)
    (read,) = (await client.read_resource(RESOURCE)).contents
    assert [ANNA] == json.loads(read.text)["entities"]


async def test_the_command_serves_it_and_the_facts_stay(tmp_path):
    url = f"sqlite:///{tmp_path}/m.db"
    command = ["-m", "pagefile", "mcp", "serve", "--as", "reference-memory", "--user", "ada", "--db", url]
    server = StdioServerParameters(command=sys.executable, args=command)
    for expected in ([], [ANNA]):
        with (tmp_path / "errors").open("w") as errors:
            await _added(server, errors, expected)
    async with Memory.open(url, embedder="none") as memory:
        assert [("Anna", "speaks Greek")] == [(fact.subject, fact.text) for fact in await memory.facts("ada")]


async def _added(server, errors, expected):
    async with stdio_client(server, errlog=errors) as streams, ClientSession(*streams) as session:
        await session.initialize()
        found = await session.call_tool("read_graph", {})
        assert expected == found.structured_content["entities"]
        await session.call_tool("create_entities", {"entities": [ANNA]})
