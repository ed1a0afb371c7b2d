"""The ASGI application: one open memory behind the routes."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio.to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from pagefile.engine import Memory
from pagefile.engine.audit_log import AuditLog
from pagefile.engine.standard_tiers import chat_model
from pagefile.errors import PagefileError
from pagefile.inspector.experiments import batches
from pagefile.inspector.playground import Chosen
from pagefile.inspector.start import filling
from pagefile.integrations.prometheus import PrometheusMeter
from pagefile.service import (
    agent_hooks,
    audit,
    chat_turn,
    compat,
    exposure,
    gateway,
    inspector,
    mcp,
    reference,
    routes,
    spans,
    transfer,
)
from pagefile.service.audit import AuditMiddleware
from pagefile.service.auth import AuthMiddleware, unguarded
from pagefile.service.background import BackgroundWorker
from pagefile.service.chat_hooks import ChatHooks
from pagefile.service.gateway_target import check_gateway
from pagefile.service.idempotency import IdempotencyMiddleware
from pagefile.service.inspector_auth import InspectorAuth
from pagefile.service.known_keys import KnownKeys
from pagefile.service.large_bodies import LargeBodies
from pagefile.service.problems import http_error, pagefile_error, validation_error
from pagefile.service.request_guard import ErrorMiddleware, RequestGuard
from pagefile.service.stopping import Stopping
from pagefile.service.streams import open_streams
from pagefile.service.vendor_paths import versioned
from pagefile.settings import ServiceSettings, Settings

_ABOUT = (
    "Virtual memory for LLM agents: everything the agent ever saw stays on disk, and every model call gets the window "
    "that fits. Conversations, users and tenants are named in the body or the query string; unknown fields are refused.\n\n"
    "Documented elsewhere: the gateway (the APIs of OpenAI and Anthropic under `/v1`), the MCP server "
    "(`/mcp`), OpenTelemetry's spans (`/v1/traces`), and the APIs of other memories (`/mem0`, `/agent-memory`, `/v1/memory_stores`)."
)


_BUSY = (routes.windows, routes.turns, routes.calls, chat_turn.routes, routes.archive, routes.conversations)
_REST = (
    routes.facts,
    agent_hooks.routes,
    transfer.routes,
    audit.routes,
    routes.health,
    reference.routes,
    inspector.routes,
)
#: Matched in this order, so the busiest come first.
_ROUTES: list[BaseRoute] = [route for group in (*_BUSY, *_REST) for route in group.routes]
#: The gateway's come last: they match every path of a provider's.
_ALL_ROUTES = [*_ROUTES, *spans.routes, *mcp.routes, *compat.routes, *gateway.routes]


class _Service(FastAPI):
    """FastAPI with our own OpenAPI reference, which is the same for every app, and middlewares that see only requests."""

    _reference: ClassVar[dict[str, Any] | None] = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = scope["path"]
            if (path := versioned(given)) != given:
                raw = scope["raw_path"]
                raw = raw.removeprefix(b"/v1") if len(path) < len(given) else b"/v1" + raw
                scope = {**scope, "path": path, "raw_path": raw}
            await super().__call__(scope, receive, send)
        else:
            await self.router({**scope, "app": self}, receive, send)

    def openapi(self) -> dict[str, Any]:
        if _Service._reference is None:
            _Service._reference = reference.completed(super().openapi())
        return _Service._reference


def create_app(
    settings: Settings,
    *,
    metrics: Path | None = None,
    background: BackgroundWorker | None = None,
    stopping: Stopping | None = None,
) -> FastAPI:
    """The service, ready for uvicorn; `metrics` is the directory in which several workers aggregate theirs.

    `background` is the child that does the background work, if there is one.
    """
    service, log = settings.service, AuditLog.of(settings.policy)
    check_gateway(settings.gateway)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as opened:
            app.state.model = model = chat_model(settings.model)
            opened.push_async_callback(app.state.hooks.close)
            if model is not None:
                opened.push_async_callback(model.close)
            app.state.chosen_model = chosen = Chosen()
            opened.push_async_callback(chosen.set, None)
            memory = await opened.enter_async_context(Memory.open(settings=settings, meter=app.state.meter))
            await exposure.check_binding(service, memory.engine.store.keys)
            if background is not None:
                background.go()
                await opened.enter_async_context(background.joined(memory, app.state.meter))
            await anyio.to_thread.run_sync(transfer.remove_left_uploads)
            app.state.upstreams = await opened.enter_async_context(gateway.upstreams(memory, settings))
            app.state.mcp = await opened.enter_async_context(mcp.opened(settings))
            await opened.enter_async_context(_watching(memory))
            app.state.memory = memory
            opened.callback(setattr, app.state, "memory", None)
            app.state.filling = await opened.enter_async_context(filling())
            app.state.batches = await opened.enter_async_context(batches())
            app.state.streams = await opened.enter_async_context(open_streams(memory))
            memory.engine.loading.begin()
            yield

    app = _Service(
        title="Pagefile",
        version=routes.VERSION,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Not `include_router`, which analyses each of them once more for every app.
        routes=_ALL_ROUTES,
        lifespan=lifespan,
        middleware=[
            *_traces(service),
            Middleware(InspectorAuth),
            Middleware(ErrorMiddleware),
            Middleware(RequestGuard, names=exposure.allowed_names(service), service=service),
            *exposure.across_origins(service),
            Middleware(AuthMiddleware, service=service),
            *([] if log is None else [Middleware(AuditMiddleware, log=log)]),
            Middleware(LargeBodies, service=service),
            Middleware(IdempotencyMiddleware),
        ],
        exception_handlers={
            PagefileError: pagefile_error,
            HTTPException: http_error,
            RequestValidationError: validation_error,
        },
        # Off by default: otherwise the framework reports to whichever collector the process has.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.memory = app.state.model = app.state.streams = app.state.upstreams = app.state.mcp = (
        app.state.agents
    ) = app.state.spans = None
    app.state.hooks = ChatHooks.of(settings.chat)
    app.state.settings = settings
    app.state.audit = log
    app.state.stopping = stopping or Stopping()
    app.state.known_keys = KnownKeys()
    app.state.meter = PrometheusMeter(shared=metrics)
    if forgotten := list(unguarded(app)):
        raise RuntimeError(f"These routes check no key: {', '.join(forgotten)}. See service/auth.py.")
    return app


@asynccontextmanager
async def _watching(memory: Memory) -> AsyncGenerator[None]:
    """How far recall by meaning is behind is known while the service runs."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(memory.engine.watch)
        yield
        tasks.cancel_scope.cancel()


def _traces(service: ServiceSettings) -> list[Middleware]:
    if not service.tracing:
        return []
    from pagefile.service.telemetry import Traces  # noqa: PLC0415 - the otel extra is only needed for tracing

    return [Middleware(Traces)]
