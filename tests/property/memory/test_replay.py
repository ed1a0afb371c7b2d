"""A recorded window can be made again from the log, byte for byte, whatever was written since."""

from contextlib import suppress

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagefile import InvalidTurnError, Memory, Settings
from tests.integration.postgres.serving import fresh_url

SETTINGS = Settings(
    on_tier_error="raise", drain_s=0, calls_kept=1000, window_tokens=1500, checkpoints="manual"
)
TOPICS = ("penicillin", "the invoice of March", "青霉素过敏", "杭州的酒店", "bicycle repair")

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.integers(0, 200)),
        st.tuples(st.just("record"), st.integers(0, 200)),
        st.tuples(st.just("elsewhere"), st.integers(0, 200)),
        st.tuples(st.just("tool"), st.sampled_from((50, 3_000, 12_000))),
        st.tuples(st.just("begin"), st.integers(0, 4)),
        st.tuples(st.just("step"), st.sampled_from((50, 3_000, 12_000))),
        st.tuples(st.just("load"), st.integers(0, 3)),
        st.tuples(st.just("end"), st.booleans()),
        st.tuples(st.just("fact"), st.integers(0, 30)),
        st.tuples(st.just("retract"), st.integers(0, 5)),
        st.tuples(st.just("pin"), st.integers(0, 3)),
        st.tuples(st.just("checkpoint"), st.integers(0, 4)),
        st.tuples(st.just("reset"), st.just(0)),
        st.tuples(st.just("window"), st.integers(0, 40)),
        st.tuples(st.just("window"), st.integers(0, 40)),
    ),
    min_size=6,
    max_size=40,
)


class Play:
    """An agent at work; every window it got is kept here as well."""

    def __init__(self, memory):
        self.memory = memory
        self.chat = memory.conversation("c", user_id="u")
        self.other = memory.conversation("other", user_id="u")
        self.turn = None
        self.windows = {}

    async def run(self, actions):
        for number, (verb, value) in enumerate(actions):
            await getattr(self, verb)(number, value)

    async def record(self, number, value):
        await self.chat.record(
            user=f"{number}: about {TOPICS[value % 5]}", assistant="noted " * (1 + value % 60)
        )

    async def elsewhere(self, number, value):
        await self.other.record(user=f"{number}: {TOPICS[value % 5]} again", assistant="I see. 好的。")

    async def tool(self, number, size):
        result = f"{TOPICS[number % 5]} row {number} " * (size // 20)
        step = {"tool": "search", "input": {"q": number}, "result": result}
        await self.chat.record(user=f"look up {number}", assistant="found", steps=[step])

    async def begin(self, number, value):
        if self.turn is None:
            self.turn = await self.chat.begin(f"{number}: what of {TOPICS[value % 5]}?")

    async def step(self, number, size):
        if self.turn is not None:
            result = f"{TOPICS[number % 5]} line {number} " * (size // 20)
            self.turn = await self.chat.step(self.turn, tool="read", input={"n": number}, result=result)

    async def load(self, number, value):
        pages = await self.chat.pages()
        if self.turn is not None and pages:
            uuid = pages[value % len(pages)].uuid
            text = await self.chat.call_tool("load_tool_history", {"uuid": uuid}, turn=self.turn)
            self.turn = await self.chat.step(
                self.turn, tool="load_tool_history", input={"uuid": uuid}, result=text
            )

    async def end(self, number, value):
        if self.turn is not None:
            await (self.chat.complete(self.turn, "the answer") if value else self.chat.abort(self.turn))
            self.turn = None

    async def fact(self, number, value):
        attribute = None if value % 3 else f"attribute {value % 6}"
        category = "correction" if value % 7 == 0 else None
        await self.memory.remember(
            f"fact {value} of {TOPICS[value % 5]}", user_id="u", attribute=attribute, category=category
        )

    async def retract(self, number, value):
        facts = await self.memory.facts("u")
        if facts:
            await self.memory.retract(facts[value % len(facts)].id)

    async def pin(self, number, value):
        pages = await self.chat.pages()
        if pages:
            page = pages[value % len(pages)]
            await self.chat.pin(page.uuid, pinned=not page.pinned)

    async def checkpoint(self, number, recent):
        with suppress(InvalidTurnError):
            await self.chat.checkpoint(f"summary {number}", recent_turns=recent)

    async def reset(self, number, value):
        await self.chat.reset()

    async def window(self, number, value):
        options = {
            "window_tokens": (900, 1500, 6000)[value % 3],
            "recent_turns": 1 + value % 5,
            "placement": "head" if value % 4 == 0 else "tail",
            "instructions": "Be brief." if value % 2 else None,
        }
        pages = await self.chat.pages()
        if value % 5 == 0 and pages:
            options["load"] = [pages[0].uuid]
        query = None if self.turn is not None else f"what about {TOPICS[value % 5]} before?"
        window = await self.chat.context(query, **options)
        self.windows[window.id] = window


#: Each makes the tiers choose anew.
CHANGES = (
    {"window_tokens": 700},
    {"window_tokens": 20_000, "recent_turns": 2},
    {"recall": "always", "recall_turns": 5},
    {"memory__similarity_weight": 0.1, "memory__confidence_weight": 2.0},
    {"archive__threshold": 100_000, "language": "en"},
    {"archive__threshold": 1_000, "archive__strategy": "hybrid", "placement": "head"},
)


async def played(url, before, after, *, embedder):
    """Play, write on, and then ask for every window again."""
    async with Memory.open(url, settings=SETTINGS, embedder=embedder) as memory:
        play = Play(memory)
        await play.run(before)
        handed_out = dict(play.windows)
        changed = {}
        for number, call_id in enumerate(handed_out):
            changes = CHANGES[number % len(CHANGES)]
            changed[call_id] = changes, (await play.chat.replay(call_id, **changes)).after
        await play.run(after)
        await memory.engine.write_calls()
        for call_id, (changes, window) in changed.items():
            again = (await play.chat.replay(call_id, **changes)).after
            assert (again.messages, again.receipt) == (window.messages, window.receipt)
            assert again.tokens <= again.budget
        calls = {call.id: call for call in await play.chat.calls(limit=1000)}
        for call_id, window in handed_out.items():
            again = await play.chat.replay(call_id)
            assert again.before.messages == window.messages
            assert again.after.messages == window.messages
            assert (again.exact, again.why, again.comparison.same) == (True, (), True)
            assert again.before.receipt.verdicts == window.receipt.verdicts
            explained = await play.chat.explain(call_id)
            assert explained.exact
            assert (
                sum(block.tokens for block in explained.blocks) + explained.receipt.framing == window.tokens
            )
        assert {call.id for call in await play.chat.calls(limit=1000)} == set(calls)


@given(before=ACTIONS, after=ACTIONS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_window_is_made_again_byte_for_byte(before, after):
    """Whatever was said, fetched, loaded, pinned, learnt, summed up or reset, before the window and after it.

    And what it would have been with other settings does not change with what was written later.
    """
    anyio.run(lambda: played("memory://", before, after, embedder="none"))


@given(before=ACTIONS, after=ACTIONS)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_on_disk_too(tmp_path_factory, before, after):
    """SQLite reads its own past."""
    url = f"sqlite:///{tmp_path_factory.mktemp('replay')}/replay.db"
    anyio.run(lambda: played(url, before, after, embedder="none"))


@pytest.mark.slow
@given(before=ACTIONS, after=ACTIONS)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_on_postgresql_too(before, after):
    """And so does PostgreSQL; each example has a schema of its own."""
    anyio.run(lambda: played(fresh_url(), before, after, embedder="none"))
