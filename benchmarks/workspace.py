"""`pagefile bench workspace`: a scripted agent over a 200-page document, with and without a workspace.

The agent's model is a script that sees nothing but its prompt. It asks for the table of contents when it cannot see
the chapter (and loads passages of it when it sees a placeholder without the chapter), searches when it cannot see the fact, reads the page when it cannot see the detail; and now and then, as
models do, it asks for the table of contents although a hint says it need not. Between questions its history keeps
questions and answers, no tool messages, as most frameworks' histories do after a while.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio

from benchmarks.report import Limit, Report, Row, machine_facts
from benchmarks.workspace_book import REG_ID, Book, Topic, as_message
from pagefile.engine import Conversation, Memory
from pagefile.records import JsonObject
from pagefile.settings import Settings, WorkspaceSettings
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, CachedCounter, TokenCounter, open_counter
from pagefile.tiers.workspace import Workspace
from pagefile.window.placeholder import LOAD_TOOL

#: What is asked about, by number: some of it again a little later, as people do.
QUESTIONS = (0, 0, 1, 1, 0, 2, 2, 1, 3, 3, 2, 3, 4, 4, 3, 5, 5, 4, 6, 6)
#: After how many questions the model asks for the table of contents without looking.
STUBBORN = 4
#: Tokens of notes beside a question.
NOTES_TOKENS = 1_500
SYSTEM = "你是电力规程助手。先看目录确定章节，再搜索，再阅读页面，最后回答。"

ONCE = Limit("at most", 1.0)
FEWER_CALLS = Limit("at most", 0.75)
FEWER_TOKENS = Limit("at most", 0.25)
ALL_RIGHT = Limit("at least", 1.0)

_UUID = re.compile(r"工具结果存档: ([0-9a-f-]{36})")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run the agent."""

    name: str
    archive: bool
    workspace: bool


WAYS = (
    Way("no memory", archive=False, workspace=False),
    Way("archive", archive=True, workspace=False),
    Way("workspace", archive=True, workspace=True),
)


@dataclass(slots=True)
class Walked:
    """What a way cost."""

    way: Way
    #: Tool calls of the model, and those that reached the backend, by tool.
    made: Counter[str] = field(default_factory=Counter[str])
    reached: Counter[str] = field(default_factory=Counter[str])
    prompts: int = 0
    tokens: int = 0
    #: Tokens of what the backend gave, and of those the ones it had given before.
    fetched: int = 0
    repeated: int = 0
    right: int = 0

    @property
    def repeated_share(self) -> float:
        """The share of what the backend gave that it had given before."""
        return self.repeated / self.fetched if self.fetched else 0.0

    def to_json(self) -> JsonObject:
        """The line as plain JSON."""
        return {
            "name": self.way.name,
            "calls_made": self.made.total(),
            "calls_reaching_backend": self.reached.total(),
            "get_toc_made": self.made["get_toc"],
            "get_toc_reaching_backend": self.reached["get_toc"],
            "model_calls": self.prompts,
            "prompt_tokens": self.tokens,
            "fetched_tokens": self.fetched,
            "repeated_share": round(self.repeated_share, 4),
            "right_answers": self.right,
        }


@dataclass(frozen=True, slots=True)
class WorkspaceReport:
    """The rows that have limits, and the table they are taken from."""

    report: Report
    walked: Sequence[Walked]
    questions: int
    toc_chars: int

    @property
    def ok(self) -> bool:
        """Whether every limit was kept."""
        return self.report.ok

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        return {
            **self.report.to_json(),
            "questions": self.questions,
            "toc_chars": self.toc_chars,
            "ways": [walked.to_json() for walked in self.walked],
        }


def run(quick: bool = False, progress: Progress | None = None) -> WorkspaceReport:
    """Let the agent answer the same questions in every way; nothing is written anywhere."""
    began = time.perf_counter()
    tell = progress or _noop
    counter = CachedCounter(open_counter())
    asked = QUESTIONS[:8] if quick else QUESTIONS
    walked: list[Walked] = []
    for way in WAYS:
        tell(way.name)
        walked.append(anyio.run(_walk, way, asked, counter))
    report = Report(rows(walked, len(asked)), machine_facts(counter.name), quick, time.perf_counter() - began)
    return WorkspaceReport(report, walked, len(asked), len(as_message(Book.made().call("get_toc", {}))))


