"""Four ways to fill the same budget: the last turns, LangChain's summary, mem0's finds, and Pagefile's window."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio.to_thread

from benchmarks.answers.questions import Question
from benchmarks.recall_data import Corpus, Said
from benchmarks.recall_peers import Mem0Ranker
from benchmarks.window_parts import COUNT, Bench
from pagefile.engine import Memory
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD

Message = dict[str, Any]
#: Answers a prompt by the model that is measured: LangChain's summaries are its own.
Ask = Callable[[Sequence[Message], int], str]

BUDGET = 2_000
#: How much is summarised of a memory that is too long to be summarised whole on a small machine.
SUMMARISED_TOKENS = 16_000
_SUMMARY_TOKENS = 400
_FINDS = 100
SYSTEM = {
    "en": "Answer the question about the conversation from what is shown, in a few words. Times are those of the messages.",
    "zh": "根据所给的记录，用几个字回答问题。时间以各条记录为准。",
}  # fmt: skip


class Arm(ABC):
    """Takes one person's memory after the other, and makes the prompt of a question."""

    name: str

    @abstractmethod
    async def take(self, corpus: Corpus) -> None: ...

    @abstractmethod
    async def prompt(self, question: Question) -> list[Message]: ...


def language(corpus_text: str) -> str:
    return "zh" if any("一" <= sign <= "鿿" for sign in corpus_text) else "en"


def dated(one: Said) -> str:
    """A turn as the arms without dates of their own show it."""
    return f"[{one.at:%Y-%m-%d %H:%M}] {one.text}"


def framed(question: Question, shown: str) -> list[Message]:
    """The instruction, what is shown, and the question."""
    system = SYSTEM[language(question.asked.text)]
    content = f"{shown}\n\n{question.asked.text}" if shown else question.asked.text
    return [{"role": "system", "content": system}, {"role": "user", "content": content}]


def room(question: Question, budget: int = BUDGET) -> int:
    """The tokens that are left for what is shown."""
    taken = sum(COUNT(message["content"]) + MESSAGE_OVERHEAD for message in framed(question, ""))
    return budget - taken - REPLY_OVERHEAD - 2


def newest(said: Sequence[Said], tokens: int) -> list[Said]:
    """The last turns that fit."""
    start = len(said)
    while start and (cost := COUNT(dated(said[start - 1])) + 1) <= tokens:
        tokens -= cost
        start -= 1
    return list(said[start:])


class Trimmed(Arm):
    name = "last turns"

    async def take(self, corpus: Corpus) -> None:
        self._said = corpus.said

    async def prompt(self, question: Question) -> list[Message]:
        kept = newest(self._said, room(question))
        return framed(question, "\n".join(map(dated, kept)))


class Mem0(Arm):
    """Its finds, best first, as much as fits, in the order of time."""

    name = "mem0"

    def __init__(self, bench: Bench, folder: Path) -> None:
        self._ranker = Mem0Ranker(bench.vectors, folder)

    async def take(self, corpus: Corpus) -> None:
        self._order = {one.id: (place, one) for place, one in enumerate(corpus.said)}
        await self._ranker.take(corpus)

    async def prompt(self, question: Question) -> list[Message]:
        left, kept = room(question), list[tuple[int, Said]]()
        for found in await self._ranker.rank(question.asked, _FINDS):
            place, one = self._order[found]
            if (cost := COUNT(dated(one)) + 1) <= left:
                left -= cost
                kept.append((place, one))
        return framed(question, "\n".join(dated(one) for _, one in sorted(kept, key=lambda row: row[0])))


class Summarised(Arm):
    """LangChain's `SummarizationMiddleware`: the summary by the model itself, and the newest messages as they were said."""

    name = "LangChain summarization"

    def __init__(self, ask: Ask, *, whole: bool) -> None:
        self._ask, self._whole = ask, whole

    async def take(self, corpus: Corpus) -> None:
        self._said = corpus.said if self._whole else newest(corpus.said, SUMMARISED_TOKENS)
        self._messages: list[Message] | None = None

    async def prompt(self, question: Question) -> list[Message]:
        if self._messages is None:
            self._messages = await anyio.to_thread.run_sync(self._summarised)
        shown, left = list[str](), room(question)
        for message in [self._messages[0], *reversed(self._messages[1:])]:
            if (cost := COUNT(message["content"]) + 1) > left:
                break
            left -= cost
            shown.append(message["content"])
        return framed(question, "\n".join([*shown[:1], *reversed(shown[1:])]))

    def _summarised(self) -> list[Message]:
        middleware = import_module("langchain.agents.middleware")
        human = import_module("langchain_core.messages").HumanMessage
        chat = _asking_model(self._ask)
        summarize = middleware.SummarizationMiddleware(
            chat,
            trigger=("tokens", BUDGET),
            keep=("tokens", BUDGET - _SUMMARY_TOKENS - 200),
            token_counter=_tokens_of,
            trim_tokens_to_summarize=None,
        )
        said = [human(dated(one), id=str(place)) for place, one in enumerate(self._said)]
        changed = summarize.before_model({"messages": said}, None)
        kept = said if changed is None else changed["messages"][1:]
        return [{"role": "user", "content": str(one.content)} for one in kept]


def _tokens_of(messages: Sequence[Any]) -> int:
    return sum(COUNT(str(one.content)) for one in messages)


def _asking_model(ask: Ask) -> Any:
    """The model that is measured, as LangChain calls one."""
    base: Any = import_module("langchain_core.language_models").SimpleChatModel

    class Asking(base):
        @property
        def _llm_type(self) -> str:
            return "measured"

        def _call(self, messages: Sequence[Any], *_rest: Any, **_named: Any) -> str:
            return ask([{"role": "user", "content": str(one.content)} for one in messages], _SUMMARY_TOKENS)

    return Asking()


class Pagefile(Arm):
    """A window of a new conversation of the same user, with the defaults."""

    name = "Pagefile"

    def __init__(self, bench: Bench, memory: Memory) -> None:
        self._bench, self._memory = bench, memory

    async def take(self, corpus: Corpus) -> None:
        self._user = corpus.user
        for number, one in enumerate(corpus.said):
            self._bench.clock.set(one.at + timedelta(milliseconds=number % 1000))
            chat = self._memory.conversation(f"{corpus.user}/{one.conversation}", user_id=corpus.user)
            await chat.record(one.user, one.assistant, id=f"{corpus.user}/{number}", at=one.at)
        await self._memory.settle()

    async def prompt(self, question: Question) -> list[Message]:
        self._bench.clock.set(question.asked.at)
        chat = self._memory.conversation(f"{self._user}/new", user_id=self._user)
        system = SYSTEM[language(question.asked.text)]
        window = await chat.context(question.asked.text, window_tokens=BUDGET, instructions=system)
        return list(window.messages)
