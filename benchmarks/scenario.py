"""The scenario of the archive's design: ten turns, each with one tool call that returns 50,000 characters.

The document's table counts one request a turn, the one that answers with the result in view; the same is measured here,
in tokens. The request before it, which decides on the call, costs less with an archive and is told apart.
"""

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.bulk import chinese_prose
from benchmarks.corpus import url_of
from benchmarks.report import Limit, Row
from pagefile.engine import Conversation, Memory
from pagefile.records import JsonObject, Turn
from pagefile.settings import ArchiveSettings, FactSettings, Settings
from pagefile.text.tokens import TokenCounter
from pagefile.window.receipt import Window

TURNS = 10
RESULT_CHARS = 50_000
#: What the document's search returns, by mode: characters, and the tokens it takes them for.
MODES = {"mix/hybrid": (50_000, "~20K"), "local": (12_000, "~5K"), "naive": (12_000, "~5K")}
#: The turns that the document's table shows.
SHOWN = (1, 5, 10)
#: What C0-3 found achievable of the document's 80 %.
LIMIT = Limit("at least", 0.75)

_QUESTION_CHARS = 150
_ANSWER_CHARS = 620
_NEVER = 10**9
_UUID = re.compile(r"工具结果存档: ([0-9a-f-]{36})")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to go through the ten turns."""

    name: str
    claim: str
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    window_tokens: int = 200_000
    loads: bool = False


WAYS = (
    Way(
        "full accumulation",
        "5万 / 25万❌ / 50万❌ / 溢出",
        ArchiveSettings(threshold=_NEVER, page_from=_NEVER),
        window_tokens=1_000_000,
    ),
    Way("placeholder", "5万 / ~8千 / ~1.5万 / ~10万"),
    Way("placeholder, one page loaded", "5万 / ~5.8万 / ~5.5万 / ~20万", loads=True),
)


@dataclass(frozen=True, slots=True)
class Walked:
    """What a way cost, in tokens: the answering request of every turn, and all requests together."""

    way: Way
    answering: tuple[int, ...]
    requests: int
    all_tokens: int

    @property
    def total(self) -> int:
        """The answering requests together, as the document sums them."""
        return sum(self.answering)

    def shown(self) -> list[int]:
        """The columns of the document's table."""
        return [*(self.answering[turn - 1] for turn in SHOWN), self.total]

    def to_json(self) -> JsonObject:
        """The line as plain JSON."""
        return {
            "name": self.way.name,
            "unit": "tokens",
            "answering": self.answering,
            "total": self.total,
            "requests": self.requests,
            "all_requests": self.all_tokens,
        }


@dataclass(frozen=True, slots=True)
class Mode:
    """What one search costs."""

    name: str
    chars: int
    tokens: int
    claim: str

    @classmethod
    def all(cls, counter: TokenCounter) -> "tuple[Mode, ...]":
        """Each mode of the document's search, counted."""
        return tuple(
            cls(name, chars, counter.count(chinese_prose(chars, 0)), claim)
            for name, (chars, claim) in MODES.items()
        )


@dataclass(frozen=True, slots=True)
class Scenario:
    """The measured tables, and the sizes they were measured with."""

    ways: tuple[Walked, ...]
    modes: tuple[Mode, ...]
    #: Tokens of a result, and of a question with its answer, on average.
    result_tokens: int
    exchange_tokens: int

    def saved(self, walked: Walked) -> float:
        """The share of the answering requests that a way saves."""
        return 1 - walked.total / self.ways[0].total

    def rows(self) -> list[Row]:
        """The savings; only the main scenario has a bar."""
        full, placeholder, loading = self.ways
        rows = [
            Row(
                f"10 turns × 50,000 characters, {walked.way.name}",
                100 * self.saved(walked),
                "% saved",
                self.saved(walked),
                note=f"beside {full.way.name}, of the tokens of the answering requests; "
                f"{1 - walked.all_tokens / full.all_tokens:.0%} when those that decide on a call count too",
            )
            for walked in (placeholder, loading)
        ]
        return [Row.judged(rows[0], LIMIT), rows[1]]

    def to_json(self) -> JsonObject:
        """The table as plain JSON."""
        return {
            "unit": "tokens",
            "result_tokens": self.result_tokens,
            "exchange_tokens": self.exchange_tokens,
            "modes": [asdict(mode) for mode in self.modes],
            "ways": [walked.to_json() for walked in self.ways],
        }


async def scenario(folder: Path, counter: TokenCounter) -> Scenario:
    """Walk all three ways through the same ten turns."""
    script = [_Exchange.of(number) for number in range(TURNS)]
    ways = [await _walk(folder / f"scenario-{n}.db", way, script) for n, way in enumerate(WAYS)]
    results = [counter.count(exchange.result) for exchange in script]
    said = [counter.count(exchange.question) + counter.count(exchange.answer) for exchange in script]
    return Scenario(tuple(ways), Mode.all(counter), sum(results) // TURNS, sum(said) // TURNS)


@dataclass(frozen=True, slots=True)
class _Exchange:
    question: str
    result: str
    answer: str

    @classmethod
    def of(cls, number: int) -> "_Exchange":
        return cls(
            chinese_prose(_QUESTION_CHARS, 3 * number),
            chinese_prose(RESULT_CHARS, 3 * number + 1),
            chinese_prose(_ANSWER_CHARS, 3 * number + 2),
        )


async def _walk(database: Path, way: Way, script: list[_Exchange]) -> Walked:
    settings = Settings(
        window_tokens=way.window_tokens,
        recall="never",
        indexing="manual",
        facts=FactSettings(enabled=False),
        archive=way.archive,
    )
    walk = _Walk(script[0].result if way.loads else None)
    async with Memory.open(url_of(database), settings=settings) as memory:
        chat = memory.conversation("scenario", user_id="bench")
        for exchange in script:
            await walk.turn(chat, exchange)
    return Walked(way, tuple(walk.answering), walk.requests, walk.all_tokens)


@dataclass(slots=True)
class _Walk:
    """A scripted model that searches in every turn and, if it needs an earlier result, loads it when it is not in view."""

    #: The result of the first turn, when later turns need it again.
    needed: str | None
    answering: list[int] = field(default_factory=list[int])
    requests: int = 0
    all_tokens: int = 0

    async def turn(self, chat: Conversation, exchange: _Exchange) -> None:
        turn = await chat.begin(exchange.question)
        await self._request(chat)
        asked = {"query": exchange.question[:30]}
        turn = await chat.step(turn, tool="search_yongce_docs", input=asked, result=exchange.result)
        window = await self._request(chat)
        if self.needed is not None and self.needed not in _tool_texts(window):
            await self._load(chat, turn, window)
            window = await self._request(chat)
        await chat.complete(turn, exchange.answer)
        self.answering.append(window.tokens)

    async def _request(self, chat: Conversation) -> Window:
        window = await chat.context()
        self.requests += 1
        self.all_tokens += window.tokens
        return window

    async def _load(self, chat: Conversation, turn: Turn, window: Window) -> None:
        first = next(found for text in _tool_texts(window) if (found := _UUID.search(text)))
        asked = {"uuid": first.group(1)}
        text = await chat.call_tool("load_tool_history", asked)
        await chat.step(turn, tool="load_tool_history", input=asked, result=text)


def _tool_texts(window: Window) -> list[str]:
    return [str(message["content"]) for message in window.messages if message["role"] == "tool"]
