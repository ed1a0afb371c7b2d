"""No route takes or gives an unbounded amount: every text and list has a bound in the schema, or one that is named here."""

import ast
import re
from pathlib import Path

import pytest

import pagefile
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
    "AddStep.input": _VALUES,
    "AddStep.result": _VALUES,
    "AskChat.instructions": _WINDOW,
    "AskChat.message": _MESSAGE,
    "AskChat.steps[]": _VALUES,
    "AskContext.instructions": _WINDOW,
    "AskContext.query": _MESSAGE,
    "AskContext.tools[]": _VALUES,
    "AskContext.tools[].*": _VALUES,
    "AskContext.window_for": "it must be the name of a known model",
    "AskLoad.query": _SEARCHED,
    "AskRecall.query": _SEARCHED,
    "AskReplay.changes.*": _VALUES,
    "BeginTurn.messages[]": _VALUES,
    "BeginTurn.metadata.*": _VALUES,
    "BeginTurn.user": _MESSAGE,
    "CallTool.arguments.*": _VALUES,
    "CompleteTurn.assistant": _MESSAGE,
    "ExtendTurn.messages[]": _VALUES,
    "FindFetched.input": _VALUES,
    "ImportFacts.memory.*": _VALUES,
    "MakeCheckpoint.read_token": "it must be a token of ours, which is short",
    "MakeCheckpoint.summary": _WINDOW,
    "PutSession.value.*": _VALUES,
    "RecordTurn.assistant": _MESSAGE,
    "RecordTurn.messages[]": _VALUES,
    "RecordTurn.metadata.*": _VALUES,
    "RecordTurn.steps[]": _VALUES,
    "RecordTurn.user": _MESSAGE,
    "SearchPages.query": _SEARCHED,
    "StepBody.input": _VALUES,
    "StepBody.result": _VALUES,
}


@pytest.fixture(scope="module")
def app():
    return create_app(Settings(url="memory://"))


#: The messages of providers, of which a field is a list.
PROVIDERS = frozenset(
    name for name, kind in vars(messages).items() if getattr(kind, "__module__", "") == messages.__name__
)


#: What a schema says of a value that is short.
SHORT = frozenset({"maxLength", "enum", "const"})
SHORT_FORMATS = frozenset({"date", "date-time", "uuid"})


def unbounded(schema, path, known, seen=frozenset()):
    """The texts, lists and free values of a schema that may have any size; what a mapping holds is `NAME.*`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in PROVIDERS:
            return {f"{path}[]"}
        if name == "JsonValue":
            return {path}
        return set() if name in seen else unbounded(known[name], name, known, seen | {name})
    found, variants = set(), [one for kind in ("anyOf", "oneOf", "allOf") for one in schema.get(kind, ())]
    for one in variants:
        found |= unbounded(one, path, known, seen)
    if not variants and "type" not in schema and not SHORT & schema.keys():
        found.add(path)
    if (
        schema.get("type") == "string"
        and not SHORT & schema.keys()
        and schema.get("format") not in SHORT_FORMATS
    ):
        found.add(path)
    if schema.get("type") == "array":
        found |= set() if "maxItems" in schema else {f"{path}[]"}
        found |= unbounded(schema.get("items", {}), f"{path}[]", known, seen)
    if schema.get("type") == "object" and schema.get("additionalProperties", "properties" not in schema):
        values = schema.get("additionalProperties", True)
        found |= unbounded({} if values is True else values, f"{path}.*", known, seen)
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


_RECORDED = "as many as were recorded"
#: Lists that are given without a `limit`, and what bounds them.
GIVEN_WHOLE = {
    "CheckpointOut.anchors": "a summary's share of the window",
    "CheckpointOut.archive_refs": "pages of the turns of one checkpoint",
    "ErasureOut.pending": "one for each store",
    "ErasureOut.places": "copies of one turn or page",
    "ExplanationOut.blocks": "they fit into a window",
    "ExplanationOut.why": "a few lines",
    "PageOut.sources": "turns that it was read from",
    "PurgeOut.items": "copies of one page",
    "ReplayOut.why": "a few lines",
    "RevisionOut.after": "facts of one change",
    "RevisionOut.before": "facts of one change",
    "ToolList.items": "those that there are",
    "TurnOut.layout": _RECORDED,
    "TurnOut.steps": _RECORDED,
}


def limits(operation, schemas):
    """How many may be asked for, where a request may say so."""
    yield from (one["schema"] for one in operation.get("parameters", ()) if one["name"] == "limit")
    for content in operation.get("requestBody", {}).get("content", {}).values():
        fields = schemas.get(content["schema"].get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        yield from (fields[name] for name in ("limit", "k") if name in fields)


def test_every_list_of_an_answer_is_given_in_pages(app):
    """It takes a `limit` of at most a thousand, or somebody has said what bounds it."""
    api = app.openapi()
    schemas, found = api["components"]["schemas"], set()
    for _, operation in operations(api):
        paged = any(limit.get("maximum", 10**9) <= 1000 for limit in limits(operation, schemas))
        for answer in (one for code, one in operation["responses"].items() if code.startswith("2")):
            for content in answer.get("content", {}).values():
                name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                for field, one in schemas.get(name, {}).get("properties", {}).items():
                    lists = [kind for kind in (one, *one.get("anyOf", ())) if kind.get("type") == "array"]
                    if any("maxItems" not in kind for kind in lists) and not (field == "items" and paged):
                        found.add(f"{name}.{field}")
    assert set(GIVEN_WHOLE) == found


#: Functions that read the body of a request by hand, and what bounds the work with it.
READ_BY_HAND = {
    "service/auth.py:_BoundedRequest.json": "`has_many_values`",
    "service/auth.py:_UsersRequest.json": "`_BoundedRequest`",
    "service/compat.py:_Face._asked": "`has_many_values`",
    "service/gateway.py:_Carried.answer": "a body of too many values passes unread",
    "service/idempotency.py:IdempotencyMiddleware._answered": "only its hash is made",
    "service/inspector_auth.py:form_of": "two hundred fields at most",
    "service/mcp.py:_bounded": "`has_many_values`",
    "service/spans.py:_recorded": "`has_many_values`",
    "service/transfer.py:import_": "lines of at most MAX_LINE_BYTES",
}
_READS = re.compile(r"(?:request|self|super\(\))\.(?:body|form|json|stream)\(\)")


def read_by_hand(tree, name):
    """The functions of a module that read a body, each by its whole name."""
    for node in ast.iter_child_nodes(tree):
        inner = f"{name}{getattr(node, 'name', '')}"
        if isinstance(node, ast.ClassDef):
            yield from read_by_hand(node, f"{inner}.")
        elif isinstance(node, ast.AsyncFunctionDef) and _READS.search(ast.unparse(node)):
            yield inner


def test_every_body_that_is_read_by_hand_says_what_bounds_it():
    """Neither the schema nor `KeyedRoute` sees it."""
    source, found = Path(pagefile.__file__).parent, set()
    for folder in ("compat", "gateway", "inspector", "mcp", "service"):
        for file in (source / folder).rglob("*.py"):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            found |= set(read_by_hand(tree, f"{file.relative_to(source).as_posix()}:"))
    assert set(READ_BY_HAND) == found


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
