"""Random interleavings of writes, checkpoints and crashes; every turn that ended is somewhere, exactly once."""

from contextlib import AsyncExitStack, suppress

from hypothesis import strategies as st

from pagefile import ConflictError, InvalidArgumentError, Memory, Settings
from pagefile.tiers.checkpoints import WindowRules
from pagefile.tiers.history import History

SETTINGS = Settings(on_tier_error="raise", recall="never", checkpoints="manual", calls_kept=0)
RULES = WindowRules(window_tokens=400, threshold=0.75, recent_turns=3)

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.integers(1, 12)),
        st.tuples(st.just("begin"), st.just(0)),
        st.tuples(st.just("complete"), st.integers(0, 3)),
        st.tuples(st.just("abort"), st.integers(0, 3)),
        st.tuples(st.just("prepare"), st.integers(0, 1)),
        st.tuples(st.just("apply"), st.integers(0, 1)),
        st.tuples(st.just("maintain"), st.integers(0, 1)),
        st.tuples(st.just("by hand"), st.integers(0, 4)),
        st.tuples(st.just("reset"), st.just(0)),
        st.tuples(st.just("crash"), st.integers(0, 1)),
    ),
    max_size=25,
)


class Play:
    """Two processes on one database, and the list of what was completed since the last reset."""

    def __init__(self, url, sessions=None):
        self.url, self.sessions = url, sessions
        self.done, self.open, self.prepared = [], [], {}
        #: Open turns from before the last reset, and how many of `done` have no answer.
        self.left = set()

    async def run(self, actions):
        async with AsyncExitStack() as stack:
            self.stack = stack
            self.processes = [await self._opened(), await self._opened()]
            for number, (verb, value) in enumerate(actions):
                await getattr(self, verb.replace(" ", "_"))(number, value)
                await self.check()

    async def _opened(self):
        return await self.stack.enter_async_context(
            Memory.open(self.url, settings=SETTINGS, sessions=self.sessions)
        )

    def chat(self, process):
        return self.processes[process].conversation("c", user_id="u")

    def work(self, process):
        return self.processes[process].engine.tier(History).checkpoints

    async def record(self, number, value):
        await self.chat(number % 2).record(
            user=f"turn {number} " + "word " * value, assistant="ok", id=f"t{number}"
        )
        self.done.append(f"t{number}")

    async def begin(self, number, value):
        self.open.append(await self.chat(number % 2).begin(f"turn {number}", id=f"t{number}"))

    async def complete(self, number, value):
        if value < len(self.open):
            turn = self.open.pop(value)
            await self.chat(number % 2).complete(turn, "done")
            self.done.append(turn.id)

    async def abort(self, number, value):
        if value < len(self.open):
            turn = self.open.pop(value)
            await self.chat(number % 2).abort(turn)
            self.done.append(turn.id)

    async def prepare(self, number, process):
        scope, work = self.chat(process).scope, self.work(process)
        self.prepared[process] = await work._prepare(scope, await work.view(scope), RULES)

    async def apply(self, number, process):
        prepared = self.prepared.pop(process, None)
        if prepared is not None:
            with suppress(ConflictError):
                await self.work(process)._apply(prepared)

    async def maintain(self, number, process):
        await self.work(process).maintain(self.chat(process).scope, RULES)

    async def by_hand(self, number, recent):
        with suppress(InvalidArgumentError):
            await self.chat(number % 2).checkpoint(f"summary {number}", recent_turns=recent)

    async def reset(self, number, value):
        await self.chat(number % 2).reset()
        self.done, self.left = [], {turn.id for turn in self.open}

    async def crash(self, number, process):
        """The process is gone with everything it had prepared; another takes its place."""
        self.prepared.pop(process, None)
        self.processes[process] = await self._opened()

    async def check(self):
        window = await self.chat(0).context(window_tokens=1_000_000)
        shown = [verdict.id for verdict in window.receipt if verdict.block in {"recent", "older"}]
        running = {turn.id for turn in self.open}
        assert {turn_id for turn_id in shown if turn_id in running} == running - self.left
        shown = [turn_id for turn_id in shown if turn_id not in running]
        checkpoints = await self.chat(1).checkpoints()
        live = set(shown)
        covered = [turn_id for turn_id in self.done if turn_id not in live]
        # Those shown are the newest, without a gap, each once; those before them are spoken for by the summary.
        assert sorted(shown) == sorted(self.done[len(covered) :])
        assert len(shown) == len(live)
        summary = [verdict for verdict in window.receipt if verdict.block == "summary"]
        assert bool(covered) <= bool(summary)
        if summary:
            newest = checkpoints[-1]
            turns = {turn.id: turn.seq for turn in await self.chat(0).turns(limit=1000)}
            assert all(turns[turn_id] <= newest.covered_through_seq for turn_id in covered)
            assert all(turns[turn_id] > newest.covered_through_seq for turn_id in shown)
