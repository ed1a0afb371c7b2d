"""The pages and the reference: every route is there, with examples that work."""

import json
import re
from html import escape
from types import UnionType
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import pytest
from anthropic.types import ContentBlockParam
from anthropic.types.beta import BetaContentBlockParam
from openai.types.responses import ResponseInputItemParam
from openapi_spec_validator import OpenAPIV31SpecValidator

from pagefile import Settings, verbs
from pagefile.inspector.page_request import words
from pagefile.inspector.reference import groups, operations, slug
from pagefile.service.app import create_app
from pagefile.service.problems import kinds
from pagefile.service.vendor_paths import FACES
from pagefile.settings import ServiceSettings
from pagefile.wire import messages
from pagefile.wire.chat import ChatEvent
from pagefile.wire.requests import Format

from .http_examples import FILE, answers, shape
from .http_serving import serving


@pytest.fixture
async def client():
    async with serving() as client:
        yield client


@pytest.fixture(scope="module")
def document():
    return create_app(Settings(url="memory://")).openapi()


@pytest.mark.anyio
async def test_the_examples_work():
    """Every example can be sent, and the answer has the shape that the reference shows."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    assert shape(stored) == shape(await answers())


def test_every_route_has_examples(document):
    """A request example and an answer example for each route, and a sentence that says what it does."""
    for operation in operations(document):
        name = f"{operation.method} {operation.path}"
        assert operation.spec["description"], name
        assert all(shape["example"] for shape in operation.success["content"].values()), name
        assert "application/problem+json" in operation.spec["responses"]["default"]["content"], name
        assert "HTTPValidationError" not in document["components"]["schemas"]
        if operation.method == "POST":
            ((media, shape),) = operation.spec["requestBody"]["content"].items()
            if media != "application/json":
                assert shape["example"], name
                continue
            schema = shape["schema"]["$ref"]
            assert document["components"]["schemas"][schema.rpartition("/")[2]]["examples"], name


def test_every_schema_has_a_name_to_say(document):
    """The framework names what has no name of its own by everything it is made of."""
    assert [] == [name for name in document["components"]["schemas"] if "__" in name or len(name) > 40]


def test_the_document_is_valid_openapi(document):
    """Any tool can read it."""
    assert [] == [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()]


def test_operations_are_called_as_the_verbs(document):
    """Each has an id of its own that a program can call it by, and that of a verb is derived from the table."""
    found = {f"{one.method} {one.path}": one.spec["operationId"] for one in operations(document)}
    assert len(found) == len(set(found.values()))
    assert [] == [name for name in found.values() if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name)]
    shown = {f"{verb.http_method} {verb.path}": verb.operation_id for verb in verbs.TABLE}
    assert {} == {
        path: name for path, name in shown.items() if path != "GET /healthz" and found[path] != name
    }
    assert {"context", "record", "listConversations"} <= set(found.values())


def test_it_says_where_and_with_which_key(document):
    """Generated clients know the scheme of the keys, and that a service may do without; public routes need none."""
    assert [{"url": "/"}] == [{"url": server["url"]} for server in document["servers"]]
    assert ("http", "bearer") == tuple(
        document["components"]["securitySchemes"]["key"][name] for name in ("type", "scheme")
    )
    assert [{"key": []}, {}] == document["security"]
    public = [one.path for one in operations(document) if one.spec.get("security") == []]
    assert ["/healthz", "/readyz"] == public


def test_what_has_a_default_is_not_asked_for(document):
    """A field with a `default` is required by what openapi-typescript makes of it: the description says the default instead."""
    sent = [one.spec["requestBody"] for one in operations(document) if "requestBody" in one.spec]
    names = {part.partition('"')[0] for part in json.dumps(sent).split("#/components/schemas/")[1:]}
    fields = [
        (name, field, shape)
        for name in names
        for field, shape in document["components"]["schemas"][name]["properties"].items()
    ]
    assert [] == [(name, field) for name, field, shape in fields if "default" in shape]
    asked = document["components"]["schemas"]["AskContext"]
    assert asked["properties"]["format"]["description"].endswith('By default `"openai"`.')
    assert ["conversation_id"] == asked["required"]


def test_the_format_says_which_messages_a_window_has(document):
    """A client knows the type of the messages by the format it asked for."""
    schemas = document["components"]["schemas"]
    told = document["paths"]["/v1/context"]["post"]["responses"]["200"]["content"]["application/json"][
        "schema"
    ]
    union = schemas[told["$ref"].rpartition("/")[2]]
    assert set(get_args(Format)) == set(union["discriminator"]["mapping"])
    items = {
        name: schemas[reference.rpartition("/")[2]]["properties"]["messages"].get("items", {}).get("$ref")
        for name, reference in union["discriminator"]["mapping"].items()
    }
    assert {
        "openai": "#/components/schemas/OpenAIMessage",
        "responses": "#/components/schemas/ResponsesItem",
        "anthropic": "#/components/schemas/AnthropicMessage",
        "text": None,
        "parts": None,
    } == items


def kinds_of(union):
    """The values of `type` in a union of a vendor's types."""
    if get_origin(union) is Annotated:
        return kinds_of(get_args(union)[0])
    if get_origin(union) in {Union, UnionType}:
        return {kind for one in get_args(union) for kind in kinds_of(one)}
    if hasattr(union, "model_fields"):
        return texts_of(union.model_fields["type"].annotation)
    return texts_of(get_type_hints(union).get("type"))


