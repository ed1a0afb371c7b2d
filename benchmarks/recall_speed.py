"""`pagefile bench recall --speed`: what a recall costs however much there is, how fast turns become findable, and a cold start.

Vectors of the large databases mean nothing: what is measured is finding, and the encoder has rows of its own. Beside a
recall is what numpy takes to multiply the same vectors and to pick as many of them: nothing that finds by meaning takes less.

Times are processor time of all threads, which a busy machine changes least.
"""

import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from statistics import median

import anyio
import anyio.lowlevel
import numpy as np

from benchmarks import ROOT
from benchmarks.corpus import LONG, SHORT, Author, url_of
from benchmarks.peak import peak_mb
from benchmarks.report import Limit, Report, Row, machine_facts
from benchmarks.timing import side_by_side
from pagefile.engine import Memory
from pagefile.models.embedders import MemoryEncoder
from pagefile.ports import Embedder, Vector
from pagefile.records import Scope
from pagefile.settings import Settings
from pagefile.stores import open_store
from pagefile.text.tokens import TokenCounter, open_counter
from pagefile.tiers.episodes import NEAREST

Progress = Callable[[str], None]

MANY_LIMIT = Limit("at most", 3.0)
CROWD_LIMIT = Limit("at most", 1.2)
COLD_LIMIT = Limit("at most", 0.5)

#: Turns of one conversation; who has more has several.
_TURNS_EACH = 500
#: Turns of each of the other users.
_TURNS_OF_OTHERS = 20
_MANUAL = Settings(indexing="manual", checkpoints="manual", synchronous="normal")


@dataclass(frozen=True, slots=True)
class _Effort:
    """How much there is, and how often it is asked for."""

    many: int
    few: int
    #: Turns of the largest user, whose memory is measured, too.
    most: int
    others: int
    #: Turns that the encoder reads.
    encoded: int
    rounds: int
    calls: int


_FULL = _Effort(many=10_000, few=1_000, most=100_000, others=1_000, encoded=300, rounds=15, calls=10)
_QUICK = _Effort(many=2_000, few=200, most=5_000, others=100, encoded=60, rounds=5, calls=5)


class _Arbitrary(Embedder):
    """As long as the encoder's vectors, the same for the same text, and without a meaning."""

    name = "arbitrary"
    dimension = MemoryEncoder.dimension
    batch = 1000

    async def embed(self, texts: Sequence[str]) -> Vector:
        rows = [
            np.random.default_rng(zlib.crc32(text.encode())).standard_normal(self.dimension, np.float32)
            for text in texts
        ]
        found = np.stack(rows)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def run(*, quick: bool = False, progress: Progress | None = None) -> Report:
    """Measure in a folder of its own, which is gone afterwards."""
    began = time.perf_counter()
    tell = progress or _noop
    counter = open_counter()
    with tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder:
        rows = anyio.run(_measured, Path(folder), counter, _QUICK if quick else _FULL, tell)
    return Report(rows, machine_facts(counter.name), quick, time.perf_counter() - began)


async def _measured(folder: Path, counter: TokenCounter, effort: _Effort, tell: Progress) -> list[Row]:
    author = Author(counter)
    alone, crowd = folder / "alone.db", folder / "crowd.db"
    tell(f"writing {effort.many:,} turns of one user, {effort.few:,} of another")
    await _written(alone, author, {"many": effort.many, "few": effort.few})
    tell("starting cold, without and with kept terms")
    cold = await _cold(alone, author, effort)
    tell(f"recalling among {effort.many:,} turns and among {effort.few:,}")
    rows = [
        await _by_size(alone, author, effort),
        await _beside_scan(alone, author, "many", effort.many, effort),
    ]
    rows.append(await _with_encoder(alone, author, effort))
    rows.append(await _blocking(alone, author, effort))
    tell(f"writing {effort.most:,} turns of a third")
    large = folder / "large.db"
    await _written(large, author, {"most": effort.most})
    await _indexed(large)
    tell(f"recalling among {effort.most:,} turns")
    rows.append(await _beside_scan(large, author, "most", effort.most, effort))
    rows.append(_memory(large, effort))
    tell(f"writing {_TURNS_OF_OTHERS} turns of each of {effort.others:,} other users")
    others = {f"other-{number}": _TURNS_OF_OTHERS for number in range(effort.others)}
    await _written(crowd, Author(counter), {"many": effort.many, "few": effort.few, **others})
    await _indexed(crowd)
    tell("recalling beside them")
    rows.append(await _by_company(alone, crowd, author, effort))
    tell(f"recording and indexing {effort.encoded} turns")
    return [*rows, *await _encoding(folder / "encoded.db", author, effort), cold]


