"""Document 001's checkpoints: what they cover, what they leave, and what happens when they fail."""

import logging
from itertools import count

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import ConflictError, InvalidTurnError, Memory, NotFoundError
from pagefile.errors import StoreUnavailableError
from pagefile.memory.house import House
from pagefile.ports import EntryQuery
from pagefile.records import Checkpoint
from pagefile.settings import Settings
from pagefile.standalone import (
    FULL_HISTORY,
    SUMMARY_N,
    AgentApp,
    MemoryQueryRequest,
    MemoryWriteRequest,
    format_prompt,
)
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock, FlakyStore
from pagefile.text.tokens import open_counter

COUNTER = open_counter()


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def store():
    return FlakyStore(InMemoryStore(FakeClock()))


@pytest.fixture
def memory(store):
    return Memory(House.build(store, Settings(), FakeClock(), COUNTER))


@pytest.fixture
def app(memory, pauses):
    async def sleep(seconds):
        pauses.append(seconds)

    return AgentApp(memory, sleep=sleep)


def asking(query="", **options):
    return MemoryQueryRequest("c", query=query, **options)


async def say(app, *numbers):
    for number in numbers:
        await app.write_turn(MemoryWriteRequest("c", user_query=f"问{number}", agent_response=f"答{number}"))


def lines(*numbers):
    return [line for number in numbers for line in (f"用户: 问{number}", f"AI: 答{number}")]


async def history(app, **options):
    return (await app.query_memory_context(asking(**options))).history.split("\n")


async def checkpoints(app):
    query = EntryQuery(app._scope("c"), kinds=frozenset({"checkpoint"}))
    return [e for e in await app._house.store.reader.entries(query) if isinstance(e, Checkpoint)]


# -- what they do ------------------------------------------------------------------------------------------------------


async def test_the_seven_steps(app):
    """S1-02, S1-09 … S1-12, S1-26, S1-40, extra test 6: row, session, mode; the id in the session is the row's."""
    await say(app, *range(12))
    await app.CheckpointShortMemory("c", "用户咨询了高血压。", 3)
    (row,) = await checkpoints(app)
    session = await app.get_short_memory("c")
    found = session.message_context
    assert (SUMMARY_N, row.id, "用户咨询了高血压。", "历史摘要: 用户咨询了高血压。") == (
        found.mode,
        found.checkpoint_message_id,
        found.summary,
        found.cached_checkpoint,
    )
    assert [f"问{n}" for n in (9, 10, 11)] == [m.content for m in found.window_messages if m.role == "user"]
    assert 12 == session.flow_context.turn_count
    context = await app.query_memory_context(asking("q"))
    assert SUMMARY_N == context.mode
    assert ["历史摘要: 用户咨询了高血压。", *lines(9, 10, 11)] == context.history.split("\n")
    assert SUMMARY_N == (await app.write_turn(MemoryWriteRequest("c", agent_response="x"))).mode


@pytest.mark.parametrize("recent_turns", [0, -5, 8])
async def test_eight_turns_stay_unless_said_otherwise(app, recent_turns):
    """S1-39."""
    await say(app, *range(20))
    await app.checkpoint_short_memory("c", "摘要", recent_turns)
    assert ["历史摘要: 摘要", *lines(*range(12, 20))] == await history(app)


async def test_turns_after_a_checkpoint_are_seen_at_once(app):
    """C1-1, extra test 2 (B1): the window is not frozen."""
    await say(app, *range(12))
    await app.checkpoint_short_memory("c", "摘要", 2)
    for number in range(12, 40):
        await say(app, number)
        assert ["历史摘要: 摘要", *lines(*range(10, number + 1))] == await history(app)


async def test_recent_turns_of_a_query_bring_turns_back(app):
    """S1-35: as many turns as asked for, also those that the summary covers; turns that it does not cover are never hidden."""
    await say(app, *range(20))
    await app.checkpoint_short_memory("c", "摘要", 2)
    assert ["历史摘要: 摘要", *lines(*range(10, 20))] == await history(app, recent_turns=10)
    assert ["历史摘要: 摘要", *lines(18, 19)] == await history(app, recent_turns=1)
    assert ["历史摘要: 摘要", *lines(*range(20))] == await history(app, recent_turns=100)


