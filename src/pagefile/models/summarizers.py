"""What writes summaries of conversations and of large tool results: our own extraction, any chat model, or any function."""

from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any

import anyio
import anyio.to_thread

from pagefile.errors import ModelOutputError
from pagefile.models.prompts import asking
from pagefile.ports import ChatModel, Summarizer, SummaryRequest
from pagefile.text.extract import summarize
from pagefile.text.refusals import rejection
from pagefile.text.sentences import Language, clip, language
from pagefile.text.speakers import UNANSWERED
from pagefile.text.summary_guard import Asked, completed
from pagefile.text.tokens import open_counter

_SPEAKERS = {
    "zh": {"user": "用户", "assistant": "AI", UNANSWERED["en"]: UNANSWERED["zh"]},
    "en": {"user": "User", "assistant": "Assistant", UNANSWERED["en"]: UNANSWERED["en"].capitalize()},
}
#: What a model reads of a tool result: its head and tail.
_READ_CHARS = 12_000
_SYNOPSIS_CHARS = 400
#: How often one blocking function runs at the same time, at most.
_THREADS = 40
_SO_FAR = {"zh": "已有摘要", "en": "Summary so far"}


class ExtractiveSummarizer(Summarizer):
    """Keeps the sentences that matter, in Chinese and English; needs no model and never fails."""

    max_input_chars = 200_000

    async def summarize(self, request: SummaryRequest) -> str:
        given: dict[str, Any] = {"previous": request.previous, "language": _language(request)}
        fitting = {"limit": request.max_tokens, "measure": open_counter().count}
        return await anyio.to_thread.run_sync(partial(summarize, request.said, **given, **fitting))


class ChatSummarizer(Summarizer):
    """Asks a chat model, in the language of the conversation, and adds what it left out of what our extraction keeps."""

    def __init__(self, model: ChatModel, *, max_input_chars: int = 24_000) -> None:
        self._model = model
        self.max_input_chars = max_input_chars

    async def summarize(self, request: SummaryRequest) -> str:
        text, tongue = _conversation(request)
        # A model counts words better than tokens: an English word has about 1.3, a Chinese character 0.75.
        lengths = {"max_words": request.max_tokens * 3 // 4, "max_chars": request.max_tokens * 4 // 3}
        messages = asking("summarize", tongue, text, **lengths)
        # Room for one that is too long: it is cut at a sentence.
        answer = await self._model.complete(messages, max_tokens=2 * request.max_tokens)
        if reason := rejection(answer, [text], tongue):
            raise ModelOutputError(reason)
        asked = Asked(request.said, request.previous, tongue, request.max_tokens, open_counter().count)
        summary = await anyio.to_thread.run_sync(completed, answer, asked)
        if summary is None:
            raise ModelOutputError(
                f"the answer copies the conversation or leaves out most of it: {answer.strip()[:80]!r}"
            )
        return summary


class CallableSummarizer(Summarizer):
    """Any function from the conversation's text to a summary; one that blocks runs in a thread."""

    def __init__(
        self,
        function: Callable[[str], str | Awaitable[str]],
        *,
        max_input_chars: int = 24_000,
        prompt: Callable[[SummaryRequest], str] | None = None,
    ) -> None:
        self._function = function
        self.max_input_chars = max_input_chars
        self._prompt = prompt or _conversation_text

    async def summarize(self, request: SummaryRequest) -> str:
        prompt = self._prompt(request)
        if iscoroutinefunction(self._function):
            result = self._function(prompt)
        else:
            # A function that hangs keeps its thread, but neither the event loop nor the threads of others.
            result = await anyio.to_thread.run_sync(
                self._function, prompt, abandon_on_cancel=True, limiter=self._threads
            )
        text = await result if isawaitable(result) else result
        if not isinstance(text, str):
            raise ModelOutputError(f"The summarizer returned {type(text).__name__}, not text.")
        return text

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(_THREADS)


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


def _conversation_text(request: SummaryRequest) -> str:
    return _conversation(request)[0]


def _conversation(request: SummaryRequest) -> tuple[str, Language]:
    """The summary so far and what was said since, one line each; and the language to summarize them in."""
    tongue = _language(request)
    names = _SPEAKERS[tongue]
    lines = [f"{_SO_FAR[tongue]}: {request.previous}"] if request.previous else []
    lines += [f"{names.get(speaker, speaker)}: {text}" for speaker, text in request.said]
    return "\n".join(lines), tongue
