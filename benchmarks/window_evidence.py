"""Evidence in the window: how much of what answers a question is there, beside finds packed into the same budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.recall_peers import open_peers
from benchmarks.recall_rankers import PlainRanker, Ranker
from benchmarks.window_data import PIECE_CHARS, Person, Question, people, plain
from benchmarks.window_parts import (
    COUNT,
    PLAIN,
    RECALL,
    WINDOW,
    Bench,
    Line,
    pieces,
    precision,
    recall_tokens,
    seen,
)
from pagefile.engine import Conversation, Memory
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD
from pagefile.window.receipt import Window

BUDGETS = (1_000, 2_000, 4_000, 8_000)
#: How many finds are packed at most.
DEPTH = 200
#: Packing is tried with these budgets too, to see what it needs for the share that a window holds.
_SMALL = (50, 100, 150, 200, 300, 400, 500, 650, 800, 1_300, 1_600, 3_000, 6_000)
#: A sample has this many people, and this many questions of each.
_QUICK = {"LoCoMo": (1, 40), "LongMemEval-S": (4, 1), "LifeBench-zh": (1, 30), "REALTALK": (1, 40)}


@dataclass(frozen=True, slots=True)
class Packed:
    """Finds, best first, as much as fits: what a budget of tokens holds."""

    texts: tuple[str, ...]
    tokens: int


def packed(texts: Sequence[str], question: str, budget: int) -> Packed:
    """One that does not fit is left out, and the next is tried; the question is in the budget too."""
    used = COUNT(question) + 2 * MESSAGE_OVERHEAD + REPLY_OVERHEAD
    kept: list[str] = []
    for text in texts:
        cost = COUNT(text) + 1
        if used + cost <= budget:
            kept.append(text)
            used += cost
    return Packed(tuple(kept), used)


async def measured(
    bench: Bench, name: str, data: Path, peers: Path | None, left_out: Callable[[str], None]
) -> list[Line]:
    """Everybody of a set; others' stores are compared if there is a folder for them, or `left_out` says why not."""
    everybody = people(name, data)
    users, questions = _QUICK[name] if bench.quick else (None, None)
    lines: list[Line] = []
    rankers: list[Ranker] = [PlainRanker()]
    if peers is not None:
        (place := peers / name).mkdir()
        rankers += open_peers(bench.vectors, place, left_out)
    for number, person in enumerate(everybody[:users], 1):
        bench.tell(f"{name}: user {number} of {len(everybody[:users])}")
        ways = "-".join(ranker.name for ranker in rankers)
        work = partial(_person, bench, name, person, person.questions[:questions], rankers)
        lines += await bench.once(f"{name}-{person.corpus.user}-{ways}", work)
    return lines


async def _person(
    bench: Bench, name: str, person: Person, asked: Sequence[Question], rankers: Sequence[Ranker]
) -> list[Line]:
    async with bench.memory() as memory:
        await _record(bench, memory, person)
        for ranker in rankers:
            await ranker.take(person.corpus)
        return await _asked(_Asking(bench, memory, name, person), asked, rankers)


async def _record(bench: Bench, memory: Memory, person: Person) -> None:
    chats: dict[str, Conversation] = {}
    user = person.corpus.user
    for number, one in enumerate(person.corpus.said):
        bench.clock.set(one.at)
        chat = chats.setdefault(
            one.conversation, memory.conversation(f"{user}/{one.conversation}", user_id=user)
        )
        turn = f"{user}/{number}"
        await chat.record(one.user, one.assistant, id=turn, at=one.at, metadata={"said": one.id})
    await memory.settle()


@dataclass(frozen=True, slots=True)
class _Asking:
    """One person, whose memory is filled."""

    bench: Bench
    memory: Memory
    set: str
    person: Person

    @property
    def chats(self) -> dict[str, Conversation]:
        """Where it is asked: in a new conversation, and at the end of the long one."""
        user = self.person.corpus.user
        new = {"new": self.memory.conversation(f"{user}/new", user_id=user)}
        if not self.person.one_conversation:
            return new
        return {**new, "same": self.memory.conversation(f"{user}/talk", user_id=user)}

    async def windows(self, question: Question) -> list[Line]:
        """The window of each size in each conversation."""
        asked = question.asked
        return [
            self._line(
                question,
                f"{WINDOW}, {place}",
                budget,
                **_figures(question, await chat.context(asked.text, window_tokens=budget)),
            )
            for place, chat in self.chats.items()
            for budget in BUDGETS
        ]

    def packs(self, question: Question, way: str, texts: Sequence[str]) -> list[Line]:
        """The same finds in every budget."""
        return [
            self._line(question, way, budget, **_packed_figures(question, texts, budget))
            for budget in sorted({*BUDGETS, *(_SMALL if way == RECALL else ())})
        ]

    def _line(self, question: Question, way: str, budget: int, **figures: float) -> Line:
        asked = question.asked
        return Line(self.set, way, asked.id, asked.kind, asked.text, budget, figures)


async def _asked(asking: _Asking, questions: Sequence[Question], rankers: Sequence[Ranker]) -> list[Line]:
    memory, user = asking.memory, asking.person.corpus.user
    texts = {one.id: one.text for one in asking.person.corpus.said}
    if (long := asking.chats.get("same")) and (await long.head()).live_turns > memory.settings.recent_turns:
        # The long conversation filled its window long ago: what left it is in a summary.
        await long.checkpoint()
    lines: list[Line] = []
    for question in questions:
        asking.bench.clock.set(question.asked.at)
        lines += await asking.windows(question)
        hits = await memory.recall(question.asked.text, user_id=user, limit=DEPTH, at=question.asked.at)
        lines += asking.packs(question, RECALL, [texts[str(hit.metadata["said"])] for hit in hits])
        for ranker in rankers:
            way = PLAIN if isinstance(ranker, PlainRanker) else f"{ranker.name} packed"
            found = await ranker.rank(question.asked, DEPTH)
            lines += asking.packs(question, way, [texts[one] for one in found])
    return lines


def _figures(question: Question, window: Window) -> dict[str, float]:
    text = seen(window)
    held = question.held(text)
    figures = {
        "share": len(held) / len(question.evidence),
        "tokens": float(window.tokens),
        "recall tokens": float(recall_tokens(window)),
    }
    return {**figures, **precision(pieces(window), _gold(question))}


def _packed_figures(question: Question, texts: Sequence[str], budget: int) -> dict[str, float]:
    pack = packed(texts, question.asked.text, budget)
    text = plain("\n".join(pack.texts))
    held = question.held(text)
    figures = {"share": len(held) / len(question.evidence), "tokens": float(pack.tokens)}
    return {**figures, **precision([plain(one) for one in pack.texts], _gold(question))}


def _gold(question: Question) -> list[str]:
    """What a piece is known by."""
    return [plain(one)[:PIECE_CHARS] for one in question.evidence]
