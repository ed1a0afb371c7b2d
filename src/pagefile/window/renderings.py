"""The parts of a window in the shapes that providers take: OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, plain text.

What every rendering keeps to: a call is answered right after the message that makes it, roles are those the provider knows, and no
message is empty. Reasoning goes back only to the provider that sealed it, and only within the running turn.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pagefile.content import Media, Other, Part, Reasoning, Shape, Text, ToolCall, ToolResult
from pagefile.content import Message as Said
from pagefile.records import JsonValue
from pagefile.text.scripts import language
from pagefile.window.candidates import Message
from pagefile.window.media import media_block, text_block
from pagefile.window.parts import Parts
from pagefile.window.render import Language, step_arguments
from pagefile.window.shown import ShownStep, ShownTurn, own_call_id

_SPEAKERS: Mapping[Language, Mapping[str, str]] = {
    "zh": {"user": "用户", "assistant": "AI", "tool": "工具", "system": "系统", "developer": "系统"},
    "en": {"user": "User", "assistant": "AI", "tool": "Tool", "system": "System", "developer": "System"},
}
#: What Anthropic takes in a call id.
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
#: Anthropic's first message has to be a user's.
_OPENING = "…"

Blobs = Mapping[str, bytes]


# -- OpenAI Chat Completions --------------------------------------------------------------------------------------------


def chat(parts: Parts) -> tuple[list[Message], int]:
    """The messages, and how many of them come before the memory block and the current message."""
    system, memory = parts.system, parts.beside
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    blobs = parts.blobs
    for turn in parts.turns:
        messages += chat_turn(turn, blobs)
    prefix = len(messages)
    if memory:
        messages.append({"role": "user", "content": memory})
    if parts.current is not None:
        messages += chat_turn(parts.current, parts.blobs)
    return messages, prefix


def chat_turn(shown: ShownTurn, blobs: Blobs) -> list[Message]:
    """A turn as chat messages."""
    if shown.layout is not None:
        return _chat_layout(shown.layout, shown.steps, blobs)
    messages: list[Message] = [{"role": "user", "content": shown.user}] if shown.user else []
    if shown.steps:
        for step in shown.steps.values():
            messages += (_chat_calls("", (step,)), _chat_result(step))
    if shown.assistant:
        messages.append({"role": "assistant", "content": shown.assistant})
    return messages


def _chat_layout(layout: Sequence[Said], steps: Mapping[int, ShownStep], blobs: Blobs) -> list[Message]:
    messages: list[Message] = []
    held: list[JsonValue] = []
    for said in layout:
        results = [part for part in said.parts if isinstance(part, ToolResult)]
        if held and not results:
            messages.append({"role": "user", "content": held})
            held = []
        for part in results:
            messages.append(_chat_result(steps[part.step]))
            # A tool's message takes only text: what else came with it follows as the user's.
            held += [media_block(media, "openai", blobs) for media in part.media]
        messages += _chat_said(said, steps, blobs)
    return [*messages, {"role": "user", "content": held}] if held else messages


def _chat_said(said: Said, steps: Mapping[int, ShownStep], blobs: Blobs) -> Iterator[Message]:
    """What a message says beside results."""
    calls = [steps[part.step] for part in said.parts if isinstance(part, ToolCall)]
    if said.role == "assistant":
        text = said.text
        if calls:
            yield _chat_calls(text, calls)
        elif text.strip():
            yield {"role": "assistant", "content": text}
        return
    content = _content(said, "openai", blobs)
    if content:
        yield {"role": "user" if said.role == "tool" else said.role, "content": content}


def _chat_calls(text: str, steps: Sequence[ShownStep]) -> Message:
    calls: list[JsonValue] = [
        {
            "id": step.call_id,
            "type": "function",
            "function": {"name": step.tool, "arguments": step_arguments(step.input)},
        }
        for step in steps
    ]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def _chat_result(step: ShownStep) -> Message:
    return {"role": "tool", "tool_call_id": step.call_id, "content": step.result}


# -- Anthropic Messages ---------------------------------------------------------------------------------------------------


def anthropic(parts: Parts) -> tuple[str, list[Message]]:
    """The system text, and messages whose roles alternate and of which the first is a user's."""
    system = [parts.system] if parts.system else []
    messages: list[Message] = []
    for shown in _turns(parts):
        for said in shown.messages:
            if said.role in {"system", "developer"}:
                system += [said.text] if said.text else []
                continue
            role = "assistant" if said.role == "assistant" else "user"
            _add_blocks(messages, role, list(_anthropic_blocks(said, shown, parts.blobs)))
    if messages and messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": _OPENING}]})
    return "\n\n".join(system), messages


def _add_blocks(messages: list[Message], role: str, blocks: list[JsonValue]) -> None:
    if blocks and messages and messages[-1]["role"] == role:
        cast("list[JsonValue]", messages[-1]["content"]).extend(blocks)
    elif blocks:
        messages.append({"role": role, "content": blocks})


def _anthropic_blocks(said: Said, shown: ShownTurn, blobs: Blobs) -> Iterator[JsonValue]:
    for part in said.parts:
        if isinstance(part, ToolCall):
            step = shown.steps[part.step]
            given = step.input if isinstance(step.input, Mapping) else {"input": step.input}
            yield {"type": "tool_use", "id": step.call_id, "name": step.tool, "input": given}
        elif isinstance(part, ToolResult):
            yield _anthropic_result(part, shown.steps[part.step], blobs)
        elif isinstance(part, Reasoning):
            if _goes_back(said, shown, "anthropic"):
                yield {"type": "thinking", **part.sealed, **({"thinking": part.text} if part.text else {})}
        else:
            yield from _blocks(part, said, "anthropic", blobs)


