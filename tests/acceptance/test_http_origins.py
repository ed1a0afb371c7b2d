"""What a web page of another site can make a browser send changes nothing, on any path there is."""

import pytest
from fastapi.routing import iter_route_contexts

from pagefile import Settings
from pagefile.inspector import urls
from pagefile.service.app import create_app
from pagefile.service.request_guard import SAFE_METHODS
from pagefile.settings import ServiceSettings

from .http_serving import BASE, serving

pytestmark = pytest.mark.anyio
SETTINGS = Settings(url="memory://")
JSON = {"Content-Type": "application/json"}
#: What browsers send for any page without asking first.
UNASKED = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", None]
FOREIGN = [
    {"Origin": "http://evil.test"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1.evil.test"},
    {"Origin": "http://127.0.0.1@evil.test"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://localhost:1", "Sec-Fetch-Site": "same-site"},
    {"Origin": BASE.replace("http:", "https:")},
    [("Origin", BASE), ("Origin", "http://evil.test")],
    [("Origin", BASE), ("Origin", BASE)],
]


def changing():
    """Every route with which something can be changed, whichever part of the service it belongs to."""
    routes = iter_route_contexts(create_app(SETTINGS).routes)
    return sorted(
        {(method, route.path) for route in routes for method in set(route.methods or ()) - SAFE_METHODS}
    )


def test_there_are_such_routes():
    """The walk below does not walk over nothing."""
    assert {("POST", "/v1/import"), ("POST", "/v1/turns"), ("POST", "/inspector/erase")} <= set(changing())


@pytest.mark.parametrize("origin", FOREIGN, ids=str)
async def test_another_site_reaches_no_route(origin):
    """Wherever it says it comes from, and also where there is no route yet."""
    async with serving(SETTINGS) as client:
        for method, path in (*changing(), ("POST", "/v1/later"), ("DELETE", "/v1/facts"), ("POST", "/mcp")):
            answer = await client.request(method, path, json={}, headers=origin)
            assert (403, "cross-site") == (answer.status_code, answer.json()["code"]), (method, path)


@pytest.mark.parametrize("kind", UNASKED)
async def test_no_route_takes_what_browsers_send_unasked(kind):
    """JSON is asked for everywhere; the inspector's forms have a token instead."""
    headers = {} if kind is None else {"Content-Type": kind}
    async with serving(SETTINGS) as client:
        for method, path in (*changing(), ("POST", "/mcp")):
            answer = await client.request(method, path, content=b"{}", headers=headers)
            form = urls.is_inspector(path) and kind == "application/x-www-form-urlencoded"
            wanted = (403, "forbidden") if form else (415, "media-type")
            assert wanted == (answer.status_code, answer.json()["code"]), (method, path)


@pytest.mark.parametrize(
    "kind",
    ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"],
)
@pytest.mark.parametrize("origin", [None, "own", "https://app.example.com"])
async def test_programs_own_pages_and_named_sites_get_through(kind, origin):
    """They are answered by the route itself."""
    settings = Settings(url="memory://", service=ServiceSettings(cors_origins="https://app.example.com"))
    async with serving(settings) as client:
        own = str(client.base_url).rstrip("/")
        headers = {} if origin is None else {"Origin": own if origin == "own" else origin}
        answer = await client.post(
            "/v1/settle", content=b"{}", headers={"Content-Type": kind, "Sec-Fetch-Site": "none", **headers}
        )
        assert 200 == answer.status_code, answer.text


async def test_a_named_site_sends_no_forms():
    """It may use the API with a key of its own; the inspector's pages belong to whoever sits there."""
    settings = Settings(url="memory://", service=ServiceSettings(cors_origins="https://app.example.com"))
    async with serving(settings) as client:
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://app.example.com"}
        answer = await client.post("/inspector/erase", content=b"token=", headers=form)
        assert (403, "cross-site") == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize("scheme", ["https", "http"])
async def test_a_proxy_that_ends_tls_need_not_say_so(scheme):
    """Under a name that an operator has given, a page of ours may be an https page."""
    settings = Settings(url="memory://", service=ServiceSettings(hosts="memory.example.com"))
    async with serving(settings) as client:
        own = {"Host": "memory.example.com", "Origin": f"{scheme}://memory.example.com"}
        assert 200 == (await client.post("/v1/settle", json={}, headers=own)).status_code


async def test_a_page_without_tls_is_not_ours_where_there_is_tls():
    """Whoever sits between a browser and the service can write such a page."""
    settings = Settings(url="memory://", service=ServiceSettings(hosts="memory.example.com"))
    async with serving(settings) as client:
        plain = {"Origin": "http://memory.example.com"}
        answer = await client.post("https://memory.example.com/v1/settle", json={}, headers=plain)
        assert (403, "cross-site") == (answer.status_code, answer.json()["code"])
