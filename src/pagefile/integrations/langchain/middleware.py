"""`PagefileMiddleware`: memory for a LangChain agent, in its requests and never in its state."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Generic, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ContextT,
    ModelRequest,
    ModelResponse,
    ResponseT,
    ToolCallRequest,
)
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import FailOpen
from pagefile.edge.recorder import step_of
from pagefile.engine import Memory
from pagefile.engine.arguments import at_least
from pagefile.integrations.langchain import messages, view
from pagefile.integrations.langchain.messages import ToolOutput
from pagefile.integrations.langchain.thread_log import Talk
from pagefile.integrations.langchain.tools import Whose, tools_of, whose
from pagefile.integrations.langchain.view import Group, View
from pagefile.lru import Lru
from pagefile.records import Turn
from pagefile.standalone.memory_tools import ToolCaller
from pagefile.tiers.facts import Facts
from pagefile.tiers.workspace import ToolRule
from pagefile.window.parts import Parts
from pagefile.window.wording import WORDINGS, Choice

#: How many conversations' running turns are cached; older ones are read from the log again.
_TALKS = 1000
#: The minimum size of a window, however long the system message is.
_LEAST_WINDOW = 200


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
    the same throughout a turn, unless a fact is learnt or retracted meanwhile. None of it enters the state. Turns and tool results are written to the log as they happen.
    A thread without a history of its own (no checkpointer) gets it from the log.

    Synchronous runs need a `BlockingMemory`, or a `Memory` that lives in another thread's event loop. If anything fails here, the
    run continues without memory: the failure is logged once, counted in `pagefile_degraded_total{tier="langchain"}`, and takes
    `timeout_s` at most.

    Args:
        user_id: whose memory it is; by default `user_id` from the run's context or configuration.
        conversation_id: which conversation; by default from the run's context or configuration, else its `thread_id`.
        tenant: like `user_id`.
        window_tokens: the maximum size of a request without the tools' schemas; by default the memory's setting.
        recent_turns: how many of the latest turns are kept longest; by default the memory's setting.
        archive_in_state: True keeps placeholders in the state instead of bulky results, so that checkpoints stay small.
            Either way the model sees the full result in the turn that fetched it.
        offer_tools: False offers no tools (`load_tool_history`, `recall` and so on), for models that cannot call any.
        incognito: write nothing to the database and recall nothing.
        workspace: False answers no repeated calls.
        rules: which tools' results are remembered, and answer an equal call; they precede the memory's own.
        timeout_s: how long a hook may wait for the memory.
        language: of what is written around the conversation ("zh" or "en"); by default that of the conversation.
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
        workspace: bool = True,
        rules: Iterable[ToolRule] = (),
        timeout_s: float = 5.0,
        language: Choice | None = None,
    ) -> None:
        super().__init__()
        self._edge = FailOpen(memory, "langchain", timeout_s=timeout_s)
        engine = self._edge.memory.engine
        self._whose = partial(whose, conversation_id=conversation_id, user_id=user_id, tenant=tenant)
        window = engine.settings.window_tokens if window_tokens is None else window_tokens
        self._window_tokens = at_least(1, window, "window_tokens")
        self._recent_turns = recent_turns
        self._archive_in_state = archive_in_state
        self._incognito, self._language = incognito, language
        self._workspace, self._rules = workspace, tuple(rules)
        self._count = engine.counter.count
        self._guides = {
            name: wording.whole_guide if offer_tools else "" for name, wording in WORDINGS.items()
        }
        self._talks: Lru[Whose, Talk] = Lru(_TALKS)
        #: The system text and the memory of a turn, which stay byte-identical through all its model calls as long as the user's
        #: facts are the same.
        self._frozen: Lru[tuple[Whose, str, int], tuple[str, str]] = Lru(_TALKS)
        described = partial(tools_of, self._edge, self._whose, self._caller)
        self.tools = described(language) if offer_tools else []
        #: The same tools as they are described to the model, by language and name.
        self._described = {name: {tool.name: tool for tool in described(name)} for name in WORDINGS}

    # -- model calls ------------------------------------------------------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], ModelResponse[ResponseT]],
    ) -> ModelResponse[ResponseT]:
        who = self._whose(request.runtime.context)
        if who is None:
            return handler(request)
        found = self._edge.attempt_blocking("the window", lambda: self._viewed(who, request), None)
        with self._watched(who, request.state):
            return handler(self._request(request, found))

    async def awrap_model_call(
        self,
        request: ModelRequest[ContextT],
        handler: Callable[[ModelRequest[ContextT]], Awaitable[ModelResponse[ResponseT]]],
    ) -> ModelResponse[ResponseT]:
        who = self._whose(request.runtime.context)
        if who is None:
            return await handler(request)
        found = await self._edge.attempt("the window", lambda: self._viewed(who, request), None)
        with self._watched(who, request.state):
            return await handler(self._request(request, found))

    # -- tool calls -------------------------------------------------------------------------------------------------------

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolOutput]
    ) -> ToolOutput:
        who = self._whose(cast("Any", request).runtime.context)
        if who is None:
            return handler(request)
        result: ToolOutput | None = self._edge.attempt_blocking(
            "looking for an equal call", lambda: self._answered(who, request), None
        )
        if result is None:
            with self._watched(who, request.state):
                result = handler(request)
        return self._edge.attempt_blocking(
            "archiving a result", lambda: self._archived(who, request, result), result, always=True
        )

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolOutput]]
    ) -> ToolOutput:
        who = self._whose(cast("Any", request).runtime.context)
        if who is None:
            return await handler(request)
        result: ToolOutput | None = await self._edge.attempt(
            "looking for an equal call", lambda: self._answered(who, request), None
        )
        if result is None:
            with self._watched(who, request.state):
                result = await handler(request)
        return await self._edge.attempt(
            "archiving a result", lambda: self._archived(who, request, result), result, always=True
        )

    # -- the end of a run -------------------------------------------------------------------------------------------------

    def after_agent(self, state: AgentState[ResponseT], runtime: Runtime[ContextT]) -> None:
        who = self._whose(runtime.context)
        if who is not None:
            self._edge.attempt_blocking("recording", lambda: self._finished(who, state), None, always=True)

    async def aafter_agent(self, state: AgentState[ResponseT], runtime: Runtime[ContextT]) -> None:
        who = self._whose(runtime.context)
        if who is not None:
            await self._edge.attempt("recording", lambda: self._finished(who, state), None, always=True)

    # -- on the memory's own loop -------------------------------------------------------------------------------------------

    def _talk(self, who: Whose) -> Talk:
        if who not in self._talks:
            chat = self._edge.memory.conversation(
                who.conversation,
                user_id=who.user,
                tenant=who.tenant,
                language=self._language,
                incognito=self._incognito,
            )
            self._talks[who] = Talk(chat)
        return self._talks[who]

    def _caller(self, who: Whose) -> ToolCaller:
        return ToolCaller(self._edge.memory, self._talk(who).chat, incognito=self._incognito)

    async def _viewed(self, who: Whose, request: ModelRequest[ContextT]) -> View | None:
        """The request as fitted by the window; None if there is no turn to build one for."""
        talk = self._talk(who)
        turn = await talk.begun(_turns(request.state))
        if turn is None:
            return None
        plain = view.plain_view(request.system_message, request.messages)
        # The window says which of them it is: until then there is room for the longer one.
        bases = {
            name: view.system_with(request.system_message, guide) for name, guide in self._guides.items()
        }
        fixed = max(
            view.request_tokens([*([base] if base else []), *plain.preamble], self._count)
            for base in bases.values()
        )
        own = "" if request.system_message is None else str(request.system_message.text)
        parts = await self._parts(talk, turn, max(_LEAST_WINDOW, self._window_tokens - fixed), own)
        language = parts.memory.language
        # The guide to archived results is in every request, so that the start of the prompt does not change when the
        # first result is archived.
        system = replace(parts, guide="", instructions="").system
        known = await self._edge.memory.engine.tier(Facts).book.revision(talk.chat.scope)
        memory = parts.beside
        if turn.status == "open":
            system, memory = self._frozen.setdefault((who, turn.id, known), (system, memory))
        whole = replace(
            plain,
            system=view.system_with(bases[language], system),
            history=tuple(self._history(talk, request.messages, parts)),
            memory=memory,
            less_memory=parts.beside,
            turn_id=turn.id,
            language=language,
        )
        if parts.current is None:
            return whole
        shown = partial(view.as_window_shows, plain.tail, turn, parts.current)
        # Results of the running turn are shown in full; in a tight window, as that shows them.
        full = replace(whole, tail=shown(placeholders_only=True))
        return full if full.tokens(self._count) <= self._window_tokens else replace(whole, tail=shown())

    async def _parts(self, talk: Talk, turn: Turn, window_tokens: int, own: str) -> Parts:
        """The window, with the agent's own system prompt: it is in the bill, and says which language is spoken before the user does."""
        # A done turn that is run again has its place in the log already: the window is that of its question.
        current: dict[str, Any] = {"turn": turn} if turn.status == "open" else {"query": turn.user}
        window = await talk.chat.context(
            **current,
            window_tokens=window_tokens + self._count(own),
            recent_turns=self._recent_turns,
            placement="tail",
            instructions=own or None,
        )
        if any(shown.turn_id not in talk.turns for shown in window.parts.turns):
            listing = await talk.chat.turns(newest=True, limit=len(window.receipt) + 1)
            talk.turns |= {known.id: known for known in listing}
        return window.parts

    def _history(self, talk: Talk, thread: Sequence[BaseMessage], parts: Parts) -> list[Group]:
        """The thread's own history takes precedence, even if it is only a summary; without any, the log's is used."""
        preamble, found = messages.exchanges(thread)
        earlier = found[:-1]
        if not earlier and not preamble:
            return view.logged_history(parts.turns, parts.blobs)
        shown = [(talk.turns[one.turn_id], one) for one in parts.turns]
        return view.native_history(earlier, [talk.done(exchange) for exchange in earlier], shown)

    def _request(self, request: ModelRequest[ContextT], found: View | None) -> ModelRequest[ContextT]:
        """The request within its window; without memory if that failed."""
        whole = found or view.plain_view(request.system_message, request.messages)
        fits = self._edge.attempt_here(
            "fitting a request", lambda: view.fitted(whole, self._window_tokens, self._count), whole
        )
        tools = request.tools
        if whole.language is not None and self.tools:
            own = {id(tool): self._described[whole.language][tool.name] for tool in self.tools}
            tools = [own.get(id(tool), tool) for tool in tools]
        said = cast("list[Any]", view.as_offered(fits.messages(), tools))
        return request.override(system_message=fits.system, messages=said, tools=tools)

    async def _answered(self, who: Whose, request: ToolCallRequest) -> ToolMessage | None:
        """The answer to an equal earlier call; None if the tool has to run."""
        if not self._workspace:
            return None
        call, tool = request.tool_call, request.tool
        schema = None if tool is None else {"properties": tool.args}
        workspace = self._talk(who).chat.workspace(rules=self._rules).trusted(self._edge.failures)
        cached = await workspace.lookup(call["name"], call["args"], schema=schema)
        return (
            None if cached is None else ToolMessage(cached.answer, name=call["name"], tool_call_id=call["id"])
        )

    async def _archived(self, who: Whose, request: ToolCallRequest, result: ToolOutput) -> ToolOutput:
        """Record the result. The state keeps it as returned, or as a placeholder with `archive_in_state`."""
        talk = self._talk(who)
        turn = await talk.begun(_turns(request.state))
        if turn is None:
            return result
        call = request.tool_call
        changed: dict[int, ToolMessage] = {}
        for message in messages.tool_messages(result):
            use = messages.ToolUse(message, str(message.name or call["name"]), call["args"])
            turn = await talk.add(turn, use)
            number = step_of(turn, use.returned) if self._archive_in_state else None
            step = None if number is None or not use.is_plain else turn.steps[number]
            if step is not None and step.page is not None and not step.whole:
                changed[id(message)] = use.with_text(step.result)
        return messages.with_messages(result, changed)

    async def _finished(self, who: Whose, state: AgentState[ResponseT]) -> None:
        turns = _turns(state)
        last = turns[-1] if turns else messages.Exchange((), tuple(messages.messages_of(state)))
        structured = messages.structured_text(cast("Any", state).get("structured_response"))
        await self._talk(who).finish(turns, last, last.answer or structured or last.last_words)

    @contextmanager
    def _watched(self, who: Whose, state: Any) -> Generator[None]:
        """Notes that a model or a tool raised, other than to interrupt: the user's next message aborts its turn."""
        failed = True
        try:
            yield
            failed = False
        except GraphBubbleUp:
            failed = False
            raise
        finally:
            if failed and (turns := _turns(state)) and who in self._talks:
                self._talks[who].failed.add(turns[-1].id)


def _turns(state: Any) -> list[messages.Exchange]:
    return messages.exchanges(messages.messages_of(state))[1]
