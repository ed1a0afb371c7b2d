"""Another embedder, another dimension, another home: found out, explained, and made again while reads go on."""

import logging

import anyio
import pytest

from pagefile import Memory, ModelUnavailableError, Settings, SettingsError
from pagefile.models.embedders import LangChainEmbedder
from pagefile.testing import HashingEmbedder
from tests.waiting import until

from .cli_calling import pagefile
from .films import CHAT, FILMS, Moody, indexed, vectors
from .loose_vectors import LooseVectors

OLD, NEW = "hashing/64", "hashing/32"


@pytest.fixture
async def place(tmp_path):
    """A database whose turns have vectors of 64 numbers."""
    url = f"sqlite:///{tmp_path}/a.db"
    async with Memory.open(url, embedder=HashingEmbedder(64)) as memory:
        for number, (user, assistant) in enumerate([FILMS, *CHAT]):
            tenant = "t2" if number > 7 else None
            await memory.conversation(f"c{number % 3}", user_id="u", tenant=tenant).record(
                user, assistant, id=f"{number}"
            )
        await memory.settle()
        assert await vectors(memory) == {OLD: 11}
    return url


async def test_another_embedder_is_found_out_and_explained(place, caplog):
    """Words go on; the log, the receipt and `describe` say what happened and what to do; nothing is embedded by itself."""
    embedder = HashingEmbedder(32)
    with caplog.at_level(logging.WARNING, "pagefile"):
        async with Memory.open(place, embedder=embedder, settings=Settings(window_tokens=700)) as memory:
            await memory.settle()
            chat = memory.conversation("new", user_id="u")
            await chat.record("一句新的话", "好")
            await memory.settle()
            assert (await memory.recall("科幻电影", user_id="u"))[0].id == "0"
            window = await chat.context("之前说的那部科幻电影是什么？")
            trouble = (await memory.describe())["recall"]["trouble"]
            assert await vectors(memory) == {OLD: 11}
    assert embedder.embedded == 0
    for told in (caplog.text, " ".join(window.receipt.degraded), trouble):
        assert OLD in told
        assert NEW in told
        assert "pagefile rebuild" in told
    assert len([record for record in caplog.records if "pagefile rebuild" in record.getMessage()]) == 1


class WrongAtFirst:
    """An endpoint whose first answer has vectors of another length."""

    def __init__(self):
        self.lengths = [65]

    async def aembed_documents(self, texts):
        length = self.lengths.pop() if self.lengths else 64
        return (await HashingEmbedder(length).embed(texts)).tolist()


async def test_one_wrong_answer_does_not_decide_the_dimension(place):
    """A process whose first answer was of another length finds by meaning again once answers are right."""
    async with Memory.open(place, embedder=LangChainEmbedder(WrongAtFirst(), name="hashing")) as memory:
        (hit, *_) = await memory.recall("科幻电影", user_id="u")
        assert hit.parts["similarity"] == 0

        async def found_by_meaning():
            (hit, *_) = await memory.recall("科幻电影", user_id="u")
            return hit.parts["similarity"] > 0

        await until(found_by_meaning)


async def test_a_rebuild_makes_vectors_again_and_removes_the_old(place):
    """With a progress that only rises and ends at the end; a second one has nothing to do, `from_scratch` has."""
    seen = []
    async with Memory.open(place, embedder=HashingEmbedder(32)) as memory:
        counts = await memory.rebuild(progress=lambda done, total: seen.append((done, total)))
        assert counts == {"terms": 0, "vectors": 11, "dropped": 11}
        assert await vectors(memory) == {NEW: 11}
        assert (await memory.recall("科幻电影", user_id="u"))[0].parts["similarity"] > 0
        assert (await memory.describe())["recall"]["trouble"] is None
        assert await memory.rebuild() == {"terms": 0, "vectors": 0, "dropped": 0}
        assert await memory.rebuild(from_scratch=True) == {"terms": 11, "vectors": 11, "dropped": 0}
        assert await vectors(memory) == {NEW: 11}
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] == 11
    async with Memory.open(place, embedder=HashingEmbedder(32)) as memory:
        await memory.settle()
        assert memory.engine.kit.vectors.embedder.embedded <= 1
        assert len(await indexed(memory)) == 8


