"""Whatever a client or a provider sends through the gateway is the other's to judge: none of it is a failure of ours."""

import json
from contextlib import suppress

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagefile.errors import SettingsError
from pagefile.gateway import ADAPTERS
from pagefile.gateway.prices import Prices, read_prices, usage_of
from pagefile.gateway.sse import EventSplitter
from pagefile.tiers.page_in import LOADING_TOOLS
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


PASSING = st.sampled_from(
    [
        "/v1/models", "/v1/models/gpt-5", "/v1/embeddings", "/v1/messages/count_tokens", "/v1/conversations",
        "/v1/conversations/conv_1/items", "/v1/responses/resp_1", "/v1/responses/resp_1/cancel", "/v1/files", "/v1/messages/batches",
    ]
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "x-pagefile-user",
            "x-pagefile-conversation",
            "x-pagefile-mode",
            "authorization",
            "x-api-key",
            "anthropic-beta",
        ]
    ),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=300),
    max_size=3,
)


@given(PASSING, st.binary(max_size=60))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_only_passes_arrives_as_it_was_sent(gateway, path, body):
    url, client = gateway
    answer = client.post(f"{url}{path}", content=body, headers={"content-type": "application/json"})
    assert "passed" == answer.headers["x-pagefile-status"], answer.text


@given(st.sampled_from(PATHS), HEADERS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_headers_are_used_or_refused(gateway, path, headers):
    """A name that cannot be one is a bad request of the client's, not a failure."""
    url, client = gateway
    answer = client.post(
        f"{url}{path}", json={"model": "gpt-5", "messages": [], "input": "x"}, headers=headers
    )
    assert answer.status_code in {400, 401, 403, 422}, answer.text


_NAMES = (
    [
        "", "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
        "response.created", "response.output_item.added", "response.output_item.done", "response.completed", "error",
    ]
)  # fmt: skip
EVENTS = st.sampled_from(_NAMES)
FIELDS = st.sampled_from(
    [
        "type", "id", "choices", "delta", "index", "message", "usage", "content", "content_block", "response", "output", "item",
        "output_index", "finish_reason", "stop_reason", "tool_calls", "function", "name", "arguments", "sequence_number",
    ]
)  # fmt: skip
ANSWERS = st.dictionaries(
    FIELDS,
    st.recursive(
        st.one_of(
            st.sampled_from(["load_tool_history", "tool_use", "function_call", "stop", "text", *_NAMES]),
            PLAIN,
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["index", "delta", "name", "type", "function", "id", "text"]),
                inner,
                max_size=4,
            ),
        ),
        max_leaves=8,
    ),
    max_size=6,
)


@given(st.sampled_from(sorted(ADAPTERS)), st.lists(st.tuples(EVENTS, ANSWERS), max_size=6), st.booleans())
@settings(max_examples=200)
def test_an_answer_of_anything_is_read(path, answers, events):
    """As events and as a whole: it is never lost, whatever the provider says."""
    reply = ADAPTERS[path].reply(LOADING_TOOLS)
    for name, data in answers:
        head = f"event: {name}\n" if name and events else ""
        text = f"{head}data: {json.dumps(data)}\n\n" if events else json.dumps(data)
        reply.feed(text.encode(), events=events)
    ended = reply.end_round()
    assert ended.stop is None or isinstance(ended.stop, str)
    reply.released()
    usage_of(reply.usage)


@given(st.text(max_size=80))
def test_a_table_of_prices_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("prices") / "prices.toml"
    for one in (text, f'currency = "USD"\n["gpt-5"]\ninput = {text}\noutput = 1'):
        path.write_text(one, encoding="utf-8", errors="replace")
        with suppress(SettingsError):
            assert isinstance(read_prices(str(path)), Prices)


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_a_stream_of_anything_is_read(pieces):
    """In pieces of any size, the same events come out as from the whole."""
    assert _read(pieces) == _read([b"".join(pieces)])


def _read(pieces):
    events = EventSplitter()
    return [(one.name, one.data) for piece in pieces for one in events.feed(piece)]
