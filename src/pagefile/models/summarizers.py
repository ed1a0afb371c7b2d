"""What writes summaries of conversations and of large tool results: our own extraction, any chat model, or any function."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

import anyio.to_thread

from pagefile.errors import ModelOutputError
from pagefile.models.prompts import asking
from pagefile.ports import ChatModel, Summarizer, SummaryRequest
from pagefile.text.extract import summarize
from pagefile.text.sentences import Language, clip, language

_SPEAKERS = {"zh": {"user": "用户", "assistant": "AI"}, "en": {"user": "User", "assistant": "Assistant"}}
#: What a model reads of a tool result: its head and tail.
_READ_CHARS = 12_000
_SYNOPSIS_CHARS = 400
_SO_FAR = {"zh": "已有摘要", "en": "Summary so far"}


class ExtractiveSummarizer(Summarizer):
    """Keeps the sentences that matter, in Chinese and English; needs no model and never fails."""

    max_input_chars = 200_000

    async def summarize(self, request: SummaryRequest) -> str:
        given: dict[str, Any] = {"previous": request.previous, "language": _language(request)}
        return await anyio.to_thread.run_sync(
            lambda: summarize(request.said, max_chars=request.max_chars, **given)
        )


class ChatSummarizer(Summarizer):
    """Asks a chat model, in the language of the conversation."""

    def __init__(self, model: ChatModel, *, max_input_chars: int = 24_000) -> None:
        self._model = model
        self.max_input_chars = max_input_chars

    async def summarize(self, request: SummaryRequest) -> str:
        text, tongue = _conversation(request)
        messages = asking("summarize", tongue, text, max_chars=request.max_chars)
        # A Chinese character is about one token and an English one a quarter: enough room for either.
        return await self._model.complete(messages, max_tokens=2 * request.max_chars)


class CallableSummarizer(Summarizer):
    """Any function from the conversation's text to a summary, blocking or not."""

    def __init__(
        self, function: Callable[[str], str | Awaitable[str]], *, max_input_chars: int = 24_000
    ) -> None:
        self._function = function
        self.max_input_chars = max_input_chars

    async def summarize(self, request: SummaryRequest) -> str:
        result = self._function(_conversation(request)[0])
        text = await result if isawaitable(result) else result
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not type-checked
            raise ModelOutputError(f"The summarizer returned {type(text).__name__}, not text.")
        return text


class ChatSynopsis:
    """Asks a chat model what a large tool result is about, in the language of the result."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def __call__(self, text: str) -> str:
        tongue = language(text[:4000])
        messages = asking("synopsis", tongue, clip(text, _READ_CHARS), max_chars=_SYNOPSIS_CHARS)
        answer = await self._model.complete(messages, max_tokens=2 * _SYNOPSIS_CHARS)
        return " ".join(answer.split())


def _language(request: SummaryRequest) -> Language:
    return request.language or language("\n".join(text for _, text in request.said))


def _conversation(request: SummaryRequest) -> tuple[str, str]:
    """The summary so far and what was said since, one line each; and the language to summarize them in."""
    tongue = _language(request)
    names = _SPEAKERS[tongue]
    lines = [f"{_SO_FAR[tongue]}: {request.previous}"] if request.previous else []
    lines += [f"{names.get(speaker, speaker)}: {text}" for speaker, text in request.said]
    return "\n".join(lines), tongue
