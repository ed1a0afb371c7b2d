"""Two erasures at once on PostgreSQL."""

import base64

import anyio
import pytest

from pagefile import Memory
from pagefile.stores.postgres import erasing

pytestmark = pytest.mark.anyio
PICTURE = f"data:image/png;base64,{base64.b64encode(bytes(500)).decode()}"
ASKED = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURE}}]}


async def test_the_last_two_users_of_a_picture_leave_none(store, plain, url, monkeypatch):
    """Erased at once, neither leaves it to the other."""
    both, arrived, real = anyio.Event(), [], erasing.raise_epoch

    async def together(connection, scopes):
        arrived.append(scopes)
        if len(arrived) == 2:
            both.set()
        await both.wait()
        await real(connection, scopes)

    monkeypatch.setattr(erasing, "raise_epoch", together)
    async with Memory.open(url) as memory:
        for tenant in ("a", "b"):
            chat = memory.conversation("c", user_id="ada", tenant=tenant)
            await chat.record(messages=[ASKED, {"role": "assistant", "content": "A cat."}])
        assert 1 == await plain.fetchval("SELECT count(*) FROM blobs")
        async with anyio.create_task_group() as tasks:
            for tenant in ("a", "b"):
                tasks.start_soon(lambda tenant=tenant: memory.forget(user_id="ada", tenant=tenant))
    assert 0 == await plain.fetchval("SELECT count(*) FROM blobs")
