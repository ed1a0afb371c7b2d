"""The routes: each reads its request, calls one verb of `Memory`, and returns the result. Most follow from the table of verbs."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated, Any, TypeAlias

import anyio
from fastapi import APIRouter, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from pagefile import verbs
from pagefile.engine import Conversation, Memory
from pagefile.engine.log_queries import Kind
from pagefile.engine.ownership import check_opens
from pagefile.engine.page_tools import call_tool
from pagefile.engine.replay import checked_from_afar
from pagefile.errors import ClosedError, ConflictError, StoreError, StoreUnavailableError
from pagefile.integrations.prometheus import CONTENT_TYPE, PrometheusMeter
from pagefile.ports import ViewRequest
from pagefile.records import Scope
from pagefile.service.auth import GuardedRouter, KeyedRoute, memory_in, open_memory, principal_of
from pagefile.service.idempotency import HEADER, made_id
from pagefile.service.stopping import is_ending
from pagefile.standalone import AgentApp, MemoryQueryRequest, tool_schemas
from pagefile.verbs import Verb, camel_case
from pagefile.wire import requests as ask
from pagefile.wire import responses as out
from pagefile.wire.windows import AnyWindow, ReplayOut, window_json

#: As shown in responses and pages.
VERSION = version("pagefile")
#: Every route can return a problem; declaring it also replaces the framework's own 422.
PROBLEMS: dict[int | str, dict[str, object]] = {
    "default": {
        "description": "A problem",
        "content": {out.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}
#: What a request may say about a conversation besides its id.
_ABOUT = ("user_id", "tenant", "agent", "project", "language", "timezone")
#: A slower store counts as not ready.
_TIMEOUT_S = 2.0


# -- routes that only call their verb ------------------------------------------------------------------------------------


def _operation_id(route: APIRoute) -> str:
    """That of a route without a verb; one with a verb brings its own."""
    return camel_case(route.name)


def router(tag: str) -> APIRouter:
    """A group of routes that all check the caller's key."""
    return GuardedRouter(
        tags=[tag], responses=PROBLEMS, route_class=KeyedRoute, generate_unique_id_function=_operation_id
    )


def chat_of(request: Request, asked: Any) -> Conversation:
    """A handle on the conversation a request names, with the attributes it sets."""
    about: dict[str, Any] = {name: getattr(asked, name, None) for name in _ABOUT}
    return open_memory(request.app).conversation(asked.conversation_id, **about)


def written(answer: BaseModel, status: int = 200) -> Response:
    """A response ready to send, skipping the framework's second validation."""
    return Response(answer.model_dump_json(), status, media_type="application/json")


def at_verb(routes: APIRouter, verb: Verb[..., Any], *, shown: Any = None) -> Any:
    """Decorates a function as the verb's route, for verbs that need more than a plain call.

    The reference describes the answer as `shown`, where that says more than the class that a client reads it with.
    """
    return routes.api_route(
        verb.path,
        methods=[verb.http_method],
        status_code=verb.status,
        response_model=shown or verb.answer,
        description=verb.description,
        name=verb.name,
        operation_id=verb.operation_id,
        # For generated clients: which requests need an `Idempotency-Key` to be sent again.
        openapi_extra={"x-changes": True} if verb.changes else None,
    )


def _add(
    routes: APIRouter,
    *rows: Verb[..., Any],
    within: Verb[..., Any] | None = None,
    made: str | None = None,
    among: Sequence[str] = ("tenant", "conversation_id"),
) -> None:
    """Add routes that only call their verb.

    `within` is called instead when the request names a conversation. `made` is a field that is made from the `Idempotency-Key`, and
    from the fields `among`, when the request leaves it out.
    """
    for verb in rows:
        at_verb(routes, verb)(_plain_route(verb, within or verb, made, among))


def _plain_route(
    verb: Verb[..., Any], within: Verb[..., Any], made: str | None, among: Sequence[str]
) -> Callable[..., Any]:
    async def route(request: Request, asked: Any) -> Response:
        here = verb if getattr(asked, "conversation_id", None) is None else within
        owner = chat_of(request, asked) if here.of_conversation else open_memory(request.app)
        arguments = here.arguments(asked)
        if made is not None:
            key = request.headers.get(HEADER)
            arguments[made] = arguments[made] or made_id(key, *(getattr(asked, name) for name in among))
        return written(here.answer.of(await here.method(owner, **arguments)), here.status)

    route.__annotations__["asked"] = Annotated[verb.request, Query()] if verb.in_query else verb.request
    return route


# -- windows and recorded calls ------------------------------------------------------------------------------------------

windows = router("Windows")


@at_verb(windows, verbs.CONTEXT, shown=AnyWindow)
async def context(request: Request, body: ask.AskContext) -> Response:
    window = await chat_of(request, body).context(**verbs.CONTEXT.arguments(body))
    return Response(window_json(window, body.format), media_type="application/json")


_add(windows, verbs.RECALL, within=verbs.CHAT_RECALL)
_add(windows, verbs.CALLS)

calls = router("Recorded calls")