async def test_turns_come_back_only_below_the_threshold(app):
    """S1-35: bringing turns back never makes the next summary due."""
    await say(app, *range(20))
    await app.checkpoint_short_memory("c", "摘要", 2)
    context = await app.query_memory_context(asking(recent_turns=20, model_context_window=150))
    assert 2 * 2 + 1 < len(context.history.split("\n")) < 2 * 20 + 1
    assert not context.should_checkpoint_summary
    tight = await app.query_memory_context(asking(recent_turns=20, model_context_window=45))
    assert ["历史摘要: 摘要", *lines(18, 19)] == tight.history.split("\n")


async def test_recent_turns_outlive_the_summary_in_a_tight_window(app):
    """S1-35, C1-10: then the summary, cut if need be, then the other turns."""
    await say(app, *range(20))
    await app.checkpoint_short_memory("c", "用户咨询了高血压的症状，血压偏高。" * 20, 8)
    sizes = {n: await history(app, recent_turns=n, model_context_window=150) for n in (1, 8)}
    assert lines(*range(12, 20)) == sizes[8][-16:]
    assert sizes[1][0].startswith("历史摘要: 用户咨询了高血压")
    assert sizes[1][0].endswith("…")
    assert lines(19) == sizes[1][-2:]
    assert len(sizes[1]) < 17


async def test_summaries_roll_on(app):
    """S1-03, C1-2, extra test 1 (B7): each summary is made of the one before and what was said since."""
    said = count()
    for cycle in range(4):
        await say(app, *(next(said) for _ in range(10)))
        full = (await app.query_memory_context(asking())).full_history
        assert full.startswith(f"历史摘要: 摘要{cycle - 1}" if cycle else "用户: 问0")
        assert f"青霉素过敏{cycle - 1}" in full if cycle else True
        first = full.split("\n")[0].removeprefix("历史摘要: ") if cycle else ""
        await app.checkpoint_short_memory("c", f"摘要{cycle}，青霉素过敏{cycle}。{first}", 2)
    assert "青霉素过敏0" in (await history(app))[0]
    assert 4 == len(await checkpoints(app))


async def test_the_flag_comes_back_after_a_checkpoint(app):
    """S1-71 (Q5, B2): SUMMARY_N is summarised again, and the window empties each time."""
    said, ratios = count(), []
    for _ in range(4):
        while True:
            number = next(said)
            context = await app.query_memory_context(asking(f"问{number}", model_context_window=600))
            if context.should_checkpoint_summary:
                break
            await say(app, number)
        await app.checkpoint_short_memory("c", f"摘要{number}", 3)
        after = await app.query_memory_context(asking(f"问{number}", model_context_window=600))
        ratios.append((context.token_ratio, after.token_ratio))
    assert all(before >= 0.75 and after < 0.4 for before, after in ratios)


async def test_a_manual_checkpoint_needs_no_full_window(app):
    """S1-72 (Q6): also where there are fewer turns than would stay; one of them is covered, or it were no checkpoint."""
    await say(app, 1, 2, 3)
    await app.checkpoint_short_memory("c", "这是手动生成的摘要", 8)
    assert ["历史摘要: 这是手动生成的摘要", *lines(2, 3)] == await history(app)
    assert SUMMARY_N == (await app.get_short_memory("c")).message_context.mode


async def test_turns_that_stay_leave_half_of_the_window(app):
    """S1-71: eight long turns that fill the window cannot all stay."""
    for number in range(8):
        await app.write_turn(MemoryWriteRequest("c", user_query=f"问{number}", agent_response="血压 " * 100))
    context = await app.query_memory_context(asking(model_context_window=1000))
    assert context.should_checkpoint_summary
    await app.checkpoint_short_memory("c", "摘要", 8)
    after = await app.query_memory_context(asking(model_context_window=1000))
    assert not after.should_checkpoint_summary
    assert after.history.endswith("血压 ")
    assert 1 == after.history.count("用户: ")


async def test_one_turn_that_fills_the_window_is_covered(app):
    """C1-10: no window is stuck."""
    await app.write_turn(MemoryWriteRequest("c", user_query="问", agent_response="血压 " * 1000))
    assert (await app.query_memory_context(asking(model_context_window=500))).should_checkpoint_summary
    await app.checkpoint_short_memory("c", "摘要", 8)
    assert ["历史摘要: 摘要"] == await history(app, model_context_window=500)


