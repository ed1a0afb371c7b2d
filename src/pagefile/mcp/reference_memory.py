"""The MCP reference memory server's nine tools over a user's facts: `pagefile mcp serve --as reference-memory`.

Names, schemas and answers are those of `@modelcontextprotocol/server-memory`, so a client's configuration changes in its command only.
"""

from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from pagefile.compat.knowledge_graph import TOOLS, KnowledgeGraph
from pagefile.errors import PagefileError

Context = ServerRequestContext[Any, Any]

RESOURCE = "memory://knowledge-graph"
_TEXT = {"type": "string"}
_ENTITY = {
    "type": "object",
    "properties": {
        "name": {**_TEXT, "description": "The name of the entity"},
        "entityType": {**_TEXT, "description": "What kind of thing it is"},
        "observations": {
            "type": "array",
            "items": _TEXT,
            "description": "What is known about it, a statement each",
        },
    },
    "required": ["name", "entityType", "observations"],
}
_RELATION = {
    "type": "object",
    "properties": {
        "from": {**_TEXT, "description": "The entity where the relation begins"},
        "to": {**_TEXT, "description": "The entity where it ends"},
        "relationType": {**_TEXT, "description": "The relation, in active voice: works at"},
    },
    "required": ["from", "to", "relationType"],
}
_NAMED = {"entityName": {**_TEXT, "description": "The name of the entity"}}
_GRAPH = {"entities": {"type": "array", "items": _ENTITY}, "relations": {"type": "array", "items": _RELATION}}
_DONE = {"success": {"type": "boolean"}, "message": _TEXT}
#: What each tool is for, the properties of its arguments and of its answer, and whether it reads, adds or deletes.
_DESCRIBED: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "create_entities": (
        "Create entities in the knowledge graph; those whose name is taken are left as they are",
        {"entities": {"type": "array", "items": _ENTITY}},
        {"entities": {"type": "array", "items": _ENTITY}},
        "adds",
    ),
    "create_relations": (
        "Create relations between entities of the knowledge graph, in active voice",
        {"relations": {"type": "array", "items": _RELATION}},
        {"relations": {"type": "array", "items": _RELATION}},
        "adds",
    ),
    "add_observations": (
        "Add statements to entities that are in the knowledge graph",
        {
            "observations": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {**_NAMED, "contents": {"type": "array", "items": _TEXT}},
                    "required": ["entityName", "contents"],
                },
            }
        },
        {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {**_NAMED, "addedObservations": {"type": "array", "items": _TEXT}},
                    "required": ["entityName", "addedObservations"],
                },
            }
        },
        "adds",
    ),
    "delete_entities": (
        "Delete entities, with the relations that begin or end at them",
        {"entityNames": {"type": "array", "items": _TEXT}},
        _DONE,
        "deletes",
    ),
    "delete_observations": (
        "Delete single statements about entities",
        {
            "deletions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {**_NAMED, "observations": {"type": "array", "items": _TEXT}},
                    "required": ["entityName", "observations"],
                },
            }
        },
        _DONE,
        "deletes",
    ),
    "delete_relations": (
        "Delete relations",
        {"relations": {"type": "array", "items": _RELATION}},
        _DONE,
        "deletes",
    ),
    "read_graph": ("Read the whole knowledge graph", {}, _GRAPH, "reads"),
    "search_nodes": (
        "Find entities by their names, types and what is known about them",
        {"query": {**_TEXT, "description": "Words to look for"}},
        _GRAPH,
        "reads",
    ),
    "open_nodes": (
        "Read entities by their names",
        {"names": {"type": "array", "items": _TEXT}},
        _GRAPH,
        "reads",
    ),
}


class ReferenceMemory:
    """The handlers, over one user's graph."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._subscribed = False
        self.server: Server[Any] = Server(
            "pagefile-reference-memory",
            version=version("pagefile"),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
        )

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(name) for name in TOOLS])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in TOOLS:
            raise MCPError(
                types.INVALID_PARAMS, f"There is no tool {params.name!r}: there are {', '.join(TOOLS)}."
            )
        try:
            answer = await self._graph.call(params.name, params.arguments or {})
        except PagefileError as error:
            return types.CallToolResult(
                content=[types.TextContent(type="text", text=str(error))], is_error=True
            )
        if self._subscribed and _DESCRIBED[params.name][3] != "reads":
            await ctx.session.send_resource_updated(RESOURCE)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)], structured_content=answer.structured
        )

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        whole = types.Resource(
            uri=RESOURCE, name="knowledge-graph", description="The whole graph", mime_type="application/json"
        )
        return types.ListResourcesResult(resources=[whole])

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if str(params.uri) != RESOURCE:
            raise MCPError(types.INVALID_PARAMS, f"There is no resource {params.uri}: there is {RESOURCE}.")
        text = (await self._graph.read_graph()).text
        contents = types.TextResourceContents(uri=RESOURCE, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[contents])

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._subscribed = True
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._subscribed = False
        return types.EmptyResult()


def _tool(name: str) -> types.Tool:
    about, takes, gives, kind = _DESCRIBED[name]
    return types.Tool(
        name=name,
        title=name.replace("_", " ").title(),
        description=about,
        input_schema={"type": "object", "properties": takes, "required": list(takes)},
        output_schema={"type": "object", "properties": gives, "required": list(gives)},
        annotations=types.ToolAnnotations(
            read_only_hint=kind == "reads",
            destructive_hint=kind == "deletes",
            idempotent_hint=kind != "adds",
            open_world_hint=False,
        ),
    )


async def serve_stdio(graph: KnowledgeGraph) -> None:
    """Serve one client over standard input and output, until it closes them."""
    served = ReferenceMemory(graph).server
    async with stdio_server() as (received, sent):
        await served.run(received, sent, served.create_initialization_options())
