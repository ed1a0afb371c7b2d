"""A run as messages of OpenAI's chat API, and what the ruler reads of such messages."""

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from benchmarks.runs_data import Event, call_text
from benchmarks.runs_ways import calls_of, lost_call


class Chat:
    """Turns events into messages; a result answers the oldest call that waits for one."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._ids = count()

    def messages(self, event: Event) -> list[dict[str, Any]]:
        """The messages of an event: two for a result whose call was not recorded."""
        lost = [self._message(lost_call(event))] if event.kind == "result" and not self._waiting else []
        return [*lost, self._message(event)]

    def _message(self, event: Event) -> dict[str, Any]:
        if event.kind == "user":
            return {"role": "user", "content": event.text or "…"}
        if event.kind == "agent":
            # What it called before and no result answered (a handoff) is not what a later result answers.
            self._waiting.clear()
        if event.kind == "result":
            return {"role": "tool", "tool_call_id": self._waiting.pop(0), "content": event.text}
        if not calls_of(event):
            return {"role": "assistant", "content": event.said}
        calls: list[dict[str, Any]] = [
            {
                "id": f"call-{next(self._ids)}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(value, ensure_ascii=False)},
            }
            for tool, value in calls_of(event)
        ]
        self._waiting += [call["id"] for call in calls]
        return {"role": "assistant", "content": event.said or None, "tool_calls": calls}


def text_of(message: Mapping[str, Any]) -> str:
    """A message as the ruler reads it."""
    calls = [
        call_text(json.loads(call["function"]["arguments"] or "null"))
        for call in message.get("tool_calls") or ()
    ]
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(str(part.get("text", "")) for part in content)
    return "\n".join([content, *calls]) if calls else content
