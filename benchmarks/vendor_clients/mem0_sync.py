"""mem0's own `MemoryClient`. Runs in an environment of its own: python mem0_sync.py URL."""

import sys

from mem0 import MemoryClient
from told import refusal, tried

FILTERS = {"user_id": "ada"}
client = tried(
    "MemoryClient",
    lambda: MemoryClient(api_key="m0-local", host=f"{sys.argv[1]}/mem0"),
    lambda one: one is not None,
)
said = [{"role": "user", "content": "I live in Bern."}, {"role": "assistant", "content": "Noted."}]
tried(
    "add",
    lambda: client.add(said, user_id="ada"),
    lambda one: one["results"][0]["memory"] == "The user lives in Bern",
)
raw = tried(
    "add infer=False",
    lambda: client.add("Loves hiking", user_id="ada", infer=False, metadata={"kind": "sport"}),
)
memory_id = raw["results"][0]["id"]
tried(
    "search",
    lambda: client.search("Where does she live?", filters=FILTERS)["results"][0]["memory"],
    lambda one: "Bern" in one,
)
tried("get", lambda: client.get(memory_id)["memory"], lambda one: one == "Loves hiking")
tried("get_all", lambda: client.get_all(filters=FILTERS)["count"], lambda one: one == 2)
tried(
    "get_all with filters",
    lambda: client.get_all(filters={"AND": [FILTERS, {"metadata": {"kind": "sport"}}]}, page=1, page_size=5)[
        "count"
    ],
    lambda one: one == 1,
)
tried(
    "update",
    lambda: client.update(memory_id, text="Loves climbing")["memory"],
    lambda one: one == "Loves climbing",
)
tried(
    "history",
    lambda: [one["event"] for one in client.history(memory_id)],
    lambda one: one == ["ADD", "UPDATE"],
)
tried("batch_update", lambda: client.batch_update([{"memory_id": memory_id, "text": "Loves rowing"}]))
tried("users", lambda: client.users()["results"][0]["name"], lambda one: one == "ada")
tried("get_summary is refused", lambda: refusal(client.get_summary), lambda one: one == "MemoryError")
tried("delete", lambda: client.delete(memory_id))
tried(
    "get of a deleted one",
    lambda: refusal(lambda: client.get(memory_id)),
    lambda one: one == "MemoryNotFoundError",
)
other = client.add("two pears", user_id="ada", infer=False)["results"][0]["id"]
tried("batch_delete", lambda: client.batch_delete([{"memory_id": other}]))
tried("delete_all", lambda: client.delete_all(user_id="ada"))
tried("get_all of nothing", lambda: client.get_all(filters=FILTERS)["count"], lambda one: one == 0)
tried("delete_users", lambda: client.delete_users(user_id="ada"))
