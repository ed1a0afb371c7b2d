"""Two erasures at once on PostgreSQL."""

import base64

import anyio
import pytest

from pagefile import Memory
from pagefile.engine.verification import verify
from pagefile.ports import ConversationQuery
from pagefile.records import Reset, Scope
from pagefile.stores.postgres import database
from pagefile.testing.drafts import AT, CHAT, done, reset

pytestmark = pytest.mark.anyio
PICTURE = f"data:image/png;base64,{base64.b64encode(bytes(500)).decode()}"
ASKED = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURE}}]}


async def test_the_last_two_users_of_a_picture_leave_none(store, plain, url, monkeypatch):
    """Erased at once, neither leaves it to the other."""
    both, arrived, real = anyio.Event(), [], database._answer

    async def together(connection, ask):
        if ask[1] == "epoch_next":
            arrived.append(ask)
            if len(arrived) == 2:
                both.set()
            await both.wait()
        return await real(connection, ask)

    monkeypatch.setattr(database, "_answer", together)
    async with Memory.open(url) as memory:
        for tenant in ("a", "b"):
            chat = memory.conversation("c", user_id="ada", tenant=tenant)
            await chat.record(messages=[ASKED, {"role": "assistant", "content": "A cat."}])
        assert 1 == await plain.fetchval("SELECT count(*) FROM blobs")
        async with anyio.create_task_group() as tasks:
            for tenant in ("a", "b"):
                tasks.start_soon(lambda tenant=tenant: memory.forget(user_id="ada", tenant=tenant))
    assert 0 == await plain.fetchval("SELECT count(*) FROM blobs")


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.log.mark(reset("r")),
        lambda store: store.log.claim(CHAT),
        lambda store: store.log.restore([Reset("r", CHAT, 1, AT)]),
    ],
    ids=["reset", "claim", "restore"],
)
async def test_what_begins_a_conversation_waits_for_its_erasure(store, plain, url, monkeypatch, write):
    """And starts it over: the row that it found is gone, and entries without one would be damage."""
    await store.log.append(done("a"))
    real, ended = database._answer, anyio.Event()
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))"

    async def written():
        await write(store)
        ended.set()

    async with anyio.create_task_group() as tasks:

        async def meanwhile(connection, ask):
            locked = await real(connection, ask)
            if ask[1] != "gone_user":
                return locked
            tasks.start_soon(written)
            pid = await connection.raw.fetchval("SELECT pg_backend_pid()")
            while not (ended.is_set() or await plain.fetchval(waiting, pid)):
                await anyio.sleep(0.01)
            return locked

        monkeypatch.setattr(database, "_answer", meanwhile)
        await store.erase(Scope("tenant", "ada"))
    assert [CHAT] == [head.scope for head in await store.reader.heads(ConversationQuery(CHAT))]
    async with Memory.open(url) as memory:
        assert () == (await verify(memory.engine)).findings
