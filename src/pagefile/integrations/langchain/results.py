"""The context of a tool call, and its result: a message, or a command that contains messages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.types import Command


def context_of(request: ToolCallRequest) -> object:
    """The context of the run that calls a tool."""
    return cast("Any", request).runtime.context


def messages_of(state: Any) -> Sequence[BaseMessage]:
    """The messages of a state, which may be a mapping, a model or a plain list."""
    if isinstance(state, list):
        return cast("list[BaseMessage]", state)
    found: Any = (
        cast("dict[str, Any]", state).get("messages")
        if isinstance(state, dict)
        else getattr(state, "messages", ())
    )
    return cast("Sequence[BaseMessage]", found or ())


def tool_messages(result: ToolMessage | Command[Any]) -> list[ToolMessage]:
    """The tool messages of a result, including those inside a command."""
    if isinstance(result, ToolMessage):
        return [result]
    return [message for message in _updated(result) if isinstance(message, ToolMessage)]


def with_messages(
    result: ToolMessage | Command[Any], changed: dict[int, ToolMessage]
) -> ToolMessage | Command[Any]:
    """The result with its tool messages replaced; unchanged if none differs."""
    if isinstance(result, ToolMessage):
        return changed.get(id(result), result)
    if all(id(message) == old for old, message in changed.items()):
        return result
    swapped = [changed.get(id(message), message) for message in _updated(result)]
    return replace(result, update={**cast("dict[str, Any]", result.update), "messages": swapped})


def _updated(command: Command[Any]) -> list[Any]:
    """The messages a command adds; empty if it updates something else."""
    update = cast("Any", command.update)
    found: Any = cast("dict[str, Any]", update).get("messages", ()) if isinstance(update, dict) else ()
    return [*cast("Sequence[Any]", found)] if isinstance(found, (list, tuple)) else [found]
