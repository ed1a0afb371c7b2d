"""Whose memory a run uses, and Pagefile's tools as LangChain's."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias, cast

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import FailOpen
from pagefile.engine import Memory
from pagefile.errors import PagefileError
from pagefile.records import DEFAULT_TENANT, Scope
from pagefile.standalone.agent_memory import part_of
from pagefile.standalone.memory_tools import ToolCaller, memory_tool_schemas
from pagefile.window.wording import WORDINGS, Choice

logger = logging.getLogger("pagefile")

#: How LangGraph writes where a node runs: `tools:<task>|model:<task>` is a model within a tool's call.
_NODES, _TOOLS = "|", "tools:"

#: That of a tool which is invoked by itself, as in `tool.invoke({…})`.
_NO_RUNTIME = cast("ToolRuntime[Any, Any]", None)


@dataclass(frozen=True, slots=True)
class Whose:
    conversation: str
    user: str | None = None
    tenant: str | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant or DEFAULT_TENANT, self.user, self.conversation)


#: Finds the conversation of a run from its `context=`: `whose` with what an integration was constructed with.
FindWhose: TypeAlias = Callable[[object], Whose | None]


def whose(context: object, **given: str | None) -> Whose | None:
    """The conversation of this run; call it inside a node, a hook or a tool. None, with a warning, for a run that names none.

    `user_id`, `conversation_id` and `tenant` each come from the first place that has them: the arguments of the middleware, `context=`
    of the run, `configurable` of its configuration. A run that names no conversation uses its `thread_id`. An agent that a tool
    of another one runs has a conversation of its own, without a user: what it is asked are not the user's words.
    """
    settings: Mapping[str, Any] = {}
    with suppress(RuntimeError):
        settings = get_config().get("configurable", {})

    def named(name: str) -> str | None:
        # The last one counts even if it is empty: an empty id is refused, not taken for a run without a user.
        return _id_in(given, name) or _id_in(context, name) or _id_in(settings, name)

    conversation = named("conversation_id") or _id_in(settings, "thread_id")
    if conversation is None:
        _warn_of_no_conversation()
        return None
    delegated = _delegating_call(settings)
    if delegated is not None and _id_in(given, "conversation_id") is None:
        return Whose(f"{conversation}/{delegated}", None, named("tenant"))
    user = named("user_id")
    if user is None:
        _warn_of_no_user()
    return Whose(conversation, user, named("tenant"))


def _delegating_call(settings: Mapping[str, Any]) -> str | None:
    """The tool call within which this agent runs; None for an agent that was not started by a tool."""
    *outside, _here = str(settings.get("checkpoint_ns") or "").split(_NODES)
    calls = [node for node in outside if node.startswith(_TOOLS)]
    return calls[-1] if calls else None


@cache
def _warn_of_no_conversation() -> None:
    logger.warning(
        "a run names no conversation and goes on without memory: give the middleware a conversation_id, the run a context "
        'with one, or a thread_id as in agent.invoke(…, {"configurable": {"thread_id": "…"}})'
    )


@cache
def _warn_of_no_user() -> None:
    logger.warning(
        "a run names no user, so its memory stays within its thread: give the middleware or the run a user_id, as in "
        'agent.invoke(…, {"configurable": {"thread_id": "…", "user_id": "…"}}), and a new thread_id'
    )


def _id_in(source: object, name: str) -> str | None:
    """A context may be a mapping or any object; numeric ids are accepted too."""
    value = part_of(source, name)
    return None if value is None else str(value)


def memory_tools(
    memory: Memory | BlockingMemory,
    *,
    user_id: str | None = None,
    conversation_id: str | None = None,
    tenant: str | None = None,
    timeout_s: float = 30.0,
    language: Choice | None = None,
) -> list[BaseTool]:
    """The tools alone, for agents without the middleware; the user is determined as in the middleware.

    They are described in `language`, by default that of the settings, or in English; they answer in that of the conversation.
    """
    edge = FailOpen(memory, "langchain", timeout_s=timeout_s)

    def caller(who: Whose) -> ToolCaller:
        chat = edge.memory.conversation(who.conversation, user_id=who.user, tenant=who.tenant)
        return ToolCaller(edge.memory, chat)

    find = partial(whose, conversation_id=conversation_id, user_id=user_id, tenant=tenant)
    return tools_of(edge, find, caller, language)


def tools_of(
    edge: FailOpen,
    find: FindWhose,
    caller: Callable[[Whose], ToolCaller],
    language: Choice | None = None,
) -> list[BaseTool]:
    """Every tool; `caller` gives the conversation of the calling run."""
    schemas = memory_tool_schemas(edge.memory.engine.languages.default(language))
    return [_tool(edge, find, caller, schema) for schema in schemas.values()]


def _tool(
    edge: FailOpen, find: FindWhose, caller: Callable[[Whose], ToolCaller], schema: dict[str, Any]
) -> BaseTool:
    name, languages = schema["name"], edge.memory.engine.languages

    def unavailable(who: Whose | None) -> str:
        language = languages.default(None) if who is None else languages.last(who.scope)
        return WORDINGS[language].answers["no_memory"]

    async def work(who: Whose, arguments: dict[str, Any]) -> str:
        asking = caller(who)
        try:
            return await asking.answer(name, arguments)
        except PagefileError as error:
            return await asking.refused(name, error)

    # There is no runtime outside an agent. LangChain finds the parameter by this very annotation, so it cannot say None too.
    def call(runtime: ToolRuntime[Any, Any] = _NO_RUNTIME, **arguments: Any) -> str:
        who = find(part_of(runtime, "context"))
        if who is None:
            return unavailable(who)
        return edge.attempt_blocking(name, lambda: work(who, arguments), unavailable(who))

    async def acall(runtime: ToolRuntime[Any, Any] = _NO_RUNTIME, **arguments: Any) -> str:
        who = find(part_of(runtime, "context"))
        if who is None:
            return unavailable(who)
        return await edge.attempt(name, lambda: work(who, arguments), unavailable(who))

    described = {"name": name, "description": schema["description"], "args_schema": schema["parameters"]}
    return StructuredTool(**described, func=call, coroutine=acall)
