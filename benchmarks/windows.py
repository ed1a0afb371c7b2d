"""What it costs to build a window, however long the conversation is; and to recall, apart."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import LONG, SHORT, Author, Size, fill, url_of
from benchmarks.report import Limit, Row
from benchmarks.timing import side_by_side
from pagefile.engine import Conversation, Memory
from pagefile.records import Scope, Turn
from pagefile.settings import Settings
from pagefile.text.tokens import TokenCounter

LENGTH_LIMIT = Limit("at most", 1.3)
COUNTS_LIMIT = Limit("at least", 20.0)

#: What is measured is the window itself: recall has rows of its own, and nothing else is done beside it.
_SETTINGS = Settings(recall="never", indexing="manual", checkpoints="manual")

QUESTION = "What did Anna decide about the compressor, and when?"
#: The short conversation everything is compared with.
FEW = 100


@dataclass(frozen=True, slots=True)
class Effort:
    """How many turns the long conversation has, and how often a window is built."""

    turns: int
    rounds: int
    calls: int


async def windows(folder: Path, counter: TokenCounter, effort: Effort) -> list[Row]:
    """Windows of a long and a short conversation, beside counting the tokens again."""
    database = folder / "windows.db"
    turns = await _two_conversations(database, counter, effort, LONG)
    async with Memory.open(url_of(database), settings=_SETTINGS) as memory:
        many, few = _chat(memory, "long"), _chat(memory, "short")
        long_s, short_s = await _beside(many, few, effort)
        in_window = sum(
            verdict.block in {"recent", "older"} for verdict in (await many.context(QUESTION)).receipt.kept
        )
    whole_s, window_s = _recount_s(turns, counter), _recount_s(turns[-in_window:], counter)
    length = Row(
        "context() of a long conversation",
        long_s * 1e3,
        "ms",
        long_s / short_s,
        note=f"{effort.turns:,} turns beside {FEW}; {sum(turn.tokens for turn in turns) // len(turns)} tokens a turn",
    )
    counts = Row(
        "window from stored counts",
        long_s * 1e3,
        "ms",
        whole_s / long_s,
        note=f"{whole_s * 1e3:,.0f} ms to count the tokens of {effort.turns:,} turns again",
    )
    return [
        Row.judged(length, LENGTH_LIMIT),
        await _short_turns(folder / "windows-short.db", counter, effort),
        Row.judged(counts, COUNTS_LIMIT),
        Row(
            "the same, beside the turns in the window only",
            long_s * 1e3,
            "ms",
            window_s / long_s,
            note=f"{window_s * 1e3:,.1f} ms to count the tokens of {in_window} turns again",
        ),
        *await _recall(database, effort, long_s),
    ]


async def _short_turns(database: Path, counter: TokenCounter, effort: Effort) -> Row:
    """With short turns the window of the long conversation holds more of them: it has more to do."""
    turns = await _two_conversations(database, counter, effort, SHORT)
    async with Memory.open(url_of(database), settings=_SETTINGS) as memory:
        many, few = _chat(memory, "long"), _chat(memory, "short")
        long_s, short_s = await _beside(many, few, effort)
        held = len((await many.context(QUESTION)).messages) // 2
    tokens = sum(turn.tokens for turn in turns) // len(turns)
    note = f"{held} turns in the window beside {FEW}; {tokens} tokens a turn"
    return Row("context() with short turns", long_s * 1e3, "ms", long_s / short_s, note=note)


async def _recall(database: Path, effort: Effort, window_s: float) -> list[Row]:
    async with Memory.open(url_of(database), settings=_SETTINGS) as memory:
        chat = _chat(memory, "long")
        began = time.perf_counter()
        await chat.recall(QUESTION)
        cold_s = time.perf_counter() - began
        (warm_s,) = await side_by_side(lambda: chat.recall(QUESTION), rounds=5, calls=effort.calls)
    return [
        Row(
            "recall(), warm",
            warm_s * 1e3,
            "ms",
            warm_s / window_s,
            note=f"{effort.turns:,} turns, beside context()",
        ),
        Row(
            "recall(), first time",
            cold_s * 1e3,
            "ms",
            cold_s / warm_s,
            note="makes the word index; beside warm",
        ),
    ]


async def _two_conversations(database: Path, counter: TokenCounter, effort: Effort, size: Size) -> list[Turn]:
    """The turns of the long one."""
    author = Author(counter)
    await fill(database, author.turns(Scope(user="bench", conversation="short"), FEW, size))
    turns = author.turns(Scope(user="bench", conversation="long"), effort.turns, size)
    await fill(database, turns)
    return turns


async def _beside(many: Conversation, few: Conversation, effort: Effort) -> tuple[float, float]:
    long_s, short_s = await side_by_side(
        lambda: many.context(QUESTION),
        lambda: few.context(QUESTION),
        rounds=effort.rounds,
        calls=effort.calls,
    )
    return long_s, short_s


def _chat(memory: Memory, name: str) -> Conversation:
    return memory.conversation(name, user_id="bench")


def _recount_s(turns: Sequence[Turn], counter: TokenCounter) -> float:
    """Seconds to count what the log knows already, the best of three."""
    taken: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        for turn in turns:
            counter.count(turn.user or "")
            counter.count(turn.assistant or "")
        taken.append(time.perf_counter() - began)
    return min(taken)
