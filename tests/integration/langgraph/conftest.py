"""A memory for the graph, and models that say what a test wants."""

import pytest

from pagefile import Memory, Settings

USER, SESSION = "用户-1", "会话-1"


@pytest.fixture
async def memory(tmp_path):
    settings = Settings(url=f"sqlite:///{tmp_path}/graph.db", indexing="manual")
    async with Memory.open(settings=settings, embedder="none") as memory:
        yield memory


class Model:
    """Answers with the question in capitals, or as it is told, and remembers its prompts."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.prompts = []

    def __call__(self, messages):
        self.prompts.append(messages)
        return self.answers.pop(0) if self.answers else f"答：{messages[-1].text}"


@pytest.fixture
def model():
    return Model()
