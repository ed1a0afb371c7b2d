"""OpenAI's Chat Completions: messages with a role, and tool calls beside the content."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast, get_args

from pagefile.content import Media, Message, Role, ToolCall, ToolResult
from pagefile.records import Step
from pagefile.shapes.media import said_block
from pagefile.shapes.message_reader import Reader
from pagefile.shapes.skeleton import Filling, Path, as_list, as_object
from pagefile.shapes.steps import ShownStep
from pagefile.shapes.tool_arguments import compact

ROLES: Mapping[str, Role] = {**{role: role for role in get_args(Role)}, "function": "tool"}
#: Text blocks, and the key that holds the text.
TEXTS: Mapping[str, str] = {"text": "text", "refusal": "refusal"}
#: Fields in which providers return reasoning, beside the content.
_REASONING = ("reasoning_content", "reasoning")


def read(reader: Reader) -> Message:
    raw, role = reader.raw, reader.role(ROLES)
    if role == "tool":
        # The chat API has no field for errors; clients that record them use Anthropic's name for it.
        error = raw.get("is_error") is True
        call_id, tool = raw.get("tool_call_id"), raw["name"] if isinstance(raw.get("name"), str) else None
        reader.result(raw.get("content"), ("content",), call_id=call_id, tool=tool, error=error)
        return reader.message(role)
    for name in _REASONING:
        if isinstance(raw.get(name), str) and raw[name]:
            reader.reasoning([(raw[name], (name,))], {})
    reader.content(TEXTS)
    if isinstance(raw.get("refusal"), str) and raw["refusal"]:
        reader.text(raw["refusal"], ("refusal",))
    calls = raw.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise reader.refuse("has tool_calls that are not a list: give a list of calls.")
    for place, call in enumerate(as_list(calls) or ()):
        _read_call(reader, reader.mapping(call), ("tool_calls", place))
    if (legacy := as_object(raw.get("function_call"))) is not None:
        _read_function(reader, legacy, None, ("function_call",))
    if not reader.parts and raw.get("parsed") is not None:
        reader.value(raw["parsed"], ("parsed",))
    return reader.message(role)


def _read_call(reader: Reader, call: Mapping[str, Any], path: Path) -> None:
    custom, function = as_object(call.get("custom")), as_object(call.get("function"))
    if custom is not None and isinstance(custom.get("input"), str):
        tool, given = str(custom.get("name") or ""), custom["input"]
        reader.call(tool, given, call.get("id"), (*path, "custom", "input"))
    elif function is not None:
        _read_function(reader, function, call.get("id"), (*path, "function"))
    else:
        reader.other(dict(call), path)


def _read_function(reader: Reader, function: Mapping[str, Any], call_id: object, path: Path) -> None:
    tool, arguments = str(function.get("name") or ""), function.get("arguments")
    if isinstance(arguments, str):
        reader.spelled_call(tool, arguments, call_id, (*path, "arguments"))
    else:
        # Some local servers return the object itself.
        reader.call(tool, arguments, call_id, (*path, "arguments"))


# -- writing ----------------------------------------------------------------------------------------------------------


def laid_out(messages: Iterable[Message]) -> list[Message]:
    """Prepared messages split as the chat API needs them: one message per result, then a user message with the results' images."""
    found: list[Message] = []
    held: list[Media] = []
    for message in messages:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if held and not results:
            found.append(Message("user", tuple(held), found[-1].shape))
            held = []
        for part in results:
            found.append(Message("tool", (ToolResult(part.step, (), part.error),), message.shape))
            held += part.media
        rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        if rest:
            found.append(Message(message.role, rest, message.shape))
    return [*found, Message("user", tuple(held), found[-1].shape)] if held else found


def short(user: str | None, steps: Iterable[ShownStep], assistant: str | None) -> list[dict[str, Any]]:
    """A turn in its short form: the common case, with hundreds of them in a window."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": user}] if user else []
    for step in steps:
        messages += ({"role": "assistant", "content": "", "tool_calls": [_called(step)]}, _answered(step))
    if assistant:
        messages.append({"role": "assistant", "content": assistant})
    return messages


def write(message: Message, filling: Filling) -> list[dict[str, Any]]:
    """The messages for it: each result is a separate message."""
    results = [part.step for part in message.parts if isinstance(part, ToolResult)]
    if results:
        return [_answered(filling.steps[step]) for step in results]
    found = [said_block(part, message, "openai", filling.blobs) for part in message.parts]
    blocks = [block for block in found if block is not None]
    calls = [_called(filling.steps[part.step]) for part in message.parts if isinstance(part, ToolCall)]
    if not blocks and not calls and message.shape not in {"openai", "plain"}:
        return []
    spoken = {"role": message.role, "content": _content(blocks, message.role)}
    return [{**spoken, "tool_calls": calls} if calls else spoken]


def _answered(step: Step | ShownStep) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": step.call_id, "content": step.result}


def _called(step: Step | ShownStep) -> dict[str, Any]:
    function = {"name": step.tool, "arguments": compact(step.input)}
    return {"id": step.call_id, "type": "function", "function": function}


def _content(blocks: Sequence[dict[str, Any]], role: str) -> Any:
    """A plain text if possible: only user messages contain images."""
    if role != "user" or len(blocks) < 2:
        texts = [block.get("text") for block in blocks]
        if all(isinstance(text, str) for text in texts):
            return "\n".join(cast("list[str]", texts))
    return list(blocks)
