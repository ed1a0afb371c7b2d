"""The functions of short-term memory: checkpoints that lose turns, a turn that is too long, and two workers."""

import random
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from pagefile import Memory
from pagefile.standalone import AgentApp, MemoryQueryRequest, MemoryWriteRequest
from tests.findings.marks import finding, load

from .honest_summaries import LARGE_WINDOW, REFUSED, covered, lost, read, say, shown, spoken_for, summary_of

ROOT = Path(__file__).parents[3]

# -- F1: turns that get lost around a checkpoint ---------------------------------------------------------------------------


@pytest.fixture
async def memory():
    async with Memory.open("memory://", embedder="none") as memory:
        yield memory


@pytest.fixture
def app(memory):
    return AgentApp(memory)


async def fill_until_flagged(app):
    """Talk until a query asks for a summary: the number of turns said, and the summary of what the query showed."""
    for number in range(1, 100):
        context = await read(app)
        if context.should_checkpoint_summary:
            return number - 1, summary_of(context.full_history)
        await say(app, number)
    raise AssertionError("a window of 300 tokens never filled")


@finding("history-F1")
@pytest.mark.parametrize("meanwhile", [9, 12, 20])
async def test_turns_that_pass_during_one_summary_stay(app, meanwhile):
    """However many turns are asked and answered while a summary is written, each of them stays in the history."""
    said, summary = await fill_until_flagged(app)
    for number in range(said + 1, said + meanwhile + 1):
        await read(app)
        await say(app, number)
    await app.checkpoint_short_memory("c", summary, 8)
    assert [] == await lost(app, range(1, said + meanwhile + 1))


@finding("history-F1")
@pytest.mark.parametrize("meanwhile", [1, 7])
async def test_a_few_turns_that_pass_during_one_summary_stay(app, meanwhile):
    """A few turns that pass while a summary is written stay in the history, and the summary takes effect."""
    said, summary = await fill_until_flagged(app)
    for number in range(said + 1, said + meanwhile + 1):
        await read(app)
        await say(app, number)
    await app.checkpoint_short_memory("c", summary, 8)
    assert [] == await lost(app, range(1, said + meanwhile + 1))
    assert (await read(app)).history.startswith(f"历史摘要: {summary}")


@finding("history-F1")
async def test_a_summary_that_another_worker_hands_in_loses_nothing(memory, app):
    """A worker that did not read the history itself covers no turn that the author of the summary did not see."""
    said, summary = await fill_until_flagged(app)
    await say(app, said + 1, said + 2)
    other = AgentApp(memory)
    # Nobody told the other worker what was read: it may refuse.
    with suppress(*REFUSED):
        await other.checkpoint_short_memory("c", summary, 1)
    assert [] == await lost(app, range(1, said + 3))
    await takes_a_summary(other)


@finding("history-F1")
@pytest.mark.parametrize("workers", [1, 2])
async def test_a_late_summary_does_not_replace_a_newer_one(memory, app, workers):
    """A summary of an older history that arrives after a newer one takes no turn out of the history."""
    other = app if workers == 1 else AgentApp(memory)
    await say(app, *range(1, 11))
    late = summary_of((await read(app)).full_history)
    await say(app, *range(11, 21))
    newer = summary_of((await read(other)).full_history)
    await other.checkpoint_short_memory("c", newer, 2)
    await say(app, 21)
    with suppress(*REFUSED):
        await app.checkpoint_short_memory("c", late, 2)
    assert [] == await lost(app, range(1, 22))
    await takes_a_summary(app)


async def takes_a_summary(app):
    """Whoever refuses what is stale still takes a summary of what is there."""
    summary = summary_of((await read(app)).full_history)
    await app.checkpoint_short_memory("c", summary, 1)
    assert spoken_for(summary) == spoken_for((await read(app)).history)


@finding("history-F1")
async def test_no_turn_is_lost_in_any_order_of_reads_writes_and_summaries(memory):
    """Whatever is interleaved, by one worker or by two, summary and live turns together are every turn."""
    chances = {seed: random.Random(seed) for seed in range(20)}
    assert {} == {
        seed: missing
        for seed, chance in chances.items()
        if (missing := await played(memory, f"c{seed}", chance))
    }


