"""The tools a model gets: page an archived result back in, search the archive, recall past turns, remember a fact.

They always return text that a model can read. Their results are never archived again, and they only reach the memory of the
run's own user.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool

from pagefile.blocking import BlockingMemory
from pagefile.engine import Conversation, Memory
from pagefile.errors import PagefileError
from pagefile.integrations.failing import FailOpen
from pagefile.integrations.langchain.scoping import Given, Whose, whose
from pagefile.records import Hit
from pagefile.standalone.tools import tool_schemas
from pagefile.text.clip import clip
from pagefile.tiers.facts_book import refuse_orders
from pagefile.window.render import escape
from pagefile.window.wording import Language

RECALL_TOOL = "recall"
REMEMBER_TOOL = "remember"

#: How many past turns a model is shown, and how much of each.
_HITS = 5
_HIT_CHARS = 800

_TEXTS: dict[Language, dict[str, str]] = {
    "zh": {
        "recall": "在与该用户的所有历史对话中回忆，返回最相关的对话片段。用户提到以前说过的事、而当前对话里没有时使用。",
        "query": "要回忆的内容",
        "remember": "记住一条关于该用户的长期事实（姓名、偏好、要求、更正）。只记用户明确说过、以后仍有用的内容。",
        "text": "要记住的事实，一句话",
        "category": "类别，例如 preference、profile、correction",
    },
    "en": {
        "recall": (
            "Recall from all earlier conversations with this user; returns the turns that fit best. "
            "Use it when the user speaks of something said before that is not in this conversation."
        ),
        "query": "What to recall",
        "remember": (
            "Remember a lasting fact about this user (name, preference, wish, correction). "
            "Only what the user stated and what will still matter later."
        ),
        "text": "The fact, in one sentence",
        "category": "Its category, such as preference, profile or correction",
    },
}


def memory_tools(
    memory: Memory | BlockingMemory,
    *,
    user_id: str | None = None,
    conversation_id: str | None = None,
    tenant: str | None = None,
    timeout_s: float = 30.0,
) -> list[BaseTool]:
    """The tools alone, for agents without the middleware; the user is determined as in the middleware."""
    edge = FailOpen(memory, "langchain", timeout_s=timeout_s)

    def chat_of(who: Whose) -> Conversation:
        return edge.memory.conversation(who.conversation, user_id=who.user, tenant=who.tenant)

    return tools_of(edge, Given(conversation_id, user_id, tenant), chat_of)


def tools_of(
    edge: FailOpen, given: Given, chat_of: Callable[[Whose], Conversation], *, incognito: bool = False
) -> list[BaseTool]:
    """`load_tool_history`, `search_tool_history`, `recall` and `remember`; `chat_of` gives the conversation of the calling run."""
    language = edge.memory.engine.settings.language
    texts = _TEXTS[language]
    load, search = tool_schemas(language)
    recall = _schema(texts, "recall", ("query",))
    remember = _schema(texts, "remember", ("text", "category"))
    answers: list[tuple[dict[str, Any], _Answer]] = [
        (load, _paged(load["name"])),
        (search, _paged(search["name"])),
        (recall, _recalled_here if incognito else _recalled),
        (remember, _not_remembered if incognito else _remembered),
    ]
    return [_tool(edge, given, chat_of, schema, answer) for schema, answer in answers]


_Answer = Callable[[Memory, Conversation, dict[str, Any]], Awaitable[str]]


def _tool(
    edge: FailOpen,
    given: Given,
    chat_of: Callable[[Whose], Conversation],
    schema: dict[str, Any],
    answer: _Answer,
) -> BaseTool:
    name = schema["name"]
    unavailable = f"[暂不可用 / unavailable] {name}: memory cannot be reached now; go on without it."

    async def work(who: Whose, arguments: dict[str, Any]) -> str:
        try:
            return await answer(edge.memory, chat_of(who), arguments)
        except PagefileError as error:
            return f"[{name}] {error}"

    def call(runtime: ToolRuntime[Any, Any], **arguments: Any) -> str:
        who = whose(given, runtime.context)
        return edge.attempt_blocking(name, lambda: work(who, arguments), unavailable)

    async def acall(runtime: ToolRuntime[Any, Any], **arguments: Any) -> str:
        who = whose(given, runtime.context)
        return await edge.attempt(name, lambda: work(who, arguments), unavailable)

    return StructuredTool(
        name=name,
        description=schema["description"],
        args_schema=schema["parameters"],
        func=call,
        coroutine=acall,
    )


def _schema(texts: dict[str, str], name: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    properties = {argument: {"type": "string", "description": texts[argument]} for argument in arguments}
    return {
        "name": name,
        "description": texts[name],
        "parameters": {"type": "object", "properties": properties, "required": [arguments[0]]},
    }


def _paged(name: str) -> _Answer:
    async def answer(memory: Memory, chat: Conversation, arguments: dict[str, Any]) -> str:
        return await chat.call_tool(name, arguments)

    return answer


async def _recalled(memory: Memory, chat: Conversation, arguments: dict[str, Any]) -> str:
    query, scope = str(arguments.get("query") or ""), chat.scope
    if scope.user is None or not query.strip():
        return await _recalled_here(memory, chat, arguments)
    hits = await memory.recall(query, user_id=scope.user, tenant=scope.tenant, limit=_HITS)
    return _listed(hits, query)


async def _recalled_here(memory: Memory, chat: Conversation, arguments: dict[str, Any]) -> str:
    """Recall from this conversation only, for runs without a user or confined to it."""
    query = str(arguments.get("query") or "")
    if not query.strip():
        return "[缺少参数 / missing argument] query: say what to recall."
    return _listed(await chat.recall(query, _HITS), query)


def _listed(hits: Sequence[Hit], query: str) -> str:
    return "\n\n".join(_told(hit) for hit in hits) or f"[无结果 / nothing found] {query}"


def _told(hit: Hit) -> str:
    """A past turn for the model: dated, and escaped like all memory."""
    return f"[{hit.at:%Y-%m-%d}] {escape(clip(hit.text, _HIT_CHARS))}"


async def _remembered(memory: Memory, chat: Conversation, arguments: dict[str, Any]) -> str:
    if chat.scope.user is None:
        return "[无法记住 / cannot remember] this run names no user."
    text = str(arguments.get("text") or "")
    refuse_orders(text)
    fact = await memory.remember(
        text,
        user_id=chat.scope.user,
        tenant=chat.scope.tenant,
        category=arguments.get("category") or None,
    )
    return f"[已记住 / remembered] {fact.text}"


async def _not_remembered(memory: Memory, chat: Conversation, arguments: dict[str, Any]) -> str:
    return "[无痕对话 / incognito] nothing of this conversation is kept."
