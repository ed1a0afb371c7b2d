"""Answers to the tools that a model may call: load and search archived results, recall past turns, remember, correct and retract
facts.

They answer with text that a model can read, are never archived again, and reach only the memory of the run's own user.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagefile.engine import Conversation, Memory
from pagefile.errors import PagefileError
from pagefile.ports import ViewRequest
from pagefile.records import Fact, Turn
from pagefile.standalone.tools import (
    CORRECT_TOOL,
    FACT_TOOLS,
    MEMORY_TOOLS,
    RECALL_TOOL,
    RETRACT_TOOL,
    SAVE_TOOL,
    tool_schema,
)
from pagefile.text.fact_ranking import overlap, statement_key
from pagefile.text.sentences import clip
from pagefile.tiers.fact_book import refuse_orders
from pagefile.window.parts import escape
from pagefile.window.wording import Language, Wording

__all__ = ["FACT_TOOLS", "RECALL_TOOL", "ToolCaller", "memory_tool_schemas"]

#: How many past turns a model is shown, and how much of each.
_HITS = 5
_HIT_CHARS = 800

#: How many facts are listed where a call names none of them exactly, and how alike they have to be to what it says.
_CHOICES, _ALIKE = 5, 0.5
#: How much of an id a model is shown, and has to give: the whole of one takes as many tokens as a fact.
_SHOWN_CHARS = 8
#: How much of its own argument a model gets back.
_GIVEN_CHARS = 200


def memory_tool_schemas(language: Language) -> dict[str, dict[str, Any]]:
    """The JSON schemas of the tools, by name, in the order in which they are offered."""
    return {name: tool_schema(name, language) for name in MEMORY_TOOLS}


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The run whose model calls one of `tool_schemas(facts=True)`: `answer` has the text for it."""

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
        if tool == SAVE_TOOL:
            return await self._remembered(_text_of(arguments, "text"), arguments.get("category"))
        if tool == CORRECT_TOOL:
            return await self._corrected(_text_of(arguments, "fact"), _text_of(arguments, "text"))
        if tool == RETRACT_TOOL:
            return await self._retracted(_text_of(arguments, "fact"))
        return await self.chat.call_tool(tool, arguments, turn=self.turn)

    async def refused(self, tool: str, error: PagefileError) -> str:
        """What the model reads if the memory refused its call."""
        name = "not_remembered" if tool in {SAVE_TOOL, CORRECT_TOOL} else "refused"
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
        return "\n\n".join(found) or answers["nothing_found"].format(query=clip(query, _GIVEN_CHARS))

    async def _remembered(self, text: str, category: object) -> str:
        scope, answers = self.chat.scope, (await self.wording()).answers
        if not text:
            return answers["missing"].format(name="text")
        if self.incognito or scope.user is None:
            return answers["incognito" if self.incognito else "no_user"]
        refuse_orders(text)
        fact = await self.memory.remember(
            text,
            user_id=scope.user,
            tenant=scope.tenant,
            category=category if isinstance(category, str) and category else None,
            confidence=self.confidence,
            source=None if self.turn is None else self.turn.id,
        )
        return answers["remembered"].format(text=fact.text, id=fact.id[:_SHOWN_CHARS])

    async def _corrected(self, given: str, text: str) -> str:
        answers = (await self.wording()).answers
        if not text:
            return answers["missing"].format(name="text")
        fact = await self.named_fact(given, answers)
        if isinstance(fact, str):
            return fact
        refuse_orders(text)
        right = await self.memory.correct(fact.id, text, user_id=fact.scope.user, tenant=fact.scope.tenant)
        return answers["corrected"].format(text=right.text, id=right.id[:_SHOWN_CHARS])

    async def _retracted(self, given: str) -> str:
        answers = (await self.wording()).answers
        fact = await self.named_fact(given, answers)
        if isinstance(fact, str):
            return fact
        await self.memory.retract(fact.id, user_id=fact.scope.user, tenant=fact.scope.tenant)
        return answers["retracted"].format(text=fact.text)

    async def named_fact(self, given: str, answers: Mapping[str, str]) -> Fact | str:
        """The fact that a model names by its id, the beginning of it or its exact words; else what to tell the model.

        One that is merely alike is never taken: "5 mg" is like "50 mg", and "allergic" like "not allergic".
        """
        scope = self.chat.scope
        if not given:
            return answers["missing"].format(name="fact")
        if self.incognito or scope.user is None:
            return answers["incognito" if self.incognito else "no_user"]
        head = (
            await self.memory.engine.store.reader.view(ViewRequest(scope, budget_tokens=0, min_turns=0))
        ).head
        facts = await self.memory.facts(scope.user, scope.tenant)
        held = [fact for fact in facts if fact.is_for(head.project, head.agent)]
        found = _named(held, given)
        if len(found) == 1:
            return found[0]
        if not (found := found or _alike(held, given)):
            return answers["no_fact"].format(given=clip(given, _GIVEN_CHARS))
        listed = "; ".join(
            f"{fact.id[:_SHOWN_CHARS]}: {escape(clip(fact.text, _HIT_CHARS))}" for fact in found[:_CHOICES]
        )
        return answers["which_fact"].format(facts=listed)


def _named(held: Sequence[Fact], given: str) -> list[Fact]:
    """The facts with this id, or the beginning of it; else those that say exactly this."""
    wanted = given.strip(" -[]()").casefold()
    if len(wanted) >= _SHOWN_CHARS and (found := [fact for fact in held if fact.id.startswith(wanted)]):
        return found
    key = statement_key(given)
    return [fact for fact in held if statement_key(fact.text) == key]


def _alike(held: Sequence[Fact], given: str) -> list[Fact]:
    """The facts that a model may mean, the likeliest first."""
    alike = {fact.id: overlap(fact.text, given) for fact in held}
    return sorted((fact for fact in held if alike[fact.id] >= _ALIKE), key=lambda fact: -alike[fact.id])


def _text_of(arguments: Mapping[str, Any], name: str) -> str:
    """An argument that is a text; "" for anything else that a model may have sent."""
    given = arguments.get(name)
    return given.strip() if isinstance(given, str) else ""
