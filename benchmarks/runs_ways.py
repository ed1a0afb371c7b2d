"""Ways to keep a long run within a window: as it is, the simplest rules, LangChain's middlewares."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

from benchmarks.peers_base import part
from benchmarks.runs_data import Event, Run, call_text
from benchmarks.runs_ruler import CHARS_PER_TOKEN, Prompt
from pagefile.records import JsonValue
from pagefile.text.extract import summarize
from pagefile.text.tokens import open_counter
from pagefile.tiers.checkpoints import summary_tokens


class Way(ABC):
    """Keeps one run after the other."""

    #: What must be installed for it.
    package: ClassVar[str | None] = None

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    async def begin(self, run: Run) -> None: ...

    @abstractmethod
    async def add(self, event: Event) -> None: ...

    @abstractmethod
    async def prompt(self) -> Prompt:
        """The texts that the next model call gets, in order."""

    async def close(self) -> None:
        """Nothing is open by default."""


def calls_of(event: Event) -> Sequence[tuple[str, JsonValue]]:
    """The tool calls of an event of the agent."""
    return ((event.tool, event.input),) if event.kind == "call" else event.calls


def lost_call(result: Event) -> Event:
    """A call for a result whose own was not recorded."""
    return Event("call", "", result.tool or "tool")


# -- the simplest rules -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Row:
    event: Event
    shown: str

    @property
    def is_whole_result(self) -> bool:
        return (
            self.event.kind == "result" and self.shown == self.event.text and len(self.shown) > _SMALL_CHARS
        )

    def page_out(self) -> None:
        self.shown = self.event.text[:_HEAD_CHARS] + "…[archived]"


#: Shorter results are not worth paging out.
_SMALL_CHARS = 400
#: What a simple rule leaves of a result.
_HEAD_CHARS = 120

Rule = Callable[[Sequence[Row]], None]


class Simple(Way):
    """A rule that pages out results before a call, and never brings them back."""

    def __init__(self, name: str, rule: Rule) -> None:
        super().__init__(name)
        self._rule = rule
        self._rows: list[Row] = []

    async def begin(self, run: Run) -> None:
        self._rows = []

    async def add(self, event: Event) -> None:
        self._rows.append(Row(event, event.text))

    async def prompt(self) -> Prompt:
        self._rule(self._rows)
        return [row.shown for row in self._rows]


def nothing(rows: Sequence[Row]) -> None:
    """Everything stays."""


def oldest_out(limit: int, down_to: int) -> Rule:
    """Over `limit` tokens, the oldest results leave until `down_to` is reached."""

    def rule(rows: Sequence[Row]) -> None:
        total = sum(len(row.shown) for row in rows) / CHARS_PER_TOKEN
        if total <= limit:
            return
        for row in rows:
            if total <= down_to:
                return
            if row.is_whole_result:
                total -= len(row.shown) / CHARS_PER_TOKEN
                row.page_out()
                total += len(row.shown) / CHARS_PER_TOKEN

    return rule


def last_whole(keep: int, step: int) -> Rule:
    """The last results stay whole; the others leave, `step` at a time."""

    def rule(rows: Sequence[Row]) -> None:
        whole = [row for row in rows if row.is_whole_result]
        if len(whole) > keep + step:
            for row in whole[:-keep]:
                row.page_out()

    return rule


# -- LangChain ----------------------------------------------------------------------------------------------------------


class _LangChain(Way):
    """A list of messages, as an agent's state has it."""

    package = "langchain"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._types = part("langchain_core.messages")
        self._middleware = part("langchain.agents.middleware")
        fake = part("langchain_core.language_models.fake_chat_models").FakeListChatModel
        self._model = fake(responses=["unused"])
        self._state: list[Any] = []
        self._open: list[tuple[str, str]] = []
        self._ids = count()

    async def begin(self, run: Run) -> None:
        self._state, self._open = [], []

    async def add(self, event: Event) -> None:
        if event.kind == "result" and not self._open:
            await self.add(lost_call(event))
        message = self._message(event)
        message.id = f"m{next(self._ids)}"
        self._state.append(message)

    def _message(self, event: Event) -> Any:
        if event.kind == "user":
            return self._types.HumanMessage(event.text)
        if event.kind == "agent":
            self._open.clear()
        if event.kind == "result":
            call, tool = self._open.pop(0)
            return self._types.ToolMessage(event.text, tool_call_id=call, name=tool)
        calls: list[dict[str, Any]] = [
            {"name": tool, "args": _arguments(value), "id": f"c{next(self._ids)}"}
            for tool, value in calls_of(event)
        ]
        self._open += [(call["id"], call["name"]) for call in calls]
        return self._types.AIMessage(event.said, tool_calls=calls)

    def tokens(self, messages: Sequence[Any]) -> int:
        return int(sum(len(_langchain_text(message)) for message in messages) / CHARS_PER_TOKEN)


class ContextEditing(_LangChain):
    """`ContextEditingMiddleware`: older tool results are cleared in what is sent."""

    def __init__(self, trigger: int, keep: int) -> None:
        super().__init__(f"LangChain context editing, {trigger:,}, last {keep}")
        edit = self._middleware.ClearToolUsesEdit(trigger=trigger, keep=keep)
        self._editing = self._middleware.ContextEditingMiddleware(edits=[edit], token_counter=self.tokens)

    async def prompt(self) -> Prompt:
        request = part("langchain.agents.middleware.types").ModelRequest
        sent: list[Any] = []

        def handler(edited: Any) -> Any:
            sent.extend(edited.messages)
            return self._types.AIMessage("")

        self._editing.wrap_model_call(request(model=self._model, messages=list(self._state)), handler)
        return [_langchain_text(message) for message in sent]


class Summarization(_LangChain):
    """`SummarizationMiddleware` with the summaries that Pagefile writes without a model, so that no model is asked."""

    def __init__(self, trigger: int, keep: int) -> None:
        super().__init__(f"LangChain summarization, {trigger:,} to {keep:,}")
        self._merged = part("langgraph.graph.message").add_messages

        def summary(messages: Sequence[Any]) -> str:
            said = [(message.type, _langchain_text(message)) for message in messages]
            return summarize(said, limit=summary_tokens(trigger), measure=open_counter().count)

        self._summarizing = self._middleware.SummarizationMiddleware(
            self._model,
            trigger=("tokens", trigger),
            keep=("tokens", keep),
            token_counter=self.tokens,
            summarizer=summary,
        )

    async def prompt(self) -> Prompt:
        changed = self._summarizing.before_model({"messages": self._state}, None)
        if changed is not None:
            self._state = list(self._merged(self._state, changed["messages"]))
        return [_langchain_text(message) for message in self._state]


def _langchain_text(message: Any) -> str:
    calls = [call_text(call["args"]) for call in getattr(message, "tool_calls", ()) if call["args"]]
    return "\n".join([str(message.content), *calls]) if calls else str(message.content)


def _arguments(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {"input": value}