def rows(walked: Sequence[Walked], questions: int) -> list[Row]:
    """What the workspace has to keep, beside the same agent without any memory."""
    plain, archive, workspace = walked
    calls, tokens = workspace.reached.total(), workspace.tokens
    return [
        Row.judged(
            Row(
                "get_toc reaching the backend",
                workspace.reached["get_toc"],
                "calls",
                float(workspace.reached["get_toc"]),
                note=f"of {workspace.made['get_toc']} that the model made; {plain.reached['get_toc']} without",
            ),
            ONCE,
        ),
        Row.judged(
            Row(
                "tool calls reaching the backend",
                calls,
                "calls",
                calls / plain.reached.total(),
                note=f"{plain.reached.total()} without",
            ),
            FEWER_CALLS,
        ),
        Row.judged(
            Row(
                "prompt tokens of all model calls",
                tokens / 1000,
                "k tokens",
                tokens / plain.tokens,
                note=f"{plain.tokens:,} without; {archive.tokens:,} with the archive alone",
            ),
            FEWER_TOKENS,
        ),
        Row(
            "repeated content",
            100 * workspace.repeated_share,
            "%",
            note=f"of the tokens that the backend gave; {plain.repeated_share:.0%} without",
        ),
        Row.judged(
            Row(
                "questions answered",
                workspace.right,
                "answers",
                workspace.right / questions,
                note=f"of {questions}, from what was in the prompt; {plain.right} without",
            ),
            ALL_RIGHT,
        ),
    ]


async def _walk(way: Way, asked: Sequence[int], counter: TokenCounter) -> Walked:
    settings = Settings(workspace=WorkspaceSettings(enabled=way.workspace))
    async with Memory.open("memory://", settings=settings) as memory:
        chat = memory.conversation("bench", user_id="bench")
        agent = _Agent(Walked(way), Book.made(), chat, chat.workspace(), counter)
        topics = random_topics(agent.book)
        for number, which in enumerate(asked):
            await agent.ask(topics[which], stubborn=number % STUBBORN == STUBBORN - 1)
        agent.walked.reached = agent.book.asked
        return agent.walked


def random_topics(book: Book) -> list[Topic]:
    """Pages all over the book."""
    return [book.topics[(37 * number + 11) % len(book.topics)] for number in range(max(QUESTIONS) + 1)]


@dataclass(slots=True)
class _Agent:
    """The loop of an agent around its scripted model."""

    walked: Walked
    book: Book
    chat: Conversation
    workspace: Workspace
    counter: TokenCounter
    #: Questions and answers so far.
    history: list[str] = field(default_factory=list[str])
    #: What the backend gave so far.
    given: set[str] = field(default_factory=set[str])

    async def ask(self, topic: Topic, *, stubborn: bool) -> None:
        """One run: call the model until it answers."""
        question = f"{topic.name}怎么处理？"
        self.workspace.ask(question)
        run: list[str] = []
        called: set[str] = set()
        while True:
            prompt = self._prompt(question, run)
            step = _model(topic, "\n".join(prompt), called, stubborn=stubborn)
            if step is None:
                break
            called.add(step[0])
            run += [as_message(step), await self._call(*step)]
        answer = topic.detail if topic.detail in "\n".join(prompt) else "没有找到。"
        self.walked.right += answer == topic.detail
        # What an answer says of the page stays out of the way: the next run has to find the page again.
        self.history += [question, "已回答。"]

    def _prompt(self, question: str, run: Sequence[str]) -> list[str]:
        """Every message of a model call, counted."""
        notes = self.workspace.text(NOTES_TOKENS)
        prompt = [SYSTEM, *self.history, *([notes] if notes else []), question, *run]
        self.walked.prompts += 1
        self.walked.tokens += REPLY_OVERHEAD + sum(
            MESSAGE_OVERHEAD + self.counter.count(text) for text in prompt
        )
        return prompt

    async def _call(self, tool: str, given: JsonObject) -> str:
        """A tool call as an integration makes it."""
        self.walked.made[tool] += 1
        if tool == LOAD_TOOL:
            return await self.chat.call_tool(tool, given)
        cached = await self.workspace.lookup(tool, given)
        if cached is not None:
            return cached.answer
        result = self.book.call(tool, given)
        text = as_message(result)
        tokens = self.counter.count(text)
        self.walked.fetched += tokens
        self.walked.repeated += tokens if text in self.given else 0
        self.given.add(text)
        if not self.walked.way.archive:
            return text
        return (await self.workspace.absorb(tool, given, result)).text


def _model(topic: Topic, prompt: str, called: set[str], *, stubborn: bool) -> tuple[str, JsonObject] | None:
    """The next tool call of a model that sees this prompt; None when it answers. No tool twice in one run."""
    if "get_toc" not in called and (stubborn or topic.chapter not in prompt):
        return "get_toc", {"reg_id": REG_ID}
    placeholder = _UUID.search(prompt)
    if LOAD_TOOL not in called and topic.chapter not in prompt and placeholder is not None:
        return LOAD_TOOL, {"uuid": placeholder.group(1), "query": topic.chapter}
    if "smart_search" not in called and topic.fact not in prompt:
        return "smart_search", {"query": topic.name}
    if "read_page_range" not in called and topic.detail not in prompt:
        return "read_page_range", {"reg_id": REG_ID, "start_page": topic.page, "end_page": topic.page}
    return None


def _noop(_: str) -> None:
    """Nobody listens."""
