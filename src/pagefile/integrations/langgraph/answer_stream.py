"""Streams the answer of any kind of model, and ends with the complete message."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    convert_to_messages,
    convert_to_openai_messages,
    message_chunk_to_message,
)
from langchain_core.runnables import Runnable

from pagefile.errors import ModelOutputError, SettingsError
from pagefile.integrations.langchain.messages import structured_text
from pagefile.ports import ChatModel, ToolCall

#: A LangChain model (with its tools bound), a `ChatModel`, or a function from the messages to an answer.
AnyModel: TypeAlias = (
    Runnable[Any, Any]
    | ChatModel
    | Callable[[list[BaseMessage]], str | BaseMessage | Awaitable[str | BaseMessage]]
)
#: Pieces of an answer, and finally all of it.
Speech: TypeAlias = AsyncGenerator[str | AIMessage]


def spoken(model: AnyModel, prompt: list[BaseMessage], callbacks: Sequence[Any] = ()) -> Speech:
    """The pieces of the answer as they arrive, and finally the message."""
    if isinstance(model, ChatModel):
        return _by_chat_model(model, prompt)
    if isinstance(model, Runnable):
        return _by_runnable(cast("Runnable[Any, Any]", model), prompt, callbacks)
    if callable(model):
        return _by_function(model, prompt)
    raise SettingsError(
        f"model is {type(model).__name__}: give a chat model of LangChain, a ChatModel or a function."
    )


async def _by_runnable(
    model: Runnable[Any, Any], prompt: list[BaseMessage], callbacks: Sequence[Any]
) -> Speech:
    whole: AIMessageChunk | None = None
    value: Any = None
    # Without explicit callbacks, the model uses those of the surrounding run.
    stream: Any = model.astream(prompt, {"callbacks": list(callbacks)} if callbacks else None)
    async with aclosing(stream) as chunks:
        async for chunk in chunks:
            if not isinstance(chunk, BaseMessage):
                # Structured output: each chunk is the whole so far, unless it is text.
                value = (value or "") + chunk if isinstance(chunk, str) else chunk
                continue
            if chunk.text:
                yield str(chunk.text)
            if not isinstance(chunk, AIMessageChunk):
                # A model that cannot stream, wrapped in a runnable that can.
                yield cast("AIMessage", chunk)
                return
            whole = chunk if whole is None else whole + chunk
    if value is not None:
        text = structured_text(value) or ""
        yield text
        yield AIMessage(text)
        return
    yield AIMessage("") if whole is None else cast("AIMessage", message_chunk_to_message(whole))


async def _by_chat_model(model: ChatModel, prompt: list[BaseMessage]) -> Speech:
    texts: list[str] = []
    calls: tuple[ToolCall, ...] = ()
    async with aclosing(model.stream(cast("Any", convert_to_openai_messages(prompt)))) as pieces:
        async for piece in pieces:
            if piece.text:
                texts.append(piece.text)
                yield piece.text
            calls += piece.calls
    yield AIMessage("".join(texts), tool_calls=[_call(call) for call in calls])


async def _by_function(model: Callable[..., Any], prompt: list[BaseMessage]) -> Speech:
    answer: Any = model(prompt)
    answer = await answer if isawaitable(answer) else answer
    message = AIMessage(answer) if isinstance(answer, str) else convert_to_messages([answer])[0]
    if not isinstance(message, AIMessage):
        raise ModelOutputError(
            f"The model returned {type(message).__name__}: an answer is an AIMessage or text."
        )
    if message.text:
        yield str(message.text)
    yield message


def _call(call: ToolCall) -> Any:
    try:
        arguments: object = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    # Arguments that are not a JSON object are passed on as text: the tool's own validation explains what is wrong.
    given = (
        cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {"arguments": call.arguments}
    )
    return {"id": call.id, "name": call.name, "args": given, "type": "tool_call"}
