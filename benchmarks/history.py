"""`pagefile bench history`: what looking back costs and what it finds, in four ways.

All ways answer the same scripted conversation, turn by turn: with the full history, with the last six messages (the document's
baseline), with a summary before them, and with recalled turns besides. Summaries are extracted; no model is asked.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import anyio

from benchmarks.corpus import url_of
from benchmarks.history_costs import FULL, HYBRID, RECENT, SUMMARY, WAYS, Sizes, Traffic
from benchmarks.history_script import FACTS, Exchange, small_talk, with_facts
from benchmarks.report import Limit, Report, Row, machine_facts
from benchmarks.timing import side_by_side
from pagefile.engine import Memory
from pagefile.records import JsonObject
from pagefile.settings import Settings
from pagefile.standalone import (
    ConversationEpisodicMemory,
    ConversationHistory,
    ConversationStore,
    ConversationSummarizer,
    PromptMessage,
    build_general_prompt,
)
from pagefile.text.tokens import TokenCounter, open_counter
from pagefile.window.measure import side_tokens

#: The document's 8000 tokens and 2000.
TOKENS_LIMIT = Limit("at most", 0.25)
FACTS_LIMIT = Limit("at least", 0.9)
#: A read with a summary may take so much longer than without, as the document allows.
ADDED_LIMIT_S = 0.05
ADDED_LIMIT = Limit("at most", 1.0)

SYSTEM = "你是一个乐于助人的助手。You are a helpful assistant."
#: The turns that the table shows.
SHOWN = (10, 25, 50)
CLAIMED = {FULL: "~8000", RECENT: "", SUMMARY: "~2000", HYBRID: ""}

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Effort:
    turns: int
    remembered_turns: int
    rounds: int
    calls: int


_FULL = _Effort(turns=50, remembered_turns=120, rounds=30, calls=5)
_QUICK = _Effort(turns=50, remembered_turns=120, rounds=5, calls=3)


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """The rows, the tokens of every request, and what the calculation assumes."""

    report: Report
    #: Tokens of the request of each turn, by way.
    tokens: dict[str, tuple[int, ...]]
    sizes: Sizes
    traffic: Traffic

    @property
    def ok(self) -> bool:
        """Whether every limit was kept."""
        return self.report.ok

    def saved(self, way: str) -> float:
        """The share of all requests' tokens that a way saves."""
        return 1 - sum(self.tokens[way]) / sum(self.tokens[FULL])

    def measured(self, way: str) -> float:
        """Tokens of the mean request of a conversation as long as the document's."""
        return mean(self.tokens[way][: self.traffic.turns])

    def calculated(self, way: str) -> float:
        """The same, from the assumptions alone."""
        return self.sizes.per_request(way, self.traffic.turns)

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        return {
            **self.report.to_json(),
            "tokens": self.tokens,
            "assumptions": self.sizes.to_json(),
            "a_month": {
                way: {
                    "tokens_a_request": round(self.measured(way)),
                    "calculated_a_request": round(self.calculated(way)),
                    "tokens": round(self.traffic.tokens(self.measured(way))),
                    "usd": round(self.traffic.dollars(self.traffic.tokens(self.measured(way)))),
                }
                for way in WAYS
            },
        }


def run(*, quick: bool = False, progress: Progress | None = None) -> HistoryReport:
    """Measure in a database of its own, which is gone afterwards."""
    began = time.perf_counter()
    counter, effort = open_counter(), _QUICK if quick else _FULL
    tell = progress or _noop
    with TemporaryDirectory() as folder:
        place = Path(folder)
        tell(f"talking for {effort.turns} turns in {len(WAYS)} ways")
        talked = anyio.run(_talk, place / "talk.db", counter, effort)
        tell(f"asking for {len(FACTS)} facts after {effort.remembered_turns} turns")
        found = anyio.run(_ask, place / "facts.db", counter, effort)
        tell("timing reads")
        reading = anyio.run(_read, place / "reads.db", counter, effort)
    rows = [*_token_rows(talked), *_fact_rows(found, effort), *reading]
    report = Report(rows, machine_facts(counter.name), quick, time.perf_counter() - began)
    tokens = {way: tuple(counts) for way, counts in talked.tokens.items()}
    return HistoryReport(report, tokens, talked.sizes(), Traffic())


# -- tokens ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Talked:
    tokens: dict[str, list[int]]
    #: Tokens of questions with the system message, of turns, of summaries and of what was recalled, up to the length of the
    #: conversations that are calculated: a summary grows with its conversation.
    questions: list[int] = field(default_factory=list[int])
    turns: list[int] = field(default_factory=list[int])
    summaries: list[int] = field(default_factory=list[int])
    recalled: list[int] = field(default_factory=list[int])

    def sizes(self) -> Sizes:
        return Sizes(
            question=mean(self.questions),
            turn=mean(self.turns),
            summary=mean(self.summaries or [0]),
            recalled=mean(self.recalled or [0]),
        )


