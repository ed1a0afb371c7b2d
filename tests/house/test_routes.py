"""Every route of the service asks who asks: a new one cannot forget it."""

from datetime import UTC, datetime
from typing import Annotated

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.routing import iter_route_contexts

from pagefile import Settings
from pagefile.records import Scope
from pagefile.service.app import create_app
from pagefile.service.auth import FOR_EVERYBODY, PUBLIC, GuardedRouter, guarded, operators_only, unguarded
from pagefile.stores.secrets import new_key
from pagefile.wire.queries import ConversationParams
from pagefile.wire.requests import RecordTurn


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
    async def _fine(params: Annotated[ConversationParams, Query()]) -> None: ...

    app = FastAPI()
    app.include_router(plain)
    app.include_router(ours)
    assert {"/v1/plain", "/v1/nameless"} == set(unguarded(app)) - {"/docs/oauth2-redirect", "/redoc"}


@pytest.mark.anyio
async def test_pages_for_the_operator_open_with_no_key_at_all():
    """On the machine itself they are open; a key, whosever it is, does not open them."""
    pages = APIRouter(dependencies=[Depends(operators_only)])

    @pages.get("/everything")
    async def _everything() -> str:
        return "all"

    app = create_app(Settings(url="memory://"))
    app.include_router(pages)
    assert [] == list(unguarded(app))
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        key, text = new_key("k", Scope("default"), created=datetime.now(UTC))
        await app.state.memory.house.store.keys.add(key)
        assert 200 == (await client.get("/everything")).status_code
        assert 403 == (await client.get("/everything", headers={"X-API-Key": text})).status_code


def test_only_what_waits_can_be_guarded():
    """A plain function would run in a thread, past the guard."""
    with pytest.raises(TypeError, match="async"):
        guarded(lambda body: None)
