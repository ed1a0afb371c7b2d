"""What is older than a tenant's policy allows is erased by the worker, pinned pages aside, and noted."""

from datetime import UTC, datetime, timedelta

import pytest

from pagefile import BlockingMemory, Memory, Settings
from pagefile.engine.audit_log import AuditLog
from pagefile.settings import EmbedderSettings, PolicySettings
from pagefile.stores.sqlite import store
from pagefile.testing.fakes import FakeClock
from tests.waiting import until

from .cli_calling import pagefile

LONG = "row 1: the pump in Lyon failed at 14:05\n" * 400


def settings(tmp_path, **more):
    policy = PolicySettings(retention="keep=0, *=30", audit=str(tmp_path / "audit"))
    return Settings(embedder=EmbedderSettings(name="none"), policy=policy, **more)


async def swept(memory):
    memory.engine.worker.lines["retention"].scan()
    await memory.settle()


async def test_an_unused_conversation_goes_as_a_whole(tmp_path):
    """Another tenant's stays, and the audit log says what went."""
    clock = FakeClock()
    given = settings(tmp_path)
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=given, clock=clock) as memory:
        for tenant in ("default", "keep"):
            await memory.conversation("old", user_id="u", tenant=tenant).record("hello", "there")
        clock.set(clock.now() + timedelta(days=40))
        await memory.conversation("new", user_id="u").record("hello", "again")
        await swept(memory)
        left = [one.scope.conversation for one in await memory.conversations()]
        assert ["new"] == left
        assert ["old"] == [one.scope.conversation for one in await memory.conversations(tenant="keep")]
    noted = AuditLog.of(given.policy).entries("default")
    assert [("retention: conversation", "old", 1)] == [
        (one.verb, one.conversation, one.count) for one in noted
    ]


async def test_a_conversation_in_use_loses_its_old_turns(tmp_path):
    clock = FakeClock()
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=settings(tmp_path), clock=clock) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("old words", "old answer")
        clock.set(clock.now() + timedelta(days=40))
        await chat.record("new words", "new answer")
        await swept(memory)
        said = [turn.user for turn in await chat.turns() if not turn.erased]
        assert ["new words"] == said
    assert b"old words" not in b"".join(file.read_bytes() for file in tmp_path.glob("a.db*"))


async def test_every_old_turn_of_a_long_conversation_goes(tmp_path, monkeypatch):
    """However many there are, in one sweep and in the next one; the file is rewritten once for all of them."""
    clock, rewritten = FakeClock(), []
    monkeypatch.setattr(
        store, "rewrite", lambda place, rewrite=store.rewrite: rewritten.append(place) or rewrite(place)
    )
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=settings(tmp_path), clock=clock) as memory:
        chat = memory.conversation("c", user_id="u")
        for number in (300, 1):
            for _ in range(number):
                await chat.record("old words", "old answer")
            clock.set(clock.now() + timedelta(days=40))
            await chat.record("new words", "new answer")
            await swept(memory)
            said = [turn.user for turn in await chat.turns(limit=1000) if not turn.erased]
            assert ["new words"] == said
        await memory.conversation("other", user_id="u").record("hello", "there")
        clock.set(clock.now() + timedelta(days=40))
        await swept(memory)
        assert [] == await memory.conversations()
    assert 3 == len(rewritten)
    assert b"old words" not in b"".join(file.read_bytes() for file in tmp_path.glob("a.db*"))


async def test_a_pinned_page_keeps_its_turn(tmp_path):
    clock = FakeClock()
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=settings(tmp_path), clock=clock) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.record("read it", "done", steps=[{"tool": "read", "result": LONG}])
        await chat.record("gone", "too")
        await chat.pin(turn.steps[0].page)
        clock.set(clock.now() + timedelta(days=40))
        await swept(memory)
        assert ["read it"] == [turn.user for turn in await chat.turns() if not turn.erased]
        assert LONG == await chat.load(turn.steps[0].page)


async def test_it_is_swept_without_being_asked(tmp_path):
    """A moment after opening, and every hour."""
    clock = FakeClock()
    url, given = f"sqlite:///{tmp_path}/a.db", settings(tmp_path)
    async with Memory.open(url, settings=given, clock=clock) as memory:
        await memory.conversation("old", user_id="u").record("hello", "there")
    clock.set(clock.now() + timedelta(days=40))
    async with Memory.open(url, settings=given, clock=clock) as memory:

        async def is_gone():
            return not await memory.conversations()

        await until(is_gone)


# -- the command ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_tenants(tmp_path, monkeypatch):
    """A database whose tenant `clinic` has an old conversation, and settings that name it, and one that is misspelled."""
    monkeypatch.chdir(tmp_path)
    toml = (
        '[policy]\nretention = "clinic=30, trail-1=7"\nredact = "clinic=email"\n[embedder]\nname = "none"\n'
    )
    (tmp_path / "pagefile.toml").write_text(toml)
    clock = FakeClock(datetime.now(UTC) - timedelta(days=40))
    with BlockingMemory.open("sqlite:///pagefile.db", embedder="none", clock=clock) as memory:
        memory.conversation("old", user_id="u", tenant="clinic").record("hello", "there")
        memory.conversation("busy", user_id="u", tenant="clinic").record("hello", "there")
        memory.conversation("old", user_id="u", tenant="trial-1").record("hello", "there")
        clock.set(datetime.now(UTC))
        memory.conversation("busy", user_id="u", tenant="clinic").record("hello", "again")


def test_what_is_due_is_listed_and_a_misspelled_tenant_told(two_tenants):
    said = pagefile("policy")
    assert 0 == said.code
    assert "clinic email 30 days 2 1 1" in said.words
    assert "trial-1 - forever 1 0 0" in said.words
    assert "'trail-1'" in said.err
    assert "is 'trial-1' meant?" in " ".join(said.err.split())


def test_retention_can_be_seen_to_work(two_tenants):
    """What is due goes at once, and is due no more."""
    (before, _), (after, _) = pagefile("policy", "--json").json, pagefile("policy", "--apply", "--json").json
    assert (2, 1, 1) == (before["conversations"], before["due_conversations"], before["due_turns"])
    assert (1, 0, 0) == (after["conversations"], after["due_conversations"], after["due_turns"])
    assert (30, ["email"]) == (after["days"], after["redacted"])
    shown = pagefile("show", "--tenant", "clinic")
    assert ("busy" in shown.out, "old" in shown.out) == (True, False)


async def test_a_conversation_that_is_written_again_loses_its_old_turns(tmp_path):
    """It was erased as a whole, and its places in the log are counted from the beginning again."""
    clock = FakeClock()
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=settings(tmp_path), clock=clock) as memory:
        chat = memory.conversation("c", user_id="u")
        for number in (5, 2):
            for _ in range(number):
                await chat.record("old words", "old answer")
            clock.set(clock.now() + timedelta(days=40))
            await chat.record("new words", "new answer")
            await swept(memory)
            said = [turn.user for turn in await chat.turns() if not turn.erased]
            assert ["new words"] == said
            await memory.forget(conversation_id="c")