def _anthropic_result(part: ToolResult, step: ShownStep, blobs: Blobs) -> JsonValue:
    content: JsonValue = step.result
    if part.media:
        texts: list[JsonValue] = [{"type": "text", "text": step.result}] if step.result.strip() else []
        content = [*texts, *(media_block(media, "anthropic", blobs) for media in part.media)]
    failed: dict[str, JsonValue] = {"is_error": True} if part.error else {}
    return {"type": "tool_result", "tool_use_id": step.call_id, "content": content, **failed}


# -- OpenAI Responses -------------------------------------------------------------------------------------------------------


def responses(parts: Parts) -> tuple[str, list[Message]]:
    """The instructions, and the input items."""
    items = [
        item
        for shown in _turns(parts)
        for said in shown.messages
        for item in _responses_items(said, shown, parts.blobs)
    ]
    return parts.system, items


def _responses_items(said: Said, shown: ShownTurn, blobs: Blobs) -> Iterator[Message]:
    """Results, then what is said with whatever was thought before it, then calls."""
    for part in said.parts:
        if isinstance(part, ToolResult):
            step = shown.steps[part.step]
            yield {
                "type": "function_call_output",
                "call_id": step.call_id,
                "output": _output(part, step, blobs),
            }
        elif isinstance(part, Reasoning) and _goes_back(said, shown, "responses"):
            yield _responses_reasoning(part)
    if said.role == "assistant":
        if said.text.strip():
            yield {"role": "assistant", "content": said.text}
    elif content := _content(said, "responses", blobs):
        yield {"role": "user" if said.role == "tool" else said.role, "content": content}
    for part in said.parts:
        if isinstance(part, ToolCall):
            step = shown.steps[part.step]
            yield {
                "type": "function_call",
                "call_id": step.call_id,
                "name": step.tool,
                "arguments": step_arguments(step.input),
            }


def _responses_reasoning(part: Reasoning) -> Message:
    summary: list[JsonValue] = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {"type": "reasoning", "summary": summary, **part.sealed}


def _output(part: ToolResult, step: ShownStep, blobs: Blobs) -> JsonValue:
    if not part.media:
        return step.result
    texts: list[JsonValue] = [{"type": "input_text", "text": step.result}] if step.result else []
    return [*texts, *(media_block(media, "responses", blobs) for media in part.media)]


# -- what they share --------------------------------------------------------------------------------------------------------


def _content(said: Said, shape: Shape, blobs: Blobs) -> JsonValue:
    """What a message says beside calls and results: a text where it is nothing more, blocks otherwise."""
    blocks = [block for part in said.parts for block in _blocks(part, said, shape, blobs)]
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} else blocks


def _blocks(part: Part, said: Said, shape: Shape, blobs: Blobs) -> Iterator[dict[str, JsonValue]]:
    match part:
        case Text(text) if text.strip():
            yield text_block(text, shape)
        case Media():
            yield media_block(part, shape, blobs)
        case Other(value) if said.shape == shape and isinstance(value, Mapping):
            yield dict(value)
        case _:
            pass


def _turns(parts: Parts) -> Iterator[ShownTurn]:
    """The turns, the memory block as a turn of its own, the running turn; no call id comes twice in all of them."""
    seen: set[str] = set()
    yield from (_with_own_ids(turn, seen) for turn in parts.turns)
    if parts.beside:
        yield ShownTurn("", "memory", parts.beside)
    if parts.current is not None:
        yield _with_own_ids(parts.current, seen)


def _with_own_ids(shown: ShownTurn, seen: set[str]) -> ShownTurn:
    if not shown.steps:
        return shown
    steps = {
        number: step._replace(call_id=own_call_id(_FOREIGN.sub("_", step.call_id), seen))
        for number, step in shown.steps.items()
    }
    return shown._replace(steps=steps)


def _goes_back(said: Said, shown: ShownTurn, shape: Shape) -> bool:
    """Whether reasoning may be sent: by the provider that sealed it, in the turn that is not answered yet."""
    return shown.form == "current" and said.shape == shape


# -- plain text -----------------------------------------------------------------------------------------------------------


def plain(parts: Parts, tongue: Language | None = None) -> str:
    """The same conversation as one text, a line a message, in the words of document 001."""
    messages, _ = chat(parts)
    names = _SPEAKERS[tongue or language("".join(text_of(message) for message in messages))]
    lines: list[str] = []
    for message in messages:
        name = names[str(message["role"])]
        for call in cast("Sequence[Mapping[str, JsonValue]]", message.get("tool_calls") or ()):
            function = cast("Mapping[str, str]", call["function"])
            lines.append(f"{name}: [{function['name']} {function['arguments']}]")
        if text := text_of(message):
            lines.append(f"{name}: {text}")
    return "\n".join(lines)


def text_of(message: Message) -> str:
    """What a chat message says; an image or a file is only named."""
    content = message["content"]
    if isinstance(content, str):
        return content
    parts = cast("Sequence[Mapping[str, JsonValue]]", content)
    return "\n".join(str(part.get("text") or f"[{part['type']}]") for part in parts)
