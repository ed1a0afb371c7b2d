"""Mounts the inspector: every page with its JSON twin beside it, behind the same keys as the API."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Annotated, Any

import anyio.to_thread
from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from pagefile.engine.ownership import looked_up
from pagefile.errors import AccessError, InvalidArgumentError
from pagefile.inspector import (
    configuration,
    erasure,
    experiments,
    metrics,
    playground,
    scripted,
    site,
    start,
    traffic,
    urls,
)
from pagefile.inspector.metrics import Measure, Spread
from pagefile.inspector.page_request import PageRequest, Reader, chat_of
from pagefile.inspector.ui import View
from pagefile.record_json import to_json
from pagefile.records import DEFAULT_TENANT, Scope
from pagefile.schema import Id
from pagefile.service.auth import GuardedRouter, narrowed, open_memory, principal_of
from pagefile.service.chat_turn import ChatRun
from pagefile.service.inspector_auth import form_of, gone_to, shown, with_key
from pagefile.service.routes import VERSION
from pagefile.text.sentences import language
from pagefile.wire.chat import AskChat
from pagefile.wire.requests import StepBody

routes = GuardedRouter(include_in_schema=False)


def _none_if_blank(value: object) -> object:
    # Forms also send their empty fields.
    return None if isinstance(value, str) and not value.strip() else value


Name = Annotated[Id | None, BeforeValidator(_none_if_blank)]


class Named(BaseModel):
    """Whose memory a page is about. The rest of the query string is left to the page."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    tenant: Name = None
    user_id: Name = None
    conversation_id: Name = None


NamedOf = Annotated[Named, Query()]


async def _page_request(
    request: Request, named: Named, fields: Mapping[str, str] | None = None
) -> PageRequest:
    principal = principal_of(request)
    given = {"tenant": principal.tenant, "user_id": principal.user}
    bound = frozenset(name for name, value in given.items() if value is not None)
    values = {**request.query_params, **(fields or {})}
    scope = Scope(named.tenant or DEFAULT_TENANT, named.user_id, named.conversation_id)
    # Holders of a tenant key see a conversation as its owner does.
    user = (await looked_up(open_memory(request.app), scope)).user
    return PageRequest(named.tenant, user, named.conversation_id, values, bound)


# -- pages -----------------------------------------------------------------------------------------------------------------


def _mount(
    path: str,
    gather: Callable[[Request, PageRequest], Awaitable[Any]],
    show: Callable[[Any, Reader], View],
    about: Callable[[Any, PageRequest], PageRequest] | None = None,
    twin: Callable[[Any], Any] = lambda data: data,
    *,
    of_conversation: bool = False,
) -> None:
    async def html(request: Request, named: NamedOf) -> Response:
        asked = await _page_request(request, named)
        if of_conversation and asked.conversation_id is None:
            return gone_to(asked.to(urls.CONVERSATIONS, user_id=asked.user_id))
        data = await gather(request, asked)
        return shown(request, asked if about is None else about(data, asked), partial(show, data))

    async def told(request: Request, asked: PageRequest) -> Any:
        return twin(await gather(request, asked))

    routes.add_api_route(path, html, methods=["GET"])
    _mount_twin(path, told)


def _mount_twin(path: str, gather: Callable[[Request, PageRequest], Awaitable[Any]]) -> None:
    async def twin(request: Request, named: NamedOf) -> Response:
        return JSONResponse(to_json(await gather(request, await _page_request(request, named))))

    routes.add_api_route(urls.twin(path), twin, methods=["GET"])


def _mount_action(path: str, do: site.Action) -> None:
    async def done(request: Request, named: NamedOf) -> Response:
        asked = await _page_request(request, named, await form_of(request))
        return gone_to(await do(open_memory(request.app), asked))

    routes.add_api_route(path, done, methods=["POST"])


async def _gathered(page: site.Page, request: Request, asked: PageRequest) -> Any:
    found = await page.gather(open_memory(request.app), asked)
    if isinstance(found, playground.Playground):
        chosen: playground.Chosen = request.app.state.chosen_model
        return chosen.told(found, may_set=principal_of(request).tenant is None)
    return found


for _page in site.PAGES:
    _mount(
        _page.path,
        partial(_gathered, _page),
        _page.show,
        _page.about,
        _page.twin,
        of_conversation=_page.of_conversation,
    )
for _path, _action in site.ACTIONS.items():
    _mount_action(_path, _action)


