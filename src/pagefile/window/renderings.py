"""The parts of a window in providers' shapes: OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, plain text.

`pagefile.shapes` knows how to write a turn in each shape; here the system text, the memory block and the
question are added around the turns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pagefile.content import Message as Said
from pagefile.content import Shape
from pagefile.shapes.anthropic import alternating, beginning_with_user
from pagefile.shapes.openai import short
from pagefile.shapes.renderer import written
from pagefile.shapes.skeleton import Filling
from pagefile.shapes.steps import with_own_call_ids
from pagefile.text.sentences import language
from pagefile.window.candidates import Message, ShownTurn
from pagefile.window.parts import Parts
from pagefile.window.render import Language

_SPEAKERS: Mapping[Language, Mapping[str, str]] = {
    "zh": {"user": "用户", "assistant": "AI", "tool": "工具", "system": "系统", "developer": "系统"},
    "en": {"user": "User", "assistant": "AI", "tool": "Tool", "system": "System", "developer": "System"},
}
#: Roles whose messages become system text if a conversation has only two sides.
_INSTRUCTING = frozenset({"system", "developer"})


def chat(parts: Parts) -> tuple[list[Message], int]:
    """OpenAI's chat messages, and how many of them precede the memory block and the current message."""
    system, memory = parts.system, parts.beside
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    blobs = parts.blobs
    for turn in parts.turns:
        messages += chat_turn(turn, blobs)
    prefix = len(messages)
    if memory:
        messages.append({"role": "user", "content": memory})
    if parts.current is not None:
        messages += chat_turn(parts.current, blobs)
    return messages, prefix


def chat_turn(shown: ShownTurn, blobs: Mapping[str, bytes]) -> list[Message]:
    steps = with_own_call_ids(shown.steps, "openai", set()) if shown.steps else shown.steps
    if shown.layout is None:
        return short(shown.user, steps.values(), shown.assistant)
    return written(shown.layout, Filling(steps, blobs), "openai")


def anthropic(parts: Parts) -> tuple[str, list[Message]]:
    """The system text, and messages with alternating roles that start with the user's."""
    system = [parts.system] if parts.system else []
    messages: list[Message] = []
    for shown in _turns(parts, "anthropic"):
        layout = shown.messages
        system += [said.text for said in layout if said.role in _INSTRUCTING]
        messages += _written(
            shown, [said for said in layout if said.role not in _INSTRUCTING], parts, "anthropic"
        )
    return "\n\n".join(system), beginning_with_user(alternating(messages))


def responses(parts: Parts) -> tuple[str, list[Message]]:
    """The instructions, and the input items."""
    items: list[Message] = []
    for shown in _turns(parts, "responses"):
        items += _written(shown, shown.messages, parts, "responses")
    return parts.system, items


def _written(shown: ShownTurn, layout: Sequence[Said], parts: Parts, shape: Shape) -> list[Message]:
    # Reasoning is sent back in the turn that is not answered yet.
    reasoning = shown.form == "current"
    return written(layout, Filling(shown.steps, parts.blobs), shape, reasoning=reasoning)


def _turns(parts: Parts, shape: Shape) -> Iterator[ShownTurn]:
    """The turns, the memory block as a separate turn, the running turn; call ids are unique across all of them."""
    memory = [ShownTurn("", "memory", parts.beside)] if parts.beside else []
    current = [] if parts.current is None else [parts.current]
    seen: set[str] = set()
    for shown in (*parts.turns, *memory, *current):
        yield shown._replace(steps=with_own_call_ids(shown.steps, shape, seen))


# -- plain text -----------------------------------------------------------------------------------------------------------


def plain_text(parts: Parts, tongue: Language | None = None) -> str:
    """The same conversation as one text, one line per message."""
    messages, _ = chat(replace(parts, blobs={}))
    names = _SPEAKERS[tongue or language("".join(text_of(message) for message in messages))]
    lines: list[str] = []
    for message in messages:
        name = names[str(message["role"])]
        for call in cast("Sequence[Mapping[str, Any]]", message.get("tool_calls") or ()):
            function = cast("Mapping[str, str]", call["function"])
            lines.append(f"{name}: [{function['name']} {function['arguments']}]")
        if text := text_of(message):
            lines.append(f"{name}: {text}")
    return "\n".join(lines)


def text_of(message: Message) -> str:
    """The text of a chat message; an image or a file is only named."""
    content = message["content"]
    if isinstance(content, str):
        return content
    blocks = cast("Sequence[Mapping[str, Any]]", content)
    return "\n".join(str(block.get("text") or f"[{block['type']}]") for block in blocks)
