"""Document 001's checkpoints: what they cover and what they leave."""

import logging
from contextlib import suppress
from itertools import count

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import ConflictError, InvalidArgumentError, Memory, NotFoundError
from pagefile.ports import EntryQuery
from pagefile.records import Checkpoint
from pagefile.settings import Settings
from pagefile.standalone import (
    FULL_HISTORY,
    SUMMARY_N,
    AgentApp,
    MemoryWriteRequest,
    format_prompt,
)
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock
from tests.engines import engine_over

from .talking import COUNTER, asking, history, lines, say


async def checkpoints(app):
    query = EntryQuery(app._log.scope("c"), kinds=frozenset({"checkpoint"}))
    return [e for e in await app._log.engine.store.reader.entries(query) if isinstance(e, Checkpoint)]


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
    with pytest.raises(InvalidArgumentError, match="summary"), caplog.at_level(logging.WARNING):
        await app.checkpoint_short_memory("c", summary)
    assert [] == pauses
    assert FULL_HISTORY == (await app.query_memory_context(asking())).mode
    assert any(message.startswith("CheckpointShortMemory error: ") for message in caplog.messages)


async def test_nothing_said_is_nothing_to_summarise(app):
    """S1-40."""
    with pytest.raises(InvalidArgumentError, match="Nothing to cover"):
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


async def read_twice(app):
    """Two histories, to the questions 5 and 6, with a summary on its way for each, and two more turns."""
    await say(app, *range(6))
    first = await app.query_memory_context(asking("问6", model_context_window=60))
    await say(app, 6)
    second = await app.query_memory_context(asking("问7", model_context_window=60))
    await say(app, 7, 8)
    assert first.should_checkpoint_summary
    assert second.should_checkpoint_summary
    return first.read_token, second.read_token


async def test_two_summaries_on_their_way(app):
    """C1-8: each covers what its own author read, also when another app hands it in."""
    first, second = await read_twice(app)
    await app.checkpoint_short_memory("c", "到问5为止", 1, first)
    assert ["历史摘要: 到问5为止", *lines(6, 7, 8)] == await history(app)
    await AgentApp(app._log.memory).checkpoint_short_memory("c", "到问6为止", 1, second)
    assert ["历史摘要: 到问6为止", *lines(7, 8)] == await history(app)


async def test_a_late_summary_is_refused(app):
    """S1-49: the one in force was made by somebody who had read more."""
    first, second = await read_twice(app)
    await app.checkpoint_short_memory("c", "到问6为止", 1, second)
    with pytest.raises(ConflictError, match="The summary is of an older history"):
        await app.checkpoint_short_memory("c", "到问5为止", 1, first)
    assert ["历史摘要: 到问6为止", *lines(7, 8)] == await history(app)


async def test_summaries_that_do_not_say_what_they_are_of(app):
    """S1-49: they come in any order, so each covers the oldest history at most; when none is on its way, all counts again."""
    await read_twice(app)
    await app.checkpoint_short_memory("c", "到问6为止", 1)
    assert ["历史摘要: 到问6为止", *lines(6, 7, 8)] == await history(app)
    with pytest.raises(ConflictError, match="read_token"):
        await app.checkpoint_short_memory("c", "到问5为止", 1)
    await app.query_memory_context(asking("问9", model_context_window=60))
    await app.checkpoint_short_memory("c", "到问8为止", 1)
    assert ["历史摘要: 到问8为止", *lines(8)] == await history(app)


async def test_a_summary_of_another_history_that_goes_as_far_leaves_this_one_on_its_way(app):
    """S1-49: two apps read the same, and one more turn; what comes without a token may still be the summary of the first."""
    other = AgentApp(app._log.memory)
    await say(app, *range(8))
    tokens = []
    for one in (app, other):
        read = await one.query_memory_context(asking("问8", model_context_window=60))
        tokens.append(read.read_token)
        assert read.should_checkpoint_summary
    assert tokens[0] != tokens[1]
    await say(app, 8)
    await app.query_memory_context(asking("问9", model_context_window=60))
    for _ in range(2):
        # The second time it is refused, and is no other summary either.
        with suppress(ConflictError):
            await app.checkpoint_short_memory("c", "别人的，到问7为止", 1, tokens[1])
    await say(app, *range(9, 12))
    with pytest.raises(ConflictError, match="The summary is of an older history"):
        await app.checkpoint_short_memory("c", "到问7为止", 1)
    assert ["历史摘要: 别人的，到问7为止", *lines(8, 9, 10, 11)] == await history(app)


