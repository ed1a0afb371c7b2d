"""The proxy before another server: bulky results are paged out, everything else passes."""

import json
import subprocess
import sys
from contextlib import asynccontextmanager, suppress

import anyio
import mcp_types as types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from pagefile import Memory
from pagefile.edge.fail_open import FailOpen
from pagefile.errors import StoreUnavailableError
from pagefile.mcp.calling import Caller
from pagefile.mcp.paging import Pager
from pagefile.mcp.proxy import Proxy
from pagefile.tiers.archive import Archive
from tests.waiting import until

from . import bulky
from .clients import USER, text_of, wrapped

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=300)
    | st.sampled_from(["text", "image", "resource"])
)
KEYS = st.sampled_from(["type", "text", "resource", "data", "uri", "content", "isError"])
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
async def memory():
    async with Memory.open("memory://", embedder="none") as opened:
        yield opened


async def test_a_bulky_result_comes_back_whole(memory):
    """The model gets a placeholder and passages, and can read every character of the rest."""
    async with wrapped(memory, bulky.server()) as client:
        shown = await client.call_tool("rows", {"about": "long"})
        [page] = await memory.pages(user_id=USER)
        loaded, offset = "", 0
        while offset is not None:
            part = await client.call_tool("load_tool_history", {"uuid": page.uuid, "offset": offset})
            loaded, offset = loaded + part.structured_content["text"], part.structured_content["next"]
        found = await client.call_tool("search_tool_history", {"query": "item 700"})
    assert page.uuid in text_of(shown)
    assert len(text_of(shown)) < len(bulky.LONG) / 5
    assert shown.structured_content is None
    assert f"{bulky.LONG}\nthe end" == loaded
    assert page.uuid in text_of(found)
    assert "mcp:bulky" == page.scope.conversation


async def test_what_is_not_text_stays(memory):
    async with wrapped(memory, bulky.server()) as client:
        shown = await client.call_tool("rows", {"about": "long"})
    assert ["text", "image"] == [block.type for block in shown.content]


async def test_a_short_result_passes_as_it_is(memory):
    async with wrapped(memory, bulky.server()) as client:
        shown = await client.call_tool("rows", {})
    assert ["few", "the end"] == [block.text for block in shown.content if block.type == "text"]
    assert {"rows": "few"} == shown.structured_content
    assert [] == await memory.pages(user_id=USER)


async def test_the_servers_tools_stay_and_ours_come_last(memory):
    """Without the promise of a structured result, to which clients would hold it."""
    async with wrapped(memory, bulky.server()) as client:
        tools = (await client.list_tools()).tools
    assert ["rows", "ask", "slow", "search_tool_history", "load_tool_history"] == [one.name for one in tools]
    assert tools[0].output_schema is None


async def test_where_the_server_has_such_a_tool_of_its_own_its_results_stay_whole(memory):
    """Nothing could bring them back: a call of the tool is the server's."""
    async with wrapped(memory, bulky.server(loads=True)) as client:
        names = [one.name for one in (await client.list_tools()).tools]
        shown = await client.call_tool("rows", {"about": "long"})
    assert 1 == names.count("load_tool_history")
    assert f"{bulky.LONG}\nthe end" == text_of(shown)


async def test_what_the_server_asks_of_the_client_passes(memory):
    async def sampled(_ctx, params):
        said = types.TextContent(type="text", text=f"{params.messages[0].content.text} from the model")
        return types.CreateMessageResult(role="assistant", content=said, model="stub")

    async def elicited(_ctx, _params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def roots(_ctx):
        return types.ListRootsResult(roots=[types.Root(uri="file:///project")])

    callbacks = {"sampling_callback": sampled, "elicitation_callback": elicited, "list_roots_callback": roots}
    async with wrapped(memory, bulky.server(), **callbacks) as client:
        said = [
            text_of(await client.call_tool("ask", {"about": about}))
            for about in ("sampling", "elicitation", "roots")
        ]
    assert ["Hello from the model", "Ada", "file:///project"] == said


async def test_progress_and_cancellation_pass(memory):
    seen = []

    async def progressed(done, total, message):
        seen.append((done, total, message))

    bulky.CANCELLED.clear()
    async with wrapped(memory, bulky.server()) as client:
        await client.call_tool("slow", {}, progress_callback=progressed)
        with anyio.move_on_after(0.2):
            await client.call_tool("slow", {"about": "for ever"})
        await until(lambda: bulky.CANCELLED)
        # The connection is as good as before.
        assert "done" == text_of(await client.call_tool("slow", {}))
    assert [(1, 2, "half")] == seen
    assert ["for ever"] == bulky.CANCELLED


async def test_a_memory_that_fails_costs_no_result(memory, monkeypatch):
    async def broken(*_given, **_named):
        raise StoreUnavailableError("down")

    monkeypatch.setattr(Archive, "archived", broken)
    async with wrapped(memory, bulky.server()) as client:
        shown = await client.call_tool("rows", {"about": "long"})
    assert f"{bulky.LONG}\nthe end" == text_of(shown)


@settings(max_examples=60)
@given(
    st.fixed_dictionaries({}, optional={"content": JSON, "structuredContent": JSON, "isError": JSON}),
    st.dictionaries(st.text(max_size=5), JSON, max_size=3),
)
def test_a_result_of_any_shape_passes_or_is_paged_out(result, arguments):
    async def tried():
        async with Memory.open("memory://", embedder="none") as memory:
            pager = Pager(Caller(memory, USER), 50)
            return await pager.shortened("tool", arguments, result)

    shown = anyio.run(tried)
    json.dumps(shown)
    assert set(shown) - {"content"} <= set(result)


@asynccontextmanager
async def between(memory):
    """The streams of a client and of a server, with the proxy in between, for messages that no client of the SDK sends."""
    proxy = Proxy(Caller(memory, USER), FailOpen(memory, "mcp"), 200)
    async with (
        create_client_server_memory_streams() as (client, before),
        create_client_server_memory_streams() as (behind, server),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(proxy.run, before, behind)
        with anyio.fail_after(10):
            yield client, server
        tasks.cancel_scope.cancel()


def request(number, method, **params):
    return SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params))


