"""`PagefileMemory`: the hooks, each delegating to the memory of its run."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AsyncExitStack
from contextvars import Context, copy_context
from copy import copy
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from pydantic_ai import AgentRunResult, FunctionToolset, ModelRequestContext, RunContext, Tool, ToolCallPart
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler, WrapToolExecuteHandler
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import FailOpen
from pagefile.engine import Memory
from pagefile.engine.arguments import at_least
from pagefile.errors import InvalidArgumentError, PagefileError, SettingsError
from pagefile.integrations.pydantic_ai.messages import asked, waiting_run
from pagefile.integrations.pydantic_ai.run import RunMemory
from pagefile.lru import Lru
from pagefile.records import Scope
from pagefile.standalone.memory_tools import FACT_TOOLS, RECALL_TOOL, ToolCaller, memory_tool_schemas
from pagefile.tiers.workspace import ToolRule, Workspace, Workspaces
from pagefile.window.parts import Placement
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL
from pagefile.window.wording import WORDINGS, Choice, Language

#: Every tool, in the order in which they are offered.
TOOLS = (RECALL_TOOL, *FACT_TOOLS, LOAD_TOOL, SEARCH_TOOL)
#: A value, or a function that finds it for a run: from its dependencies, its metadata …
Given = str | Callable[[RunContext[Any]], str] | None


#: Runs that a capability serves, by memory and run id: a second one of the same memory leaves them alone.
_SERVED_RUNS: WeakValueDictionary[tuple[int, str], "PagefileMemory"] = WeakValueDictionary()


class PagefileMemory(AbstractCapability[Any]):
    """Memory for every run of an agent: `Agent(…, capabilities=[PagefileMemory(memory, user_id="ada")])`.

    Create it inside the event loop the memory was opened in, or pass a `BlockingMemory`, which works with `run_sync` and any loop.

    Args:
        user_id: whose memory it is, or a function of the run's context: `lambda ctx: ctx.deps.user_id`. Without one, nothing
            is shared between conversations. A run for which the function finds no user has no memory.
        conversation_id: which conversation; by default the run's own `conversation_id`.
        tenant: whose user; by default the default tenant.
        window_tokens: memory never makes a request larger than this; by default the memory's setting.
        placement: "tail" puts what memory knows beside the question, "head" after the instructions; by default the memory's setting.
        history: True shows earlier turns to a run that brings no `message_history`.
        tools: True offers `recall`, `remember`, `correct`, `retract`, `load_tool_history` and `search_tool_history` to the model; or the names of those wanted.
        workspace: False shows no notes of earlier tool calls, and answers no repeated calls.
        rules: what is remembered of your own tools, and which of them are cacheable.
        timeout_s: how long a hook waits for the memory before the run continues without it.
        language: of what is written around the conversation ("zh" or "en"); by default that of the conversation.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: Given = None,
        conversation_id: Given = None,
        tenant: Given = None,
        window_tokens: int | None = None,
        placement: Placement | None = None,
        history: bool = True,
        tools: bool | Collection[str] = True,
        workspace: bool = True,
        rules: Iterable[ToolRule] = (),
        timeout_s: float = 5.0,
        language: Choice | None = None,
    ) -> None:
        self._edge = FailOpen(memory, "pydantic_ai", timeout_s=timeout_s)
        settings = self._edge.memory.engine.settings
        self._user, self._conversation, self._tenant = user_id, conversation_id, tenant
        self._tools, self._language = _tool_names(tools), language
        self._run_of = partial(
            RunMemory,
            self._edge,
            window_tokens=at_least(1, window_tokens or settings.window_tokens, "window_tokens"),
            placement=placement or settings.placement,
            history=history,
            notes=workspace,
            rules=tuple(rules),
        )
        # Shared by the per-run copies.
        self._served = Lru[Scope, None](settings.workspace.max_runs)
        self._run: RunMemory | None = None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: an open memory cannot be serialized."""
        return None

    # -- the workspace ----------------------------------------------------------------------------------------------------

    def reset(self, *, user_id: str | None = None, conversation_id: str | None = None) -> None:
        """Forget the query context of the conversations served so far, or of those named.

        Tables of contents and cached calls stay, and so does everything in the log.
        """
        for workspace in self._workspaces(user_id, conversation_id):
            workspace.reset()

    def reset_all(self, *, user_id: str | None = None, conversation_id: str | None = None) -> None:
        """Forget everything tools returned, including tables of contents and cached calls; the log stays."""
        for workspace in self._workspaces(user_id, conversation_id):
            workspace.reset_all()

    def _workspaces(self, user_id: str | None, conversation_id: str | None) -> Iterator[Workspace]:
        for scope in list(self._served):
            if user_id in {None, scope.user} and conversation_id in {None, scope.conversation}:
                yield self._edge.memory.engine.tier(Workspaces).of(scope)

    # -- hooks ----------------------------------------------------------------------------------------------------------

    async def for_run(self, ctx: RunContext[Any]) -> "PagefileMemory":
        # A copy for every run: an agent's capability serves many concurrently.
        mine = copy(self)
        claim = (id(self._edge.memory), str(ctx.run_id))
        if _SERVED_RUNS.setdefault(claim, mine) is not mine:
            # The agent has the capability, and the run was given it again.
            mine._tools, mine._run = frozenset[str](), None  # noqa: SLF001 - a copy of its own
            return mine
        find = partial(_found, ctx, copy_context())
        opened = partial(self._opened, ctx, find)
        mine._run = await self._edge.attempt("finding whose memory it is", opened, None)  # noqa: SLF001 - a copy of its own
        return mine

    def get_toolset(self) -> AbstractToolset[Any] | None:
        if not self._tools:
            return None
        # Without a run they are only described: each run brings its own.
        default = self._edge.memory.engine.languages.default(self._language)
        language = default if self._run is None else self._run.language
        schemas = memory_tool_schemas(language)
        anonymous = self._run is not None and self._run.chat.scope.user is None
        offered = [name for name in TOOLS if name in self._tools and not (anonymous and name in FACT_TOOLS)]
        return _OwnTools([_tool(self._run, schemas[name], language) for name in offered])

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        run = self._run
        if run is None:
            return await handler()
        await run.begin()
        async with AsyncExitStack() as unless_done:
            unless_done.push_async_callback(run.abort)
            result = await handler()
            unless_done.pop_all()
        await run.complete(result.output, result.all_messages())
        return result

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        return request_context if self._run is None else await self._run.prepared(request_context)

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        run = self._run
        ours = call.tool_name in self._tools
        if run is None or (ours and call.tool_name != LOAD_TOOL):
            return await handler(args)
        answer = None if ours else await run.answered(call, tool_def.parameters_json_schema)
        return answer if answer is not None else await run.keep(call, await handler(args), ctx.messages)

    async def _opened(self, ctx: RunContext[Any], find: Callable[[str, Given], str | None]) -> RunMemory:
        """The memory of a run. Without a user it has none, rather than another user's."""
        chat = self._edge.memory.conversation(
            find("conversation_id", self._conversation) or ctx.conversation_id or str(ctx.run_id),
            user_id=find("user_id", self._user),
            tenant=find("tenant", self._tenant),
            language=self._language,
            agent=ctx.agent.name if ctx.agent is not None else None,
        )
        self._served[chat.scope] = None
        question, languages = asked(ctx.prompt, ctx.messages), self._edge.memory.engine.languages
        languages.choose(chat.scope, self._language)
        language = await languages.of(chat.scope, said=None if question is None else question.text)
        run_id = str(ctx.run_id)
        turn_id = waiting_run(ctx.prompt, ctx.messages) or run_id
        return self._run_of(chat, run_id, turn_id, question, self._tools - {LOAD_TOOL}, language)


