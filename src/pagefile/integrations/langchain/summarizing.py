"""Pagefile's summaries for LangChain's `SummarizationMiddleware`."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.integrations.failing import FailOpen
from pagefile.integrations.langchain.blocks import asked
from pagefile.integrations.langchain.reading import is_memory, is_user, text_of, tool_uses
from pagefile.models.summarizers import ChatSummarizer, ExtractiveSummarizer
from pagefile.ports import ChatModel, Summarizer, SummaryRequest
from pagefile.text.extract import summarize
from pagefile.tiers.summaries import SUMMARY_CHARS
from pagefile.window.placeholder import placeholder_uuid

#: What `SummarizationMiddleware` puts before a summary.
_LANGCHAINS_WORDS = "Here is a summary of the conversation to date:"


def pagefile_summarizer(
    memory: Memory | BlockingMemory,
    *,
    model: ChatModel | None = None,
    max_chars: int = SUMMARY_CHARS,
    timeout_s: float = 120.0,
) -> Runnable[Sequence[BaseMessage], str]:
    """A summarizer for `SummarizationMiddleware(…, summarizer=…)`, in synchronous and asynchronous agents.

    It carries on the previous summary, keeps the uuids of archived results, and leaves out memory text. Without a model, or if the
    model fails, the summary is extracted; the run never fails.
    """
    edge = FailOpen(memory, "langchain", timeout_s=timeout_s)
    writer: Summarizer = ChatSummarizer(model) if model is not None else ExtractiveSummarizer()

    def blocking(messages: Sequence[BaseMessage]) -> str:
        request = _request(messages, max_chars)
        written = edge.attempt_blocking("summarizing", lambda: writer.summarize(request), None)
        return _finished(written, request, messages)

    async def waiting(messages: Sequence[BaseMessage]) -> str:
        request = _request(messages, max_chars)
        written = await edge.attempt("summarizing", lambda: writer.summarize(request), None)
        return _finished(written, request, messages)

    return RunnableLambda(blocking, waiting)


def _request(messages: Sequence[BaseMessage], max_chars: int) -> SummaryRequest:
    previous = [text_of(m) for m in messages if m.additional_kwargs.get("lc_source") == "summarization"]
    spoken: list[tuple[str, str]] = []
    for message in messages:
        if is_user(message):
            spoken.append(("user", asked([message]).text or ""))
        elif isinstance(message, AIMessage) and not is_memory(message) and text_of(message).strip():
            spoken.append(("assistant", text_of(message)))
    before = "\n".join(text.removeprefix(_LANGCHAINS_WORDS).strip() for text in previous)
    return SummaryRequest(before or None, tuple(spoken), max_chars)


def _finished(written: str | None, request: SummaryRequest, messages: Sequence[BaseMessage]) -> str:
    """The summary, extracted if no model wrote one, plus the uuids that would be lost with their placeholders."""
    text = (written or "").strip() or summarize(
        request.said, max_chars=request.max_chars, previous=request.previous
    )
    uuids = [placeholder_uuid(use.text) for use in tool_uses(messages)]
    kept = [uuid for uuid in dict.fromkeys(uuids) if uuid is not None and uuid not in text]
    return "\n".join([text, *(f'📎 load_tool_history(uuid="{uuid}")' for uuid in kept)])