async def test_checkpoints_and_resets_are_no_turns(app):
    """C1-4, extra test 5 (B6): in no history, no list and no count; a user who types the mark only says it."""
    await say(app, *range(10))
    await app.checkpoint_short_memory("c", "摘要", 3)
    await app.write_turn(MemoryWriteRequest("c", user_query="[MEMORY_CHECKPOINT]", agent_response="答"))
    assert ["历史摘要: 摘要", *lines(7, 8, 9), "用户: [MEMORY_CHECKPOINT]", "AI: 答"] == await history(app)
    await app.checkpoint_short_memory("c", "摘要二", 2)
    assert ["历史摘要: 摘要二", *lines(9), "用户: [MEMORY_CHECKPOINT]", "AI: 答"] == await history(app)
    assert 11 == len(await app.query_message_by_conversation_id_asc("c"))
    assert "摘要" not in (await app.query_memory_context(asking())).full_history.replace(
        "历史摘要: 摘要二", ""
    )


async def test_messages_since_a_checkpoint(app):
    """S1-05, S1-70, S1-75, S1-76: those written after it; an id that is not there is an error, not an empty list (B4)."""
    await say(app, *range(5))
    await app.checkpoint_short_memory("c", "摘要", 2)
    await say(app, 5, 6)
    found = (await app.get_short_memory("c")).message_context.checkpoint_message_id
    rows = await app.QueryMessageByConversationIDASCFromCheckpoint("c", found)
    assert ["问5", "问6"] == [row.query for row in rows]
    assert 7 == len(await app.query_message_by_conversation_id_asc_from_checkpoint("c", ""))
    with pytest.raises(NotFoundError, match="no checkpoint 'nowhere'"):
        await app.query_message_by_conversation_id_asc_from_checkpoint("c", "nowhere")


@pytest.mark.parametrize("summary", ["", "  \n", "字" * 10_001, None, 5, "a\0b"])
async def test_a_summary_says_something_short(app, summary, pauses, caplog):
    """S1-57: what is no summary is refused at once, and nothing changes."""
    await say(app, *range(10))
    with pytest.raises(InvalidTurnError, match="summary"), caplog.at_level(logging.WARNING):
        await app.checkpoint_short_memory("c", summary)
    assert [] == pauses
    assert FULL_HISTORY == (await app.query_memory_context(asking())).mode
    assert any(message.startswith("CheckpointShortMemory error: ") for message in caplog.messages)


async def test_nothing_said_is_nothing_to_summarise(app):
    """S1-40."""
    with pytest.raises(InvalidTurnError, match="Nothing to cover"):
        await app.checkpoint_short_memory("c", "摘要")


# -- nothing is lost ---------------------------------------------------------------------------------------------------


async def test_turns_written_during_a_summary_stay(app):
    """S1-49, C1-3 (B14): the summary was made of what the query showed; what came later is not covered by it."""
    await say(app, *range(10))
    context = await app.query_memory_context(asking("问10", model_context_window=100))
    assert context.should_checkpoint_summary
    await say(app, 10, 11, 12)
    await app.checkpoint_short_memory("c", "到问9为止", 1)
    assert ["历史摘要: 到问9为止", *lines(10, 11, 12)] == await history(app)


async def test_two_summaries_on_their_way(app):
    """C1-8: the histories were read one after the other, and so the summaries count."""
    await say(app, *range(6))
    await app.query_memory_context(asking("问6", model_context_window=60))
    await say(app, 6)
    await app.query_memory_context(asking("问7", model_context_window=60))
    await say(app, 7, 8)
    await app.checkpoint_short_memory("c", "到问5为止", 1)
    assert ["历史摘要: 到问5为止", *lines(6, 7, 8)] == await history(app)
    await app.checkpoint_short_memory("c", "到问6为止", 1)
    assert ["历史摘要: 到问6为止", *lines(7, 8)] == await history(app)


