"""Places outside the database follow its erasures: at once, or when they are back, and nothing is found until then."""

import logging

import pytest

from pagefile import Memory, Settings
from pagefile.settings import EmbedderSettings
from pagefile.testing import HashingEmbedder

from .apart_home import ApartIndex

PLAIN = Settings(language="en", embedder=EmbedderSettings(name="none"))


@pytest.fixture
def home():
    return ApartIndex()


@pytest.fixture
def opened(tmp_path):
    """Opens the memory of this test with a home."""

    def opened(home=None):
        given = {} if home is None else {"embedder": HashingEmbedder(), "vectors": home}
        return Memory.open(f"sqlite:///{tmp_path}/a.db", settings=PLAIN, **given)

    return opened


async def told(memory, *users):
    for user in users:
        await memory.conversation(f"of {user}", user_id=user).record(f"{user} likes hiking", "Noted.")
    await memory.settle()


def users(home):
    return sorted(row.scope.user for row, _ in home.rows.values())


async def test_a_home_apart_follows_at_once(opened, home):
    """Its rows are counted, and nothing is owed."""
    async with opened(home) as memory:
        await told(memory, "ada", "bob")
        receipt = await memory.forget(user_id="ada")
        described = await memory.describe()
    assert (1, ()) == (receipt.counts["conversation_episodes"], receipt.pending)
    assert {} == described["erasures_owed"]
    assert ["bob"] == users(home)


async def test_what_stays_in_the_files_of_a_home_is_told(opened, home):
    """Where something of the erased was there at all."""
    home.leaves = "vectors in its files"
    async with opened(home) as memory:
        await told(memory, "ada")
        assert ("vectors in its files",) == (await memory.forget(user_id="ada")).pending
        assert () == (await memory.forget(user_id="nobody")).pending


async def test_a_home_that_is_away_is_told_and_follows_later(opened, home):
    """The rows are gone, the receipt and `describe` say what is owed; the same process finishes it when the home is back."""
    async with opened(home) as memory:
        await told(memory, "ada", "bob")
        home.away = True
        receipt = await memory.forget(user_id="ada")
        assert [] == list(await memory.conversation("of ada", user_id="ada").turns())
        assert ["apart" in one and "as soon as" in one for one in receipt.pending] == [True]
        assert {"apart": 2} == (await memory.describe())["erasures_owed"]
        assert ["ada", "bob"] == users(home)
        home.away = False
        assert [] == await memory.recall("hiking", user_id="ada")
        memory.engine.worker.scan()
        await memory.settle()
        assert {} == (await memory.describe())["erasures_owed"]
    assert ["bob"] == users(home)


async def test_another_process_finishes_it(opened, home):
    """Whoever opens the database with the home next; until then every receipt says so, also of one that has no such home."""
    async with opened(home) as memory:
        await told(memory, "ada", "bob")
    async with opened() as without:
        receipt = await without.forget(user_id="ada")
        again = await without.forget(user_id="nobody")
    assert (1, 1) == (len(receipt.pending), len(again.pending))
    assert ["ada", "bob"] == users(home)
    async with opened(ApartIndex(home.rows)) as memory:
        await memory.settle()
        assert {} == (await memory.describe())["erasures_owed"]
    assert ["bob"] == users(home)


async def test_who_begins_again_keeps_what_is_new(opened, home):
    """What is owed is older than the erasure: vectors made since, under the same ids, stay."""
    async with opened(home) as memory:
        await told(memory, "ada")
        home.away = True
        await memory.forget(user_id="ada")
        await memory.conversation("of ada", user_id="ada").record("ada is back", "Welcome.")
        home.away = False
        chat = memory.conversation("of ada", user_id="ada")
        await chat.record("ada likes hiking again", "Noted.")
        memory.engine.worker.scan()
        await memory.settle()
        assert {} == (await memory.describe())["erasures_owed"]
        assert 2 == len(await memory.recall("ada", user_id="ada"))
    assert [1, 2] == sorted(row.seq for row, _ in home.rows.values())