@routes.get(urls.HOME)
async def home(request: Request, named: NamedOf) -> Response:
    """What the inspector is and what it holds; without a required key, only the former."""
    if not principal_of(request).is_known:
        # Look nothing up for an unauthenticated reader: the links would reveal who owns a conversation.
        return shown(request, PageRequest(), partial(start.sign_in, onward=urls.HOME))
    asked = await _page_request(request, named)
    return shown(request, asked, partial(start.show, await _start(request, asked)))


@routes.get(urls.BASE)
async def base(request: Request, named: NamedOf) -> Response:
    return gone_to(urls.HOME)


async def _start(request: Request, asked: PageRequest) -> start.Start:
    filled: start.Filling = request.app.state.filling
    memory = open_memory(request.app)
    return await start.gather(memory, asked, version=VERSION, base=_base(request), demo=filled.state)


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")


async def _metrics(request: Request, asked: PageRequest) -> metrics.Metrics:
    measures = _measures(request.app.state.meter.text().decode())
    whole = principal_of(request).tenant is None
    return await metrics.gather(open_memory(request.app), measures, asked, whole=whole)


async def _traffic(request: Request, asked: PageRequest) -> traffic.Shown:
    upstreams, principal = request.app.state.upstreams, principal_of(request)
    whose = principal.tenant or asked.tenant, principal.user or asked.user_id
    shown = None if upstreams is None else upstreams.observer.traffic
    return traffic.gather(shown, *whose, _base(request))


async def _settings(request: Request, _: PageRequest) -> configuration.Configuration:
    if principal_of(request).tenant is not None:
        raise AccessError(
            "Only the operator of the service sees its settings: `pagefile config` prints them."
        )
    # Reads a file.
    return await anyio.to_thread.run_sync(configuration.gather, request.app.state.settings)


async def _experiment(request: Request, asked: PageRequest) -> experiments.Opened:
    found = await experiments.gather_one(open_memory(request.app), asked)
    return experiments.with_state(found, request.app.state.batches)


_mount_twin(urls.HOME, _start)
_mount(urls.EXPERIMENT, _experiment, experiments.show_one)
_mount(urls.METRICS, _metrics, metrics.show)
_mount(urls.SETTINGS, _settings, configuration.show)
_mount(urls.GATEWAY, _traffic, traffic.show)


def _measures(text: str) -> list[Measure]:
    """What Prometheus would scrape, series by series."""
    found: list[Measure] = []
    for family in text_string_to_metric_families(text):
        if not family.name.startswith("pagefile_"):
            continue
        series: dict[str, list[Any]] = {}
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                labels = ", ".join(f"{key}={value}" for key, value in sample.labels.items() if key != "le")
                series.setdefault(labels, []).append(sample)
        found += [_measure(family, labels, samples) for labels, samples in series.items()]
    return found


def _measure(family: Any, labels: str, samples: list[Any]) -> Measure:
    if family.type != "histogram":
        return Measure(samples[0].name, family.documentation, labels, samples[0].value, None)
    values = {one.name.removeprefix(family.name): one.value for one in samples if "le" not in one.labels}
    buckets = [(float(one.labels["le"]), one.value) for one in samples if "le" in one.labels]
    spread = Spread(values["_sum"], metrics.quantile(buckets, 0.5), metrics.quantile(buckets, 0.95))
    return Measure(family.name, family.documentation, labels, values["_count"], spread)


# -- actions ---------------------------------------------------------------------------------------------------------------


@routes.post(urls.ERASE)
async def erase(request: Request, named: NamedOf) -> Response:
    """Erase, and show the receipt: it is kept nowhere else."""
    asked = await _page_request(request, named, await form_of(request))
    receipt = await erasure.erase(open_memory(request.app), asked)
    there = PageRequest(asked.tenant, values={}, bound=asked.bound)
    return shown(request, there, partial(erasure.show_receipt, receipt))


@routes.post(urls.EXPERIMENTS)
async def begin_experiment(request: Request, named: NamedOf) -> Response:
    """Replay the chosen calls in the background."""
    fields = await form_of(request)
    whose = {name: fields.get(name) or getattr(named, name) for name in ("user_id", "conversation_id")}
    try:
        chosen = Named(tenant=named.tenant, **whose)
    except ValidationError as error:
        raise InvalidArgumentError(
            "This cannot be the name of a user or a conversation: copy the name exactly."
        ) from error
    # What the form names is checked against the key like what a query string names.
    allowed = await narrowed(chosen, principal_of(request), request.app)
    asked = await _page_request(request, allowed, fields)
    running: experiments.Batches = request.app.state.batches
    return gone_to(await running.start(open_memory(request.app), asked))