async def played(memory, conversation, chance):
    """Sixty random actions: the turns that were missing from a history on the way."""
    apps = [AgentApp(memory) for _ in range(chance.choice([1, 2]))]
    said, on_their_way, missing = 0, [], set()
    for action in chance.choices(["write", "query", "summary"], [4, 5, 1], k=60):
        app = chance.choice(apps)
        if action == "write":
            said += 1
            await say(app, said, conversation=conversation)
        elif action == "query":
            context = await read(app, conversation=conversation)
            missing |= set(range(1, said + 1)) - set(covered(context.full_history))
            if context.should_checkpoint_summary and said:
                on_their_way.append((app, summary_of(context.full_history), context.read_token))
        elif on_their_way:
            reader, summary, token = on_their_way.pop(chance.randrange(len(on_their_way)))
            # Who hands in what another one read says so.
            given = token if app is not reader else ""
            with suppress(*REFUSED):
                await app.checkpoint_short_memory(conversation, summary, chance.randint(1, 4), given)
    return missing | set(await lost(apps[0], range(1, said + 1), conversation=conversation))


@load
@finding("history-F1")
async def test_four_processes_share_a_conversation(postgres_url, counted):
    """Four processes that write, read and summarise one conversation lose no turn that was acknowledged."""
    acknowledged = set()

    async def talk(first):
        command = [sys.executable, "-m", "tests.findings.history.talking_process", postgres_url]
        done = await anyio.run_process([*command, str(first), "60"], cwd=ROOT)
        acknowledged.update(int(line) for line in done.stdout.split())

    async with Memory.open(postgres_url, embedder="none"):
        pass  # The tables are made before the four begin.
    async with anyio.create_task_group() as group:
        for first in (1000, 2000, 3000, 4000):
            group.start_soon(talk, first)
    async with Memory.open(postgres_url, embedder="none") as memory:
        missing = await lost(AgentApp(memory), acknowledged)
        summaries = await memory.conversation("c").checkpoints()
    assert 240 == len(acknowledged)
    assert len(list(summaries)) > 3
    counted(tries=len(acknowledged), wrong=len(missing))
    assert 0 == len(missing)


# -- F4: a turn that is larger than the window -----------------------------------------------------------------------------


@finding("history-F4")
async def test_a_history_is_not_empty_because_its_newest_turn_is_too_long(app):
    """After a turn that is larger than the window, the history has earlier turns, the answer, and fits the window."""
    for number in range(5):
        await app.write_turn(
            MemoryWriteRequest("c", user_query=f"早先的问题{number}", agent_response=f"早先的回答{number}")
        )
    await app.write_turn(
        MemoryWriteRequest("c", user_query="合同条款。" * 1000, agent_response="建议把违约金谈到10%。")
    )
    context = await app.query_memory_context(
        MemoryQueryRequest("c", query="你刚才建议谈到多少？", model_context_window=1000)
    )
    assert "早先的回答4" in context.history
    assert "建议把违约金谈到10%。" in context.history
    assert context.estimated_tokens <= 1000


# -- F16: fewer recent turns than the checkpoint kept ----------------------------------------------------------------------


async def summarised(app):
    """Forty turns, and a summary that speaks for all of them and keeps eight."""
    await say(app, *range(1, 41))
    context = await read(app, window=LARGE_WINDOW)
    await app.checkpoint_short_memory("c", summary_of(context.full_history), 8)


async def turns_shown(app, recent_turns):
    context = await app.query_memory_context(
        MemoryQueryRequest("c", recent_turns=recent_turns, model_context_window=LARGE_WINDOW)
    )
    assert list(range(1, 41)) == covered(context.history)
    return shown(context.history)


@finding("history-F16")
@pytest.mark.parametrize("recent_turns", [1, 2, 5])
async def test_fewer_recent_turns_than_the_checkpoint_kept(app, recent_turns):
    """Turns that no checkpoint covers are shown, however few are asked for (docs/decisions: where the letter ends)."""
    await summarised(app)
    assert list(range(33, 41)) == await turns_shown(app, recent_turns)


@finding("history-F16")
@pytest.mark.parametrize("recent_turns", [8, 12, 20])
async def test_more_recent_turns_than_the_checkpoint_kept(app, recent_turns):
    """Whoever asks for as many turns as the checkpoint kept, or for more, gets that many."""
    await summarised(app)
    assert list(range(41 - recent_turns, 41)) == await turns_shown(app, recent_turns)


# -- F19: the query and the answer reach two workers -----------------------------------------------------------------------