class _OwnTools(FunctionToolset[Any]):
    """Our tools, except for those whose name a tool of the agent's own has."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        taken: set[str] = set()
        for other in ctx.agent.toolsets if ctx.agent is not None else ():
            if isinstance(other, FunctionToolset) and not isinstance(other, _OwnTools):
                taken |= set(other.tools)
        return {name: tool for name, tool in (await super().get_tools(ctx)).items() if name not in taken}


def _found(ctx: RunContext[Any], context: Context, name: str, given: Given) -> str | None:
    """A value, or what the user's function finds in the context of the run's caller: the memory may live in another thread."""
    if not callable(given):
        return given
    found = context.run(given, ctx)
    if not found:
        raise InvalidArgumentError(
            f"The function given as {name} found nothing for this run: it has to return an id."
        )
    return found


def _tool(run: RunMemory | None, schema: dict[str, Any], language: Language) -> Tool[Any]:
    name: str = schema["name"]
    unavailable = WORDINGS[language].answers["no_memory"]

    async def call(**arguments: Any) -> str:
        if run is None:
            return unavailable
        return await run.edge.attempt(name, partial(_answered, run, name, arguments), unavailable)

    return Tool[Any].from_schema(call, name, schema["description"], schema["parameters"])


async def _answered(run: RunMemory, name: str, arguments: dict[str, Any]) -> str:
    caller = ToolCaller(run.edge.memory, run.chat, run.turn)
    try:
        return await caller.answer(name, arguments)
    except PagefileError as error:
        if name not in FACT_TOOLS:
            raise
        return await caller.refused(name, error)


def _tool_names(tools: bool | Collection[str]) -> frozenset[str]:
    if isinstance(tools, bool):
        return frozenset(TOOLS) if tools else frozenset()
    if isinstance(tools, str) or set(tools) - set(TOOLS):
        raise SettingsError(f"tools is {tools!r}: give True, False, or some of {', '.join(TOOLS)}.")
    return frozenset(tools)
