"""Whether the service works."""

from fastapi import APIRouter

from pagefile.service.routes.common import PROBLEMS, VERSION, MemoryOf
from pagefile.wire.responses import HealthOut

routes = APIRouter(tags=["Health"], responses=PROBLEMS)


@routes.get("/healthz")
async def health(memory: MemoryOf) -> HealthOut:
    """Asks the store, and says what the service runs on; 503 when the store cannot be reached."""
    return HealthOut.model_validate({"version": VERSION, **await memory.describe()})
