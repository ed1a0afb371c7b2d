"""A proxy before any MCP server: its bulky results are paged out, for clients that know nothing of Pagefile.

Messages pass as they came, in both directions: requests of the server (sampling, elicitation, roots), notifications, progress and
cancellation included. Only three are changed: results of `tools/call`, the list of tools, which gains those that bring a page back,
and calls of these.
"""

import json
import logging
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

import anyio
import httpx2
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from pydantic import ValidationError

from pagefile.edge.fail_open import FailOpen
from pagefile.errors import PagefileError, SettingsError
from pagefile.lru import Lru
from pagefile.mcp.calling import Answered, Caller
from pagefile.mcp.paging import Pager, without_output_schemas
from pagefile.mcp.tools import listed
from pagefile.records import MAX_ID_CHARS
from pagefile.shapes.skeleton import as_list, as_object
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL

logger = logging.getLogger("pagefile.mcp")

_OURS = (LOAD_TOOL, SEARCH_TOOL)
#: Requests whose answers are awaited; a client that sends more gets the oldest unchanged.
_PENDING = 10_000
#: The longest message of a server over HTTP, and how long it may be silent: a tool may take long.
_MAX_EVENT_BYTES, _TIMEOUT_S = 64_000_000, 3600.0
_CANCELLED = "notifications/cancelled"
_ENDED = "The MCP server behind Pagefile has ended."
_VERSION_HEADER = "mcp-protocol-version"

Streams = AbstractAsyncContextManager[Any]


@dataclass(slots=True)
class Proxy:
    """One client and one server."""

    caller: Caller
    failing: FailOpen
    #: Longer results are paged out.
    max_tokens: int
    #: Whether results are archived in a conversation that is named after the server.
    names_conversation: bool = True
    #: Over HTTP, requests name the version that was agreed on; over pipes there are no headers.
    over_http: bool = False
    _calls: Lru[types.RequestId, types.JSONRPCRequest] = field(default_factory=lambda: Lru(_PENDING))
    _version: str | None = None
    #: Why there is no server any more.
    _gone: str | None = None
    #: Ours, unless the server has tools with the same names.
    _tools: frozenset[str] = frozenset(_OURS)

    async def run(self, client: Any, server: Any) -> None:
        """Carry messages until the client closes. Where the server ends first, what it leaves open is answered, and what comes after."""
        (from_client, to_client), (from_server, to_server) = client, server
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._upwards, tasks, from_client, to_client, to_server)
            async with anyio.create_task_group() as changing:
                await self._downwards(changing, from_server, to_client)
            # The server is gone, and what it said last was handed on.
            await self._give_up(to_client, _ENDED)

    async def refuse(self, client: Any, why: str) -> None:
        """Answer a client without a server until it closes: pages can still be loaded."""
        from_client, to_client = client
        await self._give_up(to_client, why)
        async with anyio.create_task_group() as tasks:
            await self._upwards(tasks, from_client, to_client, None)

    async def _give_up(self, back: Any, why: str) -> None:
        """Answer what the server leaves open: a client may wait for ever."""
        self._gone = why
        for call in list(self._calls):
            await self._refused(call, back)
        self._calls.clear()

    async def _refused(self, call: types.RequestId, back: Any) -> None:
        gone = types.ErrorData(code=types.CONNECTION_CLOSED, message=str(self._gone))
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await back.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=call, error=gone)))

    async def _upwards(self, tasks: TaskGroup, received: Any, back: Any, onwards: Any) -> None:
        async for given in received:
            message = _message(given)
            if message is None:
                logger.warning("a message of the client is not JSON-RPC and is left out: %s", given)
                continue
            if isinstance(message, types.JSONRPCRequest):
                if self._is_ours(message):
                    tasks.start_soon(self._answer, message, back)
                    continue
                if self._gone is not None:
                    await self._refused(message.id, back)
                    continue
                if self.over_http and message.method == "server/discover":
                    # Without a handshake, each request has headers of its own: the client falls back to it.
                    unknown = types.ErrorData(code=types.METHOD_NOT_FOUND, message="Method not found")
                    refusal = types.JSONRPCError(jsonrpc="2.0", id=message.id, error=unknown)
                    await back.send(SessionMessage(refusal))
                    continue
                self._calls[message.id] = message
            elif isinstance(message, types.JSONRPCNotification) and message.method == _CANCELLED:
                cancelled = (message.params or {}).get("requestId")
                self._calls.pop(cancelled if isinstance(cancelled, str | int) else "", None)
            if self._gone is None:
                # Where the server has ended, `_downwards` notices as well.
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await onwards.send(SessionMessage(message, self._headers()))
        # The client is gone: the server is stopped with the block.
        tasks.cancel_scope.cancel()

    def _is_ours(self, message: types.JSONRPCRequest) -> bool:
        return message.method == "tools/call" and (message.params or {}).get("name") in self._tools

    def _headers(self) -> ClientMessageMetadata | None:
        if not self.over_http or self._version is None:
            return None
        return ClientMessageMetadata(headers={_VERSION_HEADER: self._version})

    async def _downwards(self, tasks: TaskGroup, received: Any, onwards: Any) -> None:
        async for given in received:
            message = _message(given)
            if message is None:
                logger.warning("a message of the server is not JSON-RPC and is left out: %s", given)
                continue
            call = None
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
                call = self._calls.pop(message.id, None)
            if call is None or not isinstance(message, types.JSONRPCResponse):
                await onwards.send(SessionMessage(message))
            elif call.method == "initialize":
                self._begun(message.result)
                await onwards.send(SessionMessage(message))
            elif call.method not in {"tools/call", "tools/list"}:
                await onwards.send(SessionMessage(message))
            else:
                # Beside it, so that a result which takes long to archive holds up nothing else.
                tasks.start_soon(self._changed, call, message, onwards)

    def _begun(self, result: Mapping[str, Any]) -> None:
        self._version = str(result.get("protocolVersion"))
        name = (as_object(result.get("serverInfo")) or {}).get("name")
        if self.names_conversation and isinstance(name, str) and name.strip():
            self.caller = replace(self.caller, conversation_id=f"mcp:{name}"[:MAX_ID_CHARS])

    async def _changed(self, call: types.JSONRPCRequest, answer: types.JSONRPCResponse, onwards: Any) -> None:
        if call.method == "tools/list":
            result = self._with_ours(answer.result)
        elif LOAD_TOOL not in self._tools:
            # Nothing could bring it back.
            result = answer.result
        else:
            given = call.params or {}
            tool, arguments = str(given.get("name")), as_object(given.get("arguments")) or {}
            result = await self.failing.attempt(
                "paging out a result",
                lambda: Pager(self.caller, self.max_tokens).shortened(tool, arguments, answer.result),
                answer.result,
            )
        await onwards.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=answer.id, result=result)))

    def _with_ours(self, result: Mapping[str, Any]) -> dict[str, Any]:
        tools = list(without_output_schemas(result.get("tools")))
        theirs = {(as_object(tool) or {}).get("name") for tool in tools}
        self._tools -= theirs
        if as_list(result.get("tools")) is None or result.get("nextCursor"):
            return {**result, "tools": tools}
        language = self.caller.memory.engine.languages.default(None)
        ours = [
            tool.model_dump(by_alias=True, exclude_none=True, mode="json")
            for tool in listed(language)
            if tool.name in self._tools
        ]
        return {**result, "tools": [*tools, *ours]}

    async def _answer(self, call: types.JSONRPCRequest, back: Any) -> None:
        given = call.params or {}
        tool, arguments = str(given.get("name")), as_object(given.get("arguments")) or {}
        answered = await self.failing.attempt(
            "bringing a result back",
            lambda: self.caller.call(tool, arguments),
            Answered("The memory does not answer: try again later.", failed=True),
        )
        result: dict[str, Any] = {
            "content": [{"type": "text", "text": answered.text}],
            "isError": answered.failed,
        }
        if answered.structured is not None:
            result["structuredContent"] = answered.structured
        await back.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=call.id, result=result)))