async def test_a_rebuild_that_was_interrupted_is_continued(place):
    """What is there is not made again, and the old ones go only when all new ones are there."""

    class Tired(HashingEmbedder):
        async def embed(self, texts):
            if self.embedded >= 8:
                raise ModelUnavailableError("tired")
            return await super().embed(texts)

    async with Memory.open(place, embedder=Tired(32)) as memory:
        memory.engine.kit.vectors.embedder.batch = 4
        with pytest.raises(ModelUnavailableError, match="tired"):
            await memory.rebuild(tenant="t2")
            await memory.rebuild()
        assert (await vectors(memory))[OLD] == 11
    async with Memory.open(place, embedder=HashingEmbedder(32)) as memory:
        before = (await vectors(memory)).get(NEW, 0)
        assert 0 < before < 11
        counts = await memory.rebuild()
        assert counts["dropped"] == 11
        assert await vectors(memory) == {NEW: 11}


async def test_one_tenant_is_rebuilt_and_the_others_keep_what_they_have(place):
    """Old vectors stay as long as somebody has no new ones."""
    async with Memory.open(place, embedder=HashingEmbedder(32), settings=Settings(drain_s=0)) as memory:
        assert await memory.rebuild(tenant="t2") == {"terms": 0, "vectors": 3, "dropped": 0}
        assert await vectors(memory) == {OLD: 11, NEW: 3}


async def test_a_rebuild_whose_embedder_fails_says_so_and_keeps_the_old(place):
    """Nothing is dropped for what could not be made."""
    async with Memory.open(place, embedder=Moody(32)) as memory:
        with pytest.raises(ModelUnavailableError, match="on strike"):
            await memory.rebuild()
        assert await vectors(memory) == {OLD: 11}


async def test_another_home_is_found_out(place):
    """The log knows that vectors were made elsewhere: nothing is embedded until somebody says so."""
    elsewhere = LooseVectors()
    embedder = HashingEmbedder(64)
    async with Memory.open(place, vectors=elsewhere, embedder=embedder) as memory:
        await memory.settle()
        trouble = (await memory.describe())["recall"]["trouble"]
        assert "sqlite" in trouble
        assert "pagefile rebuild" in trouble
        assert embedder.embedded == 0
        assert await memory.rebuild() == {"terms": 0, "vectors": 11, "dropped": 0}
        assert len(await indexed(memory)) == 8
    async with Memory.open(place, embedder=HashingEmbedder(64)) as memory:
        await memory.settle()
        assert await vectors(memory) == {OLD: 11}
        assert memory.engine.kit.vectors.embedder.embedded <= 1


async def test_a_home_that_lost_everything_is_filled_again(tmp_path):
    """The watermarks speak of vectors that are gone: they are made again."""
    url = f"sqlite:///{tmp_path}/a.db"
    embedder = HashingEmbedder()
    for _ in range(2):
        home = LooseVectors()
        async with Memory.open(url, vectors=home, embedder=embedder) as memory:
            await memory.conversation("c", user_id="u").record(*FILMS, id="film")
            await memory.settle()
            assert await indexed(memory) == ["film"]


def test_the_command_line_rebuilds(tmp_path):
    """`pagefile rebuild`: makes what is missing, says what it did, and what `doctor` says is true."""
    db = f"{tmp_path}/a.db"
    pagefile("--db", db, "record", "c", "--user-id", "u", "--user", FILMS[0], "--assistant", FILMS[1])
    told = pagefile("--db", db, "rebuild", "--json").json
    assert told == {"terms": 1, "vectors": 1, "dropped": 0}
    assert "Everything is there already" in pagefile("--db", db, "rebuild").words
    assert "1 vector" in pagefile("--db", db, "rebuild", "--from-scratch").words
    checks = pagefile("--db", db, "doctor", "--json").json["checks"]
    recall = next(check for check in checks if check["name"] == "recall")
    assert recall["state"] == "ok"
    assert "1 vector" in recall["found"]


