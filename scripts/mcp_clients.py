"""Official clients against our MCP server, and our proxy before servers that people use: prints the tables of docs/explanation/mcp.md.

    npm install --prefix DIR @modelcontextprotocol/sdk @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory \\
        @modelcontextprotocol/server-everything @modelcontextprotocol/server-sequential-thinking
    python -m venv DIR/venv && DIR/venv/bin/pip install mcp-server-git mcp-server-fetch mcp-server-time
    python -m venv DIR/older && DIR/older/bin/pip install mcp-server-sqlite 'mcp<2'
    .venv/bin/python scripts/mcp_clients.py DIR

Each server is asked twice, directly and through `pagefile mcp wrap`: what is short has to be the same, what is long has to come back
whole from its page. Fails if anything differs.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

sys.path.insert(0, str(Path(__file__).parents[1]))

from mcp_servers import LINES, PORT, Json, Server, npm_version, servers

from pagefile import Settings
from pagefile.settings.sources import child_environment
from tests.acceptance.http_server import listening

_PAGEFILE = [sys.executable, "-m", "pagefile", "mcp"]
_OURS = {"load_tool_history", "search_tool_history"}
_MAX_TOKENS = 400
#: What servers say beside their answers.
_SILENT = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the script


# -- official clients ---------------------------------------------------------------------------------------------------


async def _python_client(session: ClientSession) -> Json:
    done: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        done.append(progress)

    async def call(name: str, **arguments: Any) -> types.CallToolResult:
        answer = await session.call_tool(name, arguments, progress_callback=progressed)
        assert isinstance(answer, types.CallToolResult)
        return answer

    tools = (await session.list_tools()).tools
    await call("remember", text="The user drinks tea")
    await call("record", user="My cat is called Miso.", assistant="A fine name.")
    recalled, facts = await call("recall", query="What is my cat called?"), await call("facts")
    refused = await call("recall", user_id="eve", query="x")
    resources = (await session.list_resources()).resources
    read = (await session.read_resource("pagefile://facts")).contents[0]
    prompts = (await session.list_prompts()).prompts
    prompt = (await session.get_prompt("recall", {"about": "cat"})).messages[0].content
    reference = types.PromptReference(type="ref/prompt", name="continue")
    completed = await session.complete(reference, {"name": "conversation_id", "value": "m"})
    with anyio.move_on_after(0):
        await call("context", query="cat")
    return {
        "tools": len(tools),
        "recalled": (recalled.structured_content or {})["items"][0]["text"],
        "facts": [one["text"] for one in (facts.structured_content or {})["items"]],
        "refused": refused.is_error,
        "resources": len(resources),
        "read": "tea" in getattr(read, "text", ""),
        "prompts": len(prompts),
        "prompted": "Miso" in getattr(prompt, "text", ""),
        "completed": completed.completion.values,
        "progressed": bool(done),
        "cancelled": not (await call("facts")).is_error,
    }


#: What every client has to see.
_SEEN: Json = {
    "tools": 9,
    "recalled": "My cat is called Miso.\nA fine name.",
    "facts": ["The user drinks tea"],
    "refused": True,
    "resources": 2,
    "read": True,
    "prompts": 3,
    "prompted": True,
    "completed": ["mcp"],
    "progressed": True,
    "cancelled": True,
}


def _javascript_client(modules: Path, target: Sequence[str]) -> Json:
    node = shutil.which("node") or "node"
    script = Path(__file__).parent / "clients" / "mcp.mjs"
    asked = [node, str(script), *target]
    done = subprocess.run(  # noqa: S603 - as the user named it
        asked,
        env={**child_environment(), "NODE_MODULES": str(modules)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def _clients(folder: Path) -> bool:
    modules, good = folder / "node_modules", True
    print("| client | version | transport | what was exchanged |\n|---|---|---|---|")
    for transport in ("standard input and output", "HTTP"):
        for name, number in (
            ("MCP Python SDK", version("mcp")),
            ("@modelcontextprotocol/sdk (npm)", npm_version(modules, "@modelcontextprotocol/sdk")),
        ):
            with tempfile.TemporaryDirectory() as data:
                seen = _seen(modules, name, transport, data)
            changed = seen.pop("changed", True)
            wrong = [key for key in _SEEN if seen.get(key) != _SEEN[key]] + ([] if changed else ["changed"])
            good = good and not wrong
            told = "WRONG: " + json.dumps({key: seen.get(key) for key in wrong}) if wrong else _told(seen)
            print(f"| {name} | {number} | {transport} | {told} |", flush=True)
    return good


def _seen(modules: Path, name: str, transport: str, data: str) -> Json:
    stdio = [*_PAGEFILE, "--db", f"{data}/memory.db"]
    if transport != "HTTP":
        return _javascript_client(modules, stdio) if "npm" in name else anyio.run(_over_stdio, stdio)
    with listening(Settings(url=f"sqlite:///{data}/memory.db")) as url:
        target = f"{url}/mcp"
        return _javascript_client(modules, [target]) if "npm" in name else anyio.run(_over_http, target)


def _told(seen: Mapping[str, Any]) -> str:
    return (
        f"{seen['tools']} tools with their schemas, {seen['resources']} resources, {seen['prompts']} prompts; an exchange recorded and "
        "recalled, a fact remembered and listed, a completion, progress, a cancelled call; `user_id` refused"
    )


async def _over_stdio(command: Sequence[str]) -> Json:
    async with _session(command) as session:
        return await _python_client(session)


async def _over_http(url: str) -> Json:
    async with _http_session(url) as session:
        return await _python_client(session)


# -- servers behind the proxy ---------------------------------------------------------------------------------------------


async def _sampled(_ctx: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    said = types.TextContent(type="text", text="sampled by the client")
    return types.CreateMessageResult(role="assistant", content=said, model="stub")


async def _elicited(_ctx: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})


async def _rooted(_ctx: Any) -> types.ListRootsResult:
    return types.ListRootsResult(
        roots=[types.Root.model_validate({"uri": "file:///project", "name": "project"})]
    )


_CALLBACKS: Json = {
    "sampling_callback": _sampled,
    "elicitation_callback": _elicited,
    "list_roots_callback": _rooted,
}


@asynccontextmanager
async def _session(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(
        command=command[0], args=[*command[1:]], env={**child_environment(), **(environment or {})}
    )

    async with (
        stdio_client(server, _SILENT) as streams,
        ClientSession(*streams, **_CALLBACKS) as session,
    ):
        await session.initialize()
        yield session


@asynccontextmanager
async def _http_session(url: str) -> AsyncIterator[ClientSession]:
    async with streamable_http_client(url) as streams, ClientSession(*streams[:2], **_CALLBACKS) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def _running(server: Server) -> AsyncIterator[None]:
    """The process of a server that is asked over HTTP, from when it listens."""
    environment = {**child_environment(), **server.environment}
    async with await anyio.open_process(
        server.command, stdout=_SILENT, stderr=_SILENT, env=environment
    ) as process:
        for _ in range(100):
            try:
                async with await anyio.connect_tcp("127.0.0.1", PORT):
                    break
            except OSError:
                await anyio.sleep(0.2)
        yield
        process.terminate()


def _direct(server: Server) -> AbstractAsyncContextManager[ClientSession]:
    return _http_session(server.url) if server.url else _session(server.command, server.environment)


def _text(answer: Any) -> str:
    return "\n".join(block.text for block in answer.content if block.type == "text")


async def _tried(server: Server, data: Path) -> str:
    """What was exchanged, in words; raises where the proxy changed what it should not."""
    if server.url is None:
        return await _compared(server, data)
    async with _running(server):
        return "over HTTP; " + await _compared(server, data)


async def _compared(server: Server, data: Path) -> str:
    wrap = [
        *_PAGEFILE,
        "wrap",
        "--db",
        str(data.with_suffix(".db")),
        "--max-tokens",
        str(_MAX_TOKENS),
        *([server.url] if server.url else ["--", *server.command]),
    ]
    async with _direct(server) as direct:
        for name, arguments in server.before:
            await direct.call_tool(name, arguments)
        plain = [await _asked(direct, call) for call in (server.short, server.long)]
        theirs = [tool.name for tool in (await direct.list_tools()).tools]
        also = await _asks(direct) if server.asks else []
    async with _session(wrap, server.environment) as wrapped:
        tools = [tool.name for tool in (await wrapped.list_tools()).tools]
        assert [*theirs, *sorted(_OURS, reverse=True)] == tools, tools
        short = await _asked(wrapped, server.short)
        assert plain[0] == short, (plain[0], short)
        told = [f"{len(theirs)} tool{'s' * (len(theirs) > 1)}; `{server.short[0]}` unchanged"]
        if server.asks:
            assert also == (again := await _asks(wrapped)), (also, again)
            told.append("the same as without it: " + ", ".join(name for name, _ in also))
        if server.long is not None and plain[1] is not None:
            shown = _text(await wrapped.call_tool(*server.long))
            whole = await _loaded(wrapped, shown)
            assert plain[1]["text"] == whole, (len(plain[1]["text"]), len(whole))
            told.append(
                f"`{server.long[0]}`: {len(whole):,} characters paged out to {len(shown):,}, and loaded whole"
            )
    return "; ".join(told)


async def _asked(session: ClientSession, call: tuple[str, Json] | None) -> Json | None:
    if call is None:
        return None
    answer = await session.call_tool(*call)
    assert isinstance(answer, types.CallToolResult)
    return {"text": _text(answer), "structured": answer.structured_content, "error": bool(answer.is_error)}


async def _loaded(session: ClientSession, shown: str) -> str:
    """The whole text behind a placeholder."""
    uuid = shown.partition('load_tool_history(uuid="')[2].partition('"')[0]
    whole, offset = "", 0
    while offset is not None:
        part = await session.call_tool("load_tool_history", {"uuid": uuid, "offset": offset})
        assert isinstance(part, types.CallToolResult)
        assert part.structured_content is not None, _text(part)
        whole, offset = whole + part.structured_content["text"], part.structured_content["next"]
    return whole


async def _asks(session: ClientSession) -> list[tuple[str, str]]:
    """What the everything server asks of its client, and what else it can do, each with the answer."""
    done: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        done.append(progress)

    found: list[tuple[str, str]] = []
    calls: list[tuple[str, str, Json]] = [
        ("sampling", "trigger-sampling-request", {"prompt": "hello", "maxTokens": 5}),
        ("elicitation", "trigger-elicitation-request", {}),
        ("roots", "get-roots-list", {}),
        ("images", "get-tiny-image", {}),
        ("links", "get-resource-links", {"count": 2}),
        ("structured results", "get-structured-content", {"location": "Chicago"}),
    ]
    for name, tool, arguments in calls:
        answer = await session.call_tool(tool, arguments)
        found.append((name, repr(answer)))
    await session.call_tool(
        "trigger-long-running-operation", {"duration": 1, "steps": 4}, progress_callback=progressed
    )
    found.append(("progress", repr(done)))
    with anyio.move_on_after(0.3):
        await session.call_tool("trigger-long-running-operation", {"duration": 20, "steps": 4})
    found.append(("cancellation", repr(await session.call_tool("echo", {"message": "still there"}))))
    resources, prompts = await session.list_resources(), await session.list_prompts()
    found.append(
        ("resources", repr(resources) + repr(await session.read_resource(resources.resources[0].uri)))
    )
    found.append(("prompts", repr(prompts) + repr(await session.get_prompt("simple-prompt"))))
    return found


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - as in its base


def _proxied(folder: Path) -> bool:
    print("\n| server | version | what was exchanged |\n|---|---|---|")
    good = True
    with tempfile.TemporaryDirectory() as kept:
        data = Path(kept).resolve() / "data"
        data.mkdir()
        site = data / "site"
        site.mkdir()
        (site / "page.txt").write_text(LINES, encoding="utf-8")
        pages = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
        Thread(target=pages.serve_forever, daemon=True).start()
        for server in servers(folder, data, f"http://127.0.0.1:{pages.server_port}/page.txt"):
            try:
                told = anyio.run(_tried, server, data)
            except* (AssertionError, KeyError) as wrong:
                good, told = False, f"WRONG: {wrong.exceptions[0]!r}"[:600]
            print(f"| {server.package} | {server.version} | {told} |", flush=True)
        pages.shutdown()
    return good


if __name__ == "__main__":
    where = Path(sys.argv[1]).resolve()
    sys.exit(0 if all([_clients(where), _proxied(where)]) else 1)
