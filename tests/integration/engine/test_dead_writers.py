"""The turns of processes that were killed while they answered: given up by any other, so that their words are summarized and recalled."""

from datetime import timedelta

import pytest

from pagefile import Memory, Settings
from pagefile.engine.dead_writers import KEPT, PATIENCE, about
from pagefile.ports import Claim, ViewRequest
from pagefile.records import Scope
from pagefile.testing import FakeClock
from pagefile.tiers.base import Backlog
from tests.integration.postgres.serving import fresh_url

LEASE = timedelta(seconds=15)
SAID = "我对青霉素过敏，吃了会休克"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/dead.db" if request.param == "sqlite" else fresh_url()


@pytest.fixture
async def others(url, clock):
    """Another process that uses the database."""
    settings = Settings(url=url, tokenizer="estimate")
    async with Memory.open(settings=settings, clock=clock) as memory:
        yield memory


@pytest.fixture
def clock():
    return FakeClock()


async def answered(memory, clock, *, conversation="c", user="u", turn_id="t", said=SAID):
    """A turn that somebody has begun to answer, as a service does; returns its lease."""
    scope, now = Scope(user=user, conversation=conversation), clock.now()
    await memory.conversation(conversation, user_id=user).begin(said, id=turn_id)
    lease = f"lease of {conversation} {turn_id}"
    claim = Claim(lease, scope, "stream", now, now + LEASE, now + KEPT, about(scope, turn_id))
    assert await memory.engine.store.leases.claim(claim) is None
    return lease


async def swept(memory):
    """A routine scan of its background work."""

    async def pause(_):
        pass

    await memory.engine.dead_writers.maintain_all(Backlog((), True, False, pause, lambda: False, pause))


async def status(memory, conversation="c", turn_id="t"):
    return (await memory.conversation(conversation, user_id="u").extend(turn_id, ())).status


async def test_the_words_of_a_killed_turn_are_recalled_and_summarized(others, clock):
    """From other conversations too, once its writer has been silent for a lease and its client did not come back; marked as unanswered."""
    lease = await answered(others, clock)
    elsewhere = others.conversation("elsewhere", user_id="u")
    clock.advance((LEASE + PATIENCE).total_seconds())
    await swept(others)
    assert "open" == await status(others)
    clock.advance(0.001)
    await swept(others)
    assert "aborted" == await status(others)
    assert frozenset() == await others.engine.store.leases.ended([lease], clock.now() + KEPT)
    await others.settle()
    window = await elsewhere.context("我可以吃阿莫西林吗？对青霉素过敏吗？")
    assert SAID in str(window.messages)
    chat = others.conversation("c", user_id="u")
    for number in range(12):
        await chat.record(f"第{number}个问题", "好的。")
    await chat.checkpoint(recent_turns=2)
    view = await others.engine.store.reader.view(ViewRequest(chat.scope, 0, 0))
    assert "青霉素" in view.checkpoint.summary


async def test_a_slow_answer_is_not_given_up(others, clock):
    """Its writer renews the lease for an hour, and then it comes."""
    lease = await answered(others, clock)
    for _ in range(360):
        clock.advance(10)
        await others.engine.store.leases.renew([lease], clock.now() + LEASE)
        if clock.now().minute % 10 == 0:
            await swept(others)
    turn = await others.conversation("c", user_id="u").complete("t", "不可以。")
    assert ("done", "不可以。") == (turn.status, turn.assistant)


async def test_whoever_goes_on_with_a_turn_keeps_it(others, clock):
    """A client that came back was answered by another worker: its lease is theirs now."""
    lease = await answered(others, clock)
    clock.advance((LEASE + PATIENCE).total_seconds() - 1)
    now, scope = clock.now(), Scope(user="u", conversation="c")
    claim = Claim(lease, scope, "stream", now, now + LEASE, now + KEPT, about(scope, "t"))
    assert await others.engine.store.leases.claim(claim, take_over=True) is None
    clock.advance(2)
    await swept(others)
    assert "open" == await status(others)


async def test_what_was_answered_or_erased_in_time_stays_so(others, clock):
    """The writer died after its last write, or its user is gone: the lease goes, and nothing else happens."""
    leases = [await answered(others, clock), await answered(others, clock, conversation="d", user="v")]
    await others.conversation("c", user_id="u").complete("t", "不可以。")
    await others.forget(user_id="v")
    clock.advance(3600)
    await swept(others)
    assert "done" == await status(others)
    left = await others.engine.store.leases.ended(leases, clock.now())
    # An erased lease no longer says what it is about.
    assert left <= {leases[1]}
    assert [] == (await others.conversation("d", user_id="v").turns())


async def test_a_turn_that_nobody_answers_here_stays_open(others, clock):
    """An agent's own loop may come back after a restart: only the setting `abandoned_after_s` ends its turns."""
    await others.conversation("c", user_id="u").begin(SAID, id="t")
    clock.advance(3600)
    await swept(others)
    assert "open" == await status(others)


async def test_every_process_with_background_work_looks(others, clock):
    """Not those that leave it to another one."""
    assert others.engine.dead_writers.name in others.engine.worker.lines
    settings = Settings(url=others.settings.url, tokenizer="estimate", worker="apart")
    async with Memory.open(settings=settings, clock=clock) as apart:
        assert others.engine.dead_writers.name not in apart.engine.worker.lines


async def test_a_process_of_ones_own_says_that_it_answers(others, url, clock):
    """As long as it lives, however long that takes; after its death another process gives up the turn."""
    settings = Settings(url=url, tokenizer="estimate")
    async with Memory.open(settings=settings, clock=clock) as memory:
        chat = memory.conversation("c", user_id="u")
        leases = []
        for turn_id in ("t", "slow", "done"):
            turn = await chat.begin(f"{SAID} {turn_id}", id=turn_id)
            leases.append(await memory.engine.dead_writers.hold(turn.scope, turn_id))
        for _ in range(240):
            clock.advance(15)
            await swept(memory)
            await swept(others)
        await chat.complete("slow", "不可以。")
        await chat.complete("done", "不可以。")
        await memory.engine.dead_writers.let_go(leases[1])
    clock.advance(120)
    await swept(others)
    assert "open" == await status(others)
    clock.advance(31)
    await swept(others)
    assert ["aborted", "done", "done"] == [
        await status(others, turn_id=name) for name in ("t", "slow", "done")
    ]
    lapsed = await others.engine.store.leases.lapsed(clock.now() + KEPT, kept=clock.now(), limit=9)
    assert [] == lapsed
