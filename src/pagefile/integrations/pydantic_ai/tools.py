"""Pagefile's tools as PydanticAI's, for one user only."""

from functools import partial
from typing import Any

from pydantic_ai import FunctionToolset, Tool

from pagefile.errors import PagefileError
from pagefile.integrations.pydantic_ai.run import RunMemory
from pagefile.integrations.tools import RECALL_TOOL, REMEMBER_TOOL, ToolCaller, memory_tool_schemas
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL
from pagefile.window.wording import Language

#: Every tool, in the order in which they are offered.
TOOLS = (RECALL_TOOL, REMEMBER_TOOL, LOAD_TOOL, SEARCH_TOOL)
_UNAVAILABLE = "[记忆暂不可用 / memory is unavailable] Go on without it."


def toolset(run: RunMemory | None, names: frozenset[str], language: Language) -> FunctionToolset[Any]:
    """The tools of a run. Without a run they are only described: each run brings its own."""
    schemas = memory_tool_schemas(language)
    nobody = run is not None and run.chat.scope.user is None
    offered = [name for name in TOOLS if name in names and not (nobody and name == REMEMBER_TOOL)]
    return FunctionToolset([_tool(run, schemas[name]) for name in offered])


def _tool(run: RunMemory | None, schema: dict[str, Any]) -> Tool[Any]:
    name: str = schema["name"]

    async def call(**arguments: Any) -> str:
        if run is None:
            return _UNAVAILABLE
        return await run.edge.attempt(name, partial(_answered, run, name, arguments), _UNAVAILABLE)

    return Tool[Any].from_schema(call, name, schema["description"], schema["parameters"])


async def _answered(run: RunMemory, name: str, arguments: dict[str, Any]) -> str:
    try:
        return await ToolCaller(run.edge.memory, run.chat, run.turn).answer(name, arguments)
    except PagefileError as error:
        if name != REMEMBER_TOOL:
            raise
        return f"[未能记住 / not remembered] {error}"
