"""The question and the answer of a turn."""

from collections.abc import Sequence

from pagefile.content import Media, Message, Other, Part, ToolResult
from pagefile.shapes.media import note


def question(messages: Sequence[Message]) -> str | None:
    """The first thing the user said; anything shown with it, or instead of it, is named."""
    return next((text for message in messages if message.role == "user" and (text := _asked(message))), None)


def answer(messages: Sequence[Message]) -> str | None:
    """The last thing the assistant said, preferably after the last tool result."""
    last = max((place for place, message in enumerate(messages) if _has_result(message)), default=-1)
    return _last_said(messages[last + 1 :]) or _last_said(messages[: last + 1])


def _last_said(messages: Sequence[Message]) -> str | None:
    said = (_said(message) for message in reversed(messages) if message.role == "assistant")
    return next((text for text in said if text), None)


def _asked(message: Message) -> str | None:
    named = " ".join(name for part in message.parts if (name := _name(part)))
    return "\n".join(text for text in (_said(message), named) if text) or None


def _name(part: Part) -> str | None:
    match part:
        case Media():
            return note(part)
        case Other({"type": str(kind)}):
            return f"[{kind}]"
        case _:
            return None


def _said(message: Message) -> str | None:
    return message.text if message.text.strip() else None


def _has_result(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)
