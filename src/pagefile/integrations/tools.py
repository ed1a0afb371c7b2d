"""The tools that every framework offers to a model: load and search archived results, recall past turns, remember a fact.

They answer with text that a model can read, are never archived again, and reach only the memory of the run's own user.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pagefile.engine import Conversation, Memory
from pagefile.errors import PagefileError
from pagefile.records import Turn
from pagefile.standalone.tools import tool_schema
from pagefile.text.sentences import clip
from pagefile.tiers.fact_book import refuse_orders
from pagefile.window.parts import escape
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL
from pagefile.window.wording import Language, Wording

RECALL_TOOL = "recall"
REMEMBER_TOOL = "remember"

#: How many past turns a model is shown, and how much of each.
_HITS = 5
_HIT_CHARS = 800

#: In the order in which they are offered.
_TOOLS = (LOAD_TOOL, SEARCH_TOOL, RECALL_TOOL, REMEMBER_TOOL)


def memory_tool_schemas(language: Language) -> dict[str, dict[str, Any]]:
    """The JSON schemas of `load_tool_history`, `search_tool_history`, `recall` and `remember`, by name."""
    return {name: tool_schema(name, language) for name in _TOOLS}


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The run whose model calls a tool."""

    memory: Memory
    chat: Conversation
    turn: Turn | None = None
    #: Recall from this conversation only, and remember nothing.
    incognito: bool = False
    #: That of the facts it remembers.
    confidence: float = 1.0

    async def answer(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The text for the model; raises `PagefileError` if the memory refuses the call."""
        if tool == RECALL_TOOL:
            return await self._recalled(_text_of(arguments, "query"))
        if tool == REMEMBER_TOOL:
            return await self._remembered(_text_of(arguments, "text"), arguments.get("category"))
        return await self.chat.call_tool(tool, arguments, turn=self.turn)

    async def refused(self, tool: str, error: PagefileError) -> str:
        """What the model reads if the memory refused its call."""
        name = "not_remembered" if tool == REMEMBER_TOOL else "refused"
        return (await self.wording()).answers[name].format(tool=tool, reason=error)

    async def wording(self) -> Wording:
        """That of the conversation."""
        return await self.memory.engine.languages.wording(self.chat.scope)

    async def _recalled(self, query: str) -> str:
        answers = (await self.wording()).answers
        if not query:
            return answers["missing"].format(name="query")
        scope = self.chat.scope
        if scope.user is None or self.incognito:
            hits = await self.chat.recall(query, _HITS)
        else:
            hits = await self.memory.recall(query, user_id=scope.user, tenant=scope.tenant, limit=_HITS)
        # Dated, and escaped like all memory.
        found = (f"[{hit.at:%Y-%m-%d}] {escape(clip(hit.text, _HIT_CHARS))}" for hit in hits)
        return "\n\n".join(found) or answers["nothing_found"].format(query=query)

    async def _remembered(self, text: str, category: object) -> str:
        scope, answers = self.chat.scope, (await self.wording()).answers
        if not text:
            return answers["missing"].format(name="text")
        if self.incognito:
            return answers["incognito"]
        if scope.user is None:
            return answers["no_user"]
        refuse_orders(text)
        fact = await self.memory.remember(
            text,
            user_id=scope.user,
            tenant=scope.tenant,
            category=category if isinstance(category, str) and category else None,
            confidence=self.confidence,
            source=None if self.turn is None else self.turn.id,
        )
        return answers["remembered"].format(text=fact.text)


def _text_of(arguments: Mapping[str, Any], name: str) -> str:
    """An argument that is a text; "" for anything else that a model may have sent."""
    given = arguments.get(name)
    return given.strip() if isinstance(given, str) else ""
