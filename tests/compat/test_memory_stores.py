"""Anthropic's Memory Stores, with its own client."""

import hashlib
from contextlib import ExitStack

import anthropic
import pytest


@pytest.fixture
def stores(url):
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        yield client.beta.memory_stores


@pytest.fixture
def closing():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def store(stores):
    return stores.create(name="Team notes", description="What the team knows", metadata={"team": "a"})


def written(stores, store, path="/a.md", content="one"):
    return stores.memories.create(store.id, path=path, content=content)


def test_a_store_has_a_life(stores, store):
    assert (store.type, store.name, store.metadata, store.archived_at) == (
        "memory_store", "Team notes", {"team": "a"}, None,
    )  # fmt: skip
    changed = stores.update(store.id, name="Notes", metadata={"team": None, "owner": "ada"})
    assert (changed.name, changed.description, changed.metadata) == (
        "Notes", "What the team knows", {"owner": "ada"},
    )  # fmt: skip
    assert stores.retrieve(store.id) == changed
    memory = written(stores, store)
    assert stores.archive(store.id).archived_at is not None
    assert [] == list(stores.list())
    assert [store.id] == [one.id for one in stores.list(include_archived=True)]
    with pytest.raises(anthropic.APIStatusError, match="archived"):
        written(stores, store, "/b.md")
    assert stores.memories.retrieve(memory.id, memory_store_id=store.id).content == "one"
    assert stores.delete(store.id).type == "memory_store_deleted"
    with pytest.raises(anthropic.NotFoundError):
        stores.retrieve(store.id)


def test_a_memory_and_its_versions(stores, store):
    made = written(stores, store, content="one")
    assert (made.path, made.content, made.content_size_bytes) == ("/a.md", None, 3)
    assert made.content_sha256 == hashlib.sha256(b"one").hexdigest()
    changed = stores.memories.update(
        made.id,
        memory_store_id=store.id,
        content="zwei ü",
        path="/b/c.md",
        view="full",
        precondition={"type": "content_sha256", "content_sha256": made.content_sha256},
    )
    assert (changed.id, changed.path, changed.content, changed.content_size_bytes) == (
        made.id, "/b/c.md", "zwei ü", 7,
    )  # fmt: skip
    with pytest.raises(anthropic.ConflictError) as raised:
        stores.memories.update(
            made.id,
            memory_store_id=store.id,
            content="lost",
            precondition={"type": "content_sha256", "content_sha256": made.content_sha256},
        )
    assert raised.value.body["error"]["type"] == "memory_precondition_failed_error"
    stores.memories.delete(made.id, memory_store_id=store.id, expected_content_sha256=changed.content_sha256)
    versions = list(stores.memory_versions.list(store.id, memory_id=made.id, view="full"))
    assert [(one.operation, one.path, one.content) for one in versions] == [
        ("deleted", "/b/c.md", None),
        ("modified", "/b/c.md", "zwei ü"),
        ("created", "/a.md", "one"),
    ]
    assert {one.id for one in versions} >= {made.memory_version_id, changed.memory_version_id}


def test_what_is_redacted_is_gone(stores, store, tmp_path):
    made = written(stores, store, content="the code is 4711-XYZ")
    with pytest.raises(anthropic.ConflictError):
        stores.memory_versions.redact(made.memory_version_id, memory_store_id=store.id)
    stores.memories.update(made.id, memory_store_id=store.id, content="harmless")
    redacted = stores.memory_versions.redact(made.memory_version_id, memory_store_id=store.id)
    assert (redacted.path, redacted.content, redacted.content_sha256) == (None, None, None)
    assert redacted.redacted_at is not None
    again = stores.memory_versions.retrieve(made.memory_version_id, memory_store_id=store.id)
    assert again.redacted_at == redacted.redacted_at
    assert [one.operation for one in stores.memory_versions.list(store.id)] == ["modified", "created"]


