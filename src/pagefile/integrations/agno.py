"""Agno: memory for a model, so that every agent which uses it has one.

```python
remembered = PagefileMemory(memory)
agent = Agent(model=remembered.model(model), tools=[*tools, *remembered.tools()], db=db, add_history_to_context=True)
await agent.arun("What am I allergic to?", user_id="ada", session_id="conv-1")
```
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextvars import ContextVar
from copy import copy
from functools import partial
from typing import Any, TypeVar, cast

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.engine.arguments import result_text
from pagefile.errors import MissingExtraError
from pagefile.gateway.exchanges import Json
from pagefile.integrations.door import Door, Request, Shown, Who, assistant, image, plain, result, user, whose

try:
    from agno.models.base import Model
    from agno.models.message import Message
    from agno.models.response import ModelResponse
    from agno.run.base import RunContext, RunStatus
    from agno.tools.function import Function
except ImportError as error:
    raise MissingExtraError.of("agno", "The Agno integration") from error

M = TypeVar("M", bound=Model)

#: The run whose model was asked last in this context: what its tools run inherits it.
_OUTER: ContextVar[Any] = ContextVar("pagefile_agno_run", default=None)


class PagefileMemory:
    """Every call of a model gets its window, and the call that answers makes a turn of its run.

    Whose memory it is and which conversation, is what the run says: `user_id` and `session_id`. A run that a team or a workflow
    starts for a member is asked by a model, and has no memory. With `agent.run`, give a `BlockingMemory`.

    Args:
        user_id: whose memory it is where a run does not say.
        window_tokens: memory never makes a request larger than this; by default the memory's setting.
        tools: False if the agent is not given `tools()`: then tool results stay in requests.
        timeout_s: how long a call waits for the memory before the run continues without it.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        window_tokens: int | None = None,
        tools: bool = True,
        timeout_s: float = 5.0,
    ) -> None:
        self._door = Door(memory, "agno", window_tokens=window_tokens, timeout_s=timeout_s, tools=tools)
        self._user, self._tenant = user_id, tenant
        self._blocking = isinstance(memory, BlockingMemory)

    def model(self, model: M) -> M:
        """A copy of the model whose calls have memory."""
        made: Any = copy(model)
        inner: Any = model
        made.invoke = partial(self._invoke, inner.invoke)
        made.ainvoke = partial(self._ainvoke, inner.ainvoke)
        made.invoke_stream = partial(self._stream, inner.invoke_stream)
        made.ainvoke_stream = partial(self._astream, inner.ainvoke_stream)
        return made

    def tools(self) -> list[Function]:
        """`recall`, `remember`, `load_tool_history` and so on; they answer for the user of the run that calls them."""
        return [self._tool(name, schema) for name, schema in self._door.tool_schemas().items()]

    def _tool(self, name: str, schema: dict[str, Any]) -> Function:
        def call(run_context: RunContext, **arguments: Any) -> str:
            return self._door.answer_blocking(name, arguments, self._who(run_context))

        async def acall(run_context: RunContext, **arguments: Any) -> str:
            return await self._door.answer(name, arguments, self._who(run_context))

        described = {"description": schema["description"], "parameters": schema["parameters"]}
        entry: Any = call if self._blocking else acall
        return Function(name=name, **described, entrypoint=entry, skip_entrypoint_processing=True)

    # -- model calls ------------------------------------------------------------------------------------------------------

    def _invoke(self, inner: Any, *, messages: list[Message], run_response: Any = None, **more: Any) -> Any:
        who, told = self._asked(run_response), [_told(message) for message in messages]
        request = None if who is None else self._door.request_blocking(who, told)
        said: ModelResponse = inner(messages=_sent(request, messages), run_response=run_response, **more)
        if who is not None and not said.tool_calls:
            self._door.finish_blocking(who, [*told, [assistant(_content(said))]])
        return said

    async def _ainvoke(
        self, inner: Any, *, messages: list[Message], run_response: Any = None, **more: Any
    ) -> Any:
        who, told = self._asked(run_response), [_told(message) for message in messages]
        request = None if who is None else await self._door.request(who, told)
        said: ModelResponse = await inner(
            messages=_sent(request, messages), run_response=run_response, **more
        )
        if who is not None and not said.tool_calls:
            await self._door.finish(who, [*told, [assistant(_content(said))]])
        return said

    def _stream(
        self, inner: Any, *, messages: list[Message], run_response: Any = None, **more: Any
    ) -> Iterator[Any]:
        who, told = self._asked(run_response), [_told(message) for message in messages]
        request = None if who is None else self._door.request_blocking(who, told)
        pieces: list[ModelResponse] = []
        for piece in inner(messages=_sent(request, messages), run_response=run_response, **more):
            pieces.append(piece)
            yield piece
        if who is not None and not any(piece.tool_calls for piece in pieces):
            self._door.finish_blocking(who, [*told, [assistant("".join(map(_content, pieces)))]])

    async def _astream(
        self, inner: Any, *, messages: list[Message], run_response: Any = None, **more: Any
    ) -> AsyncIterator[Any]:
        who, told = self._asked(run_response), [_told(message) for message in messages]
        request = None if who is None else await self._door.request(who, told)
        pieces: list[ModelResponse] = []
        async for piece in inner(messages=_sent(request, messages), run_response=run_response, **more):
            pieces.append(piece)
            yield piece
        if who is not None and not any(piece.tool_calls for piece in pieces):
            await self._door.finish(who, [*told, [assistant("".join(map(_content, pieces)))]])

    def _asked(self, run: Any) -> Who | None:
        """Whose question a run answers; None if another run, which is not over, started it: then a model asked."""
        outer = _OUTER.get()
        other = outer is not None and outer.run_id != getattr(run, "run_id", None)
        if other and getattr(outer, "status", None) == RunStatus.running:
            return None
        _OUTER.set(run)
        return self._who(run)

    def _who(self, run: Any) -> Who | None:
        session = getattr(run, "session_id", None)
        if session is None or getattr(run, "parent_run_id", None) is not None:
            return None
        return whose(getattr(run, "user_id", None) or self._user, session, self._tenant)


