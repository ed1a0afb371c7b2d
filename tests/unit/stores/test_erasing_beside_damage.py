"""Erasing a turn where rows are damaged: all of it goes, or the caller is told."""

import anyio.to_thread
import apsw
import pytest

from pagefile import Memory, Settings
from pagefile.errors import StoreCorruptError
from pagefile.settings import EmbedderSettings

pytestmark = pytest.mark.anyio

SETTINGS = Settings(embedder=EmbedderSettings(name="none"), recall="never", indexing="manual")


async def test_a_damaged_summary_of_the_turn_does_not_outlive_it(tmp_path):
    """Whether it covers the turn cannot be read. The conversation can still be forgotten."""
    path = tmp_path / "a.db"
    async with Memory.open(f"sqlite:///{path}", settings=SETTINGS) as memory:
        chat = memory.conversation("c", user_id="ada")
        for number in range(30):
            await chat.record(f"codeword{number} is tuna", "fine " * 200, id=f"t{number}")
        await chat.checkpoint()

    def damage():
        with apsw.Connection(str(path)) as database:
            database.execute(
                "UPDATE ai_message SET metadata = replace(metadata, '\"version\":', '\"vers#on\":') "
                "WHERE kind = 'checkpoint'"
            )

    await anyio.to_thread.run_sync(damage)
    async with Memory.open(f"sqlite:///{path}", settings=SETTINGS) as memory:
        with pytest.raises(StoreCorruptError, match="Nothing was erased"):
            await memory.forget(conversation_id="c", user_id="ada", turn_id="t3")
        await memory.forget(conversation_id="c", user_id="ada")
    assert b"codeword3 " not in path.read_bytes()
