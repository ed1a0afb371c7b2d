"""Whether the service works."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from pagefile.integrations.prometheus import CONTENT_TYPE, PrometheusMeter
from pagefile.service.routes.common import PROBLEMS, VERSION, MemoryOf
from pagefile.wire.responses import HealthOut

routes = APIRouter(tags=["Health"], responses=PROBLEMS)


@routes.get("/healthz")
async def health(memory: MemoryOf) -> HealthOut:
    """Asks the store, and says what the service runs on; 503 when the store cannot be reached."""
    return HealthOut.model_validate({"version": VERSION, **await memory.describe()})


@routes.get("/metrics", include_in_schema=False)
async def metrics(request: Request) -> Response:
    """Measurements in Prometheus' text format."""
    meter: PrometheusMeter = request.app.state.meter
    return Response(meter.text(), media_type=CONTENT_TYPE)
