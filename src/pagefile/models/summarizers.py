"""What writes summaries: our own extraction, any chat model, or any function."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable

import anyio.to_thread

from pagefile.errors import ModelOutputError
from pagefile.models.prompts import prompt
from pagefile.ports import ChatModel, Summarizer, SummaryRequest
from pagefile.text.extract import summarize
from pagefile.text.scripts import language

_SPEAKERS = {"zh": {"user": "用户", "assistant": "AI"}, "en": {"user": "User", "assistant": "Assistant"}}
_SO_FAR = {"zh": "已有摘要", "en": "Summary so far"}


class ExtractiveSummarizer(Summarizer):
    """Keeps the sentences that matter, in Chinese and English; needs no model and never fails."""

    async def summarize(self, request: SummaryRequest) -> str:
        return await anyio.to_thread.run_sync(
            lambda: summarize(request.said, max_chars=request.max_chars, previous=request.previous)
        )

    @property
    def max_input_chars(self) -> int:
        return 200_000


class ChatSummarizer(Summarizer):
    """Asks a chat model, in the language of the conversation."""

    def __init__(self, model: ChatModel, *, max_input_chars: int = 24_000) -> None:
        self._model = model
        self._max_input_chars = max_input_chars

    async def summarize(self, request: SummaryRequest) -> str:
        spoken = "\n".join(text for _, text in request.said)
        tongue = language(spoken)
        system = prompt("summarize", tongue).replace("{max_chars}", str(request.max_chars))
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": conversation_text(request, tongue)},
        ]
        # A Chinese character is about one token and an English one a quarter: enough room for either.
        return await self._model.complete(messages, max_tokens=2 * request.max_chars)

    @property
    def max_input_chars(self) -> int:
        return self._max_input_chars


class CallableSummarizer(Summarizer):
    """Any function from the conversation's text to a summary, blocking or not."""

    def __init__(
        self, function: Callable[[str], str | Awaitable[str]], *, max_input_chars: int = 24_000
    ) -> None:
        self._function = function
        self._max_input_chars = max_input_chars

    async def summarize(self, request: SummaryRequest) -> str:
        tongue = language("\n".join(text for _, text in request.said))
        result = self._function(conversation_text(request, tongue))
        text = await result if isawaitable(result) else result
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not type-checked
            raise ModelOutputError(f"The summarizer returned {type(text).__name__}, not text.")
        return text

    @property
    def max_input_chars(self) -> int:
        return self._max_input_chars


def conversation_text(request: SummaryRequest, tongue: str) -> str:
    """The summary so far and what was said since, one line each."""
    names = _SPEAKERS[tongue]
    lines = [f"{_SO_FAR[tongue]}: {request.previous}"] if request.previous else []
    lines += [f"{names.get(speaker, speaker)}: {text}" for speaker, text in request.said]
    return "\n".join(lines)
