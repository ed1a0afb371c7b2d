"""Requests made up from the service's own OpenAPI document: no 500, and every answer has the shape it promises."""

import json
from functools import cache

import httpx
import pytest
import schemathesis
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pagefile import Settings
from pagefile.service.app import create_app
from pagefile.settings import ArchiveSettings
from pagefile.wire.responses import Problem
from tests.acceptance.http_server import listening

#: A page from the first few characters on, so that the archive is asked too; nobody waits for a model.
SETTINGS = Settings(url="memory://", archive=ArchiveSettings(threshold=50, page_from=20), drain_s=0.1)
#: Each makes up this many requests; the same ones every time.
EXAMPLES = 10
#: Waiting is what it is for, and it changes nothing.
LEFT_OUT = {"/v1/settle"}
#: Says that no model is set, which is what 501 is for.
NOT_SET_UP = {"/v1/chat/stream"}


@schemathesis.serializer("application/x-ndjson")
def lines(_ctx, value):
    """Whatever was made up, as it is."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


APP = create_app(SETTINGS)
#: From the routes: the document takes a second to write, and every process that only collects the tests would write it.
NAMES = [
    f"{method} {route.path}"
    for route in APP.routes
    if isinstance(route, APIRoute) and route.include_in_schema and route.path not in LEFT_OUT
    for method in sorted(route.methods)
]


@cache
def schema():
    return schemathesis.openapi.from_dict(APP.openapi()).exclude(path=list(LEFT_OUT))


@cache
def operations():
    """Not `schema.parametrize()`: it gives all of them one name."""
    found = [operation.ok() for operation in schema().get_all_operations()]
    return {f"{operation.method.upper()} {operation.path}": operation for operation in found}


@pytest.fixture(scope="module")
def address():
    # Before the service has a thread of its own: Python 3.11 counts the depth of all parsers in one place, and the modules that are
    # imported here are parsed by pytest.
    operations()
    with listening(SETTINGS) as url:
        # What the service imports at its first turn: Hypothesis stumbles over a module that is imported while it looks through them.
        httpx.post(f"{url}/v1/turns", json={"conversation_id": "first", "user": "Hello", "assistant": "Hi"})
        httpx.post(f"{url}/v1/context", json={"conversation_id": "first", "query": "Hello"})
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_request_breaks_the_service(name, address):
    """Whatever fits the schema, or nearly does, gets an answer of the promised shape; a refusal is a problem document."""

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(operations()[name].as_strategy(mode) for mode in GenerationMode))
    def ask(case):
        check(case, case.call(base_url=address))

    ask()


def check(case, answer):
    """Whether it is what the document promises."""
    if case.path in NOT_SET_UP and answer.status_code == 501:
        assert "no-model" == answer.json()["code"]
        return
    case.validate_response(
        answer,
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_headers_conformance,
            response_schema_conformance,
        ],
    )
    if answer.status_code >= 400:
        told = Problem.model_validate(json.loads(answer.content))
        assert answer.status_code == told.status


def test_everything_is_asked():
    """No route is left out but those named above."""
    assert set(NAMES) == set(operations())
    asked = {operation.path for operation in operations().values()}
    assert set(schema().raw_schema["paths"]) == asked | LEFT_OUT
