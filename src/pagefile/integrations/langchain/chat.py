"""Lets any LangChain chat model write Pagefile's summaries."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_messages

from pagefile.errors import ModelOutputError, ModelUnavailableError
from pagefile.integrations.langchain.reading import text_of
from pagefile.ports import ChatModel
from pagefile.records import JsonValue


class LangChainChat(ChatModel):
    """A LangChain chat model: `Memory.open(…, model=LangChainChat(init_chat_model("…")))`.

    `limit` is the provider's parameter for the maximum length of an answer (`max_tokens` for most, `num_predict` or
    `max_output_tokens` for some); None leaves the length to the model.
    """

    def __init__(self, model: BaseChatModel, *, limit: str | None = "max_tokens") -> None:
        self.model = model
        self._limit = limit

    async def complete(self, messages: Sequence[Mapping[str, JsonValue]], *, max_tokens: int) -> str:
        options: dict[str, Any] = {self._limit: max_tokens} if self._limit else {}
        try:
            # Without the callbacks of the surrounding run: a summary must not appear in that run's stream.
            answer = await self.model.ainvoke(
                convert_to_messages(cast("Any", messages)), {"callbacks": []}, **options
            )
        except Exception as error:
            raise ModelUnavailableError(
                f"The model {type(self.model).__name__} did not answer ({type(error).__name__}: {error})."
            ) from error
        text = text_of(answer)
        if not text.strip():
            raise ModelOutputError(f"The model {type(self.model).__name__} gave an empty answer.")
        return text
