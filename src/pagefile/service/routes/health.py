"""Whether the service works."""

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import Response

from pagefile.errors import StoreUnavailableError
from pagefile.integrations.prometheus import CONTENT_TYPE, PrometheusMeter
from pagefile.service.routes.common import PROBLEMS, VERSION, MemoryOf
from pagefile.wire.responses import HealthOut, ReadyOut

routes = APIRouter(tags=["Health"], responses=PROBLEMS)

#: A store that takes longer is not ready.
_PATIENCE_S = 2.0


@routes.get("/healthz")
async def health(memory: MemoryOf) -> HealthOut:
    """Asks the store, and says what the service runs on; 503 when the store cannot be reached."""
    return HealthOut.model_validate({"version": VERSION, **await memory.describe()})


@routes.get("/readyz")
async def ready(memory: MemoryOf) -> ReadyOut:
    """Whether to send requests here, for a load balancer: 503 while it starts or stops, or when the store does not answer."""
    try:
        with anyio.fail_after(_PATIENCE_S):
            await memory.house.store.describe()
    except TimeoutError as error:
        raise StoreUnavailableError(f"The store did not answer within {_PATIENCE_S:g} s.") from error
    return ReadyOut()


# Not in the reference: its format is Prometheus' own, and no agent asks for it.
@routes.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Measurements in Prometheus' text format."""
    meter: PrometheusMeter = request.app.state.meter
    return Response(meter.text(), media_type=CONTENT_TYPE)