async def test_an_app_that_read_nothing_covers_nothing(app):
    """S1-49: a worker that neither read nor wrote the turns cannot know what a summary is of."""
    await say(app, *range(10))
    other = AgentApp(app._log.memory)
    with pytest.raises(ConflictError, match="This app has read nothing of conversation 'c'"):
        await other.checkpoint_short_memory("c", "摘要", 2)
    await say(other, 10)
    with pytest.raises(ConflictError, match="This app has read nothing of conversation 'c'"):
        await other.checkpoint_short_memory("c", "摘要", 1)
    context = await other.query_memory_context(asking())
    await app.checkpoint_short_memory("c", "摘要", 2, context.read_token)
    assert ["历史摘要: 摘要", *lines(9, 10)] == await history(app)


@pytest.mark.parametrize("token", ["x", "5", "5.x", "-1.0", "1.2.3", "٣.٠", f"{10**20}.0"])
async def test_a_token_that_nobody_gave_out_is_refused(app, token):
    """And the error says where to get one."""
    await say(app, *range(10))
    with pytest.raises(InvalidArgumentError, match="give `read_token` of the MemoryContext"):
        await app.checkpoint_short_memory("c", "摘要", 2, token)


async def test_a_summary_that_nobody_made_holds_nothing_up(app, clock):
    """S1-71: whoever ignored the flag for a while gets a full checkpoint with the next token, or without one after ten minutes."""
    for number in range(30):
        await app.query_memory_context(asking(model_context_window=100))
        await say(app, number)
    context = await app.query_memory_context(asking(model_context_window=100))
    await app.checkpoint_short_memory("c", "摘要", 2, context.read_token)
    after = await app.query_memory_context(asking(model_context_window=100))
    assert not after.should_checkpoint_summary
    await say(app, *range(30, 60))
    await app.query_memory_context(asking(model_context_window=100))
    clock.advance(601)
    context = await app.query_memory_context(asking(model_context_window=100))
    await app.checkpoint_short_memory("c", "摘要2", 2)
    assert ["历史摘要: 摘要2", *lines(58, 59)] == await history(app)


@pytest.mark.parametrize("named", [True, False])
async def test_a_read_from_before_a_reset_counts_no_more(app, named):
    """C1-9: after another process began the conversation again, no summary of what came before it covers its turns."""
    await say(app, *range(10))
    before = await app.query_memory_context(asking(model_context_window=100))
    await app._log.memory.conversation("c").reset()
    await say(app, *range(10, 20))
    with pytest.raises(ConflictError, match="or the conversation was reset"):
        await app.checkpoint_short_memory("c", "旧摘要", 2, before.read_token if named else "")
    await app.query_memory_context(asking(model_context_window=100))
    await app.checkpoint_short_memory("c", "摘要", 2)
    assert ["历史摘要: 摘要", *lines(18, 19)] == await history(app)


@settings(max_examples=25, deadline=None)
@given(
    actions=st.lists(
        st.sampled_from(["write", "write", "query", "query", "query", "summary", "lose the session"]),
        max_size=120,
    ),
    recent_turns=st.integers(1, 4),
    chance=st.randoms(use_true_random=False),
)
def test_no_turn_is_ever_lost(actions, recent_turns, chance):
    """S1-49, extra tests 2 and 4: whatever is interleaved, by two apps, in any order, summary and live turns together are
    every turn, once, in order."""

    async def run():
        store = InMemoryStore(FakeClock())
        memory = Memory(engine_over(store, Settings(), FakeClock(), COUNTER))
        apps = AgentApp(memory), AgentApp(memory)
        said, on_their_way = 0, []
        for action in [*actions, "query"]:
            app = chance.choice(apps)
            if action == "write":
                await say(app, said)
                said += 1
            elif action == "query":
                context = await app.query_memory_context(asking(model_context_window=60))
                assert COUNTER.count(format_prompt(context.history, context.query)) <= 60
                assert list(range(said)) == _covered(context.full_history)
                if context.should_checkpoint_summary and said:
                    on_their_way.append((app, context))
            elif action == "summary" and on_their_way:
                reader, context = on_their_way.pop(chance.randrange(len(on_their_way)))
                token = "" if app is reader and chance.random() < 0.5 else context.read_token
                summary = " ".join(map(str, _covered(context.full_history)))
                with suppress(ConflictError, InvalidArgumentError):
                    await app.checkpoint_short_memory("c", summary, recent_turns, token)
            elif action == "lose the session":
                lost = InMemoryStore(FakeClock()).sessions
                memory.engine.store.sessions = memory.engine.sessions._store.sessions = lost

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
