"""Archived tool results: loading, listing, searching, keeping, and the tools a model calls."""

from typing import Annotated

from fastapi import Query, Response

from pagefile import verbs
from pagefile.engine import Memory
from pagefile.engine.pages import call_tool
from pagefile.ports import ViewRequest
from pagefile.records import Scope, Turn
from pagefile.service.routes.common import MemoryOf, add_verb, at_verb, chat_of, router, written
from pagefile.standalone import tool_schemas
from pagefile.wire.archive import CallTool, PeekParams, ToolAnswer, ToolOut
from pagefile.wire.queries import LoadParams
from pagefile.wire.requests import AskLoad
from pagefile.wire.responses import LoadOut, Page

routes = router("Archive")


@at_verb(routes, verbs.LOAD)
async def load(memory: MemoryOf, body: AskLoad) -> Response:
    return await _loaded(memory, body)


@routes.get("/v1/load", response_model=LoadOut)
async def load_by_query(memory: MemoryOf, params: Annotated[LoadParams, Query()]) -> Response:
    """The same as POST, for a link."""
    return await _loaded(memory, params)


@at_verb(routes, verbs.PEEK)
async def peek(memory: MemoryOf, params: Annotated[PeekParams, Query()]) -> Response:
    text = await memory.peek(**verbs.PEEK.arguments(params))
    page = await memory.page(params.uuid, user_id=params.user_id, tenant=params.tenant)
    return written(LoadOut.of(page, text, params.offset, params.query))


@routes.get("/v1/tools")
async def tools(memory: MemoryOf) -> Page[ToolOut]:
    """The tools to offer to the model, each with the JSON schema of its arguments."""
    schemas = tool_schemas(memory.settings.language)
    return Page(items=tuple(ToolOut.model_validate(schema) for schema in schemas))


@at_verb(routes, verbs.CALL_TOOL)
async def call_tool_(memory: MemoryOf, body: CallTool) -> Response:
    scope = chat_of(memory, body).scope
    turn = None if body.turn_id is None else await _open_turn(memory, scope, body.turn_id)
    # A handle only knows turns it began itself, and here every request has its own handle.
    text = await call_tool(memory.engine, scope, turn, body.name, body.arguments)
    return written(ToolAnswer.of(text))


async def _loaded(memory: Memory, request: AskLoad | LoadParams) -> Response:
    chat = chat_of(memory, request)
    text = await chat.load(request.uuid, query=request.query, offset=request.offset, limit=request.limit)
    return written(LoadOut.of(await chat.page(request.uuid), text, request.offset, request.query))


async def _open_turn(memory: Memory, scope: Scope, turn_id: str) -> Turn | None:
    view = await memory.engine.store.reader.view(ViewRequest(scope, 1, min_turns=0, open_turn=turn_id))
    return view.open_turn


add_verb(routes, verbs.PAGES, within=verbs.CHAT_PAGES)
add_verb(routes, verbs.PAGE, within=verbs.CHAT_PAGE)
add_verb(routes, verbs.SEARCH, within=verbs.CHAT_SEARCH)
for _verb in (verbs.FETCHED, verbs.PIN, verbs.PURGE):
    add_verb(routes, _verb)