def _content(said: ModelResponse) -> str:
    if said.content is None:
        return "" if said.parsed is None else result_text(cast("Any", said.parsed))
    return said.content if isinstance(said.content, str) else result_text(cast("Any", said.content))


def _told(message: Message) -> list[Json]:
    text = message.get_content_string()
    if message.role == "tool":
        return [result(message.tool_call_id, text)]
    if message.role == "assistant":
        thought = {"reasoning_content": message.reasoning_content} if message.reasoning_content else {}
        calls = {"tool_calls": message.tool_calls} if message.tool_calls else {}
        return [{**assistant(text), **thought, **calls}]
    if message.role != "user":
        return [{"role": "system", "content": text}]
    pictures = [_picture(one) for one in message.images or ()]
    return [user([{"type": "text", "text": text}, *pictures] if pictures else text)]


def _picture(given: Any) -> Json:
    if given.url:
        return {"type": "image_url", "image_url": {"url": given.url}}
    return image(given.mime_type or "image/png", given.to_base64() or "")


def _sent(request: Request | None, own: Sequence[Message]) -> list[Message]:
    """The messages as memory shows them; the run's own are never changed, only copied."""
    if request is None:
        return list(own)
    found = [_shown(shown, own) for shown in request.shown]
    if not request.system:
        return found
    first = found[0] if found and found[0].role in {"system", "developer"} else None
    if first is None:
        return [Message(role="system", content=request.system), *found]
    text = f"{first.get_content_string()}\n\n{request.system}"
    return [first.model_copy(update={"content": text}), *found[1:]]


def _shown(shown: Shown, own: Sequence[Message]) -> Message:
    if shown.at is None:
        given = shown.message
        calls = given.get("tool_calls")
        return Message(
            role=given["role"], content=plain(given), tool_calls=calls, tool_call_id=given.get("tool_call_id")
        )
    message = own[shown.at]
    if shown.memory:
        return message.model_copy(update={"content": f"{shown.memory}\n\n{message.get_content_string()}"})
    if shown.results:
        return message.model_copy(update={"content": next(iter(shown.results.values()))})
    return message


__all__ = ["PagefileMemory"]
