"""Chat with the configured model, streamed as server-sent events."""

from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request
from starlette.responses import Response

from pagefile.ports import ChatModel
from pagefile.service.chatting import ChatRun
from pagefile.service.problems import answered, told
from pagefile.service.routes.common import MemoryOf, chat_of, router
from pagefile.service.streaming import EventStream
from pagefile.wire.chat import AskChat

routes = router("Chat")

#: An example stream for the reference.
_EXAMPLE = """event: turn
data: {"turn_id":"6c0f…","conversation_id":"诊疗/2026:7"}

event: node
data: {"node":"recall","duration_ms":3.2,"told":{"tokens":412,"budget":16000,"mode":"FULL_HISTORY"}}

event: token
data: {"text":"不可以，"}

event: token
data: {"text":"您对青霉素过敏。"}

event: done
data: {"turn_id":"6c0f…","seq":12,"finish":"stop","user_tokens":9,"assistant_tokens":11,"tokens":30,"window_tokens":412,"model_calls":1}

"""
_STREAM = {
    "description": "Events as they happen.",
    "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
}


def set_model(request: Request) -> ChatModel | None:
    """The model this service was started with; None if its settings name none."""
    return cast("ChatModel | None", request.app.state.model)


ModelOf: TypeAlias = Annotated[ChatModel | None, Depends(set_model)]


@routes.post("/v1/chat/stream", status_code=200, response_class=EventStream, responses={200: _STREAM})
async def stream(memory: MemoryOf, body: AskChat, model: ModelOf) -> Response:
    """Have the model of the settings answer a message, as server-sent events.

    `turn` comes first, when the message is on disk. Then `node` (recall, generate, tools, persist) with its duration, `token` with words
    of the answer, `archived` and `loaded` when results leave the window and come back, `checkpoint` when a summary takes effect, and
    `done` with the turn's place and exact tokens. A stream that ends with `error` (a problem document), or that the client leaves, aborts
    the turn: it enters no window, summary or index. Lines that begin with a colon are heartbeats. The model's calls of
    `load_tool_history` and `search_tool_history` are answered here.
    """
    if model is None:
        return answered(
            told(
                "no-model",
                "Set model.name, and model.base_url for any OpenAI-compatible endpoint, and start again.",
            )
        )
    run = await ChatRun.begun(memory, model, chat_of(memory, body), body)
    return EventStream(run.run, run.end)