async def test_a_home_that_nobody_knows_is_refused_at_once(tmp_path):
    """Before anything is asked of it; the database is let go."""
    with pytest.raises(SettingsError, match="milvus://"):
        async with Memory.open(f"sqlite:///{tmp_path}/a.db", vectors="qdrant://host"):
            pass


class Successor(HashingEmbedder):
    """What the next version brings: it takes over what the one before has made."""

    replaces = ("hashing",)

    def __init__(self, *, broken: bool = False) -> None:
        super().__init__(32, name="hashing-next")
        self.broken = broken

    async def embed(self, texts):
        if self.broken and len(texts) > 2:
            raise ModelUnavailableError("not yet")
        return await super().embed(texts)


async def test_a_successor_makes_vectors_again_by_itself(place):
    """In the background: until it is done, recall goes on by words and by what there is, and receipts say so; the old ones go at the end."""
    embedder = Successor(broken=True)
    async with Memory.open(place, embedder=embedder, settings=Settings(window_tokens=700)) as memory:
        await memory.settle()
        assert (await memory.recall("科幻电影", user_id="u"))[0].id == "0"
        assert await vectors(memory) == {OLD: 11}
        embedder.broken = False
        window = await memory.conversation("new", user_id="u").context("之前说的那部科幻电影是什么？")
        assert [note for note in window.receipt.degraded if "by word only" in note]
        await memory.settle()
        assert await vectors(memory) == {"hashing-next/32": 11}
        (hit, *_) = await memory.recall("科幻电影", user_id="u")
        assert hit.parts["similarity"] > 0
        window = await memory.conversation("newer", user_id="u").context("之前说的那部科幻电影是什么？")
        assert not window.receipt.degraded


async def test_another_process_may_make_them_again(place):
    """Receipts of a process that does no background work say so as long as it lasts, and no longer."""
    manual = Settings(window_tokens=700, indexing="manual")
    async with Memory.open(place, embedder=Successor(), settings=manual) as asking:
        window = await asking.conversation("new", user_id="u").context("之前说的那部科幻电影是什么？")
        assert [note for note in window.receipt.degraded if "by word only" in note]
        async with Memory.open(place, embedder=Successor()) as working:
            await working.settle()
            assert await vectors(working) == {"hashing-next/32": 11}
        window = await asking.conversation("newer", user_id="u").context("之前说的那部科幻电影是什么？")
        assert not window.receipt.degraded


async def test_only_what_it_is_the_successor_of_is_made_again(place):
    """Vectors of somebody else's model may have cost money: they stay until `pagefile rebuild`."""
    async with Memory.open(place, embedder=HashingEmbedder(16, name="other")) as memory:
        await memory.rebuild()
    async with Memory.open(place, embedder=Successor()) as memory:
        await memory.settle()
        assert await vectors(memory) == {"other/16": 11}
        assert "pagefile rebuild" in (await memory.describe())["recall"]["trouble"]


def test_doctor_says_that_vectors_are_being_made_again(tmp_path):
    """Those of the encoder that was bundled before: nobody has to do anything. Others stay until somebody does."""
    db = f"sqlite:///{tmp_path}/a.db"

    async def made() -> None:
        predecessor = HashingEmbedder(8, name="use-multilingual-v3")
        async with Memory.open(db, embedder=predecessor) as memory:
            await memory.conversation("c", user_id="u").record(*FILMS)
            await memory.settle()

    anyio.run(made)
    checks = pagefile("--db", db, "doctor", "--json").json["checks"]
    recall = next(check for check in checks if check["name"] == "recall")
    assert "vectors of use-multilingual-v3/8 (1) are made again in the background" in recall["found"]
    assert ("note", "`pagefile rebuild` does it at once.") == (recall["state"], recall["advice"])
