"""The tools a model gets: search the past, remember, and page archived results back in, for one user only."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from pydantic_ai import FunctionToolset, Tool

from pagefile.engine import Memory
from pagefile.errors import PagefileError
from pagefile.integrations.pydantic_ai.run import RunMemory
from pagefile.records import Hit
from pagefile.standalone.tools import tool_schemas
from pagefile.text.clip import clip
from pagefile.tiers.facts_book import refuse_orders
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL
from pagefile.window.wording import Language

RECALL = "recall"
REMEMBER = "remember"
#: Every tool, in the order in which they are offered.
TOOLS = (RECALL, REMEMBER, LOAD_TOOL, SEARCH_TOOL)

_HITS_SHOWN = 5
_HIT_CHARS = 600
_UNAVAILABLE = "[记忆暂不可用 / memory is unavailable] Go on without it."
_TEXTS: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        RECALL: "在与该用户以往的对话中查找，返回最相关的几轮。",
        REMEMBER: "记住关于该用户的一条长期有效的信息，例如偏好、身份或约束。",
        "query": "要查找的内容",
        "text": "一句完整、独立可读的陈述",
        "category": "类别，例如 preference、identity、constraint",
    },
    "en": {
        RECALL: "Search earlier conversations with this user; returns the turns that answer best.",
        REMEMBER: "Remember a lasting statement about this user, such as a preference, a name or a constraint.",
        "query": "What to look for",
        "text": "One complete sentence that can be read alone",
        "category": "The kind, such as preference, identity or constraint",
    },
}

Answer = Callable[[RunMemory, Mapping[str, Any]], Awaitable[str]]


def toolset(run: RunMemory | None, names: frozenset[str], tongue: Language) -> FunctionToolset[Any]:
    """The tools of a run. Without a run they are only described: each run brings its own."""
    schemas = {schema["name"]: schema for schema in (*_own_schemas(tongue), *tool_schemas(tongue))}
    nobody = run is not None and run.chat.scope.user is None
    offered = [name for name in TOOLS if name in names and not (nobody and name == REMEMBER)]
    return FunctionToolset([_tool(run, schemas[name]) for name in offered])


def _tool(run: RunMemory | None, schema: Mapping[str, Any]) -> Tool[Any]:
    name: str = schema["name"]

    async def call(**arguments: Any) -> str:
        if run is None:
            return _UNAVAILABLE
        return await run.edge.attempt(name, partial(_ANSWERS[name], run, arguments), _UNAVAILABLE)

    return Tool[Any].from_schema(call, name, schema["description"], schema["parameters"])


async def _recall(run: RunMemory, arguments: Mapping[str, Any]) -> str:
    query = str(arguments.get("query") or "").strip()
    if not query:
        return "[缺少参数 / missing argument] query: say what to look for."
    scope, memory = run.chat.scope, run.edge.memory
    if scope.user is None:
        hits = await run.chat.recall(query, limit=_HITS_SHOWN)
    else:
        hits = await memory.recall(query, user_id=scope.user, tenant=scope.tenant, limit=_HITS_SHOWN)
    return "\n\n".join(_told(hit) for hit in hits) or f"[无结果 / nothing found] {query}"


def _told(hit: Hit) -> str:
    return f"[{hit.at:%Y-%m-%d %H:%M}]\n{clip(hit.text, _HIT_CHARS)}"


async def _remember(run: RunMemory, arguments: Mapping[str, Any]) -> str:
    scope, memory = run.chat.scope, run.edge.memory
    text, category = arguments.get("text"), arguments.get("category")
    if scope.user is None or not isinstance(text, str) or not text.strip():
        return "[缺少参数 / missing argument] text: say what to remember about the user."
    try:
        fact = await _remembered(memory, run, text, category if isinstance(category, str) else None)
    except PagefileError as error:
        return f"[未能记住 / not remembered] {error}"
    return f"[已记住 / remembered] {fact}"


async def _remembered(memory: Memory, run: RunMemory, text: str, category: str | None) -> str:
    scope = run.chat.scope
    source = run.turn.id if run.turn is not None else None
    refuse_orders(text)
    fact = await memory.remember(
        text, user_id=str(scope.user), tenant=scope.tenant, category=category, source=source
    )
    return fact.text


async def _load(run: RunMemory, arguments: Mapping[str, Any]) -> str:
    return await run.chat.call_tool(LOAD_TOOL, arguments, turn=run.turn)


async def _search(run: RunMemory, arguments: Mapping[str, Any]) -> str:
    return await run.chat.call_tool(SEARCH_TOOL, arguments, turn=run.turn)


_ANSWERS: Mapping[str, Answer] = {
    RECALL: _recall,
    REMEMBER: _remember,
    LOAD_TOOL: _load,
    SEARCH_TOOL: _search,
}


def _own_schemas(tongue: Language) -> list[dict[str, Any]]:
    texts = _TEXTS[tongue]
    return [
        _schema(RECALL, texts[RECALL], {"query": texts["query"]}, "query"),
        _schema(REMEMBER, texts[REMEMBER], {name: texts[name] for name in ("text", "category")}, "text"),
    ]


def _schema(name: str, description: str, properties: Mapping[str, str], required: str) -> dict[str, Any]:
    told = {key: {"type": "string", "description": text} for key, text in properties.items()}
    parameters = {"type": "object", "properties": told, "required": [required]}
    return {"name": name, "description": description, "parameters": parameters}
