"""The routes of redis/agent-memory-server, as its client calls them; `pagefile bench vendors` runs the client itself."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest


class Client:
    def __init__(self, url, key="anything"):
        self.url, self.headers = f"{url}/agent-memory", {"authorization": f"Bearer {key}"}

    def call(self, method, path, status=200, **given):
        response = httpx.request(method, f"{self.url}{path}", headers=self.headers, **given)
        assert response.status_code == status, response.text
        return response.json()

    def create(self, *memories):
        return self.call("POST", "/v1/long-term-memory/", json={"memories": list(memories)})

    def search(self, text="", status=200, **given):
        return self.call("POST", "/v1/long-term-memory/search", status, json={"text": text, **given})

    def texts(self, text="", **given):
        return [one["text"] for one in self.search(text, **given)["memories"]]

    def put(self, session, *said, params=None, **given):
        messages = [
            {"id": f"{session}{place}", "role": ("user", "assistant")[place % 2], "content": text}
            for place, text in enumerate(said)
        ]
        body = {"session_id": session, "messages": messages, **given}
        return self.call(
            "PUT", f"/v1/working-memory/{session}", json=body, params=params or {"user_id": "ada"}
        )


@pytest.fixture
def client(url):
    return Client(url)


DARK = {
    "id": "m1",
    "text": "The user prefers dark mode",
    "user_id": "ada",
    "topics": ["ui"],
    "namespace": "shop",
}
NUTS = {"id": "m2", "text": "The user is allergic to nuts", "user_id": "ada", "topics": ["health"]}


def test_memories_are_made_found_changed_and_deleted(client):
    client.create(DARK, NUTS, {"id": "m3", "text": "The office closes at six"})
    assert client.texts("allergic to nuts?", user_id={"eq": "ada"})[0] == "The user is allergic to nuts"
    assert client.texts(topics={"any": ["ui"]}) == client.texts(namespace={"eq": "shop"}) == [DARK["text"]]
    assert set(client.texts()) == {DARK["text"], NUTS["text"], "The office closes at six"}
    changed = client.call(
        "PATCH", "/v1/long-term-memory/m1", json={"text": "Prefers light mode", "topics": ["theme"]}
    )
    assert (changed["id"], changed["text"], changed["topics"]) == ("m1", "Prefers light mode", ["theme"])
    assert client.call("GET", "/v1/long-term-memory/m3")["user_id"] is None
    client.create({**NUTS, "text": "The user is allergic to peanuts"})
    assert client.call("GET", "/v1/long-term-memory/m2")["text"] == "The user is allergic to peanuts"
    client.call("DELETE", "/v1/long-term-memory", params={"memory_ids": ["m1", "m3", "none"]})
    client.call("GET", "/v1/long-term-memory/m1", 404)
    assert client.texts() == ["The user is allergic to peanuts"]


def test_a_session_is_as_it_was_put(client):
    made = client.put("s1", "We ate at the harbour", "Nice", data={"k": [1]}, namespace="shop")
    assert (made["new_session"], made["namespace"], made["data"]) == (True, "shop", {"k": [1]})
    read = client.call("GET", "/v1/working-memory/s1", params={"user_id": "ada", "namespace": "shop"})
    assert [one["content"] for one in read["messages"]] == ["We ate at the harbour", "Nice"]
    assert read["messages"] == made["messages"]
    assert "recorded" not in read
    client.call("GET", "/v1/working-memory/s1", 404, params={"user_id": "ada"})
    listed = client.call("GET", "/v1/working-memory/", params={"user_id": "ada"})
    assert listed == {"sessions": ["s1"], "total": 1}
    where = {"user_id": "ada", "namespace": "shop"}
    client.call("DELETE", "/v1/working-memory/s1", params=where)
    client.call("GET", "/v1/working-memory/s1", 404, params=where)


def test_exchanges_are_recorded_once_and_learnt_from(client):
    client.put("s1", "I live in Bern.", "Noted", "We ate at the harbour")
    assert client.texts(memory_type={"eq": "semantic"}) == ["The user lives in Bern"]
    assert client.texts(memory_type={"eq": "message"}) == []
    client.put("s1", "I live in Bern.", "Noted", "We ate at the harbour", "Nice")
    client.put("s1", "I live in Bern.", "Noted", "We ate at the harbour", "Nice")
    (said,) = client.search("at the harbour", memory_type={"eq": "message"})["memories"]
    assert (said["text"], said["session_id"], said["user_id"]) == ("We ate at the harbour", "s1", "ada")
    assert client.call("GET", f"/v1/long-term-memory/{said['id']}")["text"] == "We ate at the harbour"
    client.call("DELETE", "/v1/long-term-memory", params={"memory_ids": said["id"]})
    assert client.texts(memory_type={"eq": "message"}) == []


def test_structured_memories_of_a_session_become_long_term(client):
    put = client.put(
        "s1", memories=[{"id": "w1", "text": "The user owns two cats", "memory_type": "semantic"}]
    )
    assert put["memories"][0]["persisted_at"]
    assert client.call("GET", "/v1/long-term-memory/w1")["user_id"] == "ada"


def test_a_session_larger_than_its_window_is_summarized(client):
    said = [f"Message {number}: " + "about the harbour and the boats " * 8 for number in range(20)]
    params = {"user_id": "ada", "context_window_max": "500"}
    put = client.put("s1", *said, params=params)
    assert 0 < len(put["messages"]) < 20
    assert put["messages"][-1]["content"] == said[-1]
    assert put["context"]
    assert put["context_percentage_total_used"] == 100
    whole = client.call("GET", "/v1/working-memory/s1", params={"user_id": "ada"})
    assert len(whole["messages"]) == 20


def test_a_prompt_has_the_session_and_memories(client):
    client.create(DARK, NUTS)
    client.put("s1", "We ate at the harbour", "Nice")
    body = {
        "query": "Am I allergic to nuts?",
        "session": {"session_id": "s1", "user_id": "ada", "context_window_max": 2000},
        "long_term_search": {"user_id": {"eq": "ada"}},
    }
    messages = client.call("POST", "/v1/memory/prompt", json=body)["messages"]
    texts = [one["content"]["text"] for one in messages]
    assert (messages[-1]["role"], texts[-1]) == ("user", body["query"])
    assert "allergic to nuts" in texts[0]
    assert any("We ate at the harbour" in text for text in texts)


def test_forgetting_by_policy(client):
    client.create(DARK, NUTS, {"id": "m3", "text": "The user sails", "user_id": "ada"})
    policy = {"policy": {"budget": 1}, "pinned_ids": ["m1"]}
    params = {"user_id": "ada", "dry_run": "true"}
    told = client.call("POST", "/v1/long-term-memory/forget", json=policy, params=params)
    assert (told["scanned"], told["deleted"], told["dry_run"]) == (2, 1, True)
    assert len(client.texts()) == 3
    client.call("POST", "/v1/long-term-memory/forget", json=policy, params={"user_id": "ada"})
    assert set(client.texts()) == {DARK["text"], "The user sails"}
    none = client.call("POST", "/v1/long-term-memory/forget", json={"policy": {"max_age_days": 1}})
    assert none["deleted"] == 0


def test_mistakes_are_told_in_its_shape(client):
    for answer in (
        client.call("POST", "/v1/long-term-memory/", 422, json={"memories": [{"id": "x"}]}),
        client.search("x", 422, created_at={"gte": "yesterday"}),
        client.call("GET", "/v1/summary-views", 501),
        client.call("GET", "/v1/none", 404),
    ):
        assert list(answer) == ["detail"]


def test_keys_reach_their_own_users_only(keyed):
    url, keys = keyed
    tenant, ada, bob, other = (Client(url, keys[name]) for name in ("tenant", "ada", "bob", "other"))
    ada.create({"id": "m1", "text": "The user sails"})
    ada.put("s1", "We ate at the harbour", "Nice", params={})
    assert "The user sails" in tenant.texts(user_id={"eq": "ada"})
    for client in (bob, other):
        client.call("GET", "/v1/long-term-memory/m1", 404)
        client.call("GET", "/v1/working-memory/s1", 404)
        assert client.texts() == []
    bob.call("GET", "/v1/working-memory/s1", 403, params={"user_id": "ada"})
    bob.search("x", 403, user_id={"eq": "ada"})
    # Somebody else's id is taken: nothing of theirs is overwritten.
    bob.call("POST", "/v1/long-term-memory/", 409, json={"memories": [{"id": "m1", "text": "Mine now"}]})
    assert tenant.call("GET", "/v1/long-term-memory/m1")["text"] == "The user sails"


def test_an_id_of_another_users_memory_is_refused(client):
    client.create(DARK)
    mine = {**DARK, "user_id": "bob", "text": "The user prefers large type"}
    client.call("POST", "/v1/long-term-memory/", 409, json={"memories": [mine]})
    held = client.call("GET", "/v1/long-term-memory/m1")
    assert (held["user_id"], held["text"]) == ("ada", DARK["text"])


def test_a_user_with_sessions_only_is_found_without_being_named(client):
    client.put("s1", "We sailed to Elba with Anna.", "Nice.")
    assert client.texts("Elba", session_id={"eq": "s1"}) == ["We sailed to Elba with Anna."]


def prompted(client, session):
    given = {"query": "And now?", "session": {"session_id": session, "user_id": "ada"}}
    messages = client.call("POST", "/v1/memory/prompt", json=given)["messages"]
    return [one["content"]["text"] for one in messages if one["role"] != "system"]


def test_a_deleted_session_does_not_come_back(client):
    client.put("s1", "We sailed to Elba with Anna.", "Nice.")
    assert len(prompted(client, "s1")) == 3
    client.call("DELETE", "/v1/working-memory/s1", params={"user_id": "ada"})
    assert prompted(client, "s1") == ["And now?"]
    client.put("s1", "Good morning, how is the weather?", "Sunny.")
    assert prompted(client, "s1") == ["Good morning, how is the weather?", "Sunny.", "And now?"]


def test_a_session_without_a_user_does_not_overwrite_a_users(client):
    client.put("s1", "We sailed to Elba with Anna.", "Nice.")
    client.put("s1", "Nobody's words", params={"namespace": ""})
    held = client.call("GET", "/v1/working-memory/s1", params={"user_id": "ada"})
    assert held["messages"][0]["content"] == "We sailed to Elba with Anna."


def test_messages_without_ids_are_recorded_once(client):
    said = [
        {"role": "user", "content": "We sailed to Elba with Anna."},
        {"role": "assistant", "content": "Nice."},
    ]
    more = [{"role": "user", "content": "It rained in the evening."}, {"role": "assistant", "content": "Oh."}]
    for messages in (said, said, said + more):
        client.call("PUT", "/v1/working-memory/s1", json={"messages": messages, "user_id": "ada"})
    assert sorted(client.texts(user_id={"eq": "ada"})) == [more[0]["content"], said[0]["content"]]


def test_two_workers_that_save_a_session_at_once_record_it_once(client):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: client.put("s1", "We sailed to Elba with Anna.", "Nice."), range(4)))
    assert client.texts(user_id={"eq": "ada"}) == ["We sailed to Elba with Anna."]


@pytest.mark.parametrize(
    "messages", ["hello", {"role": "user"}, [{"role": "user", "content": "hi", "id": [1]}]]
)
def test_messages_that_are_none_change_no_session(client, messages):
    client.put("s1", "We sailed to Elba with Anna.", "Nice.")
    given = {"messages": messages, "user_id": "ada"}
    client.call("PUT", "/v1/working-memory/s1", 422, json=given)
    held = client.call("GET", "/v1/working-memory/s1", params={"user_id": "ada"})
    assert len(held["messages"]) == 2
