"""Summaries in both directions: LangChain's models write Pagefile's, and Pagefile writes those of `SummarizationMiddleware`."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableLambda

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import FailOpen
from pagefile.engine import Memory
from pagefile.errors import ModelOutputError
from pagefile.integrations.langchain.messages import asked, is_memory, is_user, tool_uses
from pagefile.models.endpoint import foreign
from pagefile.models.summarizers import ChatSummarizer, ExtractiveSummarizer
from pagefile.ports import ChatModel, Summarizer, SummaryRequest
from pagefile.records import JsonValue
from pagefile.text.extract import summarize
from pagefile.text.sentences import spoken_language
from pagefile.text.tokens import open_counter
from pagefile.tiers.checkpoints import SUMMARY_TOKENS, usable
from pagefile.window.placeholder import placeholder_uuid

#: What `SummarizationMiddleware` puts before a summary.
_LANGCHAINS_WORDS = "Here is a summary of the conversation to date:"


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
        prompt = convert_to_messages(cast("Any", messages))
        # Without the callbacks of the surrounding run: a summary must not appear in that run's stream.
        with foreign(f"The model {type(self.model).__name__} did not answer"):
            answer = await self.model.ainvoke(prompt, {"callbacks": []}, **options)
        text = str(answer.text)
        if not text.strip():
            raise ModelOutputError(f"The model {type(self.model).__name__} gave an empty answer.")
        return text


def pagefile_summarizer(
    memory: Memory | BlockingMemory,
    *,
    model: ChatModel | None = None,
    max_tokens: int = SUMMARY_TOKENS,
    timeout_s: float = 120.0,
) -> Runnable[Sequence[BaseMessage], str]:
    """A summarizer for `SummarizationMiddleware(…, summarizer=…)`, in synchronous and asynchronous agents.

    It carries on the previous summary, keeps the uuids of archived results, and leaves out memory text. Without a model, or if the
    model fails, the summary is extracted; the run never fails.
    """
    edge = FailOpen(memory, "langchain", timeout_s=timeout_s)
    writer: Summarizer = ChatSummarizer(model) if model is not None else ExtractiveSummarizer()

    async def write(request: SummaryRequest) -> str:
        return usable(await writer.summarize(request), request, open_counter())

    def blocking(messages: Sequence[BaseMessage]) -> str:
        request = _request(messages, max_tokens)
        written = edge.attempt_blocking("summarizing", lambda: write(request), None)
        return _finished(written, request, messages)

    async def waiting(messages: Sequence[BaseMessage]) -> str:
        request = _request(messages, max_tokens)
        written = await edge.attempt("summarizing", lambda: write(request), None)
        return _finished(written, request, messages)

    return RunnableLambda(blocking, waiting)


def _request(messages: Sequence[BaseMessage], max_tokens: int) -> SummaryRequest:
    previous = [str(m.text) for m in messages if m.additional_kwargs.get("lc_source") == "summarization"]
    spoken: list[tuple[str, str]] = []
    for message in messages:
        if is_user(message):
            spoken.append(("user", asked([message]).text or ""))
        elif isinstance(message, AIMessage) and not is_memory(message) and str(message.text).strip():
            spoken.append(("assistant", str(message.text)))
    before = "\n".join(text.removeprefix(_LANGCHAINS_WORDS).strip() for text in previous)
    # What came first is in the previous summary.
    language = spoken_language([before, *(text for speaker, text in spoken if speaker == "user")])
    return SummaryRequest(before or None, tuple(spoken), max_tokens, language)


def _finished(written: str | None, request: SummaryRequest, messages: Sequence[BaseMessage]) -> str:
    """The summary, extracted if no model wrote one, plus the uuids that would be lost with their placeholders."""
    text = (written or "").strip() or summarize(
        request.said,
        limit=request.max_tokens,
        measure=open_counter().count,
        previous=request.previous,
        language=request.language,
    )
    uuids = [placeholder_uuid(use.returned.text) for use in tool_uses(messages)]
    kept = [uuid for uuid in dict.fromkeys(uuids) if uuid is not None and uuid not in text]
    return "\n".join([text, *(f'📎 load_tool_history(uuid="{uuid}")' for uuid in kept)])
