"""A question is embedded once for a window, whichever tiers compare it."""

import anyio
import pytest

from pagefile import Memory
from pagefile.models.embedders import MemoryEncoder
from pagefile.ports import Embedder
from pagefile.settings import EmbedderSettings, Settings
from pagefile.testing import HashingEmbedder

pytestmark = pytest.mark.anyio
QUESTION = "Tell me about the dentist in Leeds"


class Counting(Embedder):
    """Notes every text it is given."""

    def __init__(self) -> None:
        self._own = MemoryEncoder()
        self.name, self.dimension, self.batch = self._own.name, self._own.dimension, self._own.batch
        self.asked: list[str] = []

    async def embed(self, texts):
        self.asked += texts
        made = await self._own.embed(texts)
        self.dimension = self._own.dimension
        return made


async def test_facts_and_recall_share_the_vector_of_a_question(tmp_path):
    embedder = Counting()
    settings = Settings(embedder=EmbedderSettings(query_timeout_s=60.0))
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", embedder=embedder, settings=settings) as memory:
        await memory.remember("Sees a dentist in Leeds.", user_id="u")
        await memory.conversation("before", user_id="u").record(
            "The dentist in Leeds was kind.", "Good to hear."
        )
        await memory.settle()
        embedder.asked.clear()
        await memory.conversation("now", user_id="u").context(QUESTION)
    assert embedder.asked.count(QUESTION) == 1


async def test_the_first_question_of_a_small_memory_may_come_before_its_first_vector(tmp_path):
    """Turns that are not indexed yet are compared by meaning all the same: by words alone this question finds nothing."""
    settings = Settings(embedder=EmbedderSettings(query_timeout_s=60.0))
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=settings) as memory:
        await memory.conversation("before", user_id="u").record("I'm allergic to peanuts.", "Noted.")
        chat = memory.conversation("now", user_id="u")
        window = await chat.context("Can I eat peanuts?")
        assert "I'm allergic to peanuts." in str(window.messages)
        assert not window.receipt.degraded
        await memory.forget(user_id="u")
        assert "peanuts" not in str((await chat.context("Am I allergic to anything?")).messages)


class Loading(HashingEmbedder):
    """One of our own, which has to be loaded: its first answer takes longer than a window waits for a vector."""

    local = True
    loads_s = 0.6

    async def embed(self, texts):
        await anyio.sleep(self.loads_s)
        self.loads_s = 0.0
        return await super().embed(texts)


@pytest.mark.waits
async def test_a_question_waits_for_an_encoder_that_is_being_loaded():
    """Three times as long as for a vector, if words find nothing: the first window of a process is no worse than the second."""
    settings = Settings(embedder=EmbedderSettings(query_timeout_s=0.5))
    embedder = Loading()
    async with Memory.open("memory://", embedder=embedder, settings=settings) as memory:
        await memory.conversation("before", user_id="u").record("The boiler was serviced in May.", "Good.")
        embedder.loads_s = 0.6
        memory.engine.kit.vectors.answered = False
        window = await memory.conversation("now", user_id="u").context("Is the heating fine?")
    assert "The boiler was serviced in May." in str(window.messages)
    assert not window.receipt.degraded