def unreadable(text):
    """What a transport of the SDK hands on for a line that it cannot read."""
    with pytest.raises(ValueError) as raised:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    return raised.value


async def test_half_a_character_costs_no_answer(memory):
    """JavaScript cuts texts within characters, and sends what is left: the client would wait for ever."""
    async with between(memory) as ((received, sent), (asked, answers)):
        await sent.send(request(1, "tools/call", name="rows", arguments={}))
        await asked.receive()
        half = '{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "cut \\ud83d"}]}}'
        await answers.send(unreadable(half))
        got = (await received.receive()).message
    assert "cut \ufffd" == got.result["content"][0]["text"]


async def test_a_line_that_is_not_a_message_is_left_out(memory):
    async with between(memory) as ((received, sent), (asked, answers)):
        await answers.send(unreadable("Server is running"))
        await answers.send(unreadable("[" * 100_000))
        await sent.send(request(1, "ping"))
        await asked.receive()
        await answers.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={})))
        assert 1 == (await received.receive()).message.id


async def test_what_a_server_leaves_open_when_it_ends_is_answered(memory):
    async with between(memory) as ((received, sent), (asked, answers)):
        note = types.JSONRPCNotification(
            jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 3}
        )
        for message in (
            request(1, "resources/read", uri="x://y"),
            request(2, "tools/call", name="rows", arguments={}),
            request(3, "tools/call", name="rows", arguments={}),
            SessionMessage(note),
        ):
            await sent.send(message)
            await asked.receive()
        long = {"content": [{"type": "text", "text": bulky.LONG}]}
        await answers.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=2, result=long)))
        await answers.aclose()
        got = [(await received.receive()).message for _ in range(2)]
    # What came before the end is still archived; what was cancelled is not answered.
    [page] = await memory.pages(user_id=USER)
    assert page.uuid in got[0].result["content"][0]["text"]
    assert (1, "The MCP server behind Pagefile has ended.") == (got[1].id, got[1].error.message)


async def test_a_memory_that_fails_ends_no_connection(memory, monkeypatch):
    async def broken(*_given, **_named):
        raise RuntimeError("out of order")

    monkeypatch.setattr(Caller, "call", broken)
    async with wrapped(memory, bulky.server()) as client:
        shown = await client.call_tool("load_tool_history", {"uuid": "x"})
        assert shown.is_error
        assert "few" in text_of(await client.call_tool("rows", {}))


def test_the_process_ends_with_its_client(tmp_path):
    """It outlived it, and so did the server behind it."""
    asked = [sys.executable, "-m", "pagefile", "mcp", "wrap", "--db", str(tmp_path / "m.db"), "--", "cat"]
    done = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert 0 == done.returncode


BEGIN = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}\n'


SECOND = '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "rows"}}\n'


def wrapping(tmp_path, *target, lines=(BEGIN, SECOND)):
    """What the command answers to a client that waits for each answer, and what it says beside that."""
    asked = [sys.executable, "-m", "pagefile", "mcp", "wrap", "--db", str(tmp_path / "m.db"), *target]
    answers = []
    with subprocess.Popen(asked, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        with suppress(BrokenPipeError):
            for line in lines:
                process.stdin.write(line)
                process.stdin.flush()
                answers.append(process.stdout.readline())
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(timeout=60)
        return process.returncode, [json.loads(one) for one in answers if one], process.stderr.read()


def test_a_command_that_is_not_there_is_said_in_one_line(tmp_path):
    """A client shows what the server writes to standard error: a traceback says nothing to its user."""
    code, _, said = wrapping(tmp_path, "--", "no-such-server", "--flag")
    assert 0 != code
    assert "error: There is no command 'no-such-server'" in said
    assert "Traceback" not in said


def test_a_server_that_cannot_be_reached_is_said_to_the_client(tmp_path):
    code, answers, said = wrapping(tmp_path, "http://127.0.0.1:9/mcp")
    assert 0 != code
    assert [1, 2] == [one["id"] for one in answers]
    assert all("http://127.0.0.1:9/mcp cannot be reached" in one["error"]["message"] for one in answers)
    assert "error: The MCP server http://127.0.0.1:9/mcp cannot be reached" in said
    assert "Traceback" not in said


def test_a_server_that_ends_at_once_leaves_no_request_open(tmp_path):
    """The client learns it from the answers, also to what it asks later."""
    code, answers, said = wrapping(tmp_path, "--", "true")
    assert (0, [1, 2]) == (code, [one["id"] for one in answers])
    assert {"The MCP server behind Pagefile has ended."} == {one["error"]["message"] for one in answers}
    assert "Traceback" not in said