async def test_a_summary_that_nobody_made_holds_nothing_up(app):
    """S1-71: whoever ignored the flag for a while gets a full checkpoint with the one after the next."""
    for number in range(30):
        await app.query_memory_context(asking(model_context_window=100))
        await say(app, number)
    for expected in (False, True):
        context = await app.query_memory_context(asking(model_context_window=100))
        await app.checkpoint_short_memory("c", "摘要", 2)
        after = await app.query_memory_context(asking(model_context_window=100))
        assert expected is not after.should_checkpoint_summary
    assert context.full_history != after.full_history


async def test_a_read_from_before_a_reset_counts_no_more(app):
    """C1-9: after another process began the conversation anew, its turns can be covered."""
    await say(app, *range(10))
    await app.query_memory_context(asking(model_context_window=100))
    await app._memory.conversation("c").reset()
    await say(app, *range(10, 20))
    await app.checkpoint_short_memory("c", "摘要", 2)
    assert ["历史摘要: 摘要", *lines(18, 19)] == await history(app)


@settings(max_examples=60, deadline=None)
@given(
    actions=st.lists(
        st.sampled_from(["write", "write", "write", "query", "query", "summary", "lose the session"]),
        max_size=80,
    ),
    recent_turns=st.integers(1, 4),
)
def test_no_turn_is_ever_lost(actions, recent_turns):
    """S1-49, extra tests 2 and 4: whatever is interleaved, summary and live turns together are every turn, once, in order."""

    async def run():
        store = InMemoryStore(FakeClock())
        app = AgentApp(Memory(House.build(store, Settings(), FakeClock(), COUNTER)))
        said, on_its_way = 0, None
        for action in [*actions, "query"]:
            if action == "write":
                await say(app, said)
                said += 1
            elif action == "query":
                context = await app.query_memory_context(asking(model_context_window=60))
                assert COUNTER.count(format_prompt(context.history, context.query)) <= 60
                assert list(range(said)) == _covered(context.full_history)
                if context.should_checkpoint_summary and on_its_way is None and said:
                    on_its_way = " ".join(map(str, _covered(context.full_history)))
            elif action == "summary" and on_its_way is not None:
                await app.checkpoint_short_memory("c", on_its_way, recent_turns)
                on_its_way = None
            elif action == "lose the session":
                app._memory.house.sessions = InMemoryStore(FakeClock()).sessions

    anyio.run(run)


def _covered(full: str) -> list[int]:
    """The turns that a text speaks for: the summary names its own."""
    first, *rest = full.split("\n")
    numbers: list[int] = []
    if first.startswith("历史摘要: "):
        numbers = [int(word) for word in first.removeprefix("历史摘要: ").split()]
    else:
        rest = [first, *rest]
    numbers += [int(line.removeprefix("用户: 问")) for line in rest if line.startswith("用户: ")]
    return sorted(set(numbers))


# -- failures ----------------------------------------------------------------------------------------------------------


async def test_a_store_that_fails_is_tried_three_more_times(app, store, pauses, caplog):
    """S1-57, S1-58, C1-13: after one, two and three seconds; the fourth try may do it."""
    await say(app, *range(10))
    store.fail({"log.mark"}, times=3)
    with caplog.at_level(logging.WARNING):
        await app.checkpoint_short_memory("c", "摘要", 2)
    assert [1, 2, 3] == pauses
    assert ["CheckpointShortMemory error: The store cannot be reached or opened."] * 3 == caplog.messages
    assert SUMMARY_N == (await app.query_memory_context(asking())).mode


async def test_then_the_full_mode_is_saved(app, store, pauses, caplog, memory):
    """S1-59, S1-79, C1-10: reported, saved, within the budget; and the next checkpoint ends it."""
    await say(app, *range(20))
    await app.checkpoint_short_memory("c", "第一", 10)
    store.fail({"log.mark"})
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnavailableError):
        await app.checkpoint_short_memory("c", "第二", 2)
    assert [1, 2, 3] == pauses
    assert 4 == sum(message.startswith("CheckpointShortMemory error: ") for message in caplog.messages)
    assert "Failed to create checkpoint: The store cannot be reached or opened." == caplog.messages[-1]
    assert FULL_HISTORY == (await app.get_short_memory("c")).message_context.mode
    assert FULL_HISTORY == (await memory.house.sessions.get(app._scope("c")))["message_context"]["mode"]
    context = await app.query_memory_context(asking("q", model_context_window=100))
    assert FULL_HISTORY == context.mode
    assert COUNTER.count(format_prompt(context.history, "q")) <= 100
    assert "历史摘要: 第一" == context.full_history.split("\n")[0]
    store.mend()
    await app.checkpoint_short_memory("c", "第二", 2)
    assert SUMMARY_N == (await app.query_memory_context(asking())).mode


