"""`PagefileMiddleware`: memory for a LangChain agent, in its requests and never in its state."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ContextT,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ResponseT,
    ToolCallRequest,
)
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command

from pagefile.blocking import BlockingMemory
from pagefile.engine import Conversation, Memory
from pagefile.engine.asking import at_least
from pagefile.integrations.failing import FailOpen
from pagefile.integrations.langchain.reading import Exchange, ToolUse, exchanges, structured_text
from pagefile.integrations.langchain.recording import Talk
from pagefile.integrations.langchain.results import context_of, messages_of, tool_messages, with_messages
from pagefile.integrations.langchain.scoping import Given, Whose, whose
from pagefile.integrations.langchain.tools import tools_of
from pagefile.integrations.langchain.view import (
    Shown,
    View,
    fitted,
    logged_history,
    native_history,
    plain_view,
    request_tokens,
    running_tail,
    shown_in,
    system_with,
    with_text,
)
from pagefile.integrations.recorder import step_of
from pagefile.lru import Lru
from pagefile.records import Turn
from pagefile.window.wording import WORDINGS

#: How many conversations' running turns are cached; older ones are read from the log again.
_TALKS = 1000
#: The minimum size of a window, however long the system message is.
_LEAST_WINDOW = 200


@dataclass(frozen=True, slots=True)
class _Frozen:
    """What stays byte-identical through all model calls of a turn."""

    system: str
    memory: str


class PagefileMiddleware(
    AgentMiddleware[AgentState[ResponseT], ContextT, ResponseT], Generic[ContextT, ResponseT]
):
    """Gives an agent memory: earlier conversations, facts about the user, and tool results that can be paged back in.

    ```python
    async with Memory.open("sqlite:///agent.db") as memory:
        agent = create_agent(model, tools, middleware=[PagefileMiddleware(memory)])
        await agent.ainvoke(
            {"messages": [("user", "我对青霉素过敏")]},
            {"configurable": {"thread_id": "conv-1", "user_id": "ada"}},
        )
    ```

    Every model call gets a request within `window_tokens`: the thread's own messages, older turns as Pagefile's summary, bulky
    results of earlier turns as placeholders, and what memory knows in one message before the user's last one. That message stays
    the same throughout a turn. None of it enters the state. Turns and tool results are written to the log as they happen.
    A thread without a history of its own (no checkpointer) gets it from the log.

    Synchronous runs need a `BlockingMemory`, or a `Memory` that lives in another thread's event loop. If anything fails here, the
    run continues without memory: the failure is logged once, counted in `pagefile_degraded_total{tier="langchain"}`, and takes
    `timeout_s` at most.

    Args:
        memory: an open memory.
        user_id: whose memory it is; by default `user_id` from the run's context or configuration.
        conversation_id: which conversation; by default from the run's context or configuration, else its `thread_id`.
        tenant: like `user_id`.
        window_tokens: the maximum size of a request, including the system message but not the tools' schemas; by default the
            memory's setting.
        recent_turns: how many of the latest turns are kept longest; by default the memory's setting.
        archive_in_state: True keeps placeholders in the state instead of bulky results, so that checkpoints stay small.
            Either way the model sees the full result in the turn that fetched it.
        offer_tools: False for models that cannot call tools: they get none of `load_tool_history`, `search_tool_history`,
            `recall` and `remember`.
        incognito: write nothing to the database and recall nothing.
        timeout_s: how long a hook may wait for the memory.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: str | None = None,
        conversation_id: str | None = None,
        tenant: str | None = None,
        window_tokens: int | None = None,
        recent_turns: int | None = None,
        archive_in_state: bool = False,
        offer_tools: bool = True,
        incognito: bool = False,
        timeout_s: float = 5.0,
    ) -> None:
        super().__init__()
        self._edge = FailOpen(memory, "langchain", timeout_s=timeout_s)
        engine = self._edge.memory.engine
        self._given = Given(conversation_id, user_id, tenant)
        window = engine.settings.window_tokens if window_tokens is None else window_tokens
        self._window_tokens = at_least(1, window, "window_tokens")
        self._recent_turns = recent_turns
        self._archive_in_state = archive_in_state
        self._incognito = incognito
        self._count = engine.counter.count
        self._guide = WORDINGS[engine.settings.language].guide
        self._told_guide = self._guide if offer_tools else ""
        self._talks: Lru[Whose, Talk] = Lru(_TALKS)
        self._frozen: Lru[tuple[Whose, str], _Frozen] = Lru(_TALKS)
        tools = tools_of(self._edge, self._given, self._chat, incognito=incognito)
        self.tools = tools if offer_tools else []

    # -- model calls ------------------------------------------------------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], ModelResponse[ResponseT]],
    ) -> ModelResponse[ResponseT] | AIMessage | ExtendedModelResponse[ResponseT]:
        who = whose(self._given, request.runtime.context)
        view = self._edge.attempt_blocking("the window", lambda: self._viewed(who, request), None)
        with _Watch(self, who, request.state):
            return handler(self._request(request, view))

    async def awrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], Awaitable[ModelResponse[ResponseT]]],
    ) -> ModelResponse[ResponseT] | AIMessage | ExtendedModelResponse[ResponseT]:
        who = whose(self._given, request.runtime.context)
        view = await self._edge.attempt("the window", lambda: self._viewed(who, request), None)
        with _Watch(self, who, request.state):
            return await handler(self._request(request, view))

    # -- tool calls -------------------------------------------------------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        who = whose(self._given, context_of(request))
        with _Watch(self, who, request.state):
            result = handler(request)
        return self._edge.attempt_blocking(
            "archiving a result", lambda: self._archived(who, request, result), result, always=True
        )

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        who = whose(self._given, context_of(request))
        with _Watch(self, who, request.state):
            result = await handler(request)
        return await self._edge.attempt(
            "archiving a result", lambda: self._archived(who, request, result), result, always=True
        )

    # -- the end of a run -------------------------------------------------------------------------------------------------

    def after_agent(self, state: AgentState[ResponseT], runtime: Runtime[ContextT]) -> None:
        who = whose(self._given, runtime.context)
        self._edge.attempt_blocking("recording", lambda: self._finished(who, state), None, always=True)

    async def aafter_agent(self, state: AgentState[ResponseT], runtime: Runtime[ContextT]) -> None:
        who = whose(self._given, runtime.context)
        await self._edge.attempt("recording", lambda: self._finished(who, state), None, always=True)

    # -- on the memory's own loop -------------------------------------------------------------------------------------------

    def _talk(self, who: Whose) -> Talk:
        if who not in self._talks:
            chat = self._edge.memory.conversation(
                who.conversation, user_id=who.user, tenant=who.tenant, incognito=self._incognito
            )
            self._talks[who] = Talk(chat)
        return self._talks[who]

    def _chat(self, who: Whose) -> Conversation:
        return self._talk(who).chat

    async def _viewed(self, who: Whose, request: ModelRequest[ContextT]) -> View | None:
        """The request as fitted by the window; None if there is no turn to build one for."""
        talk = self._talk(who)
        _, told = exchanges(messages_of(request.state))
        turn = await talk.begun(told)
        if turn is None:
            return None
        plain = plain_view(request.system_message, request.messages)
        base = system_with(request.system_message, self._told_guide)
        fixed = request_tokens([*([base] if base else []), *plain.preamble], self._count)
        shown = await self._shown(talk, turn, max(_LEAST_WINDOW, self._window_tokens - fixed))
        frozen = self._frozen.get((who, turn.id))
        if frozen is None:
            frozen = self._frozen[who, turn.id] = _Frozen(shown.system, shown.memory)
        view = replace(
            plain,
            system=system_with(base, frozen.system),
            history=tuple(self._history(talk, request.messages, shown)),
            memory=frozen.memory,
            less_memory=shown.memory,
            turn_id=turn.id,
            tail=running_tail(plain.tail, turn, shown.results, tight=False),
        )
        if view.tokens(self._count) > self._window_tokens:
            view = replace(view, tail=running_tail(plain.tail, turn, shown.results, tight=True))
        return view

    async def _shown(self, talk: Talk, turn: Turn, window_tokens: int) -> Shown:
        window = await talk.chat.context(
            turn=turn, window_tokens=window_tokens, recent_turns=self._recent_turns, placement="tail"
        )
        if any(shown.turn_id not in talk.turns for shown in window.parts.turns):
            listing = await talk.chat.turns(newest=True, limit=len(window.receipt) + 1)
            talk.turns |= {known.id: known for known in listing}
        return shown_in(window, talk.turns)

    def _history(
        self, talk: Talk, messages: Sequence[BaseMessage], shown: Shown
    ) -> list[tuple[BaseMessage, ...]]:
        """The thread's own history takes precedence, even if it is only a summary; without any, the log's is used."""
        preamble, found = exchanges(messages)
        earlier = found[:-1]
        if not earlier and not preamble:
            return logged_history(shown)
        return native_history(earlier, [talk.done(exchange) for exchange in earlier], shown.turns)

    def _request(self, request: ModelRequest[ContextT], view: View | None) -> ModelRequest[ContextT]:
        """The request within its window; without memory if that failed."""
        whole = view if view is not None else plain_view(request.system_message, request.messages)
        fits = self._edge.attempt_here(
            "fitting a request", lambda: fitted(whole, self._window_tokens, self._count), whole
        )
        return request.override(system_message=fits.system, messages=cast("list[Any]", fits.messages()))

    async def _archived(
        self, who: Whose, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        """Record the result. The state keeps it as returned, or as a placeholder with `archive_in_state`."""
        talk = self._talk(who)
        _, told = exchanges(messages_of(request.state))
        turn = await talk.begun(told)
        if turn is None:
            return result
        call = request.tool_call
        changed: dict[int, ToolMessage] = {}
        for message in tool_messages(result):
            use = ToolUse(message, str(message.name or call["name"]), call["args"])
            turn = await talk.add(turn, use)
            changed[id(message)] = self._in_state(use, turn)
        return with_messages(result, changed)

    def _in_state(self, use: ToolUse, turn: Turn) -> ToolMessage:
        number = step_of(turn, use.returned) if self._archive_in_state else None
        if number is None or not isinstance(cast("Any", use.message.content), str):
            return use.message
        step = turn.steps[number]
        return use.message if step.whole or step.page is None else with_text(use.message, step.result)

    async def _finished(self, who: Whose, state: AgentState[ResponseT]) -> None:
        talk = self._talk(who)
        _, told = exchanges(messages_of(state))
        last = told[-1] if told else Exchange((), tuple(messages_of(state)))
        structured = structured_text(cast("Any", state).get("structured_response"))
        await talk.finish(told, last.rest, last.answer or structured or last.last_words)

    def failed(self, who: Whose, state: Any) -> None:
        """The run raised: its turn is aborted when the user's next message arrives."""
        _, told = exchanges(messages_of(state))
        if told and who in self._talks:
            self._talks[who].failed.add(told[-1].id)


class _Watch:
    """Notices when a model or a tool raises; an interrupt does not count as a failure."""

    def __init__(self, middleware: PagefileMiddleware[Any, Any], who: Whose, state: Any) -> None:
        self._middleware = middleware
        self._who = who
        self._state = state

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, GraphBubbleUp):
            self._middleware.failed(self._who, self._state)
