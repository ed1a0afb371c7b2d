"""What a process has at hand goes with what is forgotten."""

from dataclasses import replace

import anyio
import pytest

from pagefile import Memory, Settings, StoreError
from pagefile.ports import Summarizer
from pagefile.settings import EmbedderSettings, FactSettings
from pagefile.testing import FakeClock, HashingEmbedder, InMemorySessions
from pagefile.text import fact_ranking as fact_texts
from pagefile.text import words
from pagefile.tiers.episodes import Episodes
from pagefile.tiers.facts import Facts
from pagefile.tiers.history import History

pytestmark = pytest.mark.anyio
SETTINGS = Settings(embedder=EmbedderSettings(name="none"), window_tokens=2000)
SECRET = "Passport X4711-88 belongs to Ada Quill"


async def filled(chat, memory, history):
    """Turns until a checkpoint of the conversation is prepared and not yet in force."""
    for number in range(40):
        await chat.record(f"{SECRET} {number} " + "word " * 20, "ok " * 10)
        await memory.settle()
        if any(scope.conversation == chat.id for scope in history.checkpoints.prepared):
            return
    raise AssertionError("no checkpoint was prepared")


@pytest.mark.parametrize("erased", [{"user_id": "ada"}, {"conversation_id": "c"}])
async def test_a_prepared_summary_is_forgotten(erased):
    """That of another user stays: making it again may cost a model call."""
    async with Memory.open("memory://", settings=SETTINGS) as memory:
        history = memory.engine.tier(History)
        await filled(memory.conversation("c", user_id="ada"), memory, history)
        await filled(memory.conversation("d", user_id="bob"), memory, history)
        await memory.forget(**erased)
        assert [scope.user for scope in history.checkpoints.prepared] == ["bob"]


@pytest.mark.parametrize("erased", [{"user_id": "ada"}, {"conversation_id": "c"}])
async def test_a_summary_that_is_being_prepared_is_forgotten(erased):
    """A model may take long over it: what was erased meanwhile is not kept when it comes."""

    class Slow(Summarizer):
        def __init__(self):
            self.asked, self.erased = anyio.Event(), anyio.Event()

        async def summarize(self, request):
            self.asked.set()
            await self.erased.wait()
            return SECRET

    model = Slow()
    async with Memory.open("memory://", settings=SETTINGS, summarizer=model) as memory:
        chat = memory.conversation("c", user_id="ada")
        with anyio.fail_after(30):
            while not model.asked.is_set():
                await chat.record(SECRET + " word" * 20, "ok " * 10)
                await anyio.sleep(0.01)
            await memory.forget(**erased)
            model.erased.set()
            await memory.settle()
        assert memory.engine.tier(History).checkpoints.prepared == []


@pytest.mark.parametrize("erased", [{"user_id": "ada"}, {"conversation_id": "c"}, {"tenant": "default"}])
async def test_vectors_that_are_known_by_texts_are_forgotten(erased):
    """Those of facts and of questions; what was worked out for its words goes too."""
    settings = replace(SETTINGS, facts=FactSettings(extract="rules", embeddings=True))
    async with Memory.open("memory://", settings=settings, embedder=HashingEmbedder()) as memory:
        chat = memory.conversation("c", user_id="ada")
        await chat.record("I live in Vladivostok.", "Noted.")
        await memory.remember("Likes tea", user_id="bob")
        await memory.settle()
        for one in (chat, memory.conversation("d", user_id="bob")):
            await one.context("Where does she live?")
            await one.recall("Vladivostok")
        facts, episodes = memory.engine.tier(Facts), memory.engine.tier(Episodes)
        assert {scope.user for scope, _ in facts._vectors} == {"ada", "bob"}
        await memory.forget(**erased)
        others = {("bob", "Likes tea"), ("bob", "Where does she live?")}
        left = {(scope.user, text) for scope, text in facts._vectors}
        assert left == (set() if "tenant" in erased else others)
        assert not episodes.derivation.vectors._questions
        assert words._remembered.cache_info().currsize == fact_texts._said.cache_info().currsize == 0


class _Refuses(InMemorySessions):
    """A cache whose first erasures run into a time-out."""

    refuses = 0

    async def erase(self, scope, *, version):
        if self.refuses:
            self.refuses -= 1
            return False
        return await super().erase(scope, version=version)


async def in_cache(memory, cache):
    """Conversations whose sessions are in the cache."""
    chats = [memory.conversation(name, user_id="u") for name in ("a", "b", "c")]
    for chat in chats:
        await chat.record("Hi.", "Hello.")
        await memory.engine.sessions.get(chat.scope)
    assert 3 == len(await cache.kept())


@pytest.mark.parametrize(("refuses", "left"), [(2, 0), (4, 3)])
async def test_a_session_that_could_not_be_erased_is_erased_later(refuses, left, monkeypatch):
    """At once, or by whoever comes next; until then the receipt says what is left."""
    monkeypatch.setattr("pagefile.engine.engine.TRUST_S", 0)
    cache = _Refuses(FakeClock())
    cache.refuses = refuses
    async with Memory.open("memory://", settings=SETTINGS, sessions=cache) as memory:
        await in_cache(memory, cache)
        receipt = await memory.forget(user_id="u")
        assert left == len(await cache.kept())
        assert [cache.name in line for line in receipt.pending] == ([True] if left else [])
        receipt = await memory.forget(user_id="nobody")
        assert ([], ()) == (await cache.kept(), receipt.pending)


async def test_a_cache_that_the_eraser_does_not_know_follows(tmp_path):
    """`pagefile forget` in a shell without the setting: the receipt names the cache, and a process that has it erases there."""
    cache, url = InMemorySessions(FakeClock()), f"sqlite:///{tmp_path}/a.db"
    async with Memory.open(url, settings=SETTINGS, sessions=cache) as memory:
        await in_cache(memory, cache)
        async with Memory.open(url, settings=SETTINGS) as other:
            receipt = await other.forget(user_id="u")
            assert [cache.name in line for line in receipt.pending] == [True]
        assert 3 == len(await cache.kept())
        await memory.settle()
        assert [] == await cache.kept()


async def test_a_database_that_cannot_note_it_is_read_past_the_cache(monkeypatch, caplog):
    """Sessions are read as before, nothing is cached that no erasure would reach, and the log says so once."""
    cache = InMemorySessions(FakeClock())
    async with Memory.open("memory://", settings=SETTINGS, sessions=cache) as memory:

        async def refused(place):
            raise StoreError("The database cannot be written.")

        monkeypatch.setattr(memory.engine.store.erasures, "begin", refused)
        chat = memory.conversation("c", user_id="u")
        await chat.record("Hi.", "Hello.")
        assert "Hello." in str(await memory.engine.sessions.get(chat.scope))
        await memory.engine.sessions.get(chat.scope)
        assert [] == await cache.kept()
    assert 1 == caplog.text.count("sessions are not cached")
