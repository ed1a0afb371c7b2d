"""A scripted model for Microsoft's Agent Framework."""

import json

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

from pagefile.testing.contracts.adapters import Give, Use


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    def __init__(self, player):
        super().__init__()
        self.player = player

    def _contents(self, messages, options):
        said = json.dumps([message.to_dict() for message in messages])
        step = self.player.next(f"{options.get('instructions')}\n{said}")
        if isinstance(step, Give):
            return [Content.from_text(json.dumps(step.value))]
        if not isinstance(step, Use):
            return [Content.from_text(step.text)]
        number = len(self.player.requests)
        text = [Content.from_text(step.text)] if step.text else []
        return text + [
            Content.from_function_call(f"call_{number}_{at}", name, arguments=given)
            for at, (name, given) in enumerate(step.calls)
        ]

    def _inner_get_response(self, *, messages, stream, options, **more):
        if stream:

            async def updates():
                contents = self._contents(messages, options)
                if contents[-1].type == "function_call":
                    yield ChatResponseUpdate(contents=contents, role="assistant")
                    return
                for at, word in enumerate(contents[0].text.split(" ")):
                    piece = Content.from_text(word if not at else f" {word}")
                    yield ChatResponseUpdate(contents=[piece], role="assistant")

            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

        async def whole():
            return ChatResponse(messages=[Message("assistant", self._contents(messages, options))])

        return whole()
