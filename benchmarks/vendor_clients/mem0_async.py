"""mem0's own `AsyncMemoryClient`. Runs in an environment of its own: python mem0_async.py URL."""

import asyncio
import sys

from mem0 import AsyncMemoryClient
from told import awaited, awaited_refusal, tried

FILTERS = {"user_id": "bob"}


async def main() -> None:
    client = tried(
        "AsyncMemoryClient",
        lambda: AsyncMemoryClient(api_key="m0-local", host=f"{sys.argv[1]}/mem0"),
        lambda one: one is not None,
    )
    made = await awaited("add", lambda: client.add("Keeps bees", user_id="bob", infer=False))
    memory_id = made["results"][0]["id"]
    await awaited(
        "search",
        lambda: client.search("bees", filters=FILTERS),
        lambda one: one["results"][0]["id"] == memory_id,
    )
    await awaited("get", lambda: client.get(memory_id), lambda one: one["memory"] == "Keeps bees")
    await awaited("get_all", lambda: client.get_all(filters=FILTERS), lambda one: one["count"] == 1)
    await awaited(
        "update",
        lambda: client.update(memory_id, text="Keeps hens"),
        lambda one: one["memory"] == "Keeps hens",
    )
    await awaited("history", lambda: client.history(memory_id), lambda one: len(one) == 2)
    await awaited("delete", lambda: client.delete(memory_id))
    name = await awaited_refusal(lambda: client.get(memory_id))
    tried("get of a deleted one", lambda: name, lambda one: one == "MemoryNotFoundError")
    await awaited("delete_users", lambda: client.delete_users(user_id="bob"))


asyncio.run(main())
