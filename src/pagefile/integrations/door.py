"""What the doors to agent frameworks share: a request gets its window, a run becomes a turn, and a failing memory costs neither.

A framework's door translates its messages into those of Chat Completions (or Responses) and says when a run ends. Which conversation
a history belongs to, what the log does not have of it, and what the model is shown is decided as for the gateway's requests.
"""

import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import FailOpen
from pagefile.engine import Conversation, Memory
from pagefile.engine.arguments import at_least
from pagefile.errors import ConflictError, InvalidArgumentError, PagefileError, SettingsError
from pagefile.gateway.adapter import Adapter
from pagefile.gateway.chat_completions import ChatCompletions
from pagefile.gateway.conversations import Who, version_of
from pagefile.gateway.exchanges import Json, text_of
from pagefile.gateway.openai_responses import Responses
from pagefile.gateway.session import Call, Gateway
from pagefile.lru import Lru
from pagefile.records import Turn
from pagefile.standalone.memory_tools import FACT_TOOLS, ToolCaller, memory_tool_schemas
from pagefile.window.wording import WORDINGS, Language

#: How many conversations' running turns are known.
_RUNNING = 1_000
#: The conversation whose model call is being prepared or answered here: tools are called in the same context.
_CURRENT: ContextVar[Who | None] = ContextVar("pagefile_conversation", default=None)

#: Whether a tool runs here: an agent that it starts is asked by a model, and not by the user.
IN_TOOL: ContextVar[bool] = ContextVar("pagefile_in_tool", default=False)


class _Changed(dict[str, Any]):
    """A message that memory changed, and the one it was."""

    def __init__(self, message: Json, origin: Json, *, memory: str = "", results: Mapping[str, str]) -> None:
        super().__init__(message)
        self.origin, self.memory, self.results = origin, memory, results


class _Framework(Adapter):
    """A protocol as frameworks use it: their instructions and tools are beside the messages, and stay there."""

    def system(self, body: Json) -> str:
        return str(body.get("instructions") or "")

    def with_system(self, body: Json, text: str) -> Json:
        return {**body, "added": text}

    def with_tools(self, body: Json, language: Language) -> Json:
        del language
        return body

    def with_memory(self, message: Json, text: str) -> Json:
        return _Changed(message, message, memory=text, results={})

    def with_results(self, message: Json, texts: Mapping[str, str]) -> Json:
        changed = super().with_results(message, texts)
        return message if changed is message else _Changed(changed, message, results=texts)


class _Chat(_Framework, ChatCompletions):
    pass


class _Items(_Framework, Responses):
    pass


CHAT, ITEMS = _Chat(), _Items()


@dataclass(frozen=True, slots=True)
class Shown:
    """One message of a request: the framework's own, by its number, or one of the log, which the framework does not have."""

    at: int | None
    #: Goes before what the user said.
    memory: str = ""
    #: The texts of tool results that are not shown as they were returned, by call id.
    results: Mapping[str, str] = field(default_factory=dict[str, str])
    #: That of the log; empty for the framework's own.
    message: Json = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Request:
    """A model call with memory."""

    call: Call
    #: Goes after the framework's own instructions.
    system: str
    shown: Sequence[Shown]