async def _talk(database: Path, counter: TokenCounter, effort: _Effort) -> _Talked:
    talked = _Talked({way: [] for way in WAYS})
    async with Memory.open(url_of(database), settings=Settings(synchronous="normal")) as memory:
        ways = _Ways(memory)
        for exchange in small_talk(counter, effort.turns):
            for way in WAYS:
                prompt = await ways.prompt(way, exchange.user)
                talked.tokens[way].append(tokens_of(prompt, counter))
                if way == HYBRID and len(talked.questions) < Traffic().turns:
                    _note(talked, prompt, counter)
            talked.turns.append(
                tokens_of(build_general_prompt(exchange.assistant, None, None, None, exchange.user), counter)
            )
            await ways.say(exchange)
    return talked


def _note(talked: _Talked, prompt: list[PromptMessage], counter: TokenCounter) -> None:
    talked.questions.append(tokens_of([prompt[0], prompt[-1]], counter))
    for message in prompt:
        if message["content"].startswith("对话背景：\n"):
            talked.summaries.append(tokens_of([message], counter))
        if message["content"].startswith("【相关历史】\n"):
            talked.recalled.append(tokens_of([message], counter))


def tokens_of(prompt: list[PromptMessage], counter: TokenCounter) -> int:
    """A prompt as a chat model counts it, message overhead included."""
    return sum(side_tokens(message["content"], counter.count(message["content"])) for message in prompt)


def _token_rows(talked: _Talked) -> list[Row]:
    full, recent, summary, hybrid = (talked.tokens[way] for way in WAYS)
    turns = len(full)
    rows = [
        Row(
            f"request of turn {turns}, {way}",
            counts[-1],
            "tokens",
            counts[-1] / full[-1],
            note=f"{full[-1]:,} with the full history",
        )
        for way, counts in ((RECENT, recent), (SUMMARY, summary), (HYBRID, hybrid))
    ]
    return [rows[0], Row.judged(rows[1], TOKENS_LIMIT), rows[2]]


class _Ways:
    """One conversation, looked back on in every way."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.store = ConversationStore(memory)
        self.summarizer = ConversationSummarizer(store=self.store)
        episodes = ConversationEpisodicMemory(memory)
        self.histories = {
            RECENT: ConversationHistory(self.store),
            SUMMARY: ConversationHistory(self.store, self.summarizer),
            HYBRID: ConversationHistory(self.store, self.summarizer, episodes),
        }

    async def prompt(self, way: str, question: str) -> list[PromptMessage]:
        if way == FULL:
            everything = await self.store.list_messages("c")
            return build_general_prompt(SYSTEM, None, None, everything, question)
        return await self.histories[way].build_prompt("c", question, system_message=SYSTEM)

    async def say(self, exchange: Exchange) -> None:
        asked = await self.store.append_message("c", "user", exchange.user)
        await self.store.append_message("c", "assistant", exchange.assistant, turn_id=asked.get("turn_id"))
        self.summarizer.schedule_update("c")
        # As while the user reads the answer.
        await self._memory.settle()


# -- key facts ---------------------------------------------------------------------------------------------------------


async def _ask(database: Path, counter: TokenCounter, effort: _Effort) -> dict[str, list[str]]:
    """The facts that a prompt holds when it is asked for them at the end, by way."""
    found: dict[str, list[str]] = {way: [] for way in WAYS}
    async with Memory.open(url_of(database), settings=Settings(synchronous="normal")) as memory:
        ways = _Ways(memory)
        for exchange in with_facts(counter, effort.remembered_turns - 1):
            await ways.say(exchange)
        for fact in FACTS:
            for way in WAYS:
                prompt = await ways.prompt(way, fact.question)
                if any(fact.answer in message["content"] for message in prompt[:-1]):
                    found[way].append(fact.answer)
    return found


def _fact_rows(found: dict[str, list[str]], effort: _Effort) -> list[Row]:
    rows = {
        way: Row(
            f"key facts at turn {effort.remembered_turns}, {way}",
            100 * len(answers) / len(FACTS),
            "%",
            len(answers) / len(FACTS),
            note=f"{len(answers)} of {len(FACTS)} are in the prompt that asks for them",
        )
        for way, answers in found.items()
    }
    return [*(rows[way] for way in WAYS[:-1]), Row.judged(rows[HYBRID], FACTS_LIMIT)]


# -- reading -----------------------------------------------------------------------------------------------------------


async def _read(database: Path, counter: TokenCounter, effort: _Effort) -> list[Row]:
    async with Memory.open(url_of(database), settings=Settings(synchronous="normal")) as memory:
        ways = _Ways(memory)
        for exchange in small_talk(counter, effort.turns):
            await ways.say(exchange)
        baseline_s, summary_s = await side_by_side(
            partial(ways.histories[RECENT].get_context, "c"),
            partial(ways.histories[SUMMARY].get_context, "c"),
            rounds=effort.rounds,
            calls=effort.calls,
        )
    added = summary_s - baseline_s
    return [
        Row(
            "get_context() with a summary",
            summary_s * 1e3,
            "ms",
            summary_s / baseline_s,
            note=f"{baseline_s * 1e3:,.2f} ms for the newest six messages alone",
        ),
        Row.judged(
            Row(
                "what the summary adds to a read",
                added * 1e3,
                "ms",
                added / ADDED_LIMIT_S,
                note=f"of the {ADDED_LIMIT_S * 1e3:.0f} ms that the document allows; it is made in the background",
            ),
            ADDED_LIMIT,
        ),
    ]


def _noop(_: str) -> None:
    return
