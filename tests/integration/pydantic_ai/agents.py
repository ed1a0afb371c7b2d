"""Agents whose model follows a script and remembers what it was sent."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

#: An answer, or a tool call: its name and arguments.
Move = str | tuple[str, dict[str, Any]]


class Sent:
    """One model call, as the model received it."""

    def __init__(self, messages: Sequence[ModelMessage], info: AgentInfo) -> None:
        self.messages = list(messages)
        self.instructions = info.instructions or ""
        self.tools = [tool.name for tool in info.function_tools]

    @property
    def text(self) -> str:
        """Everything the model can read."""
        return self.instructions + "\n" + dumped(self.messages)

    @property
    def said(self) -> list[str]:
        """The user's side: memory and questions, in order."""
        return [str(part.content) for part in self._parts(UserPromptPart)]

    @property
    def returned(self) -> list[str]:
        """What the tools returned, in order."""
        return [part.model_response_str() for part in self._parts(ToolReturnPart)]

    @property
    def answered(self) -> list[str]:
        """What the model said before."""
        return [part.content for part in self._parts(TextPart)]

    @property
    def memory(self) -> str:
        """The memory block of this call, empty without one."""
        blocks = [text for text in self.said if text.startswith("<memory>")]
        assert len(blocks) <= 1
        return blocks[0] if blocks else ""

    def _parts(self, kind: type) -> list[Any]:
        return [part for message in self.messages for part in message.parts if isinstance(part, kind)]


class Script:
    """A model that makes the moves it was given, one a call, whoever asks."""

    def __init__(self, *moves: Move | Callable[[Sent], Move]) -> None:
        self.moves = list(moves)
        self.sent: list[Sent] = []
        self.model = FunctionModel(self._respond, stream_function=self._stream)

    def agent(self, *capabilities: Any, **kwargs: Any) -> Agent[Any, Any]:
        return Agent(self.model, capabilities=list(capabilities), **kwargs)

    def _move(self, messages: list[ModelMessage], info: AgentInfo) -> Move:
        self.sent.append(Sent(messages, info))
        move = self.moves.pop(0)
        return move(self.sent[-1]) if callable(move) else move

    def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        move = self._move(messages, info)
        if isinstance(move, str):
            return ModelResponse([TextPart(move)])
        return ModelResponse([ToolCallPart(move[0], move[1], f"call_{len(self.sent)}")])

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        move = self._move(messages, info)
        if isinstance(move, str):
            for word in move.split(" "):
                yield word + " "
        else:
            call_id = f"call_{len(self.sent)}"
            yield {0: DeltaToolCall(name=move[0], json_args=json.dumps(move[1]), tool_call_id=call_id)}


def dumped(messages: Sequence[ModelMessage]) -> str:
    """A history as it is saved."""
    return ModelMessagesTypeAdapter.dump_json(list(messages)).decode()


def reloaded(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """A history that was saved and read again."""
    return ModelMessagesTypeAdapter.validate_json(dumped(messages))


def pairs_are_whole(messages: Sequence[ModelMessage]) -> bool:
    """Whether every tool call has its return behind it and every return its call before it."""
    calls: list[str] = []
    returns: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                calls.append(part.tool_call_id)
            elif isinstance(part, ToolReturnPart):
                assert isinstance(message, ModelRequest)
                if part.tool_call_id not in calls:
                    return False
                returns.append(part.tool_call_id)
    return sorted(calls) == sorted(returns)
