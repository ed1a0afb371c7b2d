"""Health, readiness and metrics."""

from contextlib import suppress

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import Response

from pagefile.errors import ClosedError, StoreError, StoreUnavailableError
from pagefile.integrations.prometheus import CONTENT_TYPE, PrometheusMeter
from pagefile.records import JsonObject
from pagefile.service.auth import memory_in, principal_of
from pagefile.service.routes.common import PROBLEMS, VERSION, MemoryOf
from pagefile.wire.responses import HealthOut, ReadyOut

routes = APIRouter(tags=["Health"], responses=PROBLEMS)

#: A slower store counts as not ready.
_PATIENCE_S = 2.0


@routes.get("/healthz")
async def health(request: Request) -> HealthOut:
    """Whether the service lives: it does when it answers, so that nobody restarts it because the store is away.

    Whoever may see it is told what it runs on, as far as the store answers.
    """
    return HealthOut.model_validate({"version": VERSION, **await _told(request)})


async def _told(request: Request) -> JsonObject:
    memory = memory_in(request.app)
    if memory is not None and principal_of(request).is_known:
        with anyio.move_on_after(_PATIENCE_S), suppress(StoreError, ClosedError):
            return await memory.describe()
    return {}


@routes.get("/readyz")
async def ready(memory: MemoryOf) -> ReadyOut:
    """Whether to send requests here, for a load balancer: 503 while it starts or stops, or when the store does not answer."""
    try:
        with anyio.fail_after(_PATIENCE_S):
            await memory.engine.store.describe()
    except TimeoutError as error:
        raise StoreUnavailableError(f"The store did not answer within {_PATIENCE_S:g} s.") from error
    return ReadyOut()


# Not in the reference: the format is Prometheus' own, and agents have no use for it.
@routes.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Measurements in Prometheus' text format."""
    meter: PrometheusMeter = request.app.state.meter
    return Response(meter.text(tasks=len(anyio.get_running_tasks())), media_type=CONTENT_TYPE)
