"""Document 002's summarizer: messages that slide out of the recent window are merged into one summary.

Names, defaults and the prompt are the document's. The mistakes of its sample code are fixed here: only messages outside
the window and in no summary yet count as new; reading never makes a summary; a new summary is made from the old one and the
new messages; and it covers no message that its author has not read.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from pagefile.engine import Memory
from pagefile.engine.arguments import at_least
from pagefile.errors import ConflictError, ModelOutputError, SettingsError
from pagefile.models.summarizers import CallableSummarizer, ExtractiveSummarizer
from pagefile.ports import ChatModel, LogView, Summarizer, SummaryRequest
from pagefile.records import Scope, Turn
from pagefile.standalone.agent_memory import texts_in
from pagefile.standalone.conversation_store import ConversationStore, lines_of, messages_of, version_of
from pagefile.tiers.checkpoints import SUMMARY_TOKENS, summary_of

SUMMARY_PROMPT = "请将以下对话历史浓缩为简洁的摘要，突出关键信息和用户偏好。"
#: Messages kept verbatim: three turns.
WINDOW_MESSAGES = 6
#: How many messages must leave the window before the summary is updated.
UPDATE_DELTA = 5
#: The maximum a model reads at once; longer input is given in parts.
MAX_INPUT_CHARS = 6000
#: The maximum number of turns per update; the next update continues where this one stopped.
MAX_TURNS = 100
#: How often to retry a summary that lost a race.
CONFLICT_TRIES = 3


class _Invokable(Protocol):
    """A LangChain chat model, or anything with the same interface."""

    def ainvoke(self, messages: Any, /) -> Awaitable[Any]: ...


LanguageModel: TypeAlias = ChatModel | Summarizer | _Invokable | Callable[[str], str | Awaitable[str]]


class ConversationSummarizer:
    """对话摘要: decides when a summary is due, makes it, and stores it as the conversation's checkpoint.

    Args:
        llm: writes the summaries; a small model is enough: a `ChatModel`, a LangChain chat model (anything with `ainvoke`), a
            `Summarizer`, or a function from text to text. It also writes the summary when a window fills up, unless the memory has
            a summarizer of its own. Without one the memory's writes, which extracts sentences by default.
        min_messages: shorter conversations have no summary. With the window of 6, the first one covers 4 messages.
        store: the conversations, or the memory they are in.
    """

    def __init__(
        self,
        llm: LanguageModel | None = None,
        min_messages: int = 10,
        *,
        store: ConversationStore | Memory,
        window_messages: int = WINDOW_MESSAGES,
        update_delta: int = UPDATE_DELTA,
        max_summary_tokens: int = SUMMARY_TOKENS,
        max_input_chars: int = MAX_INPUT_CHARS,
        system_prompt: str = SUMMARY_PROMPT,
    ) -> None:
        self.store = store if isinstance(store, ConversationStore) else ConversationStore(store)
        self.min_messages = at_least(1, min_messages, "min_messages")
        self.window_messages = at_least(0, window_messages, "window_messages")
        self.update_delta = at_least(1, update_delta, "update_delta")
        self.max_summary_tokens = at_least(40, max_summary_tokens, "max_summary_tokens")
        read = at_least(100, max_input_chars, "max_input_chars")
        self._writer = None if llm is None else _writer(llm, system_prompt, read)
        if self._writer is not None and isinstance(self.store.checkpoints.summarizer, ExtractiveSummarizer):
            # A window that fills up is also summarised by the caller's summarizer instead of by extraction.
            self.store.checkpoints.summarizer = self._writer

    # -- reading: never waits for a model ---------------------------------------------------------------------------------

    async def get_summary(self, conversation_id: str) -> str | None:
        checkpoint = (await self.store.view(await self.store.owned(conversation_id))).checkpoint
        return checkpoint.summary if checkpoint else None

    async def get_or_generate_summary(self, conversation_id: str) -> str | None:
        """The existing summary; if an update is due, it is made in the background, for the next call."""
        summary = await self.get_summary(conversation_id)
        self.schedule_update(conversation_id)
        return summary

    # -- when -------------------------------------------------------------------------------------------------------------

    async def should_summarize(self, conversation_id: str) -> bool:
        """判断是否需要生成/更新摘要: enough messages in all, and enough of them in neither the window nor the summary."""
        scope = await self.store.owned(conversation_id)
        view = await self.store.view(scope)
        if not await self.store.has_messages(view, self.min_messages):
            return False
        due = 1 if view.checkpoint is None else self.update_delta
        # Every turn has at least one message, so this many turns are enough to decide.
        return len(messages_of(await self._slid_out(scope, view, limit=due))) >= due

    def schedule_update(self, conversation_id: str) -> None:
        """Call after a completed turn: updates the summary in the background, if it is due.

        Only one update of a conversation runs at a time; a request made meanwhile causes one more check. Failures
        are logged and do not affect turns. `memory.settle()` waits for it, and so does closing the memory, up to a limit.
        """
        self.store.engine.worker.do(self.store.scope(conversation_id), self._update)

    async def _update(self, scope: Scope) -> None:
        conversation_id = scope.conversation or ""
        if await self.should_summarize(conversation_id):
            await self.generate_summary(conversation_id)

    # -- making one -------------------------------------------------------------------------------------------------------

    async def generate_summary(self, conversation_id: str) -> str:
        """生成对话摘要: everything but the newest messages is covered when this returns.

        Returns the summary, empty while there is nothing to summarize. If the model fails, it is extracted, and a warning logged.
        """
        conflicts = 0
        while True:
            # Started again after an erasure, it may belong to another user.
            scope = await self.store.owned(conversation_id)
            view = await self.store.view(scope)
            turns = await self._slid_out(scope, view, limit=MAX_TURNS)
            if not turns:
                return view.checkpoint.summary if view.checkpoint else ""
            try:
                await self._merge(scope, view, turns)
            except ConflictError:
                # Another process was faster: merge what it left into its summary, without what it erased.
                conflicts += 1
                if conflicts == CONFLICT_TRIES:
                    raise
            else:
                conflicts = 0

    async def _merge(self, scope: Scope, view: LogView, turns: Sequence[Turn]) -> None:
        previous = view.checkpoint.summary if view.checkpoint else None
        checkpoints = self.store.checkpoints
        writer = self._writer or checkpoints.summarizer
        by = writer, checkpoints.meter, self.max_summary_tokens, checkpoints.counter
        text, reason = await summary_of(turns, previous, *by, await checkpoints.languages.of(scope))
        read = {"epoch": view.head.epoch, "expected_version": version_of(view)}
        await checkpoints.cover(scope, text, turns[-1].seq or 0, fallback_reason=reason, **read)

    async def _slid_out(self, scope: Scope, view: LogView, *, limit: int) -> list[Turn]:
        """The oldest turns that are entirely outside the window and not covered yet."""
        start = await self.store.window_start(scope, self.window_messages)
        after = max(view.head.covered_through_seq, view.head.reset_seq)
        found = await self.store.turns(scope, limit, after) if start > after + 1 else []
        return [turn for turn in found if (turn.seq or 0) < start]


class _Writer(Summarizer):
    """What a model writes when it is asked with the document's prompt."""

    def __init__(self, write: Callable[[SummaryRequest], Awaitable[str]], max_input_chars: int) -> None:
        self._write = write
        self.max_input_chars = max_input_chars

    async def summarize(self, request: SummaryRequest) -> str:
        return await self._write(request)


