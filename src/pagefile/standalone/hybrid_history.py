"""What document 002's handler puts before a question: recent messages, the summary, and relevant past turns.

Summaries and recall are optional: without a summarizer and an episodic memory this is the baseline, the newest six messages.

The document builds a LangChain template. Here the prompt is a plain list of messages, which every chat model accepts, including
LangChain's: a template would interpret braces typed by a user.
"""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import islice
from typing import Final, TypeAlias, TypedDict, TypeVar
from zoneinfo import ZoneInfo

from pagefile.engine import Memory
from pagefile.engine.arguments import at_least
from pagefile.ports import LogView
from pagefile.records import JsonObject
from pagefile.standalone.conversation_store import ConversationMessage, ConversationStore, messages_of
from pagefile.standalone.conversation_summarizer import WINDOW_MESSAGES, ConversationSummarizer
from pagefile.standalone.episodic_memory import TOP_K, ConversationEpisodicMemory
from pagefile.text.sentences import cut
from pagefile.tiers.history import safety_text
from pagefile.window.turn_notes import today_line
from pagefile.window.wording import WORDINGS, ZH, Language

MEMORY_HEADING = "长期记忆："
SUMMARY_HEADING = "对话背景："
EPISODES_HEADING = "【相关历史】"
_HEADINGS: Final[Mapping[Language, tuple[str, str, str]]] = {
    "zh": (MEMORY_HEADING, SUMMARY_HEADING, EPISODES_HEADING),
    "en": ("Long-term memory:", "Background of the conversation:", "[Related history]"),
}
#: The maximum length of recalled turns in a prompt; each side of a turn gets at most a quarter of it.
MAX_EPISODE_CHARS = 1200

T = TypeVar("T")
Messages: TypeAlias = Sequence[ConversationMessage]


class PromptMessage(TypedDict):
    role: str
    content: str


class ConversationContext(TypedDict):
    summary: str | None
    recent_history: list[ConversationMessage]


class ConversationHistory:
    """对话历史: the document's three ways to look back, over one store.

    Args:
        store: the conversations, or the memory they are in.
        summarizer: phase 1; without it there is no summary.
        episodic_memory: phase 2; without it nothing is recalled.
    """

    def __init__(
        self,
        store: ConversationStore | Memory,
        summarizer: ConversationSummarizer | None = None,
        episodic_memory: ConversationEpisodicMemory | None = None,
        *,
        window_messages: int = WINDOW_MESSAGES,
        top_k: int = TOP_K,
    ) -> None:
        self.store = store if isinstance(store, ConversationStore) else ConversationStore(store)
        self.summarizer = summarizer
        self.episodic_memory = episodic_memory
        if episodic_memory is not None:
            episodic_memory.follow(self.store)
        self.window_messages = at_least(1, window_messages, "window_messages")
        self.top_k = at_least(1, top_k, "top_k")

    @property
    def recall_most(self) -> int:
        """How many turns to recall so that `top_k` remain even if all recent ones are among them."""
        return self.top_k + self.window_messages

    async def get_recent_history(self, conversation_id: str) -> list[ConversationMessage]:
        """The baseline: the newest messages, in chronological order."""
        return (await self.store.list_messages(conversation_id, limit=self.window_messages, desc=True))[::-1]

    async def get_context(self, conversation_id: str) -> ConversationContext:
        """The summary and the recent messages, which together cover everything.

        No model is called while the caller waits. Messages that have left the window but are in no summary yet are among the
        recent ones, however many: below the summarizer's `min_messages`, and while it is slow, hangs or is down.
        """
        if self.summarizer is None:
            return {"summary": None, "recent_history": await self.get_recent_history(conversation_id)}
        # Read before the summary: one that takes effect in between covers more, and nothing is missing.
        view = await self.store.view(await self.store.owned(conversation_id))
        summary = await self._tried("summary", self.summarizer.get_or_generate_summary(conversation_id))
        return {"summary": summary, "recent_history": await self._not_summarised(view)}

    async def get_hybrid_history(self, conversation_id: str, current_query: str) -> list[ConversationMessage]:
        """Relevant past turns, best first, then the recent messages, without duplicates.

        Recalled messages are marked, come in whole turns, and get their own block in `build_general_prompt`.
        """
        recent = await self.get_recent_history(conversation_id)
        return [*await self._recalled(conversation_id, current_query, recent), *recent]

    async def build_prompt(
        self, conversation_id: str, question: str, *, system_message: str, memory_context: str | None = None
    ) -> list[PromptMessage]:
        """All configured phases in one prompt; with any of them, what day it is. The session's safety data always."""
        context = await self.get_context(conversation_id)
        recent = context["recent_history"]
        history = [*await self._recalled(conversation_id, question, recent), *recent]
        view = await self.store.view(await self.store.owned(conversation_id))
        zone = ZoneInfo(view.head.timezone or self.store.engine.settings.timezone)
        system_message = with_safety(system_message, view.profile)
        if self.summarizer is not None or self.episodic_memory is not None:
            # The baseline is the document's, word for word.
            today = today_line(self.store.engine.clock.now().astimezone(zone), ZH)
            system_message = f"{system_message}\n\n{today}"
        known = memory_context, context["summary"]
        return build_general_prompt(system_message, *known, history, question, zone=zone)

    async def _recalled(
        self, conversation_id: str, query: str, recent: Messages
    ) -> list[ConversationMessage]:
        if self.episodic_memory is None:
            return []
        recall = self.episodic_memory.recall_relevant(conversation_id, query, top_k=self.recall_most)
        relevant = await self._tried("episodes", recall)
        return unique_relevant(relevant or [], recent, self.top_k)

    async def _not_summarised(self, view: LogView) -> list[ConversationMessage]:
        """The window, and what lies between it and the summary."""
        head = view.head
        uncovered = max(head.covered_through_seq, head.reset_seq)
        live = messages_of([turn async for turn in self.store.turns_after(head.scope, uncovered)])
        waiting = messages_of(view.running)
        if waiting:
            return [*live, *waiting]
        if len(live) >= self.window_messages:
            return live
        newest = await self.store.turns(head.scope, self.window_messages, head.reset_seq, newest=True)
        return messages_of(newest)[-self.window_messages :]

    async def _tried(self, part: str, work: Awaitable[T]) -> T | None:
        """A failing part only costs its own block, never the answer; it is logged and counted, in no receipt."""
        return await self.store.engine.guarded(part, lambda _: None, work)

    _get_context = get_context
    _get_hybrid_history = get_hybrid_history


