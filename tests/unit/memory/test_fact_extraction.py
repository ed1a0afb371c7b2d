"""Facts that could not be read are read later, by themselves, and nobody who stops waiting changes that."""

import math
import time

import anyio
import pytest

from pagefile import Memory, ModelUnavailableError, Settings
from pagefile.ports import ChatModel
from pagefile.settings import EmbedderSettings, FactSettings
from pagefile.tiers import facts
from tests.waiting import until

FOUND = (
    '{"facts": [{"turn": 1, "quote": "我对青霉素过敏", "text": "用户对青霉素过敏", "category": "health"}]}'
)
READING = Settings(facts=FactSettings(extract="model"), embedder=EmbedderSettings(name="none"), drain_s=0.1)


class Moody(ChatModel):
    """Answers when it is well; when it is not, it fails or hangs."""

    def __init__(self, mood):
        self.mood = mood
        self.asked = 0

    async def complete(self, messages, *, max_tokens):
        self.asked += 1
        if self.mood == "away":
            raise ModelUnavailableError
        if self.mood == "hangs":
            await anyio.sleep_forever()
        return FOUND


async def told(memory, *users):
    for user in users:
        await memory.conversation(f"c-{user}", user_id=user).record("我对青霉素过敏", "好")


async def held(memory, *users):
    return [len(await memory.facts(user)) for user in users]


async def all_held(memory, *users):
    return all(await held(memory, *users))


@pytest.mark.anyio
@pytest.mark.waits
async def test_a_model_that_comes_back_is_asked_by_itself(monkeypatch):
    """No turn and no opening is needed: the conversations it failed for are read when it works again, each once."""
    monkeypatch.setattr(facts, "FIRST_REST_S", 0.05)
    model = Moody("away")
    async with Memory.open("memory://", settings=READING, model=model) as memory:
        await told(memory, "李雷", "韩梅梅", "ada")
        await memory.settle()
        assert await held(memory, "李雷", "韩梅梅", "ada") == [0, 0, 0]
        model.mood = "well"
        await until(lambda: all_held(memory, "李雷", "韩梅梅", "ada"))
        asked = model.asked
        await memory.settle()
        assert model.asked == asked


@pytest.mark.anyio
@pytest.mark.waits
async def test_a_model_that_stays_away_is_asked_less_and_less(monkeypatch):
    """One conversation at a time, with longer and longer rests: not all of them again and again."""
    monkeypatch.setattr(facts, "FIRST_REST_S", 0.01)
    monkeypatch.setattr(facts, "LONGEST_REST_S", 1000.0)
    model = Moody("away")
    async with Memory.open("memory://", settings=READING, model=model) as memory:
        began = time.monotonic()
        await told(memory, *"abcdefgh")
        await memory.settle()
        asked = model.asked
        await until(lambda: model.asked - asked >= 4)
        more = model.asked - asked
        # Rests of 0.01, 0.02, 0.04 s …: this many ended by now at most, however many conversations wait.
        assert more <= math.log2((time.monotonic() - began) / 0.01 + 1) + 1


@pytest.mark.anyio
@pytest.mark.waits
async def test_who_stops_waiting_leaves_no_hurry_behind():
    """A settling that was given up does not make every later turn cost a call of its own."""
    model = Moody("hangs")
    async with Memory.open("memory://", settings=READING, model=model) as memory:
        await told(memory, "a")
        async with anyio.create_task_group() as group:
            group.start_soon(memory.settle)
            await until(lambda: model.asked == 1)
            group.cancel_scope.cancel()
        assert model.asked == 1
        await told(memory, "b")
        await anyio.wait_all_tasks_blocked()
        assert not memory.engine.worker.lines["facts"]._hurry.is_set()
