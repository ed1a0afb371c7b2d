"""The answer of any kind of model, streamed in pieces, and finally the complete message."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, utils
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.retry import RunnableRetry

from pagefile.errors import ModelOutputError, SettingsError
from pagefile.integrations.langchain.messages import structured_text
from pagefile.ports import ChatModel, ToolCall
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone.user_code import called

Answer: TypeAlias = str | BaseMessage
#: A LangChain model (with its tools bound), a `ChatModel`, or a function from the messages to an answer.
AnyModel: TypeAlias = (
    Runnable[Any, Any] | ChatModel | Callable[[list[BaseMessage]], Answer | Awaitable[Answer]]
)
#: Pieces of an answer, and finally all of it.
Speech: TypeAlias = AsyncGenerator[str | AIMessage]


#: The JSON schemas of tools that a model is offered, by their names.
Tools: TypeAlias = Mapping[str, dict[str, Any]]


def spoken(
    model: AnyModel,
    prompt: list[BaseMessage],
    callbacks: Sequence[Any] = (),
    *,
    tools: Tools | None = None,
    blocking: bool = False,
) -> Speech:
    """`blocking` calls a LangChain model synchronously, for a run without an event loop of its own."""
    if isinstance(model, ChatModel):
        return _by_chat_model(model, prompt, tools or {})
    if isinstance(model, Runnable):
        offering = with_tools(cast("Runnable[Any, Any]", model), tools or {})
        config: Any = {"callbacks": list(callbacks)} if callbacks else None
        if retries(offering):
            return _at_once(offering, prompt, config, blocking=blocking)
        # Without explicit callbacks, the model uses those of the surrounding run.
        return _by_runnable(
            _blocking(offering, prompt, config) if blocking else offering.astream(prompt, config)
        )
    if callable(model):
        return _by_function(model, prompt)
    raise SettingsError(
        f"model is {type(model).__name__}: give a chat model of LangChain, a ChatModel or a function."
    )


def retries(model: Runnable[Any, Any]) -> bool:
    """Whether it tries again after a failure, which LangChain does for whole answers only, never for streams."""
    inner: list[Any] = [*getattr(model, "steps", ()), *getattr(model, "runnables", ())]
    inner += [model.bound] if isinstance(model, RunnableBindingBase) else []
    return isinstance(model, RunnableRetry) or any(map(retries, inner))


def with_tools(model: Runnable[Any, Any], tools: Tools) -> Runnable[Any, Any]:
    """The model with these tools added to its own; unchanged if it takes no tools, as with structured output."""
    if isinstance(model, RunnableBindingBase):
        offering = with_tools(cast("Any", model).bound, tools)
        own: list[Any] = list(model.kwargs.get("tools", ()))
        if own and isinstance(offering, RunnableBindingBase):
            offering = offering.bind(tools=[*own, *_bound_tools(offering)])
            return offering.bind(**{name: value for name, value in model.kwargs.items() if name != "tools"})
        return model.model_copy(update={"bound": offering})
    if not tools or not isinstance(model, BaseChatModel):
        return model
    with suppress(NotImplementedError):
        return cast("Any", model).bind_tools(
            [{"type": "function", "function": tool} for tool in tools.values()]
        )
    return model


def _bound_tools(model: Any) -> list[Any]:
    """The tools of a model in its provider's form, however deep they are bound."""
    if not isinstance(model, RunnableBindingBase):
        return []
    return list(model.kwargs.get("tools", ())) or _bound_tools(cast("Any", model).bound)


async def _blocking(model: Runnable[Any, Any], prompt: list[BaseMessage], config: Any) -> AsyncGenerator[Any]:
    for chunk in model.stream(prompt, config):
        yield chunk


async def _at_once(
    model: Runnable[Any, Any], prompt: list[BaseMessage], config: Any, *, blocking: bool
) -> Speech:
    answer: Any = model.invoke(prompt, config) if blocking else await model.ainvoke(prompt, config)
    message = answer if isinstance(answer, BaseMessage) else AIMessage(structured_text(answer) or "")
    if message.text:
        yield str(message.text)
    yield cast("AIMessage", message)


async def _by_runnable(stream: Any) -> Speech:
    whole: AIMessageChunk | None = None
    value: Any = None
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
    yield AIMessage("") if whole is None else cast("AIMessage", utils.message_chunk_to_message(whole))


async def _by_chat_model(model: ChatModel, prompt: list[BaseMessage], tools: Tools) -> Speech:
    texts: list[str] = []
    calls: tuple[ToolCall, ...] = ()
    messages = cast("Any", utils.convert_to_openai_messages(prompt))
    async with aclosing(model.stream(messages, tools=[*tools.values()])) as pieces:
        async for piece in pieces:
            if piece.text:
                texts.append(piece.text)
                yield piece.text
            calls += piece.calls
    yield AIMessage("".join(texts), tool_calls=[_call(call) for call in calls])


async def _by_function(model: Callable[..., Any], prompt: list[BaseMessage]) -> Speech:
    answer = await called(model, prompt)
    message = AIMessage(answer) if isinstance(answer, str) else utils.convert_to_messages([answer])[0]
    if not isinstance(message, AIMessage):
        raise ModelOutputError(
            f"The model returned {type(message).__name__}: an answer is an AIMessage or text."
        )
    if message.text:
        yield str(message.text)
    yield message


def _call(call: ToolCall) -> Any:
    arguments, _ = read_arguments(call.arguments)
    # Arguments that are not a JSON object are passed on as text: the tool's own validation explains what is wrong.
    given = arguments if isinstance(arguments, dict) else {"arguments": call.arguments}
    return {"id": call.id, "name": call.name, "args": given, "type": "tool_call"}
