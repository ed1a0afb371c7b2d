"""Any chat model behind an OpenAI-compatible endpoint.

Whatever goes wrong in the middle of a stream is raised as our own errors: the endpoint reports an error
between two pieces, the connection breaks, a piece is not JSON, or the answer ends without a finish reason.
"""

import re
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from json import JSONDecodeError
from typing import Any, cast
from uuid import uuid4

from pagefile.errors import ModelOutputError
from pagefile.models.endpoint import Endpoint, server_words
from pagefile.ports import ChatModel, Spoken, ToolCall
from pagefile.records import JsonValue


class OpenAIChat(ChatModel):
    """A model reached through the `openai` client; `base_url` may be any compatible server."""

    def __init__(
        self, model: str, *, base_url: str | None = None, api_key: str | None = None, timeout_s: float = 60.0
    ) -> None:
        self.model = model
        self._endpoint = Endpoint(f"The model {model!r}", "A chat model", base_url, api_key, timeout_s)
        #: What the model was found to refuse: newer models take neither `max_tokens` nor a temperature.
        self._refused: frozenset[str] = frozenset()

    async def complete(self, messages: Sequence[Mapping[str, JsonValue]], *, max_tokens: int) -> str:
        with self._endpoint.translating("chat completion"):
            answer = await self._completion(list(messages), max_tokens)
            text = cast("str | None", answer.choices[0].message.content) if answer.choices else None
        if not text or not text.strip():
            raise _empty(self.model)
        return text

    async def _completion(self, messages: list[Mapping[str, JsonValue]], max_tokens: int) -> Any:
        """Ask; if the server refuses a parameter by its name, ask without it, and from then on."""
        create = self._endpoint.client.chat.completions.create
        while True:
            limit = "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens"
            options: dict[str, Any] = {limit: max_tokens, "temperature": 0}
            options = {name: value for name, value in options.items() if name not in self._refused}
            try:
                return await create(model=self.model, messages=messages, **options)
            except self._endpoint.bad_request as error:
                words = server_words(error)
                named = frozenset(name for name in options if re.search(rf"\b{name}\b", words))
                # "Use 'max_completion_tokens' instead" names what is wanted as well.
                if not named:
                    raise
                self._refused |= named

    async def stream(
        self, messages: Sequence[Mapping[str, JsonValue]], *, tools: Sequence[Mapping[str, JsonValue]] = ()
    ) -> AsyncGenerator[Spoken]:
        client = self._endpoint.client
        asked = {"tools": [{"type": "function", "function": dict(tool)} for tool in tools]} if tools else {}
        answer = _Answer(self.model)
        try:
            stream = await client.chat.completions.create(
                model=self.model, messages=[dict(message) for message in messages], stream=True, **asked
            )
            async with stream:
                async for chunk in stream:
                    if text := answer.take(chunk):
                        yield Spoken(text)
        except _errors() as error:
            what = "broke off its answer" if answer.begun else "did not answer"
            raise self._endpoint.unavailable(error, what) from error
        yield answer.last()

    async def close(self) -> None:
        await self._endpoint.close()


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Answer:
    model: str
    begun: bool = False
    spoke: bool = False
    finish: str | None = None
    calls: dict[int, _Call] = field(default_factory=dict[int, _Call])

    def take(self, chunk: Any) -> str:
        """The text in a chunk; calls are collected until they are complete."""
        self.begun = True
        # The chunk with the usage has no choices at all.
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        self.finish = choice.finish_reason or self.finish
        if choice.delta is None:
            return ""
        for piece in choice.delta.tool_calls or ():
            # Some servers omit the index and send each call in one piece.
            index = len(self.calls) if piece.index is None else piece.index
            call = self.calls.setdefault(index, _Call())
            call.id = piece.id or call.id
            if piece.function is not None:
                call.name += piece.function.name or ""
                call.arguments += piece.function.arguments or ""
        text = choice.delta.content or ""
        self.spoke = self.spoke or bool(text.strip())
        return text

    def last(self) -> Spoken:
        if self.finish is None:
            raise ModelOutputError(
                f"The answer of the model {self.model!r} stopped without an end: what came is not the whole of it."
            )
        if not self.spoke and not self.calls:
            raise _empty(self.model)
        calls = (call for _, call in sorted(self.calls.items()))
        whole = tuple(ToolCall(call.id or f"call_{uuid4().hex}", call.name, call.arguments) for call in calls)
        return Spoken(calls=whole, finish=self.finish)


def _empty(model: str) -> ModelOutputError:
    return ModelOutputError(f"The model {model!r} gave an empty answer.")


def _errors() -> tuple[type[Exception], ...]:
    """What the client raises: its own errors and, in the middle of a stream, those of the HTTP library it is built on."""
    import openai  # noqa: PLC0415 - an extra, and slow to import

    # Which library that is depends on the client's version; the one in use is loaded.
    libraries = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    http = (library.HTTPError for library in libraries if library is not None)
    return openai.OpenAIError, JSONDecodeError, *http
