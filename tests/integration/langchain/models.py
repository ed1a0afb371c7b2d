"""Chat models that play a script and remember every request, and small things around them."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

Play = Callable[[Sequence[BaseMessage]], AIMessage]


class Recorder(BaseChatModel):
    """Answers by a script of messages, over and over, or by a function of the request; remembers what it was sent."""

    script: list[Any] = []  # noqa: RUF012 - pydantic copies defaults
    play: Any = None
    calls: list[Any] = []  # noqa: RUF012 - as above
    offered: list[Any] = []  # noqa: RUF012 - as above

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def bind_tools(self, tools, **_):
        self.offered[:] = [
            tool["function"]["name"] if isinstance(tool, dict) else tool.name for tool in tools
        ]
        return self

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        number = len(self.calls)
        self.calls.append([message.model_copy(deep=True) for message in messages])
        said = self.play(messages) if self.play else self.script[number % len(self.script)]
        if isinstance(said, BaseException):
            raise said
        return said.model_copy(update={"id": None})

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        said = self._next(messages)
        words = said.content.split(" ") if said.content else [""]
        for number, word in enumerate(words):
            last = number == len(words) - 1
            chunk = AIMessageChunk(
                word if last else f"{word} ",
                tool_calls=said.tool_calls if last else [],
            )
            generation = ChatGenerationChunk(message=chunk)
            if run_manager is not None:
                run_manager.on_llm_new_token(word, chunk=generation)
            yield generation


def calls_tool(name: str, args: dict | None = None, call_id: str = "c1", text: str = "") -> AIMessage:
    return AIMessage(text, tool_calls=[{"name": name, "args": args or {}, "id": call_id}])


def loop(*steps: Any) -> list[Any]:
    """A script of one turn."""
    return list(steps)


def memories(request: Sequence[BaseMessage]) -> list[int]:
    """Where memory is in a request."""
    return [number for number, message in enumerate(request) if "<memory>" in str(message.text)]


def check_order(request: Sequence[BaseMessage]) -> None:
    """What providers refuse: a second system message, a result without its call, a call without its result."""
    assert [] == [m for m in request[1:] if m.type == "system"]
    waiting: list[str] = []
    for message in request:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in waiting, "a result without its call"
            waiting.remove(message.tool_call_id)
        else:
            assert [] == waiting, "something is between a call and its result"
        if isinstance(message, AIMessage):
            waiting = [str(call["id"]) for call in message.tool_calls]
    assert [] == waiting
