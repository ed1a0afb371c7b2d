"""The OpenAI Agents SDK: a `Session` in a Pagefile database, and the filter that gives each model call its window.

```python
session = PagefileSession(memory, "conv-1", user_id="ada")
await Runner.run(session.equipped(agent), "What am I allergic to?", session=session, run_config=session.run_config())
```
"""

import asyncio
import inspect
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.errors import MissingExtraError
from pagefile.gateway.exchanges import Json
from pagefile.gateway.sse import object_of
from pagefile.integrations.door import ITEMS, Door, Shown, whose
from pagefile.integrations.item_lists import ItemList
from pagefile.shapes.skeleton import as_list
from pagefile.tiers.page_in import LOADING_TOOLS

try:
    from agents import Agent, FunctionTool, RunConfig, SessionSettings
    from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData
except ImportError as error:
    raise MissingExtraError.of("openai-agents", "The OpenAI Agents integration") from error


@dataclass(slots=True, eq=False)
class _Run:
    """One run of a session: the SDK reads the session first, and adds to it as it goes."""

    session: "PagefileSession"
    #: How many items there were before it.
    start: int
    items: list[Json] = field(default_factory=list[Json])
    #: The agent that was asked first.
    agent: str = ""

    @property
    def asked(self) -> list[Json]:
        return [item for item in self.items if ITEMS.asks(item)]


#: The run of this task, and the task in which its model was asked; what its tools run inherits both.
_RUN: ContextVar[_Run | None] = ContextVar("pagefile_agents_run", default=None)
_ASKED_IN: ContextVar[asyncio.Task[Any] | None] = ContextVar("pagefile_agents_task", default=None)


