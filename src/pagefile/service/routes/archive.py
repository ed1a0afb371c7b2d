"""Archived tool results: loading, listing, searching, keeping, and the tools a model calls."""

from datetime import timedelta
from typing import Annotated

from fastapi import Query

from pagefile.engine import Memory
from pagefile.engine.pages import call_tool
from pagefile.ports import ViewRequest
from pagefile.records import Scope, Turn
from pagefile.service.routes.common import MemoryOf, chat_of, router
from pagefile.standalone import tool_schemas
from pagefile.wire.archive import (
    CallTool,
    FetchedOut,
    FindFetched,
    PageHitOut,
    PageOut,
    PageParams,
    PagesParams,
    PeekParams,
    PinPage,
    PurgeOut,
    PurgePages,
    SearchPages,
    ToolAnswer,
    ToolOut,
)
from pagefile.wire.queries import LoadParams
from pagefile.wire.requests import AskLoad
from pagefile.wire.responses import LoadOut, Page, page_of

routes = router("Archive")


@routes.post("/load")
async def load(memory: MemoryOf, body: AskLoad) -> LoadOut:
    """Page in an archived tool result: whole, the passages that answer a query, or a part.

    A part ends before an image, a table, a code block or a value that would be cut; `next` is where to read on. A text that
    was purged is gone (410), an unknown or foreign uuid was never there (404).
    """
    return await _loaded(memory, body)


@routes.get("/load")
async def load_by_query(memory: MemoryOf, params: Annotated[LoadParams, Query()]) -> LoadOut:
    """The same as POST, for a link."""
    return await _loaded(memory, params)


@routes.get("/pages")
async def pages(memory: MemoryOf, params: Annotated[PagesParams, Query()]) -> Page[PageOut]:
    """Archived tool results, newest first, purged ones too."""
    if params.conversation_id is None:
        found = await memory.pages(
            user_id=params.user_id, tenant=params.tenant, limit=params.limit, after=params.after
        )
    else:
        chat = memory.conversation(params.conversation_id, user_id=params.user_id, tenant=params.tenant)
        found = await chat.pages(limit=params.limit, after=params.after)
    return page_of([PageOut.of(page) for page in found], found.next)


@routes.get("/pages/page")
async def page(memory: MemoryOf, params: Annotated[PageParams, Query()]) -> PageOut:
    """What is known of an archived tool result without its text, even when that was purged."""
    if params.conversation_id is None:
        return PageOut.of(await memory.page(params.uuid, user_id=params.user_id, tenant=params.tenant))
    chat = memory.conversation(params.conversation_id, user_id=params.user_id, tenant=params.tenant)
    return PageOut.of(await chat.page(params.uuid))


@routes.get("/pages/text")
async def peek(memory: MemoryOf, params: Annotated[PeekParams, Query()]) -> LoadOut:
    """Look at the text of an archived tool result, as `/v1/load` gives it, without counting it as a load."""
    whose = {"user_id": params.user_id, "tenant": params.tenant}
    text = await memory.peek(
        params.uuid, query=params.query, offset=params.offset, limit=params.limit, **whose
    )
    return LoadOut.of(await memory.page(params.uuid, **whose), text, params.offset, params.query)


@routes.post("/pages/search")
async def search(memory: MemoryOf, body: SearchPages) -> Page[PageHitOut]:
    """Archived tool results that answer a query, best first, each with its best passage."""
    if body.conversation_id is None:
        hits = await memory.search_tool_history(
            body.query, user_id=body.user_id, tenant=body.tenant, limit=body.limit
        )
    else:
        chat = memory.conversation(body.conversation_id, user_id=body.user_id, tenant=body.tenant)
        hits = await chat.search_tool_history(body.query, body.limit, here=body.here)
    return page_of([PageHitOut.of(hit) for hit in hits])


@routes.post("/pages/fetched")
async def fetched(memory: MemoryOf, body: FindFetched) -> FetchedOut:
    """The page of an equal call of the same user, when the setting `archive.reuse_s` allows it; null when there is none."""
    found = await chat_of(memory, body).fetched(body.tool, body.input)
    return FetchedOut(page=None if found is None else PageOut.of(found))


@routes.post("/pages/pin")
async def pin(memory: MemoryOf, body: PinPage) -> PageOut:
    """Keep a page in every window of its conversation and out of every purge, or stop doing so."""
    return PageOut.of(await chat_of(memory, body).pin(body.uuid, pinned=body.pinned))


@routes.post("/pages/purge")
async def purge(memory: MemoryOf, body: PurgePages) -> PurgeOut:
    """Remove the texts of archived pages and leave tombstones; answers with what was purged."""
    purged = await memory.purge(
        user_id=body.user_id,
        conversation_id=body.conversation_id,
        tenant=body.tenant,
        uuids=body.uuids,
        older_than=None if body.older_than_s is None else timedelta(seconds=body.older_than_s),
        max_bytes=body.max_bytes,
    )
    return PurgeOut.of(purged)


@routes.get("/tools")
async def tools(memory: MemoryOf) -> Page[ToolOut]:
    """The tools to offer to the model, each with the JSON schema of its arguments."""
    schemas = tool_schemas(memory.settings.language)
    return page_of([ToolOut.model_validate(schema) for schema in schemas])


@routes.post("/tools/call")
async def call(memory: MemoryOf, body: CallTool) -> ToolAnswer:
    """Answer a model's call of one of these tools with text; a wrong uuid is explained in it, not refused.

    Add the call and this text as a step to its turn, as with every other tool.
    """
    scope = chat_of(memory, body).scope
    turn = None if body.turn_id is None else await _open_turn(memory, scope, body.turn_id)
    # A handle knows only a turn that it began itself, and here every request has a handle of its own.
    return ToolAnswer.of(await call_tool(memory.engine, scope, turn, body.name, body.arguments))


async def _loaded(memory: Memory, request: AskLoad | LoadParams) -> LoadOut:
    chat = chat_of(memory, request)
    text = await chat.load(request.uuid, query=request.query, offset=request.offset, limit=request.limit)
    return LoadOut.of(await chat.page(request.uuid), text, request.offset, request.query)


async def _open_turn(memory: Memory, scope: Scope, turn_id: str) -> Turn | None:
    view = await memory.engine.store.reader.view(ViewRequest(scope, 1, min_turns=0, open_turn=turn_id))
    return view.open_turn