async def _written(database: Path, author: Author, users: dict[str, int]) -> None:
    store = await open_store(url_of(database))
    try:
        for user, turns in users.items():
            for start in range(0, turns, _TURNS_EACH):
                scope = Scope(user=user, conversation=f"{user}/{start}")
                count = min(_TURNS_EACH, turns - start)
                size = SHORT if user.startswith(("other", "most")) else LONG
                said = author.turns(scope, count, size, distinct=None)
                await store.log.restore(said)
    finally:
        await store.close()


async def _indexed(database: Path) -> None:
    async with Memory.open(url_of(database), embedder=_Arbitrary(), settings=_MANUAL) as memory:
        await memory.rebuild()


# -- recalling ---------------------------------------------------------------------------------------------------------


def _questions(author: Author) -> Iterator[str]:
    return cycle([author.side(1) for _ in range(50)])


async def _by_size(database: Path, author: Author, effort: _Effort) -> Row:
    asked = _questions(author)
    async with Memory.open(url_of(database), embedder=_Arbitrary(), settings=_MANUAL) as memory:
        many_s, few_s = await side_by_side(
            lambda: memory.recall(next(asked), user_id="many"),
            lambda: memory.recall(next(asked), user_id="few"),
            rounds=effort.rounds,
            calls=effort.calls,
            clock=time.process_time,
        )
    note = f"{few_s * 1e3:,.1f} ms over {effort.few:,}; by word and by vector, best 10 with their neighbours"
    row = Row(f"recall over {effort.many:,} turns of a user", many_s * 1e3, "ms", many_s / few_s, note=note)
    return Row.judged(row, MANY_LIMIT)


async def _beside_scan(database: Path, author: Author, user: str, turns: int, effort: _Effort) -> Row:
    """A recall with the vector of its question given, beside numpy over as many vectors."""
    asked = _questions(author)
    random = np.random.default_rng(1)
    vectors = random.standard_normal((turns, _Arbitrary.dimension), np.float32)

    async def scan() -> object:
        similarity = vectors @ vectors[0]
        return np.argpartition(similarity, -min(NEAREST, turns))[-NEAREST:]

    async with Memory.open(url_of(database), embedder=_Arbitrary(), settings=_MANUAL) as memory:
        recall_s, scan_s = await side_by_side(
            lambda: memory.recall(next(asked), user_id=user),
            scan,
            rounds=effort.rounds,
            calls=effort.calls,
            clock=time.process_time,
        )
    note = f"{scan_s * 1e3:,.2f} ms for numpy to multiply {turns:,} vectors and pick {NEAREST:,}"
    return Row(
        f"recall over {turns:,} turns, vectors given", recall_s * 1e3, "ms", recall_s / scan_s, note=note
    )


async def _with_encoder(database: Path, author: Author, effort: _Effort) -> Row:
    """From a question to its hits with our encoder, whose name the vectors of this database bear for a moment.

    No question is asked twice: its vector would be remembered.
    """
    number, encoder = count(), _Named(MemoryEncoder())

    def question() -> str:
        return f"{author.side(1)} {next(number)}"

    await encoder.ready()
    async with Memory.open(url_of(database), embedder=encoder, settings=_MANUAL) as memory:
        await memory.recall(question(), user_id="many")
        with_s, alone_s = await side_by_side(
            lambda: memory.recall(question(), user_id="many"),
            lambda: encoder.embed([question()]),
            rounds=effort.rounds,
            calls=effort.calls,
            clock=time.process_time,
        )
    name = f"question to hits with the encoder, {effort.many:,} turns"
    note = f"beside {alone_s * 1e3:,.1f} ms of the encoder for one text"
    return Row(name, with_s * 1e3, "ms", with_s / alone_s, note=note)


class _Named(Embedder):
    """The encoder under the name of vectors that mean nothing: what it makes is searched for among those."""

    name = _Arbitrary.name
    dimension = _Arbitrary.dimension

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self.batch = encoder.batch

    async def ready(self) -> None:
        await self._encoder.ready()

    async def embed(self, texts: Sequence[str]) -> Vector:
        return await self._encoder.embed(texts)


async def _blocking(database: Path, author: Author, effort: _Effort) -> Row:
    """The longest that this process computed without the event loop having its turn, during a first recall and some more, beside itself when idle."""
    asked = _questions(author)
    idle_s = await _longest_gap(anyio.sleep(0.3))
    async with Memory.open(url_of(database), embedder=_Arbitrary(), settings=_MANUAL) as memory:

        async def recalls() -> None:
            for _ in range(20):
                await memory.recall(next(asked), user_id="many")

        busy_s = await _longest_gap(recalls())
    note = f"{idle_s * 1e3:,.1f} ms when nothing is done; a first recall of {effort.many:,} turns and 19 more"
    return Row("longest pause of the event loop", busy_s * 1e3, "ms", busy_s / idle_s, note=note)


