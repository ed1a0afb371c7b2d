"""LangChain and LangGraph messages, dumped or live."""

import json
from collections.abc import Mapping
from typing import Any, cast

from pagefile.errors import TransferError
from pagefile.integrations.moving.shapes import (
    Brought,
    Call,
    Said,
    content_text,
    items,
    mapping,
    text,
    turns_of,
)


def from_langchain(data: object, conversation_id: str | None = None) -> Brought:
    """A list of messages; a state or a checkpoint that contains one; or such lists keyed by session or thread id.

    A message may be a LangChain message, the output of `messages_to_dict`, `dumpd` or `model_dump`, or an OpenAI-style mapping.
    System messages are left out: they belong to the application, not to the conversation.
    """
    if isinstance(data, list | tuple):
        return turns_of(map(_said, items(cast("object", data))), conversation_id, None)
    state = mapping(mapping(data).get("channel_values") or data)
    if isinstance(state.get("messages"), list):
        return from_langchain(state["messages"], conversation_id)
    if not state or not all(isinstance(messages, list) for messages in state.values()):
        raise TransferError(
            "This is no dump of messages: give a list of them, a state with `messages`, or such lists by the id of their thread."
        )
    brought = Brought()
    for session, messages in state.items():
        brought += from_langchain(messages, session)
    return brought


def _said(message: object) -> Said:
    fields = _fields(message)
    tool = text(fields.get("name"))
    return Said(
        role=str(fields.get("role") or fields.get("type") or ""),
        text=content_text(fields.get("content")),
        id=text(fields.get("id")),
        calls=tuple(_call(mapping(call)) for call in items(fields.get("tool_calls"))),
        call_id=text(fields.get("tool_call_id")),
        tool=tool if fields.get("tool_call_id") else None,
    )


def _fields(message: object) -> Mapping[str, Any]:
    """The fields of a message in any of these formats."""
    dump = getattr(message, "model_dump", None)
    given = mapping(dump() if callable(dump) else message)
    if "data" in given:
        return {**mapping(given["data"]), "type": given.get("type")}
    if given.get("lc"):
        # `["langchain", "schema", "messages", "HumanMessage"]`: a dump may give the type only by its class.
        name = (
            str((items(given.get("id")) or ("",))[-1]).removesuffix("Chunk").removesuffix("Message").lower()
        )
        return {"type": name, **mapping(given.get("kwargs"))}
    return given


def _call(call: Mapping[str, Any]) -> Call:
    function = mapping(call.get("function"))
    given: object = function.get("arguments") if function else call.get("args")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            given = {"arguments": given}
    return Call(
        text(call.get("id")),
        str(function.get("name") or call.get("name") or "tool"),
        cast("Any", given),
    )