def conversation_text(request: SummaryRequest) -> str:
    """The input for a model: the summary so far, if any, and the messages since."""
    said = lines_of(request.said)
    return f"已有摘要：\n{request.previous}\n\n新的对话：\n{said}" if request.previous else said


def _writer(llm: LanguageModel, system_prompt: str, max_input_chars: int) -> Summarizer:
    if isinstance(llm, Summarizer):
        return llm

    def messages(request: SummaryRequest) -> list[Mapping[str, Any]]:
        system = {"role": "system", "content": system_prompt}
        return [system, {"role": "user", "content": conversation_text(request)}]

    def prompt(request: SummaryRequest) -> str:
        return f"{system_prompt}\n\n{conversation_text(request)}"

    async def complete(request: SummaryRequest) -> str:
        # Room for a summary that has to be cut.
        return await cast("ChatModel", llm).complete(messages(request), max_tokens=2 * request.max_tokens)

    async def invoke(request: SummaryRequest) -> str:
        answer = await cast("_Invokable", llm).ainvoke(messages(request))
        content: object = getattr(answer, "content", answer)
        if not isinstance(content, str | list):
            raise ModelOutputError(f"The model answered with {type(content).__name__}, not with text.")
        return "".join(texts_in(cast("object", content)))

    if isinstance(llm, ChatModel):
        return _Writer(complete, max_input_chars)
    if callable(getattr(llm, "ainvoke", None)):
        return _Writer(invoke, max_input_chars)
    if callable(llm):
        return CallableSummarizer(llm, max_input_chars=max_input_chars, prompt=prompt)
    raise SettingsError(
        f"llm is {type(llm).__name__}: give a ChatModel, a chat model of LangChain, a function from text to text, or None."
    )
