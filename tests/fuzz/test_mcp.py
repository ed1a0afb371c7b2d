"""The MCP server over HTTP with whatever a client sends: answered or refused, never an internal error, and the session goes on."""

import json

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.mcp.http_serving import McpClient, serving

from .values import JSONISH, PIECES, TEXT

METHODS = st.sampled_from(
    [
        "initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
        "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
        "server/discover", "tasks/get", "notifications/cancelled", "notifications/progress", "notifications/initialized",
    ]
)  # fmt: skip
NAMES = st.sampled_from(
    [
        "name",
        "arguments",
        "uri",
        "cursor",
        "ref",
        "argument",
        "value",
        "type",
        "_meta",
        "requestId",
        "protocolVersion",
    ]
)
SAID = st.sampled_from(
    [
        "recall", "facts", "record", "continue", "pagefile://facts", "pagefile://conversations/%00", "pagefile://pages/x", "ref/prompt",
        "conversation_id", "conversations:x", "pages:", "pages:\ud800", "pagefile://conversations/" + "x" * 5_000,
    ]
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(SAID, JSONISH, TEXT, PIECES),
    lambda inner: st.one_of(st.dictionaries(NAMES, inner, max_size=4), st.lists(inner, max_size=3)),
    max_leaves=8,
)
#: An error that is ours, not the client's.
_INTERNAL = -32603


def spelt(value):
    """As JSON, where it can be written so."""
    try:
        return json.dumps(value, default=str).encode()
    except (ValueError, TypeError, RecursionError):
        return None


def errors_in(text):
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: {", "{"))]
    return [said["error"] for line in lines if "error" in (said := json.loads(line))]


async def answered(method, params):
    body = spelt({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    if body is None:
        return
    async with serving() as (_app, http):
        client = await McpClient(http).begin()
        with anyio.fail_after(20):
            said = await http.post("/mcp", content=body, headers=client.headers)
        assert said.status_code < 500, said.text
        assert not [error for error in errors_in(said.text) if error["code"] == _INTERNAL], said.text
        assert 200 == (await client.send("ping", number=8)).status_code


@settings(max_examples=80)
@given(METHODS, st.dictionaries(NAMES, VALUES, max_size=4))
@example("tools/call", {"name": "recall", "arguments": []})
@example("resources/list", {"cursor": "conversations:\ud800"})
@example("prompts/get", {"name": "recall", "arguments": {"about": "\ud800"}})
def test_a_request_of_any_shape_is_answered(method, params):
    anyio.run(answered, method, params)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"[1]", b"\xff", b"null", b"[" * 50_000, b'{"jsonrpc": "2.0"}']
)
async def test_a_body_that_is_no_message_is_refused(body):
    async with serving() as (_app, http):
        client = await McpClient(http).begin()
        said = await http.post("/mcp", content=body, headers=client.headers)
        assert 400 <= said.status_code < 500
        assert 200 == (await client.send("ping", number=8)).status_code