@at_verb(calls, verbs.REPLAY)
async def replay(request: Request, body: ask.AskReplay) -> Response:
    changes = checked_from_afar(body.changes)
    return written(ReplayOut.of(await chat_of(request, body).replay(body.call_id, **changes)))


_add(calls, verbs.CALL, verbs.EXPLAIN, verbs.COSTS)

# -- turns ---------------------------------------------------------------------------------------------------------------

turns = router("Turns")
_add(turns, verbs.RECORD, verbs.BEGIN, made="id")
_add(turns, verbs.STEP, made="call_id", among=["turn_id"])
_add(turns, verbs.EXTEND, verbs.COMPLETE, verbs.ABORT, verbs.MESSAGES, verbs.CHAT_TURNS, verbs.TURNS)

# -- the archive ---------------------------------------------------------------------------------------------------------

archive = router("Archive")


@at_verb(archive, verbs.LOAD)
async def load(request: Request, body: ask.AskLoad) -> Response:
    return await _loaded(request, body)


@archive.get("/v1/load", response_model=out.LoadOut)
async def load_by_query(request: Request, params: Annotated[ask.LoadParams, Query()]) -> Response:
    """The same as the POST, for use in a link."""
    return await _loaded(request, params)


async def _loaded(request: Request, asked: ask.AskLoad | ask.LoadParams) -> Response:
    chat = chat_of(request, asked)
    text = await chat.load(**verbs.LOAD.arguments(asked))
    return written(out.LoadOut.of(await chat.page(asked.uuid), text, asked.offset, asked.query))


@at_verb(archive, verbs.PEEK)
async def peek(request: Request, params: Annotated[ask.PeekParams, Query()]) -> Response:
    memory = open_memory(request.app)
    text = await memory.peek(**verbs.PEEK.arguments(params))
    page = await memory.page(params.uuid, user_id=params.user_id, tenant=params.tenant)
    return written(out.LoadOut.of(page, text, params.offset, params.query))


@archive.get("/v1/tools", name="list_tools")
async def tools(request: Request, params: Annotated[ask.ToolsParams, Query()]) -> out.ToolList:
    """The tools to offer to the model, each with the JSON schema of its arguments, in the shape of an API."""
    schemas = tool_schemas(open_memory(request.app).engine.languages.default(params.language), params.shape)
    return out.ToolList(
        items=tuple(out.TOOL_SHAPES[params.shape].model_validate(schema) for schema in schemas)
    )


@at_verb(archive, verbs.CALL_TOOL)
async def call_tool_(request: Request, body: ask.CallTool) -> Response:
    engine, scope, turn = open_memory(request.app).engine, chat_of(request, body).scope, None
    if body.turn_id is not None:
        # A handle only knows turns it began itself, and here every request has its own handle.
        view = ViewRequest(scope, 1, min_turns=0, open_turn=body.turn_id)
        turn = (await engine.store.reader.view(view)).open_turn
    return written(out.ToolAnswer.of(await call_tool(engine, scope, turn, body.name, body.arguments)))


_add(archive, verbs.PAGES, within=verbs.CHAT_PAGES)
_add(archive, verbs.PAGE, within=verbs.CHAT_PAGE)
_add(archive, verbs.SEARCH, within=verbs.CHAT_SEARCH)
_add(archive, verbs.FETCHED, verbs.PIN, verbs.PURGE)

# -- conversations -------------------------------------------------------------------------------------------------------

conversations = router("Conversations")
_Marks: TypeAlias = Annotated[ask.MarksParams, Query()]


@at_verb(conversations, verbs.SESSION)
async def session(request: Request, params: Annotated[ask.ConversationParams, Query()]) -> Response:
    chat = chat_of(request, params)
    return written(out.SessionOut.of((await chat.head()).scope, await chat.session()))


@at_verb(conversations, verbs.PUT_SESSION)
async def put_session(request: Request, body: ask.PutSession) -> Response:
    chat = chat_of(request, body)
    return written(out.SessionOut.of(chat.scope, await chat.put_session(body.value)))


@conversations.get("/v1/history", name="get_history", response_model=out.HistoryOut)
async def history(request: Request, params: Annotated[ask.HistoryParams, Query()]) -> Response:
    """The history of a conversation as one text for a prompt: the summary, the safety data and the turns that fit.

    It says whether a summary is due. Send that of `full_history` to `POST /v1/checkpoints` with the `read_token`: it then covers
    the turns of this history and no others, whichever were written meanwhile. Nothing is written.
    """
    app, scope = await _short_term(request, params)
    asked = MemoryQueryRequest(
        scope.conversation or "",
        query=params.query,
        token_threshold_ratio=params.threshold or 0,
        recent_turns=params.recent_turns or 0,
        model_context_window=params.window_tokens or 0,
    )
    return written(out.HistoryOut.model_validate(await app.read_history(asked)))