async def test_a_store_that_is_all_down_is_told(app, store, caplog):
    """S1-57, S1-59: the mode cannot be saved either; the error is the caller's."""
    await say(app, *range(10))
    store.fail({"reader.view", "log.mark", "sessions.put", "sessions.get"})
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnavailableError):
        await app.checkpoint_short_memory("c", "摘要", 2)
    assert any("could not save the mode FULL_HISTORY" in message for message in caplog.messages)


async def test_an_id_that_is_taken_is_tried_again(app, monkeypatch, pauses):
    """Extra test 7 (B5): with a fresh id."""
    await say(app, *range(10))
    taken = (await app.query_message_by_conversation_id_asc("c"))[0].message_id
    ids = iter([taken, taken, "fresh"])
    monkeypatch.setattr("pagefile.tiers.checkpoints.uuid4", lambda: next(ids))
    await app.checkpoint_short_memory("c", "摘要", 2)
    assert "fresh" == (await app.get_short_memory("c")).message_context.checkpoint_message_id
    assert [] == pauses


async def test_three_taken_ids_change_nothing(app, monkeypatch, pauses):
    """Extra test 7 (B5): an error, and the state is as it was."""
    await say(app, *range(10))
    before = await app.get_short_memory("c")
    taken = (await app.query_message_by_conversation_id_asc("c"))[0].message_id
    monkeypatch.setattr("pagefile.tiers.checkpoints.uuid4", lambda: taken)
    with pytest.raises(ConflictError):
        await app.checkpoint_short_memory("c", "摘要", 2)
    assert before == await app.get_short_memory("c")
    assert [] == pauses
    assert lines(*range(10)) == await history(app)


async def test_checkpoints_of_one_conversation_take_turns(app):
    """C1-8: many at once neither fail each other nor lose a turn."""
    await say(app, *range(20))
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(app.checkpoint_short_memory, "c", f"摘要{number}", 10 - number)
    found = await history(app)
    assert lines(*range(14, 20)) == found[1:]


async def test_a_slow_summary_holds_up_nobody(app):
    """S1-47, S1-48, C1-8, C1-14: in the background turns go on; in the foreground the next query has the summary."""
    await say(app, *range(20))
    done = anyio.Event()

    async def summarise(full):
        await done.wait()
        await app.checkpoint_short_memory("c", f"{full.count('用户: ')} 轮", 2)

    context = await app.query_memory_context(asking("问20", model_context_window=200))
    assert context.should_checkpoint_summary
    async with anyio.create_task_group() as background:
        background.start_soon(summarise, context.full_history)
        with anyio.fail_after(1):
            await say(app, 20)
            assert FULL_HISTORY == (await app.query_memory_context(asking())).mode
        done.set()
    assert ["历史摘要: 20 轮", *lines(19, 20)] == await history(app)


async def test_a_checkpoint_that_waits_holds_up_nobody(memory, store):
    """S1-47, S1-58: between two tries turns are written."""
    written = []

    async def sleep(_):
        with anyio.fail_after(1):
            await say(app, "x")
        written.append(1)

    app = AgentApp(memory, sleep=sleep)
    await say(app, *range(10))
    store.fail({"log.mark"}, times=2)
    await app.checkpoint_short_memory("c", "摘要", 2)
    assert 2 == len(written)


async def test_nobody_else_makes_checkpoints():
    """S1-04: the document leaves them to its caller, so the flag is there when the window is full."""
    async with Memory.open("memory://", settings=Settings(window_tokens=300)) as memory:
        app = AgentApp(memory)
        for number in range(40):
            await say(app, number)
        await memory.settle()
        assert (await app.query_memory_context(asking(model_context_window=300))).should_checkpoint_summary
        assert FULL_HISTORY == (await app.get_short_memory("c")).message_context.mode
