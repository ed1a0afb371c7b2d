"""The tools to offer to a model: their JSON schemas in Chinese or English (`tools.toml`), and the answers to `remember_fact`.

`load_tool_history_schema` is document 000's own, with only `uuid`; `tool_schemas` adds how to ask for passages to the document's
words.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal

from pagefile.engine import Memory
from pagefile.errors import PagefileError
from pagefile.text.tables import table
from pagefile.tiers.fact_book import refuse_orders
from pagefile.tiers.page_in import CORRECT_TOOL, RECALL_TOOL, RETRACT_TOOL, SAVE_TOOL
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL
from pagefile.window.wording import Language

REMEMBER_TOOL: Final = "remember_fact"
#: Those that change facts, which a run without a user has none of.
FACT_TOOLS = (SAVE_TOOL, CORRECT_TOOL, RETRACT_TOOL)
_PAGE_TOOLS = (LOAD_TOOL, SEARCH_TOOL)
#: In the order in which they are offered.
MEMORY_TOOLS = (*_PAGE_TOOLS, RECALL_TOOL, *FACT_TOOLS)

#: As the document writes a tool, or as an API takes it.
ToolShape = Literal["plain", "openai", "responses", "anthropic", "mcp"]

_tools = partial(table, "pagefile.standalone", "tools")


def tool_schema(name: str, language: Language) -> dict[str, Any]:
    """The JSON schema of one tool of the table; its first argument is required, unless `required` lists others."""
    tool = _tools()[name]
    properties: dict[str, Any] = {}
    for argument, about in tool["arguments"].items():
        plain = {key: about[key] for key in about if key not in {"zh", "en"}}
        properties[argument] = {**plain, "description": about[language]}
    required = tool.get("required", [next(iter(properties))])
    parameters = {"type": "object", "properties": properties, "required": required}
    description = "\n".join([tool[language], *([tool["also"][language]] if "also" in tool else [])])
    return {"name": name, "description": description, "parameters": parameters}


def instructions(language: Language) -> str:
    """When to use the tools of the MCP server, and when none: what it says to every client."""
    return _tools()["instructions"][language]


def shaped(schema: Mapping[str, Any], shape: ToolShape) -> dict[str, Any]:
    """A schema as an API takes it: OpenAI's chat or Responses API, Anthropic's, or MCP's list of tools."""
    name, description, parameters = schema["name"], schema["description"], schema["parameters"]
    match shape:
        case "plain":
            return dict(schema)
        case "openai":
            return {"type": "function", "function": dict(schema)}
        case "responses":
            return {"type": "function", **schema}
        case "anthropic":
            return {"name": name, "description": description, "input_schema": parameters}
        case "mcp":
            return {"name": name, "description": description, "inputSchema": parameters}


def tool_schemas(
    language: Language = "zh", shape: ToolShape = "plain", *, facts: bool = False
) -> list[dict[str, Any]]:
    """The JSON schemas of `load_tool_history` and `search_tool_history`; answer calls with `chat.call_tool`.

    `shape` is the API they are for: "openai", "responses", "anthropic" or "mcp". With `facts`, `recall`, `remember`, `correct` and
    `retract` are offered, too; `ToolCaller(memory, chat).answer` answers all of them.
    """
    names = MEMORY_TOOLS if facts else _PAGE_TOOLS
    return [shaped(tool_schema(name, language), shape) for name in names]


def _documents_own() -> dict[str, Any]:
    schema = tool_schema(LOAD_TOOL, "zh")
    uuid = {"uuid": schema["parameters"]["properties"]["uuid"]}
    parameters = {**schema["parameters"], "properties": uuid}
    return {**schema, "description": _tools()[LOAD_TOOL]["zh"], "parameters": parameters}


load_tool_history_schema = _documents_own()
search_tool_history_schema = tool_schema(SEARCH_TOOL, "zh")


def remember_schema(language: Language = "zh") -> dict[str, Any]:
    """The JSON schema of `remember_fact`, with which a model saves a fact about its user; see `answer_remember`."""
    return tool_schema(REMEMBER_TOOL, language)


async def answer_remember(
    memory: Memory,
    arguments: Mapping[str, Any],
    *,
    user_id: str,
    tenant: str | None = None,
    source: str | None = None,
    language: Language = "zh",
) -> str:
    """Answer a model's call of `remember_fact` in words; a refusal is explained, not raised."""
    answers, text = _tools()[REMEMBER_TOOL]["answers"], arguments.get("text", "")
    given: dict[str, Any] = {name: _text(arguments.get(name)) for name in ("category", "attribute")}
    given |= {"confidence": arguments.get("confidence", 1.0), "source": source}
    try:
        refuse_orders(str(text))
        fact = await memory.remember(text, user_id=user_id, tenant=tenant, **given)
    except PagefileError as error:
        return answers["rejected"][language].format(reason=error)
    return answers[fact.outcome or "stored"][language].format(text=fact.text)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