def texts_of(hint):
    """The texts of the literals in a type."""
    return {hint} if isinstance(hint, str) else {text for one in get_args(hint) for text in texts_of(one)}


def test_every_kind_of_content_is_described():
    """Whatever the vendors' own clients can send has a place in the description."""
    ours = {kind for one in get_args(messages.ResponsesItem.__value__) for kind in kinds_of(one)}
    assert kinds_of(ResponseInputItemParam) - ours == set()
    ours = {
        kind for one in get_args(get_args(messages.AnthropicBlock.__value__)[0]) for kind in kinds_of(one)
    }
    assert (kinds_of(ContentBlockParam) | kinds_of(BetaContentBlockParam)) - ours == set()


def test_every_event_is_described(document):
    """The schema of a stream's items names every event that the Python client knows, and the problem."""
    schemas = document["components"]["schemas"]
    for method in ("get", "post"):
        content = document["paths"]["/v1/chat/stream"][method]["responses"]["200"]["content"]
        assert {"$ref": "#/components/schemas/ChatEvent"} == content["text/event-stream"]["x-item-schema"]
    known = {kind.event: kind.__name__ for kind in get_args(ChatEvent)} | {"error": "Problem"}
    for event, data in known.items():
        name = schemas["ChatEvent"]["discriminator"]["mapping"][event].rpartition("/")[2]
        assert f"#/components/schemas/{data}" == schemas[name]["properties"]["data"]["$ref"]


def test_the_apis_of_others_are_left_out_on_purpose(document):
    """The gateway, MCP and the faces of other memories have documents of their own: this one names them, and has no route of theirs."""
    others = ["/mcp", *FACES]
    assert [] == [path for path in document["paths"] if path.startswith(tuple(others)) or "{" in path]
    assert [] == [one for one in others if one not in document["info"]["description"]]


def test_every_reference_leads_somewhere(document):
    """No `$ref` points at a schema that is not there."""
    named = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    text = json.dumps(document)
    found = {part.partition('"')[0] for part in text.split('"$ref": "')[1:]}
    assert found <= named


HTML = {"Accept": "text/html"}