def _message(given: object) -> types.JSONRPCMessage | None:
    """A message as it was received; None if it is not one.

    Programs that cut a text within a character send half of it, which the SDK refuses: a replacement character takes its place.
    """
    if isinstance(given, SessionMessage):
        return given.message
    raw = given.errors(include_url=False)[0]["input"] if isinstance(given, ValidationError) else None
    if not isinstance(raw, str | bytes):
        return None
    try:
        text = json.dumps(json.loads(raw), ensure_ascii=False)
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return types.jsonrpc_message_adapter.validate_json(whole, by_name=False)
    except (ValueError, RecursionError):
        return None


# -- the two sides ----------------------------------------------------------------------------------------------------


def is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def upstream(
    target: Sequence[str], environment: Mapping[str, str], headers: Mapping[str, str]
) -> AbstractAsyncContextManager[Any]:
    """The streams of the server: a command with its arguments, or a URL."""
    if is_url(target[0]):
        if len(target) > 1:
            raise SettingsError(
                f"After the URL {target[0]!r} nothing else is expected: {' '.join(target[1:])}."
            )
        return _over_http(target[0], headers)
    if headers:
        raise SettingsError("Headers are for a server behind a URL: a command gets its environment.")
    if shutil.which(target[0], path=environment.get("PATH")) is None:
        raise SettingsError(
            f"There is no command {target[0]!r}: name one that this shell finds, or give its whole path."
        )
    return stdio_client(
        StdioServerParameters(
            command=target[0], args=list(target[1:]), env=dict(environment), encoding_error_handler="replace"
        ),
        sys.stderr,
    )


@asynccontextmanager
async def _over_http(url: str, headers: Mapping[str, str]) -> AsyncGenerator[Any]:
    timeout = httpx2.Timeout(_TIMEOUT_S, connect=10.0)
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=timeout) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=_MAX_EVENT_BYTES) as streams,
    ):
        yield streams


async def wrap(proxy: Proxy, server: Streams, name: str) -> None:
    """Serve one client over standard input and output, with another server behind it."""
    failure: BaseException | None = None
    async with stdio_server() as before:
        try:
            try:
                async with server as behind:
                    await proxy.run(before, behind)
            except* (OSError, httpx2.HTTPError) as group:
                failure = _first(group)
            if failure is not None:
                await proxy.refuse(before, f"The MCP server {name} cannot be reached: {failure}.")
        finally:
            # The transport writes until its stream is closed: the process would outlive its client.
            for stream in before:
                await stream.aclose()
    if failure is not None:
        raise PagefileError(f"The MCP server {name} cannot be reached: {failure}.") from failure


def _first(group: BaseException) -> BaseException:
    """The error itself, out of groups of groups."""
    return (
        _first(cast("BaseExceptionGroup[BaseException]", group).exceptions[0])
        if isinstance(group, BaseExceptionGroup)
        else group
    )
