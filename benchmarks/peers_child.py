"""One of those who are compared, in a process of its own, so that its memory and its disk are its own.

What to do comes in as JSON, what was measured goes out into a file: others' libraries like to print.
"""

import json
import sys
import time
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from typing import TypeVar, cast

import anyio

from benchmarks.peak import peak_mb
from benchmarks.peers_all import PEERS
from benchmarks.peers_base import BUDGET, Given, Peer, Prompt
from benchmarks.peers_script import Line, details, lines
from benchmarks.peers_vectors import Address, Vectors
from pagefile.records import JsonObject
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, TokenCounter

#: From this many turns on, turns are imported in bulk where a system can; this many are recorded one by one after them.
_BULK_FROM = 10_000
_AT_LAST = 100
#: How long the questions may take at one size, and how many are asked at least.
_ASKING_S = 4.0
_ASKED_AT_LEAST = 3
#: Whoever is stopped is measured once more if it came so much further.
_FURTHER = 1.2

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """What the process is there for."""

    peer: str
    folder: str
    place: str
    key: str
    #: How long the conversation is in which every turn asks for a prompt.
    turns: int
    #: The sizes at which it is measured as it grows; none for the conversation above.
    marks: Sequence[int] = ()
    #: A system that takes longer to grow is measured at the size it reached.
    limit_s: float = 60.0

    def to_json(self) -> str:
        """The task as it is handed to a process."""
        return json.dumps(asdict(self))


class Stopwatch:
    """Seconds that calls take, without those spent waiting for vectors."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self.taken: list[float] = []

    async def timed(self, call: Awaitable[T]) -> T:
        """What the call returns."""
        began, waited = time.perf_counter(), self._vectors.waited
        returned = await call
        waiting = self._vectors.waited - waited
        self.taken.append(max(0.0, time.perf_counter() - began - waiting))
        return returned

    def p50_ms(self, last: int | None = None) -> float | None:
        """Of the last calls, or of all."""
        taken = self.taken[-last:] if last else self.taken
        return 1000 * median(taken) if taken else None

    def mean_ms(self, last: int | None = None) -> float | None:
        """Of the last calls, or of all."""
        taken = self.taken[-last:] if last else self.taken
        return 1000 * fmean(taken) if taken else None


def rendered(prompt: Prompt) -> str:
    """A prompt as one text, in the order in which a provider reads it."""
    return "".join(f"<{message['role']}>\n{message['content']}\n" for message in prompt)


def prompt_tokens(prompt: Prompt, counter: TokenCounter) -> int:
    """What a prompt costs as a chat request."""
    said = sum(counter.count(message["content"]) + MESSAGE_OVERHEAD for message in prompt)
    return said + REPLY_OVERHEAD


def shared_prefix(before: str, after: str) -> str:
    """How two texts begin alike."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return after[:low]


def prefix_share(before: str, after: str, counter: TokenCounter) -> float:
    """How much of a prompt a provider has read already, in tokens."""
    whole = counter.count(after)
    return counter.count(shared_prefix(before, after)) / whole if whole else 1.0


async def walk(course: "Course", turns: int) -> JsonObject:
    """A conversation in which every turn asks for a prompt; then what is left of it."""
    peer, counter = course.peer, course.peer.given.counter
    sizes: list[int] = []
    shares: list[float] = []
    said: list[Line] = []
    before = ""
    for line in islice(lines(), turns):
        prompt = await peer.context(line.user)
        text = rendered(prompt)
        sizes.append(prompt_tokens(prompt, counter))
        if before:
            shares.append(prefix_share(before, text, counter))
        before = text
        await course.turn(line)
        said.append(line)
    return {
        "turns": turns,
        "prompt_tokens": round(fmean(sizes), 1),
        "largest_prompt": max(sizes),
        "over_budget": sum(size > BUDGET for size in sizes) / turns,
        "prefix_share": round(fmean(shares), 4),
        **await _asked(peer),
        **_lost(said, await peer.remains()),
        "point": await course.point(),
    }


async def _asked(peer: Peer) -> JsonObject:
    """How many details are in the prompt of their question, and how many one call more would bring."""
    in_prompt: list[bool] = []
    reached: list[bool] = []
    for detail in details():
        seen = detail.answer in rendered(await peer.context(detail.question))
        in_prompt.append(seen)
        reached.append(seen or _holds(await peer.look_up(detail.question), detail.answer))
    return {
        "details": len(details()),
        "in_prompt": sum(in_prompt),
        "reached": sum(reached),
    }


