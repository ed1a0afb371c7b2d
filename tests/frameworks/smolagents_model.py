"""A scripted model for smolagents."""

import json

from smolagents.models import (
    ChatMessage,
    ChatMessageStreamDelta,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    ChatMessageToolCallStreamDelta,
    Model,
)

from pagefile.testing.contracts.adapters import Give, Use


class Scripted(Model):
    def __init__(self, player):
        super().__init__()
        self.player = player

    def _said(self, messages):
        step = self.player.next("\n".join(f"{one.role}: {one.content}" for one in messages))
        if isinstance(step, Give):
            return "", [("final_answer", {"answer": step.value})]
        return (
            (step.text, step.calls)
            if isinstance(step, Use)
            else ("", [("final_answer", {"answer": step.text})])
        )

    def generate(self, messages, **more):
        text, calls = self._said(messages)
        made = [
            ChatMessageToolCall(
                ChatMessageToolCallFunction(name=name, arguments=given),
                f"call_{len(self.player.requests)}_{at}",
                "function",
            )
            for at, (name, given) in enumerate(calls)
        ]
        return ChatMessage("assistant", text or None, tool_calls=made)

    def generate_stream(self, messages, **more):
        _, ((name, given),) = self._said(messages)
        words = json.dumps(given).split(" ")
        for at, word in enumerate(words):
            function = ChatMessageToolCallFunction(
                name=name if not at else "", arguments=word if not at else f" {word}"
            )
            call = ChatMessageToolCallStreamDelta(
                index=0, id="call_1" if not at else None, type="function", function=function
            )
            yield ChatMessageStreamDelta(tool_calls=[call])
