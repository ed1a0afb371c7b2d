"""Models reached through the `openai` client, and what may go wrong with anybody's model."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import ceil
from typing import Any, cast

from pagefile.errors import (
    MissingExtraError,
    ModelBusyError,
    ModelOutputError,
    ModelUnavailableError,
    PagefileError,
)

#: How much of what a server says goes into an error.
_WORDS_CHARS = 500
_OF_KEYS = (401, 403)


def server_words(error: Exception) -> str:
    """What the server said about a request it refused; empty if it said nothing."""
    body: object = getattr(error, "body", None)
    if not isinstance(body, dict):
        return ""
    message = cast("dict[str, object]", body).get("message")
    return " ".join(message.split()) if isinstance(message, str) else ""


@dataclass(slots=True)
class Endpoint:
    """A server that speaks OpenAI's protocol; the client is made on first use."""

    #: What it is in messages: "The model 'x'".
    who: str
    #: What needs the extra `openai`.
    what: str
    base_url: str | None
    api_key: str | None = field(repr=False)
    timeout_s: float
    #: How often a request is retried after a transient failure; the client waits longer each time.
    retries: int = 0
    _client: Any = None

    @property
    def client(self) -> Any:
        if self._client is None:
            self._client = self._openai().AsyncOpenAI(
                base_url=self.base_url,
                api_key=self.api_key or "none",
                timeout=self.timeout_s,
                max_retries=self.retries,
            )
        return self._client

    @property
    def bad_request(self) -> type[Exception]:
        """What the client raises when the server refuses a request as it is."""
        return self._openai().BadRequestError

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    @contextmanager
    def translating(self, expected: str) -> Generator[None]:
        """Turns the client's errors into ours; `expected` is what the answer should have been."""
        openai = self._openai()
        try:
            yield
        except openai.OpenAIError as error:
            raise self.unavailable(error, "did not answer") from error
        except (AttributeError, TypeError, ValueError) as error:
            # A response outside the protocol breaks the client in unpredictable ways.
            raise ModelOutputError(f"{self.who} gave an answer that is no {expected}.") from error

    def unavailable(self, error: Exception, what: str) -> ModelUnavailableError:
        """Our error for one of the client's, whose own message may quote the key."""
        status: object = getattr(error, "status_code", None)
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            wait = _retry_after_s(error)
            return ModelBusyError(f"{self.who} is busy: try again in {wait} s.", retry_after_s=wait)
        return ModelUnavailableError(f"{self.who} {what} ({self._reason(error)}).")

    def _reason(self, error: Exception) -> str:
        """The kind of an error, its status, and what the server said, without the key."""
        status: object = getattr(error, "status_code", None)
        reason = type(error).__name__ + ("" if status is None else f", status {status}")
        # What a server says of a key that it does not know quotes the key.
        if status in _OF_KEYS or not (words := server_words(error)):
            return reason
        hidden = words.replace(self.api_key, "…") if self.api_key else words
        return f"{reason}: {hidden[:_WORDS_CHARS]}"

    def _openai(self) -> Any:
        try:
            import openai  # noqa: PLC0415 - an extra, and slow to import
        except ImportError as error:
            raise MissingExtraError.of("openai", self.what) from error
        return openai


def _retry_after_s(error: Any) -> int:
    """What an endpoint says in its `Retry-After`, in whole seconds or as a date; 1 if it says nothing."""
    said = error.response.headers.get("retry-after", "")
    with suppress(ValueError):
        return max(1, ceil(float(said)))
    with suppress(ValueError, TypeError):
        return max(1, ceil((parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()))
    return 1


@contextmanager
def foreign(failed: str) -> Generator[None]:
    """Turns whatever a caller's own model raises into ours; `failed` says what it did not do."""
    try:
        yield
    except PagefileError:
        raise
    except Exception as error:
        # Its own message may quote a key.
        raise ModelUnavailableError(f"{failed} ({type(error).__name__}).") from error
