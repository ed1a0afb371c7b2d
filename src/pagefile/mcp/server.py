"""The MCP server: the tools, resources and prompts of one memory, for any client of the protocol."""

from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from pagefile.errors import NotFoundError, PagefileError
from pagefile.mcp import prompts, resources
from pagefile.mcp.calling import Answered, Caller
from pagefile.mcp.changes import Changes
from pagefile.mcp.tools import ROWS, listed
from pagefile.standalone.tools import instructions
from pagefile.window.wording import Language

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller]

_RESOURCE_NOT_FOUND = -32002
_MOST_COMPLETIONS = 100


class _Announcing(Server[Any]):
    """Says to every client, over every transport, that it tells when the list of resources changes."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *rest: Any, **named: Any
    ) -> InitializationOptions:
        told = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(told, *rest, **named)


class MemoryServer:
    """The handlers. `caller_of` says on whose behalf a request is made; `language` is of what the server says of itself."""

    def __init__(self, caller_of: CallerOf, language: Language = "en") -> None:
        self._caller = caller_of
        self._changes = Changes()
        self.server: Server[Any] = _Announcing(
            "pagefile",
            title="Pagefile",
            version=version("pagefile"),
            description="Virtual memory for LLM agents.",
            instructions=instructions(language),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )

    # -- tools --------------------------------------------------------------------------------------------------------

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        language = self._caller(ctx).memory.engine.languages.default(None)
        return types.ListToolsResult(tools=list(listed(language)))

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in ROWS:
            raise MCPError(
                types.INVALID_PARAMS, f"There is no tool {params.name!r}: there are {', '.join(ROWS)}."
            )
        caller = self._caller(ctx)
        await ctx.session.report_progress(0, 1)
        answered = await self._measured(caller, params)
        await ctx.session.report_progress(1, 1)
        if not answered.failed and ROWS[params.name].verb.changes:
            said = (answered.structured or {}).get("conversation_id")
            changed = resources.FACTS if said is None else resources.conversation_uri(said)
            await self._changes.tell(caller, ctx, [changed])
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answered.text)],
            structured_content=answered.structured,
            is_error=answered.failed,
        )

    async def _measured(self, caller: Caller, params: types.CallToolRequestParams) -> Answered:
        meter, began = caller.memory.engine.meter, perf_counter()
        answered = await caller.call(params.name, params.arguments or {})
        outcome = "refused" if answered.failed else "answered"
        meter.count("pagefile_mcp_calls_total", tool=params.name, outcome=outcome)
        meter.observe("pagefile_mcp_seconds", perf_counter() - began, tool=params.name)
        return answered

    # -- resources ----------------------------------------------------------------------------------------------------

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        try:
            found = await resources.listed(self._caller(ctx), None if params is None else params.cursor)
        except PagefileError as error:
            raise _protocol_error(error) from error
        return types.ListResourcesResult(resources=found.resources, next_cursor=found.following)

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(resources.TEMPLATES))

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            kind, text = await resources.text_of(self._caller(ctx), uri)
        except PagefileError as error:
            raise _protocol_error(error) from error
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)]
        )

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._changes.subscribe(self._caller(ctx), ctx.session, str(params.uri))
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._changes.unsubscribe(self._caller(ctx), ctx.session, str(params.uri))
        return types.EmptyResult()

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        return await self._changes.listen(self._caller(ctx), ctx, params)

    # -- prompts ------------------------------------------------------------------------------------------------------

    async def _list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[row.prompt for row in prompts.PROMPTS.values()])

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            text = await prompts.text_of(self._caller(ctx), params.name, params.arguments or {})
        except PagefileError as error:
            raise _protocol_error(error) from error
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        description = prompts.PROMPTS[params.name].prompt.description
        return types.GetPromptResult(description=description, messages=[message])

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        names: list[str] = []
        if params.argument.name == "conversation_id":
            try:
                names = await resources.conversations_like(self._caller(ctx), params.argument.value)
            except PagefileError as error:
                raise _protocol_error(error) from error
        shown = names[:_MOST_COMPLETIONS]
        return types.CompleteResult(
            completion=types.Completion(values=shown, total=len(names), has_more=len(names) > len(shown))
        )


def _protocol_error(error: PagefileError) -> MCPError:
    code = _RESOURCE_NOT_FOUND if isinstance(error, NotFoundError) else types.INVALID_PARAMS
    return MCPError(code, str(error))


async def serve_stdio(caller: Caller) -> None:
    """Serve one client over standard input and output, until it closes them."""
    language = caller.memory.engine.languages.default(None)
    served = MemoryServer(lambda _ctx: caller, language).server
    async with stdio_server() as (received, sent):
        await served.run(received, sent, served.create_initialization_options())