@finding("history-F19")
async def test_an_answer_finds_its_query_in_another_worker(url):
    """An answer that is written without its query by another worker still belongs to what the user asked."""
    async with Memory.open(url, embedder="none") as asked, Memory.open(url, embedder="none") as answered:
        app = AgentApp(asked)
        await app.query_memory_context(MemoryQueryRequest("c", query="我对青霉素过敏"))
        await AgentApp(answered).write_turn(MemoryWriteRequest("c", agent_response="好的，记住了"))
        rows = await app.query_message_by_conversation_id_asc("c")
    assert [("我对青霉素过敏", "好的，记住了")] == [(row.query, row.answer) for row in rows]


@finding("history-F19")
async def test_a_query_in_another_worker_is_answered_once(url):
    """A second answer without a query is the agent's words alone, and so is one after the query's conversation was erased."""
    async with Memory.open(url, embedder="none") as asked, Memory.open(url, embedder="none") as answered:
        apps = AgentApp(asked), AgentApp(answered)
        for conversation in ("c", "erased"):
            await apps[0].query_memory_context(MemoryQueryRequest(conversation, query="我对青霉素过敏"))
        await asked.forget(conversation_id="erased")
        for conversation, answer in (("c", "好的"), ("c", "还在吗"), ("erased", "在吗")):
            await apps[1].write_turn(MemoryWriteRequest(conversation, agent_response=answer))
        rows = [
            row
            for name in ("c", "erased")
            for row in await apps[0].query_message_by_conversation_id_asc(name)
        ]
    assert [("我对青霉素过敏", "好的"), ("", "还在吗"), ("", "在吗")] == [
        (row.query, row.answer) for row in rows
    ]


async def test_a_query_asked_again_replaces_that_of_another_worker(url):
    """The last query waits, though this worker has already stored the same one."""
    async with Memory.open(url, embedder="none") as one, Memory.open(url, embedder="none") as other:
        app = AgentApp(one)
        for asked, query in ((app, "q1"), (AgentApp(other), "q2"), (app, "q1")):
            await asked.query_memory_context(MemoryQueryRequest("c", query=query))
        await AgentApp(other).write_turn(MemoryWriteRequest("c", agent_response="a1"))
        rows = await app.query_message_by_conversation_id_asc("c")
    assert [("q1", "a1")] == [(row.query, row.answer) for row in rows]


async def test_a_query_that_another_worker_answered_is_not_answered_again(url):
    async with Memory.open(url, embedder="none") as one, Memory.open(url, embedder="none") as other:
        first, second = AgentApp(one), AgentApp(other)
        await first.query_memory_context(MemoryQueryRequest("c", query="q1"))
        await second.write_turn(MemoryWriteRequest("c", agent_response="a1"))
        await second.query_memory_context(MemoryQueryRequest("c", query="q2"))
        await first.write_turn(MemoryWriteRequest("c", agent_response="a2"))
        rows = await first.query_message_by_conversation_id_asc("c")
    assert [("q1", "a1"), ("q2", "a2")] == [(row.query, row.answer) for row in rows]


async def test_answers_of_two_workers_that_overlap_keep_their_queries(url):
    async with Memory.open(url, embedder="none") as one, Memory.open(url, embedder="none") as other:
        apps = AgentApp(one), AgentApp(other)
        for app, query in zip(apps, ("q1", "q2"), strict=True):
            await app.query_memory_context(MemoryQueryRequest("c", query=query))
        for app, answer in zip(reversed(apps), ("a2", "a1"), strict=True):
            await app.write_turn(MemoryWriteRequest("c", agent_response=answer))
        rows = await apps[0].query_message_by_conversation_id_asc("c")
    assert [("q2", "a2"), ("q1", "a1")] == [(row.query, row.answer) for row in rows]


async def test_a_query_whose_turn_was_erased_does_not_come_back(url):
    async with Memory.open(url, embedder="none") as one, Memory.open(url, embedder="none") as other:
        app = AgentApp(one)
        await app.query_memory_context(MemoryQueryRequest("c", query="q1"))
        await AgentApp(other).write_turn(MemoryWriteRequest("c", agent_response="a1"))
        [turn] = await other.conversation("c").turns()
        await other.forget(conversation_id="c", turn_id=turn.id)
        await app.write_turn(MemoryWriteRequest("c", agent_response="a2"))
        *_, last = await one.conversation("c").turns()
    assert (None, "a2") == (last.user, last.assistant)
