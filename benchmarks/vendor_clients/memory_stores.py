"""Anthropic's client on its Memory Stores. Runs in an environment of its own: python memory_stores.py URL."""

import sys

import anthropic
from told import refusal, tried

stores = anthropic.Anthropic(api_key="local", base_url=sys.argv[1], max_retries=0).beta.memory_stores
store = tried("memory_stores.create", lambda: stores.create(name="Notes"))
tried(
    "memory_stores.update",
    lambda: stores.update(store.id, description="x").description,
    lambda one: one == "x",
)
tried("memory_stores.list", lambda: [one.id for one in stores.list()], lambda one: one == [store.id])
made = tried("memories.create", lambda: stores.memories.create(store.id, path="/a.md", content="one"))
tried(
    "memories.update with a precondition",
    lambda: stores.memories.update(
        made.id,
        memory_store_id=store.id,
        content="two",
        precondition={"type": "content_sha256", "content_sha256": made.content_sha256},
    ),
)
tried(
    "a precondition that fails",
    lambda: refusal(
        lambda: stores.memories.delete(
            made.id, memory_store_id=store.id, expected_content_sha256=made.content_sha256
        )
    ),
    lambda one: one == "ConflictError",
)
tried(
    "memories.retrieve",
    lambda: stores.memories.retrieve(made.id, memory_store_id=store.id).content,
    lambda one: one == "two",
)
tried(
    "memories.list",
    lambda: [one.path for one in stores.memories.list(store.id)],
    lambda one: one == ["/a.md"],
)
tried(
    "memory_versions.redact",
    lambda: stores.memory_versions.redact(made.memory_version_id, memory_store_id=store.id).content,
    lambda one: one is None,
)
tried(
    "memory_versions.list",
    lambda: [one.operation for one in stores.memory_versions.list(store.id)],
    lambda one: one == ["modified", "created"],
)
tried("memories.delete", lambda: stores.memories.delete(made.id, memory_store_id=store.id))
tried("memory_stores.archive", lambda: stores.archive(store.id).archived_at)
tried("memory_stores.delete", lambda: stores.delete(store.id).type, lambda one: one == "memory_store_deleted")
