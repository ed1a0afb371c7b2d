"""One call of a verb on behalf of an MCP client: whose memory it is, what is asked, and the answer as JSON and in words."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from pagefile import verbs
from pagefile.engine import Conversation, Memory
from pagefile.errors import InvalidArgumentError, PagefileError
from pagefile.mcp.tools import ROWS
from pagefile.mcp.words import WORDS
from pagefile.standalone.memory_tools import ToolCaller
from pagefile.tiers.fact_book import refuse_orders
from pagefile.verbs import Verb
from pagefile.wire.requests import FactsParams
from pagefile.wire.responses import LoadOut, facts_page
from pagefile.wire.windows import WindowOut

#: Where turns go, and pages are loaded from, if neither the client nor the call names a conversation.
CONVERSATION = "mcp"
#: How sure a fact is that a model states.
_CONFIDENCE = 0.9
_MOST_ERRORS = 5

Narrow = Callable[[BaseModel], Awaitable[BaseModel]]


async def _as_it_is(asked: BaseModel) -> BaseModel:
    return asked


@dataclass(frozen=True, slots=True)
class Answered:
    """What a call answered."""

    text: str
    structured: dict[str, Any] | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """A client, and whose memory it uses."""

    memory: Memory
    user_id: str
    tenant: str | None = None
    conversation_id: str = CONVERSATION
    #: What facts and conversations belong to.
    project: str | None = None
    #: Refuses requests beyond what the caller's key is for.
    narrow: Narrow = _as_it_is

    def chat(self, conversation_id: str | None = None) -> Conversation:
        return self.memory.conversation(
            conversation_id or self.conversation_id,
            user_id=self.user_id,
            tenant=self.tenant,
            project=self.project,
        )

    async def ask(self, verb: Verb[..., Any], **given: Any) -> Any:
        """Call a verb with the fields of its request, and return the record."""
        return await self._called(verb, await self._checked(verb, given))

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Answered:
        """Answer a call of a tool. What cannot be done is explained to the model."""
        caller = ToolCaller(self.memory, self.chat(), confidence=_CONFIDENCE)
        row = ROWS[tool]
        try:
            given = row.request(arguments)
            if "fact" in row.arguments and isinstance(given.get("fact_id"), str):
                fact = await caller.named_fact(given["fact_id"], (await caller.wording()).answers)
                if isinstance(fact, str):
                    return Answered(fact, failed=True)
                given["fact_id"] = fact.id
            if row.verb in (verbs.REMEMBER, verbs.CORRECT):
                refuse_orders(str(given.get("text", "")))
                given |= {"confidence": _CONFIDENCE} if row.verb is verbs.REMEMBER else {}
            asked = await self._checked(row.verb, given)
            answer = await self._answer(row.verb, asked)
        except PagefileError as error:
            return Answered(await caller.refused(tool, error), failed=True)
        structured = row.structured(answer.model_dump(mode="json"))
        answers = (await caller.wording()).answers
        return Answered(WORDS[tool](structured, answers, arguments), structured)

    async def told(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The answer to a call of a tool in words, where a refusal would be taken for one."""
        answered = await self.call(tool, arguments)
        if answered.failed:
            raise InvalidArgumentError(answered.text)
        return answered.text

    async def _checked(self, verb: Verb[..., Any], given: Mapping[str, Any]) -> Any:
        """The request, within what the caller may ask; the caller's own user and conversation where it names none."""
        own = {"user_id": self.user_id, "tenant": self.tenant, "project": self.project}
        if verb.of_conversation:
            own["conversation_id"] = self.conversation_id
        filled = {name: value for name, value in own.items() if name in verb.request.model_fields}
        try:
            # Models write numbers as texts, and texts as numbers.
            asked = verb.request.model_validate({**filled, **given}, strict=False)
        except ValidationError as error:
            raise InvalidArgumentError(_explained(error)) from error
        return await self.narrow(asked)

    async def _called(self, verb: Verb[..., Any], asked: Any) -> Any:
        here = self if not verb.of_conversation else replace(self, conversation_id=asked.conversation_id)
        owner = here.chat() if verb.of_conversation else self.memory
        return await verb.method(owner, **verb.arguments(asked))

    async def _answer(self, verb: Verb[..., Any], asked: Any) -> BaseModel:
        found = await self._called(verb, asked)
        if isinstance(asked, FactsParams):
            return facts_page(found, asked)
        if verb is verbs.LOAD:
            page = await self.chat().page(asked.uuid)
            return LoadOut.of(page, found, asked.offset, asked.query)
        return WindowOut.of(found, asked.format) if verb is verbs.CONTEXT else verb.answer.of(found)


def _explained(error: ValidationError) -> str:
    said = (
        f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}"
        for one in error.errors(include_url=False, include_input=False)[:_MOST_ERRORS]
    )
    return "; ".join(said)
