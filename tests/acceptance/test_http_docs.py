"""The pages and the reference: every route is there, with examples that work."""

import json

import pytest

from pagefile import Settings
from pagefile.service.app import create_app
from pagefile.service.reference import operations

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


def test_every_reference_leads_somewhere(document):
    """No `$ref` points at a schema that is not there."""
    named = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    text = json.dumps(document)
    found = {part.partition('"')[0] for part in text.split('"$ref": "')[1:]}
    assert found <= named


@pytest.mark.anyio
async def test_the_page_shows_everything(client, document):
    """Every route, parameter, schema and problem can be read without a script."""
    page = await client.get("/docs")
    assert "text/html; charset=utf-8" == page.headers["content-type"]
    assert "<script" not in page.text
    for operation in operations(document):
        assert f'<span class="method">{operation.method}</span> {operation.path}<' in page.text
        for parameter in operation.spec.get("parameters", ()):
            assert f"<code>{parameter['name']}</code>" in page.text
    for name in document["components"]["schemas"]:
        assert f'id="schema-{name}"' in page.text
    assert document == (await client.get("/openapi.json")).json()


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
    "path", ["/", "/docs", "/problems/conflict", "/style.css", "/openapi.json", "/healthz"]
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