async def _longest_gap(work: Awaitable[object]) -> float:
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        before = time.process_time()
        while True:
            await anyio.lowlevel.checkpoint()
            now = time.process_time()
            longest, before = max(longest, now - before), now

    async with anyio.create_task_group() as ticking:
        ticking.start_soon(tick)
        await work
        ticking.cancel_scope.cancel()
    return longest


def _memory(database: Path, effort: _Effort) -> Row:
    """In a process of its own, beside one that recalls nothing: this one has seen too much to say."""
    held, empty = (_peak_mb(database, user) for user in ("most", "nobody"))
    note = f"{empty:,.0f} MB in a process that finds nothing; vectors given, 20 recalls"
    return Row(f"peak memory with {effort.most:,} turns", held, "MB", held / empty, note=note)


def _peak_mb(database: Path, user: str) -> float:
    return _elsewhere("peak", database, user)


def _elsewhere(what: str, database: Path, given: str) -> float:
    """What a process of its own prints."""
    command = [sys.executable, "-m", "benchmarks.recall_speed", what, str(database), given]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: S603 - our own interpreter
    return float(done.stdout)


async def _peak_of(database: str, user: str) -> float:
    asked = _questions(Author(open_counter()))
    async with Memory.open(url_of(Path(database)), embedder=_Arbitrary(), settings=_MANUAL) as memory:
        for _ in range(20):
            await memory.recall(next(asked), user_id=user)
    return peak_mb()


async def _by_company(alone: Path, crowd: Path, author: Author, effort: _Effort) -> Row:
    asked = _questions(author)
    async with (
        Memory.open(url_of(alone), embedder=_Arbitrary(), settings=_MANUAL) as quiet,
        Memory.open(url_of(crowd), embedder=_Arbitrary(), settings=_MANUAL) as full,
    ):
        crowd_s, alone_s = await side_by_side(
            lambda: full.recall(next(asked), user_id="few"),
            lambda: quiet.recall(next(asked), user_id="few"),
            rounds=2 * effort.rounds,
            calls=effort.calls,
            clock=time.process_time,
        )
    turns = effort.others * _TURNS_OF_OTHERS
    note = f"{alone_s * 1e3:,.1f} ms without them; the others have {turns:,} turns"
    name = f"recall over {effort.few:,} turns, {effort.others:,} other users in the database"
    return Row.judged(Row(name, crowd_s * 1e3, "ms", crowd_s / alone_s, note=note), CROWD_LIMIT)


async def _cold(database: Path, author: Author, effort: _Effort) -> Row:
    """The first recall of a process: once when nothing is kept, then with kept terms and vectors."""
    question = author.side(1)
    without_s = _elsewhere("first", database, question)
    await _indexed(database)
    with_s = min([_elsewhere("first", database, question) for _ in range(5)])
    note = f"{without_s:,.2f} s when every turn is segmented first"
    name = f"first recall of a process, {effort.many:,} turns with kept terms and vectors"
    return Row.judged(Row(name, with_s, "s", with_s / without_s, note=note), COLD_LIMIT)


async def _first_recall_s(database: str, question: str) -> float:
    async with Memory.open(url_of(Path(database)), embedder=_Arbitrary(), settings=_MANUAL) as memory:
        began = time.process_time()
        await memory.recall(question, user_id="many")
        return time.process_time() - began


# -- the encoder -------------------------------------------------------------------------------------------------------


async def _encoding(database: Path, author: Author, effort: _Effort) -> list[Row]:
    encoder = MemoryEncoder()
    await encoder.ready()
    question_s = await _question_s(encoder, author)
    async with Memory.open(url_of(database), embedder=encoder, settings=_MANUAL) as memory:
        chat = memory.conversation("chat", user_id="u")
        began = time.process_time()
        for turn in author.turns(chat.scope, effort.encoded, LONG):
            await chat.record(turn.user, turn.assistant)
        recorded = effort.encoded / (time.process_time() - began)
        began = time.process_time()
        await memory.rebuild()
        indexed = effort.encoded / (time.process_time() - began)
    return [
        Row("the vector of a question", question_s * 1e3, "ms", note="by the encoder"),
        Row(
            "indexing, terms and vectors",
            indexed,
            "turns/s",
            indexed / recorded,
            note=f"of 200 tokens, by one core in the background, beside {recorded:,.0f} turns/s that are recorded",
        ),
    ]


async def _question_s(encoder: Embedder, author: Author) -> float:
    taken: list[float] = []
    for number in range(20):
        question = f"{author.side(1)} {number}"
        began = time.process_time()
        await encoder.embed([question])
        taken.append(time.process_time() - began)
    return median(taken)


def _noop(_: str) -> None:
    return


if __name__ == "__main__":
    kind, database, given = sys.argv[1:]
    print(anyio.run({"peak": _peak_of, "first": _first_recall_s}[kind], database, given))
