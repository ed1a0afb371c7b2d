"""Any chat model behind an OpenAI-compatible endpoint."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from pagefile.errors import MissingExtraError, ModelOutputError, ModelUnavailableError
from pagefile.models.streaming import streamed
from pagefile.ports import ChatModel, Spoken
from pagefile.records import JsonValue


class OpenAIChat(ChatModel):
    """A model reached through the `openai` client; `base_url` may be any compatible server."""

    def __init__(
        self, model: str, *, base_url: str | None = None, api_key: str | None = None, timeout_s: float = 60.0
    ) -> None:
        self.model = model
        self._client: Any = None
        self._base_url = base_url
        self._api_key = api_key
        self._timeout_s = timeout_s

    async def complete(self, messages: Sequence[Mapping[str, JsonValue]], *, max_tokens: int) -> str:
        client = self._open()
        errors = _errors()
        try:
            answer = await client.chat.completions.create(
                model=self.model, messages=list(messages), max_tokens=max_tokens, temperature=0
            )
            text = cast("str | None", answer.choices[0].message.content) if answer.choices else None
        except errors as error:
            raise ModelUnavailableError(
                f"The model {self.model!r} did not answer ({type(error).__name__})."
            ) from error
        except (AttributeError, TypeError, ValueError) as error:
            # A response outside the protocol breaks the client in unpredictable ways.
            raise ModelOutputError(
                f"The model {self.model!r} gave an answer that is no chat completion."
            ) from error
        if not text or not text.strip():
            raise ModelOutputError(f"The model {self.model!r} gave an empty answer.")
        return text

    async def stream(
        self, messages: Sequence[Mapping[str, JsonValue]], *, tools: Sequence[Mapping[str, JsonValue]] = ()
    ) -> AsyncGenerator[Spoken]:
        async with aclosing(streamed(self._open(), self.model, messages, tools)) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _open(self) -> Any:
        if self._client is None:
            openai = _openai()
            self._client = openai.AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._api_key or "none",
                timeout=self._timeout_s,
                max_retries=0,
            )
        return self._client


def _openai() -> Any:
    try:
        import openai  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise MissingExtraError.of("openai", "A chat model") from error
    return openai


def _errors() -> type[Exception]:
    return cast("type[Exception]", _openai().OpenAIError)
