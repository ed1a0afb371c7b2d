"""`pagefile bench short-term`: a window costs the same however long the conversation is, and little more than its queries.

Conversations are written as in real life: turn by turn, with checkpoints made by the engine in the background. Those that are
compared end alike, in the middle between two checkpoints: a summary, eight turns it left verbatim and those written since.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from uuid import uuid4

import anyio

from benchmarks.corpus import LONG, Author
from benchmarks.delay import delayed
from benchmarks.report import Limit, Report, Row, machine_facts
from benchmarks.servers import Place, opened_place
from benchmarks.timing import side_by_side
from pagefile.engine import Conversation, Memory
from pagefile.records import JsonObject, Scope, Turn
from pagefile.settings import FactSettings, Settings
from pagefile.standalone import AgentApp, MemoryQueryRequest, MemoryWriteRequest
from pagefile.stores import open_store
from pagefile.text.tokens import TokenCounter, open_counter

QUERIES_LIMIT = Limit("at most", 2.0)
ROWS_LIMIT = Limit("at most", 1.0)
LENGTH_LIMIT = Limit("at most", 1.3)
#: A third of a window's time is reading rows into turns, the rest is offering, packing and rendering 33 of them and noting the call.
#: That is about a millisecond of Python beside 0.4 ms of a driver in C: 2.9 to 4.3 × was measured.
BARE_LIMIT = Limit("at most", 5.0)
#: What a read of Redis may take by the design.
READ_LIMIT_S, READ_LIMIT = 0.002, Limit("at most", 1.0)
SESSION_LIMIT = Limit("at most", 0.6)
QUERY_LIMIT = Limit("at most", 0.8)
#: A wire to another machine: how long a byte takes, each way.
_ONE_WAY_S = 0.0005

QUESTION = "What did Anna decide about the compressor, and when?"
#: The short conversation that the long one is compared with.
FEW = 100
#: Turns behind the last checkpoint: those it leaves verbatim, and those written since.
VERBATIM, SINCE = 8, 24
#: A long conversation repeats itself after this many turns: making up more takes longer than writing them.
_DISTINCT = 2_000
#: This many turns are written before the background may catch up, as it would while a user reads.
_BREATH = 10

#: Neither past turns nor facts are looked up: they have rows of their own elsewhere.
_SETTINGS = Settings(recall="never", indexing="manual", facts=FactSettings(enabled=False))
_MANUAL = Settings(recall="never", indexing="manual", facts=FactSettings(enabled=False), checkpoints="manual")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Effort:
    """How much is measured."""

    turns: int
    rounds: int
    calls: int
    #: Turns of a conversation through `AgentApp`, and reads of a session.
    single_calls: int


_FULL = _Effort(turns=10_000, rounds=60, calls=5, single_calls=200)
_QUICK = _Effort(turns=500, rounds=12, calls=5, single_calls=40)


@dataclass(frozen=True, slots=True)
class ShortTermReport:
    """The rows, and what was not measured as it should be."""

    report: Report
    #: Why it was not PostgreSQL with Redis, if it was not.
    instead: str | None

    @property
    def ok(self) -> bool:
        """Whether every limit was kept."""
        return self.report.ok

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        return {**self.report.to_json(), "instead": self.instead}


def run(
    url: str | None = None,
    sessions: str | None = None,
    *,
    quick: bool = False,
    progress: Progress | None = None,
) -> ShortTermReport:
    """Measure on the servers given, else on servers of our own; whatever is written there is erased at the end."""
    began = time.perf_counter()
    counter = open_counter()
    with opened_place(url, sessions) as place:
        bench = _Bench(place, f"bench-{uuid4().hex}", counter, _QUICK if quick else _FULL, progress or _noop)
        rows, described = anyio.run(bench.measure)
    facts: JsonObject = {
        "store": f"{described['backend']} {described['version']}",
        "sessions": "none" if place.sessions is None else "redis",
        **machine_facts(counter.name),
    }
    return ShortTermReport(Report(rows, facts, quick, time.perf_counter() - began), place.instead)


@dataclass(frozen=True, slots=True)
class _Bench:
    """One run: where, as whom, how much."""

    place: Place
    tenant: str
    counter: TokenCounter
    effort: _Effort
    tell: Progress

    async def measure(self) -> tuple[list[Row], JsonObject]:
        """Every row, and what the store says of itself."""
        async with Memory.open(self.place.url, sessions=self.place.sessions, settings=_SETTINGS) as memory:
            try:
                rows = await self._with(memory)
            finally:
                self.tell("erasing what was written")
                await memory.forget(tenant=self.tenant)
            return rows, await memory.engine.store.describe()

    async def _with(self, memory: Memory) -> list[Row]:
        self.tell(f"writing conversations of {FEW} and {self.effort.turns:,} turns, checkpoints included")
        few = await self._written(memory, "short", FEW)
        many = await self._written(memory, "long", self.effort.turns)
        await memory.settle()
        self.tell("building windows")
        rows = await (
            self._beside_bare(memory, few, many) if self.place.on_postgres else self._lengths(few, many)
        )
        self.tell(f"building windows of {self.effort.turns:,} turns that were never summarised")
        rows.append(await self._never_checkpointed())
        self.tell("talking through AgentApp")
        rows += await self._app(memory)
        if self.place.sessions is not None:
            self.tell("reading a session")
            rows.append(await self._session(memory, self.place.sessions))
            self.tell("reading sessions and histories with Redis, and without it")
            rows += await self._beside_database(self.place.url, self.place.sessions, "")
            async with (
                delayed(self.place.url, _ONE_WAY_S) as url,
                delayed(self.place.sessions, _ONE_WAY_S) as sessions,
            ):
                rows += await self._beside_database(url, sessions, ", both 1 ms away")
        return rows

    async def _beside_database(self, url: str, sessions: str, where: str) -> list[Row]:
        """What the standalone functions take with Redis and with the database alone."""
        async with (
            Memory.open(url, sessions=sessions, settings=_MANUAL) as cached,
            Memory.open(url, settings=_MANUAL) as plain,
        ):
            ours, theirs = (AgentApp(memory, tenant=self.tenant) for memory in (cached, plain))
            request = MemoryQueryRequest("app", query=QUESTION)
            session = await self._timed(
                partial(ours.get_short_memory, "app"), partial(theirs.get_short_memory, "app")
            )
            history = await self._timed(
                partial(ours.query_memory_context, request), partial(theirs.query_memory_context, request)
            )
        return [
            _beside(f"GetShortMemory with Redis{where}", session, SESSION_LIMIT),
            _beside(f"QueryMemoryContext with Redis{where}", history, QUERY_LIMIT),
        ]

    async def _written(self, memory: Memory, name: str, count: int) -> Conversation:
        chat = self._chat(memory, name)
        turns = self._turns(name, count)
        for number, turn in enumerate(turns[:-SINCE]):
            await chat.record(turn.user, turn.assistant)
            if number % _BREATH == 0:
                await memory.settle()
        await memory.settle()
        await chat.checkpoint(recent_turns=VERBATIM)
        for turn in turns[-SINCE:]:
            await chat.record(turn.user, turn.assistant)
        return chat

    async def _lengths(self, few: Conversation, many: Conversation) -> list[Row]:
        long_s, short_s = await self._timed(partial(many.context, QUESTION), partial(few.context, QUESTION))
        return [await self._length(few, many, long_s, short_s)]

    async def _beside_bare(self, memory: Memory, few: Conversation, many: Conversation) -> list[Row]:
        from benchmarks.statements import BareQueries, watched  # noqa: PLC0415 - the extra postgres, which others do not have

        await many.context(QUESTION)
        # What the call before left to write would be counted too.
        await memory.settle()
        with watched() as asked:
            await many.context(QUESTION)
            queries = tuple(asked)
        async with BareQueries.open(self.place.url) as bare:
            read, returned = await bare.rows_read(queries), await bare.run(queries)
            long_s, short_s, bare_s = await self._timed(
                partial(many.context, QUESTION), partial(few.context, QUESTION), partial(bare.run, queries)
            )
        segment = VERBATIM + SINCE
        counted = Row("queries of a context() after a checkpoint", len(queries), "queries", len(queries))
        touched = Row(
            "rows of the log they read",
            read,
            "rows",
            read / (segment + 1),
            note=f"{segment} turns behind the checkpoint, and one to find the first; {self.effort.turns:,} were written",
        )
        beside = Row(
            "context() beside its bare queries",
            long_s * 1e3,
            "ms",
            long_s / bare_s,
            note=f"{bare_s * 1e3:,.2f} ms for the same SQL, {returned} rows fetched, on a pool like the store's",
        )
        return [
            Row.judged(counted, QUERIES_LIMIT),
            Row.judged(touched, ROWS_LIMIT),
            await self._length(few, many, long_s, short_s),
            Row.judged(beside, BARE_LIMIT),
        ]

    async def _length(self, few: Conversation, many: Conversation, long_s: float, short_s: float) -> Row:
        made, before = len(await many.checkpoints()), len(await few.checkpoints())
        note = (
            f"{self.effort.turns:,} turns and {made} checkpoints beside {FEW} and {before}; "
            f"{(await many.context(QUESTION)).tokens:,} tokens beside {(await few.context(QUESTION)).tokens:,}"
        )
        row = Row("context() of a long conversation", long_s * 1e3, "ms", long_s / short_s, note=note)
        return Row.judged(row, LENGTH_LIMIT)

    async def _never_checkpointed(self) -> Row:
        """Imported turns have no summary, until the first window asks for one."""
        store = await open_store(self.place.url)
        try:
            for name, count in (("raw short", FEW), ("raw long", self.effort.turns)):
                await store.log.restore(self._turns(name, count))
        finally:
            await store.close()
        async with Memory.open(self.place.url, sessions=self.place.sessions, settings=_MANUAL) as memory:
            few, many = self._chat(memory, "raw short"), self._chat(memory, "raw long")
            long_s, short_s = await self._timed(
                partial(many.context, QUESTION), partial(few.context, QUESTION)
            )
            held = len((await many.context(QUESTION)).messages) // 2
        note = f"{self.effort.turns:,} turns beside {FEW}; {held} turns fill the window"
        return Row("context() with no checkpoint at all", long_s * 1e3, "ms", long_s / short_s, note=note)

    async def _app(self, memory: Memory) -> list[Row]:
        """The document's own loop, its summaries included, which are made in the background."""
        app = AgentApp(memory, tenant=self.tenant)
        reads: list[float] = []
        writes: list[float] = []
        for turn in self._turns("app", self.effort.single_calls):
            began = time.perf_counter()
            context = await app.query_memory_context(MemoryQueryRequest("app", query=turn.user or ""))
            reads.append(time.perf_counter() - began)
            if context.should_checkpoint_summary:
                await app.checkpoint_short_memory("app", "They spoke about orders, meetings and allergies.")
            began = time.perf_counter()
            await app.write_turn(
                MemoryWriteRequest("app", agent_response=turn.assistant or "", user_id="bench")
            )
            writes.append(time.perf_counter() - began)
        note = f"AgentApp, p50 of {self.effort.single_calls} turns, summaries in between"
        return [
            Row("query_memory_context()", median(reads) * 1e3, "ms", note=note),
            Row("write_turn()", median(writes) * 1e3, "ms", note=note),
        ]

    async def _session(self, memory: Memory, sessions: str) -> Row:
        from benchmarks.bare_redis import bare_get  # noqa: PLC0415 - the extra redis, which others do not have

        scope = self._scope("long")
        async with bare_get(sessions, scope) as get:
            ours, bare = await self._timed(partial(memory.engine.sessions.get, scope), get)
        note = (
            f"of the {READ_LIMIT_S * 1e3:.0f} ms that the design allows; {bare * 1e6:,.0f} µs for a bare GET, "
            "ours reads the label too, checks the seal and parses the value"
        )
        return Row.judged(
            Row("session through Redis", ours * 1e6, "µs", ours / READ_LIMIT_S, note=note), READ_LIMIT
        )

    async def _timed(self, *sides: Callable[[], Awaitable[object]]) -> tuple[float, ...]:
        return await side_by_side(*sides, rounds=self.effort.rounds, calls=self.effort.calls)

    def _chat(self, memory: Memory, name: str) -> Conversation:
        return memory.conversation(name, user_id="bench", tenant=self.tenant)

    def _scope(self, name: str) -> Scope:
        return Scope(self.tenant, "bench", name)

    def _turns(self, name: str, count: int) -> list[Turn]:
        return Author(self.counter).turns(self._scope(name), count, LONG, distinct=_DISTINCT)


def _beside(name: str, taken: tuple[float, ...], limit: Limit) -> Row:
    ours, alone = taken
    row = Row(name, ours * 1e3, "ms", ours / alone, note=f"{alone * 1e3:,.2f} ms with PostgreSQL alone")
    return Row.judged(row, limit)


def _noop(_: str) -> None:
    return