class Door:
    """Memory for the runs of one framework. Its methods never raise, and wait `timeout_s` at most.

    Args:
        tools: whether the model can load archived results: only then do they leave a request.
        protocol: how messages are written: `CHAT` or `ITEMS`.
        from_log: whether a framework without a history gets that of the log; False where the history is ours, and empty if emptied.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        integration: str,
        *,
        window_tokens: int | None = None,
        timeout_s: float = 5.0,
        tools: bool = True,
        protocol: Adapter = CHAT,
        from_log: bool = True,
    ) -> None:
        self.edge = FailOpen(memory, integration, timeout_s=timeout_s)
        self.memory, self.protocol, self._from_log = self.edge.memory, protocol, from_log
        settings = self.memory.settings
        window = at_least(1, window_tokens or settings.window_tokens, "window_tokens")
        self._gateway = Gateway(
            self.memory, replace(settings.gateway, window_tokens=window, tools=tools, mode="on")
        )
        self._calls: Lru[Who, Call] = Lru(_RUNNING)

    # -- model calls ------------------------------------------------------------------------------------------------------

    async def request(
        self, who: Who, told: Sequence[Sequence[Json]], system: str = "", *, tools: bool = True
    ) -> Request | None:
        """The request's window; None if memory failed, or nothing was asked: then it is sent as it was.

        `told` are the framework's messages; one of a framework's may be several of the protocol's. Without `tools`, its model has none
        to load archived results with.
        """
        _CURRENT.set(who)
        work = partial(self._requested, who, told, system, tools=tools)
        return await self.edge.attempt("the window", work, None)

    def request_blocking(
        self, who: Who, told: Sequence[Sequence[Json]], system: str = "", *, tools: bool = True
    ) -> Request | None:
        _CURRENT.set(who)
        work = partial(self._requested, who, told, system, tools=tools)
        return self.edge.attempt_blocking("the window", work, None)

    async def _requested(
        self, who: Who, told: Sequence[Sequence[Json]], system: str, *, tools: bool
    ) -> Request | None:
        messages = [message for group in told for message in group]
        body = {self.protocol.field: messages, "instructions": system}
        if not tools:
            body["tool_choice"] = "none"
        call = Call(self._gateway, self.protocol, who, b"", body, from_log=self._from_log)
        await call.prepare()
        if call.place is None or not call.sent:
            return None
        self._calls[who] = call
        places = {id(message): at for at, group in enumerate(told) for message in group}
        return Request(
            call, str(call.sent.get("added") or ""), _shown(self.protocol.messages(call.sent), places)
        )

    # -- the end of a run -------------------------------------------------------------------------------------------------

    async def finish(self, who: Who, told: Sequence[Sequence[Json]], answer: str | None = None) -> None:
        """Record a run that is over: its whole history, the answer included. `answer` is given if it is not a message."""
        await self.edge.attempt("recording", partial(self._finished, who, told, answer), None, always=True)

    def finish_blocking(self, who: Who, told: Sequence[Sequence[Json]], answer: str | None = None) -> None:
        work = partial(self._finished, who, told, answer)
        self.edge.attempt_blocking("recording", work, None, always=True)

    async def _finished(self, who: Who, told: Sequence[Sequence[Json]], answer: str | None) -> None:
        messages = [message for group in told for message in group]
        talk = self.protocol.talk({self.protocol.field: messages})
        if not talk.exchanges:
            return
        *earlier, last = talk.exchanges
        # A plain answer needs no message of its own in the log.
        text = _plain_answer(last.rest) if answer is None else None
        last = last if text is None else replace(last, rest=last.rest[:-1])
        place = await self._gateway.conversations.open(who, [*earlier, last], self.protocol.shape)
        self._calls.pop(who, None)
        if not last.rest and text is None and answer is None:
            await place.chat.abort(place.turn)
            return
        await _completed(place.chat, place.turn, answer if text is None else text)

    async def take(self, who: Who, told: Sequence[Sequence[Json]]) -> None:
        """Record a history that is over; nothing of it twice."""
        messages = [message for group in told for message in group]
        talk = self.protocol.talk({self.protocol.field: messages})
        if talk.exchanges:
            work = partial(self._gateway.conversations.take, who, talk.exchanges, self.protocol.shape)
            await self.edge.attempt("recording a history", work, None, always=True)

    # -- tools ------------------------------------------------------------------------------------------------------------

    def tool_schemas(self, who: Who | None = None) -> dict[str, dict[str, Any]]:
        """The tools to offer, by name; without a user there are no facts."""
        schemas = memory_tool_schemas(self.memory.engine.languages.default(None))
        return schemas if who is None or who.user is not None else _without_facts(schemas)

    async def answer(self, tool: str, arguments: Mapping[str, Any], who: Who | None = None) -> str:
        """What a model reads for its call of one of our tools; without `who`, in the run it is called in."""
        who = who or _CURRENT.get()
        unavailable = WORDINGS[self.memory.engine.languages.default(None)].answers["no_memory"]
        if who is None:
            return unavailable
        return await self.edge.attempt(tool, partial(self._answered, who, tool, arguments), unavailable)

    def answer_blocking(self, tool: str, arguments: Mapping[str, Any], who: Who | None = None) -> str:
        who = who or _CURRENT.get()
        unavailable = WORDINGS[self.memory.engine.languages.default(None)].answers["no_memory"]
        if who is None:
            return unavailable
        return self.edge.attempt_blocking(tool, partial(self._answered, who, tool, arguments), unavailable)

    async def _answered(self, who: Who, tool: str, arguments: Mapping[str, Any]) -> str:
        call = self._calls.get(who)
        place = None if call is None else call.place
        chat = self.chat(who) if place is None else place.chat
        caller = ToolCaller(self.memory, chat, None if place is None else place.turn)
        try:
            return await caller.answer(tool, arguments)
        except PagefileError as error:
            return await caller.refused(tool, error)

    def chat(self, who: Who) -> Conversation:
        if who.conversation is None:
            raise SettingsError("A run names no conversation: give it a conversation_id or a session.")
        return self.memory.conversation(who.conversation, user_id=who.user, tenant=who.tenant)


def whose(user_id: str | None, conversation_id: str, tenant: str | None = None) -> Who:
    """The conversation of a run; an empty id is refused, not taken for a run without a user."""
    for name, value in (("user_id", user_id), ("conversation_id", conversation_id), ("tenant", tenant)):
        if value == "":
            raise InvalidArgumentError(f"{name} is empty: give an id, or leave it out.")
    return Who(user_id, tenant, conversation_id)


def _without_facts(schemas: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: schema for name, schema in schemas.items() if name not in FACT_TOOLS}


async def _completed(chat: Conversation, turn: Turn, answer: str | None) -> None:
    try:
        await chat.complete(turn, answer)
    except ConflictError:
        # Another process answered the same turn meanwhile: this answer is a turn of its own.
        again = await chat.begin(messages=await chat.messages(turn.id), id=version_of(turn.id[:32]))
        await chat.complete(again, answer)


def _plain_answer(rest: Sequence[Json]) -> str | None:
    last = rest[-1] if rest else {}
    plain = last.get("role") == "assistant" and last.keys() <= {"role", "content"}
    return (
        last["content"]
        if plain and isinstance(last.get("content"), str) and last["content"].strip()
        else None
    )


def _shown(messages: Sequence[Json], places: Mapping[int, int]) -> list[Shown]:
    """What is shown of each of the framework's messages; results that one of them brings together are together again."""
    found: list[Shown] = []
    for message in messages:
        changed = message if isinstance(message, _Changed) else None
        at = places.get(id(message if changed is None else changed.origin))
        memory, results = ("", dict[str, str]()) if changed is None else (changed.memory, {**changed.results})
        if at is not None and found and found[-1].at == at:
            before = found[-1]
            found[-1] = Shown(at, before.memory or memory, {**before.results, **results})
        else:
            found.append(Shown(at, memory, results, {} if at is not None else message))
    return found


