"""Models reached through the `openai` client, and what may go wrong with anybody's model."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pagefile.errors import MissingExtraError, ModelOutputError, ModelUnavailableError, PagefileError


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
            status: object = getattr(error, "status_code", None)
            # The client's own message may quote the key.
            reason = type(error).__name__ + ("" if status is None else f", status {status}")
            raise ModelUnavailableError(f"{self.who} did not answer ({reason}).") from error
        except (AttributeError, TypeError, ValueError) as error:
            # A response outside the protocol breaks the client in unpredictable ways.
            raise ModelOutputError(f"{self.who} gave an answer that is no {expected}.") from error

    def _openai(self) -> Any:
        try:
            import openai  # noqa: PLC0415 - an extra, and slow to import
        except ImportError as error:
            raise MissingExtraError.of("openai", self.what) from error
        return openai


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
