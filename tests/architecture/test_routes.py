"""Every route of the service asks who asks: a new one cannot forget it."""

from typing import Annotated

import pytest
from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.routing import iter_route_contexts

from pagefile import Settings
from pagefile.service.app import create_app
from pagefile.service.auth import FOR_EVERYBODY, PUBLIC, GuardedRouter, guarded, unguarded
from pagefile.wire.requests import ConversationParams, RecordTurn


@pytest.fixture
def app() -> FastAPI:
    return create_app(Settings(url="memory://"))


def test_every_route_is_guarded(app: FastAPI):
    """What a request names is held against the caller's key, unless the route is named as one for everybody."""
    assert [] == list(unguarded(app))


def test_the_lists_hold_what_is_there(app: FastAPI):
    """They shrink with the routes, and say why."""
    paths = {route.path for route in iter_route_contexts(app.routes)}
    assert set() == (PUBLIC | set(FOR_EVERYBODY)) - paths
    assert [] == [path for path, reason in FOR_EVERYBODY.items() if len(reason) < 20]


def test_a_route_that_forgets_is_found():
    """The test above can fail: a plain router, and a guarded one whose request names no tenant."""
    plain, ours = APIRouter(prefix="/v1"), GuardedRouter(prefix="/v1")

    @plain.post("/plain")
    async def _plain(body: RecordTurn) -> None: ...

    @ours.get("/nameless")
    async def _nameless(request: Request) -> None: ...

    @ours.get("/fine")
    async def _fine(request: Request, params: Annotated[ConversationParams, Query()]) -> None: ...

    app = FastAPI()
    app.include_router(plain)
    app.include_router(ours)
    assert {"/v1/plain", "/v1/nameless"} == set(unguarded(app)) - {"/docs/oauth2-redirect", "/redoc"}


def test_only_what_waits_can_be_guarded():
    """A plain function would run in a thread, past the guard."""
    with pytest.raises(TypeError, match="async"):
        guarded(lambda body: None)