def unique_relevant(relevant: Messages, recent: Messages, top_k: int) -> list[ConversationMessage]:
    """The best recalled turns that are not among the recent messages. Compared by id, since texts may repeat.

    A turn indexed without its id counts as recent if both of its texts match.
    """
    seen_turns = {message.get("turn_id") for message in recent}
    seen_texts = {tuple(message["content"] for message in pair) for pair in pairs(recent)}

    def is_new(pair: Messages) -> bool:
        turn_id = pair[0].get("turn_id")
        if turn_id is None:
            return tuple(message["content"] for message in pair) not in seen_texts
        return turn_id not in seen_turns

    return [message for pair in islice(filter(is_new, pairs(relevant)), top_k) for message in pair]


# -- the prompt ----------------------------------------------------------------------------------------------------------


def build_general_prompt(
    system_message: str,
    memory_context: str | None,
    summary: str | None,
    history: Messages | None,
    question: str,
    *,
    language: Language = "zh",
    zone: tzinfo = UTC,
) -> list[PromptMessage]:
    """The messages to send to a model; None and empty values have no block.

    Recalled messages of the history get a block of their own, a line per turn, so that the recent ones stay in sequence. Their
    days are those of the `zone`.
    """
    recalled = [message for message in history or () if message.get("recalled")]
    recent = [message for message in history or () if not message.get("recalled")]
    if recent and (recent[-1]["role"], recent[-1]["content"]) == ("user", question):
        # It is written already, and waits for this answer.
        recent = recent[:-1]
    bodies = (memory_context or "").strip(), (summary or "").strip(), episode_lines(recalled, zone)
    blocks = zip(_HEADINGS[language], bodies, strict=True)
    told = [system_message, *(f"{heading}\n{body}" for heading, body in blocks if body)]
    said = [(message["role"], message["content"]) for message in recent]
    everything = [*(("system", text) for text in told), *said, ("user", question)]
    return [{"role": role, "content": text} for role, text in everything]


_build_general_prompt = build_general_prompt


def with_safety(system_message: str, profile: JsonObject | None, language: Language = "zh") -> str:
    """The system message with the allergies and histories of a session, which are in every prompt and never cut."""
    return "\n\n".join(filter(None, (system_message, safety_text(profile, WORDINGS[language]))))


def episode_lines(recalled: Messages, zone: tzinfo = UTC) -> str:
    """A line per turn, `- [day] user → assistant`, as many as fit."""
    lines: list[str] = []
    room = MAX_EPISODE_CHARS
    for pair in pairs(recalled):
        # On its own line, a text could pass for a block of the prompt.
        texts = (" ".join(message["content"].split()) for message in pair)
        said_at = pair[0]["timestamp"]
        day = f"[{datetime.fromtimestamp(said_at, zone):%Y-%m-%d}] " if said_at else ""
        line = f"- {day}" + " → ".join(cut(text, MAX_EPISODE_CHARS // 4) for text in texts)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def pairs(messages: Messages) -> Iterator[list[ConversationMessage]]:
    """Groups the messages by turn: each user message begins one."""
    pair: list[ConversationMessage] = []
    for message in messages:
        if pair and (message["role"] == "user" or len(pair) > 1):
            yield pair
            pair = []
        pair.append(message)
    if pair:
        yield pair
