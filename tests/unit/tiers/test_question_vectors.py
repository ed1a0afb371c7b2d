"""A question is embedded once for a window, whichever tiers compare it."""

import pytest

from pagefile import Memory
from pagefile.models.embedders import UniversalSentenceEncoder
from pagefile.ports import Embedder
from pagefile.settings import EmbedderSettings, Settings

pytestmark = pytest.mark.anyio
QUESTION = "Tell me about the dentist in Leeds"


class Counting(Embedder):
    """Notes every text it is given."""

    def __init__(self) -> None:
        self._own = UniversalSentenceEncoder()
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
