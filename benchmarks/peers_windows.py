"""Those that make a window out of a list of messages: LangChain's trimming, summarizing and editing of context."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from benchmarks.peers_base import BUDGET, INSTRUCTIONS, TRIGGER, Peer, Prompt, part
from benchmarks.peers_script import Line
from pagefile.text.extract import summarize
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, open_counter
from pagefile.tiers.checkpoints import summary_tokens

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


class _LangChainPeer(Peer):
    """A list of messages in memory, as the state of an agent has it."""

    package = "langchain"
    every_turn: ClassVar[bool] = True
    recalls: ClassVar[bool] = False

    async def open(self) -> None:
        self._types = part("langchain_core.messages")
        self._middleware = part("langchain.agents.middleware")
        self._merged = part("langgraph.graph.message").add_messages
        self._state: list[Any] = []
        self._sizes: dict[str, int] = {}
        self._count = 0
        self.prepare()

    def prepare(self) -> None:
        """Make what makes the window."""

    async def record(self, line: Line) -> None:
        said: list[Any] = [self._types.HumanMessage(line.user)]
        if line.result is not None:
            call = {"name": "look_up", "args": {"number": line.number}, "id": f"call-{line.number}"}
            said += [
                self._types.AIMessage("", tool_calls=[call]),
                self._types.ToolMessage(line.result, tool_call_id=call["id"], name="look_up"),
            ]
        said.append(self._types.AIMessage(line.assistant))
        for message in said:
            self._count += 1
            message.id = f"m{self._count}"
        self._state += said

    async def remains(self) -> Iterable[str]:
        return [str(message.content) for message in self._state]

    def tokens(self, messages: Sequence[Any]) -> int:
        """Exact tokens; each text is counted once."""
        return sum(self._size(_content(message)) + MESSAGE_OVERHEAD for message in messages)

    def prompt(self, messages: Sequence[Any]) -> Prompt:
        """The messages as everybody's are compared."""
        made = [{"role": _ROLES[message.type], "content": _content(message)} for message in messages]
        return [{"role": "system", "content": INSTRUCTIONS}, *made]

    def _size(self, text: str) -> int:
        if text not in self._sizes:
            self._sizes[text] = self.given.counter.count(text)
        return self._sizes[text]


class TrimPeer(_LangChainPeer):
    """`trim_messages` before every call, and what does not fit leaves the state."""

    name = "LangChain trimming"
    used = (
        '`trim_messages(strategy="last")` to 16,000 tokens before each call, the rest leaves the state, as its guide to '
        "short-term memory has it. Exact counts, each text counted once."
    )

    async def context(self, question: str) -> Prompt:
        asked = self._types.HumanMessage(question)
        kept = self._types.trim_messages(
            [*self._state, asked],
            strategy="last",
            token_counter=self.tokens,
            max_tokens=BUDGET - self._size(INSTRUCTIONS) - MESSAGE_OVERHEAD - REPLY_OVERHEAD,
            start_on="human",
            end_on=("human", "tool"),
        )
        self._state = list(kept[:-1])
        return self.prompt(kept)


class SummarizingPeer(_LangChainPeer):
    """`SummarizationMiddleware` with a model that needs no network."""

    name = "LangChain summarization"
    used = (
        "`SummarizationMiddleware(trigger=12,000 tokens, keep=8,000 tokens)`; the summaries are written by the extractive "
        "summarizer that Pagefile uses without a model, so that both have the same writer."
    )

    def prepare(self) -> None:
        fake = part("langchain_core.language_models.fake_chat_models").FakeListChatModel
        self._summarizing = self._middleware.SummarizationMiddleware(
            fake(responses=["unused"]),
            trigger=("tokens", TRIGGER),
            keep=("tokens", BUDGET // 2),
            token_counter=self.tokens,
            summarizer=_summary,
        )

    async def context(self, question: str) -> Prompt:
        asked = self._types.HumanMessage(question, id="asked")
        messages = [*self._state, asked]
        changed = self._summarizing.before_model({"messages": messages}, None)
        if changed is not None:
            messages = self._merged(messages, changed["messages"])
            self._state = [message for message in messages if message.id != "asked"]
        return self.prompt(messages)


class EditingPeer(_LangChainPeer):
    """`ContextEditingMiddleware`: old tool results are cleared in what is sent, the state keeps them."""

    name = "LangChain context editing"
    used = "`ContextEditingMiddleware` with `ClearToolUsesEdit(trigger=12,000 tokens)`, its other values unchanged."
    every_turn = False

    def prepare(self) -> None:
        edit = self._middleware.ClearToolUsesEdit(trigger=TRIGGER)
        self._editing = self._middleware.ContextEditingMiddleware(edits=[edit], token_counter=self.tokens)
        fake = part("langchain_core.language_models.fake_chat_models").FakeListChatModel
        self._model = fake(responses=["unused"])

    async def context(self, question: str) -> Prompt:
        messages = [*self._state, self._types.HumanMessage(question)]
        request = part("langchain.agents.middleware.types").ModelRequest(model=self._model, messages=messages)
        sent: list[Any] = []

        def handler(edited: Any) -> Any:
            sent.extend(edited.messages)
            return self._types.AIMessage("")

        self._editing.wrap_model_call(request, handler)
        return self.prompt(sent)


def _summary(messages: Sequence[Any]) -> str:
    """A summary as long as Pagefile's own would be."""
    said = [(_ROLES[message.type], str(message.content)) for message in messages]
    return summarize(said, limit=summary_tokens(BUDGET), measure=open_counter().count)


def _content(message: Any) -> str:
    calls = getattr(message, "tool_calls", None)
    return f"{message.content}{calls or ''}"
