"""A memory in a file, in both faces, and a count of what it did without."""

import pytest

from pagefile import BlockingMemory, Memory, Settings
from pagefile.ports import Meter
from pagefile.settings import ArchiveSettings

#: Results from a thousand characters on are paged out, so that the data of a test can stay small.
SETTINGS = Settings(language="en", archive=ArchiveSettings(threshold=1000, page_from=1000))


class Counts(Meter):
    """Remembers what was counted."""

    def __init__(self):
        self.counted = []

    def count(self, name, amount=1.0, **labels):
        self.counted.append(name)

    def observe(self, name, value, **labels):
        pass


@pytest.fixture
def meter():
    return Counts()


@pytest.fixture
def database(tmp_path):
    folder = tmp_path / "database"
    folder.mkdir()
    return folder / "agent.db"


@pytest.fixture
async def memory(database, meter):
    async with Memory.open(
        f"sqlite:///{database}", settings=SETTINGS, meter=meter, embedder="none"
    ) as opened:
        yield opened


@pytest.fixture
def blocking(database, meter):
    with BlockingMemory.open(
        f"sqlite:///{database}", settings=SETTINGS, meter=meter, embedder="none"
    ) as opened:
        yield opened
