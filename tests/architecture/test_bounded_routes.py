"""No route takes or gives an unbounded amount: every text and list has a bound in the schema, or one that is named here."""

import pytest

from pagefile import Settings
from pagefile.service.app import create_app
from pagefile.service.auth import KeyedRoute
from pagefile.wire import messages
from tests.acceptance.http_serving import serving

_SEARCHED = "only the beginning and the end of a long question are searched for (`text.queries`)"
_MESSAGE = "max_message_chars"
_WINDOW = "it must fit into the window, and is counted in a thread"
_VALUES = "a body has at most 50,000 values (`text.json_size`)"
#: What bounds a text or a list that has no bound in the schema.
BOUNDED_ELSEWHERE = {
    "/v1/history?query": _SEARCHED,
    "/v1/import": "max_import_bytes, and each line by MAX_LINE_BYTES",
    "/v1/load?query": _SEARCHED,
    "/v1/pages/text?query": _SEARCHED,
    "AskChat.instructions": _WINDOW,
    "AskChat.message": _MESSAGE,
    "AskChat.steps[]": _VALUES,
    "AskContext.instructions": _WINDOW,
    "AskContext.query": _MESSAGE,
    "AskContext.tools[]": _VALUES,
    "AskContext.window_for": "it must be the name of a known model",
    "AskLoad.query": _SEARCHED,
    "AskRecall.query": _SEARCHED,
    "BeginTurn.messages[]": _VALUES,
    "BeginTurn.user": _MESSAGE,
    "CompleteTurn.assistant": _MESSAGE,
    "ExtendTurn.messages[]": _VALUES,
    "MakeCheckpoint.read_token": "it must be a token of ours, which is short",
    "MakeCheckpoint.summary": _WINDOW,
    "RecordTurn.assistant": _MESSAGE,
    "RecordTurn.messages[]": _VALUES,
    "RecordTurn.steps[]": _VALUES,
    "RecordTurn.user": _MESSAGE,
    "SearchPages.query": _SEARCHED,
}


@pytest.fixture(scope="module")
def app():
    return create_app(Settings(url="memory://"))


#: The messages of providers, of which a field is a list.
PROVIDERS = frozenset(
    name for name, kind in vars(messages).items() if getattr(kind, "__module__", "") == messages.__name__
)


def unbounded(schema, path, known, seen=frozenset()):
    """The texts and lists of a schema that may have any size."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in PROVIDERS:
            return {f"{path}[]"}
        return set() if name in seen else unbounded(known[name], name, known, seen | {name})
    found = set()
    for kind in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(kind, ()):
            found |= unbounded(one, path, known, seen)
    if schema.get("type") == "string" and not {"maxLength", "enum", "const", "format"} & schema.keys():
        found.add(path)
    if schema.get("type") == "array":
        found |= set() if "maxItems" in schema else {f"{path}[]"}
        found |= unbounded(schema.get("items", {}), path, known, seen)
    for name, one in schema.get("properties", {}).items():
        found |= unbounded(one, f"{path.partition('.')[0]}.{name}", known, seen)
    return found


def operations(api):
    return [(path, one) for path, methods in api["paths"].items() for one in methods.values()]


def test_every_text_and_list_of_a_request_is_bounded(app):
    """A new one without a bound is refused here until somebody says what bounds it."""
    api = app.openapi()
    known, found = api["components"]["schemas"], set()
    for path, operation in operations(api):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            found |= unbounded(content["schema"], path, known)
        for parameter in operation.get("parameters", ()):
            found |= unbounded(parameter["schema"], f"{path}?{parameter['name']}", known)
    assert set(BOUNDED_ELSEWHERE) == found


def test_every_list_is_given_in_pages(app):
    """Whatever answers with a list takes a `limit` of at most a thousand."""
    api = app.openapi()
    schemas, without = api["components"]["schemas"], []
    for path, operation in operations(api):
        answer = (
            operation["responses"]
            .get("200", {})
            .get("content", {})
            .get("application/json", {})
            .get("schema", {})
        )
        shape = schemas.get(answer.get("$ref", "").rpartition("/")[2], {})
        if path == "/v1/tools":
            continue  # those that there are
        if "next" not in shape.get("properties", {}) or "items" not in shape["properties"]:
            continue
        limits = [one["schema"] for one in operation.get("parameters", ()) if one["name"] == "limit"]
        for content in operation.get("requestBody", {}).get("content", {}).values():
            named = schemas[content["schema"]["$ref"].rpartition("/")[2]]
            limits += [named["properties"][name] for name in ("limit", "k") if name in named["properties"]]
        if not any(limit.get("maximum", 10**9) <= 1000 for limit in limits):
            without.append(path)
    assert [] == without


def test_every_route_with_a_body_bounds_its_values(app):
    """Its requests are read by `KeyedRoute`, which refuses a body of too many values."""
    loose = [
        route.path
        for route in app.routes
        if getattr(route, "body_field", None) is not None and not isinstance(route, KeyedRoute)
    ]
    assert [] == loose


#: Routes that the description leaves out, by the beginning of their paths, and what bounds their requests.
UNDESCRIBED = {
    "/": "nothing is read but the query string",
    "/agents/hook": "`KeyedRoute`",
    "/agent-memory": "`service.compat` counts the values",
    "/audit": "`KeyedRoute`, and pages of a thousand lines",
    "/docs": "nothing is read",
    "/index.json": "nothing is read but the query string",
    "/inspector": "forms, of a thousand fields at most; pages of bounded size",
    "/mcp": "`service.mcp` counts the values",
    "/mem0": "`service.compat` counts the values",
    "/metrics": "nothing is read",
    "/favicon.ico": "nothing is read",
    "/openapi.json": "nothing is read",
    "/problems": "nothing is read",
    "/v1/memory_stores": "`service.compat` counts the values",
    "/v1/traces": "`service.spans` counts values, bytes and model calls",
    "/v1/{vendor:path}": "the gateway passes a body of too many values on unread",
}


def undescribed(app):
    return {route.path for route in app.routes} - app.openapi()["paths"].keys()


def known_by(path):
    return next(
        (one for one in UNDESCRIBED if path == one or (one != "/" and path.startswith(f"{one}/"))), None
    ) or (next((one for one in UNDESCRIBED if one != "/" and path.startswith(f"{one}.")), None))


def test_every_undescribed_route_says_what_bounds_it(app):
    """The gateway, MCP, the faces of other vendors, the inspector: a new one is refused here until somebody says."""
    found = {path: known_by(path) for path in undescribed(app)}
    assert [] == [path for path, known in found.items() if known is None]
    assert set(UNDESCRIBED) == set(found.values())


MANY = {
    "/agents/hook": 60_000,
    "/agent-memory/v1/working-memory/s": 60_000,
    "/mcp": 60_000,
    "/mem0/v1/memories/": 60_000,
    "/v1/memory_stores": 60_000,
    "/v1/traces": 600_000,
}


@pytest.mark.anyio
@pytest.mark.parametrize("path", MANY)
async def test_many_values_are_refused_before_they_are_read(path):
    """A parser would hold everybody up for seconds, and need hundreds of megabytes."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[' + b"1," * MANY[path] + b"1]}}"
    async with serving() as client:
        method = "PUT" if "working-memory" in path else "POST"
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        answer = await client.request(method, path, content=body, headers=headers)
        assert answer.status_code in {400, 413, 422}, answer.text
        assert "JSON values" in answer.text
