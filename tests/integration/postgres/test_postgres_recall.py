"""Recall by meaning on PostgreSQL: indexed by watermark, erased with the user, made again by another embedder."""

from pagefile import Memory
from pagefile.testing import HashingEmbedder
from tests.acceptance.films import CHAT, FILMS, indexed, vectors

from .serving import fresh_url


async def test_turns_are_indexed_found_and_forgotten():
    """Two processes' worth of it: what one wrote the other finds, and each turn that counts has one vector."""
    url = fresh_url()
    async with (
        Memory.open(url, embedder=HashingEmbedder()) as one,
        Memory.open(url, embedder=HashingEmbedder()) as two,
    ):
        for number, (user, assistant) in enumerate([FILMS, *CHAT]):
            memory = one if number % 2 else two
            await memory.conversation(f"c{number % 3}", user_id="u").record(
                user, assistant, id=f"{number:02}"
            )
        chat = one.conversation("c0", user_id="u")
        await chat.abort(await chat.begin("算了", id="11"))
        await chat.begin("还没说完")
        await one.settle()
        await two.settle()
        assert await indexed(one) == await indexed(two) == [f"{number:02}" for number in range(12)]
        hits = await two.recall("那部科幻电影的导演", user_id="u")
        assert hits[0].id == "00"
        assert hits[0].parts["similarity"] > 0
        assert (await one.forget(conversation_id="c0")).counts["conversation_episodes"] == 5
        assert (await one.forget(user_id="u")).counts["conversation_episodes"] == 7
        assert await indexed(two) == []


async def test_another_embedder_rebuilds():
    """Found out, explained, made again; the old vectors are gone at the end."""
    url = fresh_url()
    async with Memory.open(url, embedder=HashingEmbedder(64)) as memory:
        for number, (user, assistant) in enumerate(CHAT):
            await memory.conversation(f"c{number}", user_id="u").record(user, assistant)
        await memory.settle()
    async with Memory.open(url, embedder=HashingEmbedder(32)) as memory:
        await memory.settle()
        assert "pagefile rebuild" in (await memory.describe())["recall"]["trouble"]
        assert await memory.rebuild() == {"terms": 0, "vectors": 10, "dropped": 10}
        assert await vectors(memory) == {"hashing/32": 10}
