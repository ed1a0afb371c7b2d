"""Whatever a client or a provider sends through the gateway is the other's to judge: none of it is a failure of ours."""

import json

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagefile.gateway.sse import EventSplitter
from tests.gateway.behind import behind
from tests.gateway.upstream import Fault

PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")
KEYS = st.sampled_from(
    [
        "model", "messages", "input", "role", "content", "type", "text", "tools", "tool_calls", "tool_call_id", "user", "metadata",
        "user_id", "previous_response_id", "stream", "max_tokens", "system", "instructions", "id", "function", "name", "arguments",
    ]
)  # fmt: skip
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
)
VALUES = st.recursive(
    st.one_of(st.sampled_from(["user", "assistant", "tool", "gpt-5", "call_1", "x"]), PLAIN),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with (
        behind(lambda _: Fault(status=400), tmp_path_factory.mktemp("gateway")) as here,
        httpx.Client() as client,
    ):
        yield here.url, client


@given(st.sampled_from(PATHS), st.dictionaries(KEYS, VALUES, max_size=6))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_body_reaches_the_provider(gateway, path, body):
    """Its answer comes back, whatever the body is."""
    url, client = gateway
    text = json.dumps(body)
    answer = client.post(f"{url}{path}", content=text, headers={"content-type": "application/json"})
    assert 400 == answer.status_code, answer.text
    assert "overloaded_error" in answer.text


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_a_stream_of_anything_is_read(pieces):
    """In pieces of any size, the same events come out as from the whole."""
    assert _read(pieces) == _read([b"".join(pieces)])


def _read(pieces):
    events = EventSplitter()
    return [(one.name, one.data) for piece in pieces for one in events.feed(piece)]