def test_lists_go_by_depth_and_page_by_page(stores, store):
    for path in ("/a.md", "/d/b.md", "/d/e/c.md", "/d-x/f.md"):
        written(stores, store, path, path)

    def listed(**asked):
        return [one.path for one in stores.memories.list(store.id, **asked)]

    assert listed() == ["/a.md", "/d-x/f.md", "/d/b.md", "/d/e/c.md"]
    assert listed(depth=1) == ["/a.md", "/d-x/", "/d/"]
    assert listed(path_prefix="/d/", depth=1) == ["/d/b.md", "/d/e/"]
    assert listed(limit=1) == listed()
    assert [one.content for one in stores.memories.list(store.id, path_prefix="/d/e/", view="full")] == [
        "/d/e/c.md"
    ]


@pytest.mark.parametrize(
    "path",
    [
        "a.md",
        "/",
        "//a",
        "/a/../b",
        "/./a",
        "/a\u202eb",
        "/a\u2028",
        "/e\u0301",
        "/" + "x" * 1024,
        "/a" * 21,
        "/a/",
    ],
)
def test_a_path_that_cannot_be_used_is_refused(stores, store, path):
    with pytest.raises(anthropic.APIStatusError) as raised:
        written(stores, store, path)
    assert raised.value.body["error"]["type"] == "invalid_request_error"
    assert [] == list(stores.memories.list(store.id))


def test_two_memories_do_not_share_a_path(stores, store):
    first, second = written(stores, store, "/a.md"), written(stores, store, "/b.md")
    with pytest.raises(anthropic.ConflictError) as raised:
        written(stores, store, "/a.md")
    assert raised.value.body["error"]["type"] == "memory_path_conflict_error"
    with pytest.raises(anthropic.ConflictError):
        stores.memories.update(second.id, memory_store_id=store.id, path="/a.md")
    stores.memories.update(first.id, memory_store_id=store.id, path="/c.md")
    stores.memories.update(second.id, memory_store_id=store.id, path="/a.md")
    assert [one.path for one in stores.memories.list(store.id)] == ["/a.md", "/c.md"]


def test_too_much_is_refused(stores, store):
    for bad in (
        lambda: written(stores, store, content="é" * 51_201),
        lambda: stores.create(name=""),
        lambda: stores.create(name="a", description="x" * 1_025),
        lambda: stores.create(name="a", metadata={str(n): "x" for n in range(17)}),
        lambda: stores.create(name="a", metadata={"k": "x" * 513}),
    ):
        with pytest.raises(anthropic.APIStatusError):
            bad()
    written(stores, store, content="é" * 51_200)


def test_keys_reach_their_own_stores_only(keyed, closing):
    url, keys = keyed

    def client(key):
        opened = anthropic.Anthropic(api_key=keys.get(key, key), base_url=url, max_retries=0)
        closing.enter_context(opened)
        return opened.beta.memory_stores

    ours = client("tenant").create(name="ours")
    hers = client("ada").create(name="hers")
    assert [ours.id] == [one.id for one in client("tenant").list()]
    assert [hers.id] == [one.id for one in client("ada").list()]
    for name in ("bob", "other", "ada"):
        with pytest.raises(anthropic.NotFoundError):
            client(name).retrieve(ours.id)
    memory = client("ada").memories.create(hers.id, path="/a", content="x")
    (version,) = client("ada").memory_versions.list(hers.id, memory_id=memory.id)
    assert version.created_by.type == "api_actor"
    with pytest.raises(anthropic.AuthenticationError):
        client("sk-ant-other").list()


def test_entries_can_be_deleted_while_they_are_listed(stores, store):
    for number in range(5):
        written(stores, store, f"/{number}.md")
    for one in stores.memories.list(store.id, limit=2):
        stores.memories.delete(one.id, memory_store_id=store.id)
    assert list(stores.memories.list(store.id)) == []
    for _ in range(4):
        stores.create(name="More")
    for one in stores.list(limit=2):
        stores.delete(one.id)
    assert list(stores.list()) == []
