"""Whatever is done to a memory through its own verbs, verify finds nothing wrong with it."""

import tempfile
from contextlib import suppress

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import Memory, PagefileError, Settings
from pagefile.engine.verification import verify
from pagefile.ports import ItemWrite
from pagefile.records import Scope
from pagefile.settings import ArchiveSettings, FactSettings
from pagefile.testing import FakeClock, HashingEmbedder
from pagefile.tiers.history import History

SETTINGS = Settings(
    indexing="manual",
    checkpoints="manual",
    calls_kept=3,
    archive=ArchiveSettings(threshold=300, page_from=100),
    facts=FactSettings(extract="rules"),
)
USERS, CHATS = ("u", "v", None), ("c", "d")
TEXTS = ("我对青霉素过敏。", "order A-17 at 09:30", "。", "住在北京，喜欢绿茶", "")
VERBS = (
    *(
        "record",
        "record",
        "tool",
        "tool",
        "load",
        "begin",
        "complete",
        "abort",
        "checkpoint",
        "maintain",
        "reset",
    ),
    *("remember", "retract", "undo", "context", "forget_chat", "forget_user", "purge", "pin", "search"),
    *("index", "rebuild", "item", "moved", "tick"),
)
NUMBER = st.integers(0, 50)
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(VERBS),
        NUMBER,
    ),
    max_size=30,
)


class Life:
    """What may happen to a memory. What is refused is refused, and leaves nothing behind."""

    def __init__(self, memory, clock, folder):
        self.memory, self.clock, self.folder = memory, clock, folder
        self.open = []

    def chat(self, number):
        return self.memory.conversation(CHATS[number % 2], user_id=USERS[number % 3])

    async def record(self, number):
        await self.chat(number).record(TEXTS[number % 5] or None, f"answer {number}")

    async def tool(self, number):
        chat = self.chat(number)
        result = f"# 结果 {number % 7}\n\n" + "a long result. " * (number % 40)
        await chat.record(
            "查一下", "好", steps=[{"tool": "search", "input": {"q": number % 7}, "result": result}]
        )

    async def load(self, number):
        chat = self.chat(number)
        pages = await self.memory.pages(user_id=USERS[number % 3])
        if pages:
            uuid = pages[number % len(pages)].uuid
            text = await chat.load(uuid)
            step = {"tool": "load_tool_history", "input": {"uuid": uuid}, "result": text}
            await chat.record("再看看", "好", steps=[step])

    async def begin(self, number):
        chat = self.chat(number)
        self.open.append((chat, await chat.begin(TEXTS[number % 4])))

    async def complete(self, number):
        if self.open:
            chat, turn = self.open.pop(number % len(self.open))
            await chat.complete(turn, "done")

    async def abort(self, number):
        if self.open:
            chat, turn = self.open.pop(number % len(self.open))
            await chat.abort(turn)

    async def checkpoint(self, number):
        await self.chat(number).checkpoint(f"summary {number}", recent_turns=number % 3)

    async def maintain(self, number):
        chat = self.chat(number)
        await self.memory.engine.tier(History).checkpoints.make(chat.scope, None, number % 3, 400)

    async def reset(self, number):
        await self.chat(number).reset()

    async def remember(self, number):
        await self.memory.remember(f"likes {number % 4}", user_id="u", source=f"t{number}")

    async def retract(self, number):
        facts = await self.memory.facts(user_id="u")
        if facts:
            await self.memory.retract(facts[number % len(facts)].id, user_id="u")

    async def undo(self, number):
        await self.memory.undo(user_id="u")

    async def context(self, number):
        await self.chat(number).context("之前的订单？")

    async def forget_chat(self, number):
        await self.memory.forget(conversation_id=CHATS[number % 2])

    async def forget_user(self, number):
        await self.memory.forget(user_id="uv"[number % 2])

    async def purge(self, number):
        await self.memory.purge(max_bytes=number * 4)

    async def pin(self, number):
        pages = await self.memory.pages()
        if pages:
            page = pages[number % len(pages)]
            chat = self.memory.conversation(page.scope.conversation, user_id=page.scope.user)
            await chat.pin(page.uuid)

    async def search(self, number):
        await self.memory.search_tool_history("结果", user_id="u")

    async def index(self, number):
        await self.memory.rebuild()

    async def rebuild(self, number):
        await self.memory.rebuild(from_scratch=True)

    async def item(self, number):
        store, scope = self.memory.engine.store.items, Scope("default", USERS[number % 3])
        await store.write(scope, [ItemWrite(("a",), str(number % 3), {"n": number})], now=self.clock.now())

    async def moved(self, number):
        file = f"{self.folder}/out.jsonl"
        await self.memory.export(file)
        await self.memory.import_(file, tenant=f"t{number % 2}")

    async def tick(self, number):
        self.clock.advance(seconds=number - 10)


async def lived(url, folder, actions):
    clock = FakeClock()
    async with Memory.open(url, settings=SETTINGS, embedder=HashingEmbedder(16), clock=clock) as memory:
        life = Life(memory, clock, folder)
        for verb, number in actions:
            with suppress(PagefileError):
                await getattr(life, verb)(number)
        await memory.settle()
        await memory.engine.write_calls()
        report = await verify(memory.engine, full=True)
        assert [one for one in report.findings if one.level != "note"] == []
        assert report.whole
        again = await verify(memory.engine, full=True, repair=True)
        assert again.mended == 0
        assert again.findings == report.findings


@pytest.mark.slow
@settings(max_examples=30)
@given(ACTIONS, st.booleans())
def test_whatever_is_done_a_memory_is_whole(actions, in_file):
    """Recording, archiving, checkpoints, facts, erasing, purging, rebuilding, moving: in a file and in memory."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/a.db" if in_file else "memory://"
        anyio.run(lived, url, folder, actions)
