"""The client of redis/agent-memory-server. Runs in an environment of its own: python agent_memory.py URL."""

import asyncio
import logging
import sys

from agent_memory_client import MemoryAPIClient, MemoryClientConfig
from agent_memory_client.filters import Topics, UserId
from agent_memory_client.models import ClientMemoryRecord, ForgetPolicy
from told import awaited, awaited_refusal, tried

logging.disable()
ADA = UserId(eq="dora")
DARK = ClientMemoryRecord(
    id="dark", text="The user prefers dark mode", user_id="dora", topics=["ui"], memory_type="semantic"
)
NUTS = ClientMemoryRecord(
    id="nuts", text="The user is allergic to nuts", user_id="dora", memory_type="semantic"
)
SAID = [{"role": "user", "content": "We ate at the harbour"}, {"role": "assistant", "content": "Nice"}]


async def main() -> None:
    config = MemoryClientConfig(base_url=f"{sys.argv[1]}/agent-memory", default_namespace="shop")
    async with MemoryAPIClient(config) as client:
        await awaited("health_check", client.health_check)
        await awaited("create_long_term_memory", lambda: client.create_long_term_memory([DARK, NUTS]))
        await awaited(
            "search_long_term_memory",
            lambda: client.search_long_term_memory("nut allergy", user_id=ADA),
            lambda one: one.memories[0].id == "nuts",
        )
        await awaited(
            "search by topics",
            lambda: client.search_long_term_memory("modes", topics=Topics(any=["ui"])),
            lambda one: [found.id for found in one.memories] == ["dark"],
        )
        await awaited("get_long_term_memory", lambda: client.get_long_term_memory("dark"))
        await awaited(
            "edit_long_term_memory",
            lambda: client.edit_long_term_memory("dark", {"text": "The user prefers light mode"}),
            lambda one: (one.id, one.text) == ("dark", "The user prefers light mode"),
        )
        await awaited(
            "get_or_create_working_memory",
            lambda: client.get_or_create_working_memory("s1", user_id="dora"),
            lambda one: one[0] is True,
        )
        await awaited(
            "append_messages_to_working_memory",
            lambda: client.append_messages_to_working_memory("s1", SAID, user_id="dora"),
            lambda one: [message.role for message in one.messages] == ["user", "assistant"],
        )
        await awaited("set_working_memory_data", lambda: client.set_working_memory_data("s1", {"k": 1}))
        cats = ClientMemoryRecord(id="cats", text="The user owns two cats", memory_type="semantic")
        await awaited(
            "add_memories_to_working_memory", lambda: client.add_memories_to_working_memory("s1", [cats])
        )
        await awaited(
            "list_sessions", lambda: client.list_sessions(user_id="dora"), lambda one: one.sessions == ["s1"]
        )
        await awaited(
            "memory_prompt",
            lambda: client.memory_prompt("Where did we eat?", session_id="s1", user_id="dora"),
            lambda one: any("harbour" in message["content"]["text"] for message in one["messages"]),
        )
        await awaited(
            "hydrate_memory_prompt",
            lambda: client.hydrate_memory_prompt("nut allergy", user_id={"eq": "dora"}),
            lambda one: "allergic to nuts" in one["messages"][0]["content"]["text"],
        )
        await awaited(
            "forget_long_term_memories",
            lambda: client.forget_long_term_memories(
                ForgetPolicy(max_age_days=1), user_id="dora", dry_run=True
            ),
            lambda one: one.deleted == 0 and one.dry_run,
        )
        await awaited("delete_long_term_memories", lambda: client.delete_long_term_memories(["dark", "nuts"]))
        name = await awaited_refusal(lambda: client.get_long_term_memory("dark"))
        tried("get of a deleted one", lambda: name, lambda one: one == "MemoryNotFoundError")
        views = await awaited_refusal(client.list_summary_views)
        tried("summary views are refused", lambda: views, lambda one: one == "MemoryServerError")
        await awaited("delete_working_memory", lambda: client.delete_working_memory("s1", user_id="dora"))


asyncio.run(main())
