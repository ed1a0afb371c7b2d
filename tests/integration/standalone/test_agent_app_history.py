"""A history as text: what is kept when not everything fits, and what it costs to make one."""

import time

from hypothesis import given
from hypothesis import strategies as st

from pagefile import Memory
from pagefile.ports import Meter
from pagefile.settings import Settings
from pagefile.standalone import AgentApp, MemoryWriteRequest, format_prompt
from pagefile.standalone.app_requests import HistoryText
from pagefile.stores import InMemoryStore
from pagefile.testing import FlakyStore
from pagefile.window.wording import ZH
from tests.engines import engine_over

from .talking import COUNTER, asking, lines, say

TEXTS = st.text(st.sampled_from("血压头晕 ab1，。\n"), min_size=1, max_size=40)


class Watched(FlakyStore):
    """Writes down what is asked of it."""

    def __init__(self, store):
        self.verbs = []
        super().__init__(store)

    def check(self, verb):
        self.verbs.append(verb)
        super().check(verb)


class Slow(FlakyStore):
    """Every call takes ten milliseconds."""

    def check(self, verb):
        time.sleep(0.01)
        super().check(verb)


class Measured(Meter):
    def __init__(self):
        self.values = {}

    def count(self, name, amount=1.0, **labels):
        self.values.setdefault(name, []).append(amount)

    def observe(self, name, value, **labels):
        self.values.setdefault(name, []).append(value)


@given(
    summary=st.none() | TEXTS,
    safety=st.lists(TEXTS, max_size=2).map(tuple),
    turns=st.lists(TEXTS, max_size=12).map(tuple),
    query=TEXTS,
    window=st.integers(1, 200),
    recent=st.integers(1, 10),
)
def test_what_is_kept_fits(summary, safety, turns, query, window, recent):
    """C1-10, S1-83: within the window wherever the safety data and the question are; a run of the newest turns; nothing else."""
    turns = tuple((("用户", text),) for text in turns)
    whole = HistoryText(summary, safety, turns)
    kept = whole.fitting(query, window, recent, COUNTER.count)
    assert safety == kept.safety
    for shown, turn in zip(reversed(kept.turns), reversed(turns), strict=False):
        # Only large turns are abridged.
        room = window - COUNTER.count(format_prompt("\n".join(safety), query))
        assert shown == turn or COUNTER.count(f"用户: {turn[0][1]}\n") > room // 4
    if COUNTER.count(format_prompt("\n".join(safety), query)) <= window:
        assert COUNTER.count(format_prompt(kept.text, query)) <= window
    if COUNTER.count(format_prompt(whole.text, query)) <= window:
        assert kept is whole
    if kept.summary is None:
        assert summary is None or kept is not whole


def test_seams_that_cost_tokens_are_paid_with_the_oldest_turn():
    """C1-10: the parts fit, the whole does not; turns go before the summary."""

    def count(text):
        # A tokenizer for which every line break costs three tokens when lines stand together.
        return len(text) + 2 * max(0, text.count("\n") - 4)

    whole = HistoryText("摘要", (), tuple((("用户", f"问{n}"),) for n in range(6)))
    for window in range(20, 90):
        kept = whole.fitting("q", window, 2, count)
        assert count(format_prompt(kept.text, "q")) <= window or (not kept.turns and kept.summary is None)


async def test_a_query_asks_the_database_twice(clock):
    """S1-05, S1-56, S1-67: the segment and the session, whatever came before, and no row that is not shown; then it is stored."""
    store = Watched(InMemoryStore(clock))
    app = AgentApp(Memory(engine_over(store, Settings(), clock, COUNTER)))
    await say(app, *range(30))
    await app.checkpoint_short_memory("c", "摘要", 2)
    await say(app, 30)
    store.verbs.clear()
    context = await app.query_memory_context(asking("q"))
    assert ["reader.view", "sessions.get", "items.write"] == store.verbs
    store.verbs.clear()
    await app.query_memory_context(asking("q"))
    await app.read_history(asking("another"))
    assert ["reader.view", "sessions.get", "items.write", "reader.view", "sessions.get"] == store.verbs
    assert ["历史摘要: 摘要", *lines(28, 29, 30)] == context.full_history.split("\n")


async def test_the_documents_five_metrics_change(clock):
    """S1-61 … S1-65: after one turn and one checkpoint, by what they measure."""
    meter = Measured()
    store = Slow(InMemoryStore(clock))
    app = AgentApp(Memory(engine_over(store, Settings(), clock, COUNTER, meter=meter)))
    await say(app, 1)
    context = await app.query_memory_context(asking("q"))
    await app.checkpoint_short_memory("c", "摘要是六个字")
    assert [1] == meter.values["pagefile_checkpoints_total"]
    assert [6] == meter.values["pagefile_summary_chars"]
    assert [context.token_ratio] == meter.values["pagefile_token_ratio"]
    assert context.token_ratio > 0
    for name in ("pagefile_store_seconds", "pagefile_session_seconds"):
        assert all(0.01 <= seconds < 10 for seconds in meter.values[name]), name


async def test_a_very_long_history_is_counted_beside_the_event_loop(app):
    """S1-01: a segment of hundreds of thousands of characters is read, counted and cut."""
    long = "血压一百四十，头晕两天。" * 500
    for number in range(12):
        await app.write_turn(MemoryWriteRequest("c", user_query=f"问{number}", agent_response=long))
    context = await app.query_memory_context(asking("q"))
    assert 12 * len(long) < len(context.full_history)
    assert COUNTER.count(format_prompt(context.history, "q")) <= 16000
    assert context.history.endswith(f"用户: 问11\nAI: {long}")
    assert context.should_checkpoint_summary


async def test_unanswered_turns_are_in_the_history(app, memory):
    """S1-08: what a user said is shown where it was said, and that no answer came; what is asked now is not shown twice."""
    chat = memory.conversation("c")
    await chat.abort(await chat.begin("我对青霉素过敏"))
    await say(app, 1)
    await chat.begin("我可以吃阿莫西林吗")
    await chat.begin("在吗")
    context = await app.query_memory_context(asking("在吗"))
    expected = ["用户: 我对青霉素过敏", ZH.unanswered, *lines(1), "用户: 我可以吃阿莫西林吗", ZH.waiting]
    assert expected == context.history.split("\n")