async def found(peer: Peer, watch: Stopwatch) -> JsonObject:
    """How many details are among the items recalled for their question; to recall what was said is timed."""
    if not peer.recalls:
        return {"said": None, "said_share": None, "read_share": None, "recall_ms": None}
    asked = details()
    said = [
        _holds(await watch.timed(peer.recall(one.question)), one.answer) for one in asked if not one.in_result
    ]
    read = [_holds(await peer.recall_result(one.question), one.answer) for one in asked if one.in_result]
    return {
        "said": sum(said),
        "said_share": fmean(said),
        "read_share": fmean(read),
        "recall_ms": watch.p50_ms(),
    }


def _holds(texts: Sequence[str], answer: str) -> bool:
    return any(answer in text for text in texts)


def _lost(said: Sequence[Line], remains: Iterable[str]) -> JsonObject:
    """What can be read nowhere any more, word for word."""
    left = "\n".join(remains)
    sizes = {text: len(text.encode()) for line in said for text in line.texts}
    lost = sum(size for text, size in sizes.items() if text not in left)
    return {"bytes": sum(sizes.values()), "bytes_lost": lost}


class Course:
    """A conversation on its way, with what its turns took."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        self.peer = peer
        self.count = 0
        self._folder = folder
        self._recording, self._ready = Stopwatch(peer.given.vectors), Stopwatch(peer.given.vectors)

    async def turn(self, line: Line) -> None:
        """A turn, and the pause behind it."""
        await self._ready.timed(self._recorded(line))
        self.count += 1

    async def hurried(self, line: Line) -> None:
        """An untimed turn without a pause after it."""
        await self.peer.record(line)
        self.count += 1

    async def filled(self, many: Sequence[Line]) -> None:
        """Many turns at once."""
        await self.peer.fill(many)
        self.count += len(many)

    async def settled(self) -> None:
        """A pause, a prompt, and a pause: what many turns at once leave to do is done."""
        await self.peer.idle()
        await self.peer.context(details()[0].question)
        await self.peer.idle()

    async def point(self) -> JsonObject:
        """What it takes at this size."""
        # The first of each builds what it needs.
        await self.peer.context(details()[0].question)
        context = await self._asked()
        return {
            "turns": self.count,
            "record_ms": self._recording.p50_ms(_AT_LAST),
            "ready_ms": self._ready.mean_ms(_AT_LAST),
            "context_ms": context.p50_ms(),
            **await found(self.peer, Stopwatch(self.peer.given.vectors)),
            "peak_mb": peak_mb(),
            "disk_bytes": sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file()),
        }

    async def _recorded(self, line: Line) -> None:
        await self._recording.timed(self.peer.record(line))
        await self.peer.idle()

    async def _asked(self) -> Stopwatch:
        watch = Stopwatch(self.peer.given.vectors)
        began = time.perf_counter()
        for number, detail in enumerate(details()):
            if number >= _ASKED_AT_LEAST and time.perf_counter() - began > _ASKING_S:
                break
            await watch.timed(self.peer.context(detail.question))
        return watch


async def grow(course: Course, task: Task) -> JsonObject:
    """All sizes, or as far as the time allows: then it is measured at the size it reached, if that is larger than the last."""
    script = lines()
    points: list[JsonObject] = []
    began, vectors = time.perf_counter(), course.peer.given.vectors
    for mark in task.marks:
        if mark > _BULK_FROM and course.peer.bulk:
            await course.filled(list(islice(script, mark - course.count - _AT_LAST)))
            await course.settled()
        for line in islice(script, mark - course.count):
            if course.peer.every_turn:
                await course.peer.context(line.user)
            if course.count < mark - _AT_LAST:
                await course.hurried(line)
            else:
                if course.count == mark - _AT_LAST:
                    await course.peer.idle()
                await course.turn(line)
            # A size reached in bulk is not compared, so no other system waits for it.
            if mark <= _BULK_FROM and time.perf_counter() - began - vectors.waited > task.limit_s:
                break
        await course.peer.idle()
        stopped = course.count < mark
        if not stopped or not points or course.count > _FURTHER * cast("int", points[-1]["turns"]):
            points.append(await course.point())
        if stopped:
            return {"points": [*points], "stopped": course.count}
    return {"points": [*points], "stopped": None}


async def measured(task: Task) -> JsonObject:
    """The task, done."""
    vectors = Vectors(Address(task.place, task.key))
    start = peak_mb()
    folder = Path(task.folder)
    peer = PEERS[task.peer](Given(folder, vectors))
    await peer.open()
    opened = peak_mb()
    try:
        course = Course(peer, folder)
        done = await (grow(course, task) if task.marks else walk(course, task.turns))
    finally:
        await peer.close()
    return {"start_mb": start, "opened_mb": opened, **done}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(anyio.run(measured, Task(**json.load(sys.stdin)))))