async def test_what_is_put_behind_an_erasure_goes_too(opened, home):
    """A vector on its way while another process erases, and the home away in the next moment."""
    async with opened(home) as memory:

        async def erased():
            async with opened() as other:
                await other.forget(user_id="ada")
            # The home has followed before the late vector comes.
            await memory.engine.elsewhere.follow(home)
            home.rows |= late
            home.away = True

        late = {}
        home.behind_put = erased
        put = home.put

        async def kept(model, rows, *, epoch=None):
            late.update(
                {(model, row.scope.tenant, row.scope.conversation, row.seq): (row, epoch) for row in rows}
            )
            await put(model, rows, epoch=epoch)

        home.put = kept
        await told(memory, "ada")
        assert ["ada"] == users(home)
        assert {"apart": 2} == (await memory.describe())["erasures_owed"]
        home.away = False
        memory.engine.worker.scan()
        await memory.settle()
    assert [] == users(home)


async def test_a_home_that_is_used_again_owes_nothing_of_before(opened, home):
    """Erasures before its first use do not concern it."""
    async with opened() as memory:
        await memory.forget(user_id="ada")
    async with opened(home) as memory:
        await told(memory, "ada")
        home.away = True
        assert {} == (await memory.describe())["erasures_owed"]


async def test_the_log_says_what_is_owed(opened, home, caplog):
    """Once for each erasure, with the reason; nobody has to find it out from receipts."""
    async with opened(home) as memory:
        home.away = True
        with caplog.at_level(logging.WARNING, logger="pagefile"):
            await memory.forget(user_id="ada")
    assert 1 == sum("An erasure is still pending in apart: it is away" in line for line in caplog.messages)


async def test_of_one_turn_the_others_are_made_again(opened, home):
    """A home that erases by conversation loses nothing but the turn."""
    async with opened(home) as memory:
        chat = memory.conversation("hikes", user_id="ada")
        turns = [
            await chat.record(f"{place} is a good place to hike", "Noted.") for place in ("Elba", "Skye")
        ]
        await memory.settle()
        assert 2 == len(home.rows)
        assert (
            () == (await memory.forget(conversation_id="hikes", user_id="ada", turn_id=turns[0].id)).pending
        )
        await memory.settle()
        assert [2] == [row.seq for row, _ in home.rows.values()]
        assert {} == (await memory.describe())["erasures_owed"]


async def test_what_others_have_made_again_by_then_stays(opened, home, monkeypatch):
    """Another process is faster: it follows the erasure and makes the vectors of what is left."""
    async with opened(home) as memory, opened(home) as other:
        chat = memory.conversation("hikes", user_id="ada")
        turns = [
            await chat.record(f"{place} is a good place to hike", "Noted.") for place in ("Elba", "Skye")
        ]
        await memory.settle()
        erase = memory.engine.store.erase

        async def made_again(*args):
            receipt = await erase(*args)
            await other.engine.elsewhere.follow(home)
            other.engine.worker.scan()
            await other.settle()
            assert [2] == [row.seq for row, _ in home.rows.values()]
            return receipt

        monkeypatch.setattr(memory.engine.store, "erase", made_again)
        await memory.forget(conversation_id="hikes", user_id="ada", turn_id=turns[0].id)
        await memory.settle()
        assert [2] == [row.seq for row, _ in home.rows.values()]


async def test_who_begins_a_forgotten_conversation_again_is_not_erased(opened, home, monkeypatch):
    """What is made of it in the next moment, by another process, is not what was forgotten."""
    async with opened(home) as memory, opened(home) as other:
        await told(memory, "ada")
        erase = memory.engine.store.erase

        async def begun_again(*args):
            receipt = await erase(*args)
            await told(other, "ada")
            return receipt

        monkeypatch.setattr(memory.engine.store, "erase", begun_again)
        await memory.forget(user_id="ada")
        await memory.settle()
        assert ["ada"] == users(home)


async def test_a_home_that_is_away_keeps_no_words_at_hand(opened, home):
    """Of one turn: what recall has in memory goes at once, and the receipt speaks of the home alone."""
    async with opened(home) as memory:
        chat = memory.conversation("hikes", user_id="ada")
        turn = await chat.record("Elba is a good place to hike", "Noted.")
        await memory.settle()
        assert [turn.id] == [hit.id for hit in await memory.recall("Elba", user_id="ada")]
        home.away = True
        receipt = await memory.forget(conversation_id="hikes", user_id="ada", turn_id=turn.id)
        assert ["apart" in one and "as soon as" in one for one in receipt.pending] == [True]
        assert {} == memory.engine.failures
        assert [] == await memory.recall("Elba", user_id="ada")