@routes.post(urls.DEMO)
async def demo(request: Request, named: NamedOf) -> Response:
    """Fill the demo in, in the background."""
    await form_of(request)
    if principal_of(request).tenant is not None:
        raise AccessError("Only the operator of the service can fill in the demo: `pagefile demo`.")
    filled: start.Filling = request.app.state.filling
    filled.start(request.app.state.settings)
    return gone_to(urls.HOME)


@routes.get(urls.LOGIN)
async def login_page(request: Request, named: NamedOf) -> Response:
    onward = request.query_params.get("next", urls.HOME)
    return shown(request, PageRequest(), partial(start.sign_in, onward=onward))


@routes.post(urls.LOGIN)
async def login(request: Request, named: NamedOf) -> Response:
    """Takes a key into a cookie that no script can read and no other site can send."""
    fields = await form_of(request)
    # The next page finds out whether the key is valid.
    return with_key(gone_to(fields.get("next", urls.HOME)), request, fields.get("key", "").strip())


@routes.post(urls.LOGOUT)
async def logout(request: Request, named: NamedOf) -> Response:
    await form_of(request)
    return with_key(gone_to(urls.HOME), request, None)


# -- the playground ----------------------------------------------------------------------------------------------------------


async def _run(request: Request, named: Named) -> tuple[ChatRun, PageRequest]:
    memory = open_memory(request.app)
    asked = await _page_request(request, named, await form_of(request))
    message = asked.text("message")
    if message is None:
        raise InvalidArgumentError("The message is empty: write something.")
    chat = chat_of(memory, asked)
    steps: tuple[StepBody, ...] = ()
    if asked.flag("sample"):
        least = memory.settings.archive.threshold + 2_000
        text = scripted.sample_result(least, chinese=language(message) == "zh")
        steps = (StepBody(tool="inspect_site", input={"site": "north"}, result=text),)
    body = AskChat(
        conversation_id=chat.id,
        user_id=asked.user_id,
        tenant=asked.tenant,
        message=message,
        window_tokens=asked.whole("window_tokens", 4000, least=200, most=2_000_000),
        steps=steps,
    )
    chosen: playground.Chosen = request.app.state.chosen_model
    model = chosen.model or request.app.state.model or scripted.ScriptedModel()
    turn = await chat.begin(message)
    return ChatRun(memory, model, chat, body, turn, request.app.state.hooks), asked


@routes.post(urls.MODEL)
async def set_model(request: Request, named: NamedOf) -> Response:
    """Set the model of the chat, for this process only: its key is kept in memory and shown nowhere."""
    asked = await _page_request(request, named, await form_of(request))
    if principal_of(request).tenant is not None:
        raise AccessError(
            "Only the operator of the service can set the model of the chat: the service would call it from its own network."
        )
    chosen: playground.Chosen = request.app.state.chosen_model
    await chosen.set(playground.model_settings(asked))
    return gone_to(asked.here(urls.CHAT, done="model" if chosen.model else "model_removed"))


@routes.post(urls.STREAM)
async def stream(request: Request, named: NamedOf) -> Response:
    """As `/v1/chat/stream`, for the playground: a scripted model answers where no other is set."""
    run, _ = await _run(request, named)
    return request.app.state.streams.start(run, 0).response()


@routes.post(urls.CHAT)
async def chat(request: Request, named: NamedOf) -> Response:
    """The same for browsers without a script: the answer is there when the page comes back."""
    run, asked = await _run(request, named)

    async def say(_name: str, _data: BaseModel) -> None:
        """The page shows what was recorded."""

    try:
        await run.run(say)
    finally:
        await run.end()
    return gone_to(asked.here(urls.CHAT, done="recorded" if run.turn.status == "done" else "failed"))


# -- files -------------------------------------------------------------------------------------------------------------------


_TYPES = {
    urls.STYLE: "text/css; charset=utf-8",
    urls.SCRIPT: "text/javascript; charset=utf-8",
    urls.ICON: "image/svg+xml",
    urls.FAVICON: "image/svg+xml",
}


async def asset(request: Request, named: NamedOf) -> Response:
    path = request.scope["path"]
    name = urls.ICON if path == urls.FAVICON else path
    file = files("pagefile.inspector").joinpath("assets", urls.name(name))
    return Response(file.read_text(encoding="utf-8"), media_type=_TYPES[path])


for _path in _TYPES:
    routes.add_api_route(_path, asset, methods=["GET"])