class PagefileSession:
    """One conversation of a user: the SDK's history of it, and its memory.

    The history is stored as the SDK gives it. What a run says is a turn in the log when the run ends; what memory knows is added to
    each request by `run_config()`, and never stored. If memory fails, runs go on without it.

    Args:
        session_id: which conversation it is.
        user_id: whose memory it is; without one, nothing is shared between conversations.
        window_tokens: memory never makes a request larger than this; by default the memory's setting.
        tools: False if the agents are not offered our tools: then tool results stay in requests.
        session_settings: as for the SDK's own sessions: `SessionSettings(limit=…)`.
        timeout_s: how long a call waits for the memory before the run continues without it.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        session_id: str,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        window_tokens: int | None = None,
        tools: bool = True,
        session_settings: SessionSettings | None = None,
        timeout_s: float = 5.0,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self.who = whose(user_id, session_id, tenant)
        self._door = Door(
            memory,
            "openai_agents",
            window_tokens=window_tokens,
            timeout_s=timeout_s,
            tools=tools,
            protocol=ITEMS,
            from_log=False,
        )
        self._list = ItemList(self._door.memory, ("openai_agents", session_id), user_id, tenant)

    # -- the SDK's protocol -------------------------------------------------------------------------------------------------

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items of the conversation, or the last few."""
        settings = self.session_settings
        last = limit if limit is not None else None if settings is None else settings.limit
        found: list[Any] = []
        start = await self._door.edge.attempt("reading a session", self._list.length, 0)
        _RUN.set(_Run(self, start))
        _ASKED_IN.set(None)
        return await self._door.edge.attempt("reading a session", partial(self._list.items, last), found)

    async def add_items(self, items: list[Any]) -> None:
        """Add items; with a run's answer, the run becomes a turn."""
        given = [_as_json(item) for item in items]
        if not given:
            return
        run = self._run
        if run is not None:
            run.items += given
        await self._door.edge.attempt(
            "saving a session", partial(self._list.append, given), None, always=True
        )
        if _is_answer(given[-1]):
            whole = await self._door.edge.attempt("reading a session", self._list.items, None)
            if whole is not None:
                # Another run of the session may have added to it meanwhile.
                told = whole if run is None else [*whole[: run.start], *run.items]
                await self._door.finish(self.who, [[cast("Json", item) for item in told]])

    async def pop_item(self) -> Any:
        """Remove the last item and return it. The log keeps what was said."""
        _RUN.set(None)
        return await self._door.edge.attempt("changing a session", self._list.pop, None)

    async def clear_session(self) -> None:
        """Remove all items. The log keeps what was said; `memory.forget` erases it."""
        _RUN.set(None)
        await self._door.edge.attempt("clearing a session", self._list.clear, None, always=True)

    # -- memory -------------------------------------------------------------------------------------------------------------

    def run_config(self, base: RunConfig | None = None) -> RunConfig:
        """The configuration with our filter, after the one that it has."""
        base = base or RunConfig()
        return replace(base, call_model_input_filter=self._after(base.call_model_input_filter))

    def equipped(self, agent: Agent[Any]) -> Agent[Any]:
        """The agent and those it hands off to, with our tools, but for those whose name an agent uses itself."""
        return self._equipped(agent, {})

    def _equipped(self, agent: Agent[Any], known: dict[int, Agent[Any]]) -> Agent[Any]:
        if id(agent) not in known:
            taken = {tool.name for tool in agent.tools}
            tools = [*agent.tools, *(tool for tool in self.tools() if tool.name not in taken)]
            known[id(agent)] = made = agent.clone(tools=tools)
            # Agents may hand off to each other.
            made.handoffs = [
                self._equipped(cast("Agent[Any]", one), known) if isinstance(one, Agent) else one
                for one in agent.handoffs
            ]
        return known[id(agent)]

    def tools(self) -> list[FunctionTool]:
        """`recall`, `remember`, `load_tool_history` and so on, for this conversation."""
        return [
            FunctionTool(
                name=name,
                description=schema["description"],
                params_json_schema=schema["parameters"],
                on_invoke_tool=partial(self._answered, name),
                strict_json_schema=False,
            )
            for name, schema in self._door.tool_schemas(self.who).items()
        ]

    async def _answered(self, tool: str, _context: object, arguments: str) -> str:
        return await self._door.answer(tool, object_of(arguments) or {}, self.who)

    def _after(self, first: CallModelInputFilter | None) -> CallModelInputFilter:
        async def filtered(data: CallModelData[Any]) -> ModelInputData:
            model_data = data.model_data
            if first is not None:
                given = first(data)
                model_data = await given if inspect.isawaitable(given) else given
            return await self._filtered(model_data, data.agent)

        return filtered

    async def _filtered(self, given: ModelInputData, agent: Agent[Any]) -> ModelInputData:
        items = [_as_json(item) for item in given.input]
        asked = [item for item in items if ITEMS.asks(item)]
        # After a handoff the SDK may send its own summary, without what the user said.
        unsaid = [] if asked or self._run is None else self._run.asked[-1:]
        if not self._is_users(asked or unsaid, agent.name):
            return given
        equipped = any(tool.name in LOADING_TOOLS for tool in agent.tools)
        told = [[item] for item in (*unsaid, *items)]
        request = await self._door.request(self.who, told, given.instructions or "", tools=equipped)
        if request is None:
            return given
        own = [*unsaid, *given.input]
        first = [one.memory for one in request.shown if unsaid and one.at == 0]
        sent = [_sent(one, own) for one in request.shown if not (unsaid and one.at == 0)]
        instructions = "\n\n".join(text for text in (given.instructions, request.system, *first) if text)
        return ModelInputData(input=sent, instructions=instructions or None)

    @property
    def _run(self) -> _Run | None:
        run = _RUN.get()
        return run if run is not None and run.session is self else None

    def _is_users(self, asked: Sequence[Json], agent: str) -> bool:
        """Whether a request is about what the user said; an agent that runs as a tool of another one is asked by a model."""
        run, here = self._run, asyncio.current_task()
        if run is None or not asked:
            return bool(asked)
        words = [item.get("content") for item in asked]
        if run.asked and run.asked[-1].get("content") not in words:
            return False
        run.agent = run.agent or agent
        if run.agent != agent and _ASKED_IN.get() not in {None, here}:
            # Within a tool of the run, which passed on the user's own words.
            return False
        _ASKED_IN.set(here)
        return True


def _sent(shown: Shown, own: Sequence[Any]) -> Any:
    item = shown.message if shown.at is None else own[shown.at]
    if shown.memory:
        content = item.get("content")
        block = {"type": "input_text", "text": shown.memory}
        more = (
            f"{shown.memory}\n\n{content}" if isinstance(content, str) else [block, *(as_list(content) or [])]
        )
        return {**item, "content": more}
    if shown.results:
        return {**item, "output": next(iter(shown.results.values()))}
    return item


def _is_answer(item: Json) -> bool:
    return item.get("role") == "assistant" and item.get("type", "message") == "message"


def _as_json(item: Any) -> Json:
    """Items are JSON objects, or models of the SDK's that become some."""
    dump = getattr(item, "model_dump", None)
    return cast("Json", dump(exclude_unset=True) if callable(dump) else dict(item))


__all__ = ["PagefileSession"]