@at_verb(conversations, verbs.CHECKPOINT)
async def checkpoint(request: Request, body: ask.MakeCheckpoint) -> Response:
    if body.read_token is None:
        made = await chat_of(request, body).checkpoint(body.summary, recent_turns=body.recent_turns)
        return written(out.CheckpointOut.of(made), verbs.CHECKPOINT.status)
    app, scope = await _short_term(request, body)
    await app.checkpoint_short_memory(
        body.conversation_id, body.summary or "", body.recent_turns or 0, body.read_token
    )
    found = (await open_memory(request.app).engine.store.reader.view(ViewRequest(scope, 0, 0))).checkpoint
    if found is None:
        raise ConflictError("The conversation was reset in the meantime: the summary no longer applies.")
    return written(out.CheckpointOut.of(found), verbs.CHECKPOINT.status)


async def _short_term(request: Request, asked: Any) -> tuple[AgentApp, Scope]:
    """What reads and summarizes histories as texts, for a conversation that the caller may open."""
    memory, scope = open_memory(request.app), chat_of(request, asked).scope
    await check_opens(memory.engine.store.reader, scope)
    return AgentApp(memory, tenant=scope.tenant), scope


@at_verb(conversations, verbs.CHECKPOINTS)
async def checkpoints(request: Request, params: _Marks) -> Response:
    return await _marks(request, params, "checkpoint", out.Page[out.CheckpointOut])


@conversations.get("/v1/resets", name="list_resets", response_model=out.Page[out.ResetOut])
async def resets(request: Request, params: _Marks) -> Response:
    """Where a conversation started over, oldest first."""
    return await _marks(request, params, "reset", out.Page[out.ResetOut])


async def _marks(
    request: Request, params: ask.MarksParams, kind: Kind, page: type[out.Page[Any]]
) -> Response:
    # Fetch one extra to know whether there are more.
    found = await chat_of(request, params).log(kind=kind, after=params.after, limit=params.limit + 1)
    return written(page.first(list(found), params.limit, lambda entry: entry.seq))


_add(conversations, verbs.FORK, made="id")
_add(conversations, verbs.CONVERSATIONS, verbs.HEAD, verbs.LOG, verbs.RESET)

# -- facts ---------------------------------------------------------------------------------------------------------------

facts = router("Facts and forgetting")


@at_verb(facts, verbs.FACTS)
async def listed_facts(request: Request, params: Annotated[ask.FactsParams, Query()]) -> Response:
    found = await open_memory(request.app).facts(**verbs.FACTS.arguments(params))
    return written(out.facts_page(found, params))


@at_verb(facts, verbs.FACT_REVISIONS)
async def revisions(request: Request, params: Annotated[ask.FactRevisionsParams, Query()]) -> Response:
    found = await open_memory(request.app).fact_revisions(**verbs.FACT_REVISIONS.arguments(params))
    return written(out.Page[out.RevisionOut].first(found, params.limit, lambda revision: revision.number))


_add(facts, verbs.REMEMBER, verbs.RETRACT, verbs.CORRECT, verbs.UNDO, verbs.IMPORT_FACTS, verbs.FORGET)

# -- health --------------------------------------------------------------------------------------------------------------

health = APIRouter(tags=["Health"], responses=PROBLEMS, generate_unique_id_function=_operation_id)


@health.get("/healthz", name="health")
async def healthy(request: Request) -> out.HealthOut:
    """Whether the service is alive: it answers even if the store is unavailable, so that it is not restarted for that.

    Callers who may see it also learn what it runs on, as far as the store answers.
    """
    memory, described = memory_in(request.app), dict[str, Any]()
    if memory is not None and principal_of(request).is_known:
        with anyio.move_on_after(_TIMEOUT_S), suppress(StoreError, ClosedError):
            described = dict(await memory.describe())
    return out.HealthOut.model_validate({"version": VERSION, **described})


@health.get("/readyz")
async def ready(request: Request) -> out.ReadyOut:
    """Whether to send requests here, for a load balancer: 503 while it starts or stops, or when the store does not answer."""
    memory = open_memory(request.app)
    if is_ending(request.scope):
        raise ClosedError
    try:
        with anyio.fail_after(_TIMEOUT_S):
            await memory.engine.store.describe()
    except TimeoutError as error:
        raise StoreUnavailableError(f"The store did not answer within {_TIMEOUT_S:g} s.") from error
    return out.ReadyOut()


async def _answers(memory: Memory) -> bool:
    with anyio.move_on_after(_TIMEOUT_S), suppress(StoreError, ClosedError):
        await memory.engine.store.describe()
        return True
    return False


# Not in the reference: the format is Prometheus' own, and agents have no use for it.
@health.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    meter: PrometheusMeter = request.app.state.meter
    gauges = {"pagefile_tasks": float(len(anyio.get_running_tasks()))}
    if (memory := request.app.state.memory) is not None:
        lag = memory.engine.lag
        gauges |= {"pagefile_index_lag_turns": lag.turns(), "pagefile_index_lag_seconds": lag.seconds()}
        gauges["pagefile_database_up"] = float(await _answers(memory))
        if (cache := memory.engine.cache) is not None:
            gauges["pagefile_session_cache_up"] = float(cache.answers)
    return Response(meter.text(**gauges), media_type=CONTENT_TYPE)