# -- messages of Chat Completions -----------------------------------------------------------------------------------------


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def assistant(text: str | None, calls: Sequence[tuple[str | None, str, Any]] = ()) -> Json:
    """A message of the model; calls are their ids, tools and arguments."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": _arguments(given)}}
        for call_id, name, given in calls
    ]
    return {"role": "assistant", "content": text or "", **({"tool_calls": made} if made else {})}


def result(call_id: str | None, content: Any) -> Json:
    return {"role": "tool", "tool_call_id": call_id or "", "content": content}


def image(media_type: str, data: str) -> Json:
    """A picture in a user's message; `data` is in base64."""
    return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}


def plain(message: Json) -> str:
    """The text of a message of the log; what is not text is named."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text") or f"[{block.get('type')}]") for block in content or ())


def calls_of(message: Json) -> list[tuple[str, str, Any]]:
    """The ids, tools and arguments (as JSON text) of a message's calls."""
    return [
        (str(call.get("id")), call["function"]["name"], call["function"].get("arguments") or "{}")
        for call in message.get("tool_calls") or ()
    ]


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)


__all__ = [
    "CHAT", "IN_TOOL", "ITEMS", "Door", "Request", "Shown", "Who", "assistant", "calls_of", "image", "plain", "result",
    "text_of", "user", "whose",
]  # fmt: skip