async def pages(client, document, language="en"):
    """The overview, every group, the schemas and the problems."""
    headers = {**HTML, "Accept-Language": language}
    places = [
        "/docs",
        *(f"/docs/{slug(name)}" for name in groups(document)),
        "/docs/schemas",
        "/docs/problems",
    ]
    found = {}
    for place in places:
        answer = await client.get(place, headers=headers)
        assert (200, "text/html; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
        found[place] = answer
    return found


@pytest.mark.anyio
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_pages_show_everything(client, document, language):
    """Every route in its group, with its parameters; every schema; every problem; a form to send each request."""
    found = await pages(client, document, language)
    for name, members in groups(document).items():
        page = found[f"/docs/{slug(name)}"].text
        for operation in members:
            assert f'id="{operation.anchor}"' in page
            assert f"<code>{operation.path}</code>" in page
            assert f"{operation.path}</code>" in found["/docs"].text
            for parameter in operation.parameters:
                assert f"<code>{parameter['name']}</code>" in page
        assert len(members) == page.count('class="try stacked-form"')
        assert "`" not in re.sub(r"<pre.*?</pre>|<textarea.*?</textarea>", "", page, flags=re.DOTALL)
    for name in document["components"]["schemas"]:
        assert f'id="schema-{name}"' in found["/docs/schemas"].text
    for code in kinds():
        assert f'href="/problems/{code}"' in found["/docs/problems"].text
    assert document == (await client.get("/openapi.json")).json()


@pytest.mark.anyio
async def test_english_pages_have_english_examples(client, document):
    """And Chinese ones Chinese: nothing that is shown or sent is in the other language."""
    for place, answer in (await pages(client, document)).items():
        examples = re.findall(r"<(?:pre|textarea)[^>]*>(.*?)</(?:pre|textarea)>", answer.text, re.DOTALL)
        assert [] == [text[:200] for text in examples if re.search(r"[\u4e00-\u9fff]", text)], place
    chinese = await pages(client, document, "zh")
    assert "青霉素" in chinese["/docs/turns"].text


@pytest.mark.anyio
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_problem_says_what_to_do(client, language):
    """Every kind has a page that does, in the reader's language."""
    for code, kind in kinds().items():
        answer = await client.get(f"/problems/{code}", headers={**HTML, "Accept-Language": language})
        assert 200 == answer.status_code
        assert str(kind.status) in answer.text
        todo = words()[f"fix.{code}"][0 if language == "en" else 1]
        assert escape(todo.split("`")[0]) in answer.text
    assert 404 == (await client.get("/problems/nothing")).status_code
    assert 404 == (await client.get("/docs/nothing")).status_code


@pytest.mark.anyio
async def test_a_stranger_reads_the_reference_and_nothing_else():
    """Where keys are required there is no navigation to what they may not see."""
    async with serving(Settings(url="memory://", service=ServiceSettings(require_keys=True))) as client:
        for place in ("/docs", "/docs/turns", "/docs/schemas", "/problems/budget"):
            answer = await client.get(place, headers=HTML)
            assert 200 == answer.status_code
            assert "/inspector/conversations" not in answer.text


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("accept", "language", "words"),
    [
        ("", "en", "Virtual memory for LLM agents"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh", "虚拟内存"),
        ("en-GB,zh;q=0.5", "en", "Virtual memory"),
        ("fr,zh;q=0.2", "zh", "虚拟内存"),
        ("nonsense;;;q=,,", "en", "Virtual memory"),
    ],
)
async def test_the_first_page(client, accept, language, words):
    """It names Pagefile, says what it is in the reader's language, and leads on."""
    page = await client.get("/", headers={"Accept-Language": accept})
    assert (200, language) == (page.status_code, page.headers["content-language"])
    assert words in page.text
    for part in ("Pagefile", 'href="/docs"', 'href="/healthz"', "http://127.0.0.1:8780/v1/turns"):
        assert part in page.text


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path", ["/", "/docs", "/docs/problems", "/problems/conflict", "/openapi.json", "/healthz"]
)
async def test_security_headers(client, path):
    """No page runs a script, is framed, or is read by another origin."""
    page = await client.get(path, headers={"Origin": "https://elsewhere.example"})
    assert 200 == page.status_code
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script" not in policy
    assert "nosniff" == page.headers["x-content-type-options"]
    assert "access-control-allow-origin" not in page.headers


@pytest.mark.anyio
async def test_the_script_of_the_reference_is_our_own(client):
    """A group's page may run that one file, which may call this service and no other."""
    page = await client.get("/docs/turns", headers=HTML)
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'; connect-src 'self'" in policy
    assert ['<script src="/inspector/inspector.js" defer>'] == re.findall(r"<script[^>]*>", page.text)
    # A key must not end up in an address, where a browser without a script would put every field that has a name.
    keys = re.findall(r'<input type="password"[^>]*>', page.text)
    assert keys
    assert [] == [one for one in keys if " name=" in one]
