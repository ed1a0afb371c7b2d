"""mem0's routes, as its clients call them; `pagefile bench vendors` runs the clients themselves."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from pagefile.compat.filters import matches, values_of
from pagefile.errors import InvalidArgumentError

ADA = {"user_id": "ada"}


class Client:
    def __init__(self, url, key="m0-anything"):
        self.url, self.headers = f"{url}/mem0", {"authorization": f"Token {key}"}

    def call(self, method, path, status=200, **given):
        response = httpx.request(method, f"{self.url}{path}", headers=self.headers, **given)
        assert response.status_code == status, response.text
        return response.json()

    def add(self, text, status=200, **given):
        messages = [{"role": "user", "content": text}] if isinstance(text, str) else text
        return self.call("POST", "/v3/memories/add/", status, json={"messages": messages, **ADA, **given})

    def listed(self, filters=ADA, **given):
        return self.call("POST", "/v3/memories/", json={"filters": filters, **given})

    def texts(self, filters=ADA, **given):
        return [one["memory"] for one in self.listed(filters, **given)["results"]]

    def found(self, query, filters=ADA, **given):
        answer = self.call("POST", "/v3/memories/search/", json={"query": query, "filters": filters, **given})
        return [one["memory"] for one in answer["results"]]


@pytest.fixture
def client(url):
    return Client(url)


def raw(client, *texts, **given):
    return [client.add(text, infer=False, **given)["results"][0]["id"] for text in texts]


def test_what_is_learnt_is_told_and_found(client):
    told = client.add(
        [{"role": "user", "content": "I live in Bern."}, {"role": "assistant", "content": "Noted."}]
    )
    assert [(one["memory"], one["event"]) for one in told["results"]] == [("The user lives in Bern", "ADD")]
    assert client.found("Where does she live?") == ["The user lives in Bern"]


def test_what_nothing_was_learnt_from_is_found_in_the_users_words(client):
    said = "We had lunch with Anna at the harbour."
    (told,) = client.add(said, metadata={"mood": "good"})["results"]
    assert told["memory"] == said
    assert client.found("lunch with Anna") == [said]
    whole = client.call("GET", f"/v1/memories/{told['id']}/")
    assert (whole["memory"], whole["metadata"], whole["user_id"]) == (said, {"mood": "good"}, "ada")
    assert client.call("GET", f"/v1/memories/{told['id']}/history/")[0]["event"] == "ADD"
    client.call("PUT", f"/v1/memories/{told['id']}/", 501, json={"text": "other"})
    client.call("DELETE", f"/v1/memories/{told['id']}/")
    client.call("GET", f"/v1/memories/{told['id']}/", 404)
    assert client.texts() == client.found("lunch with Anna") == []


def test_an_id_outlasts_changes_and_has_a_history(client):
    (memory_id,) = raw(client, "Loves hiking", metadata={"topic": "sport"})
    changed = client.call("PUT", f"/v1/memories/{memory_id}/", json={"text": "Loves climbing"})
    assert (changed["id"], changed["memory"], changed["metadata"]) == (
        memory_id,
        "Loves climbing",
        {"topic": "sport"},
    )
    client.call("PUT", f"/v1/memories/{memory_id}/", json={"metadata": {"topic": "hobby"}})
    assert client.call("GET", f"/v1/memories/{memory_id}/")["metadata"] == {"topic": "hobby"}
    client.call("PUT", f"/v1/memories/{memory_id}/", 422, json={})
    client.call("DELETE", f"/v1/memories/{memory_id}/")
    client.call("GET", f"/v1/memories/{memory_id}/", 404)
    history = client.call("GET", f"/v1/memories/{memory_id}/history/")
    assert [(one["event"], one["old_memory"], one["new_memory"]) for one in history] == [
        ("ADD", None, "Loves hiking"),
        ("UPDATE", "Loves hiking", "Loves climbing"),
        ("DELETE", "Loves climbing", None),
    ]


def test_a_deleted_memory_does_not_come_back_as_what_was_said(client):
    (told,) = client.add("I live in Bern.")["results"]
    client.call("DELETE", f"/v1/memories/{told['id']}/")
    assert client.texts() == client.found("Bern") == []


def test_lists_are_filtered_and_come_page_by_page(client):
    raw(client, "one apple", "two pears", metadata={"kind": "fruit", "n": 2})
    raw(client, "three dogs", metadata={"kind": "pet"}, run_id="r1")
    raw(client, "four birds", agent_id="a1", app_id="shop")
    assert client.texts() == ["four birds", "three dogs", "two pears", "one apple"]
    assert client.texts({"AND": [ADA, {"metadata": {"kind": "fruit"}}]}) == ["two pears", "one apple"]
    assert client.texts({"AND": [ADA, {"NOT": [{"metadata": {"kind": "fruit"}}]}]}) == [
        "four birds",
        "three dogs",
    ]
    assert client.texts({**ADA, "run_id": "r1"}) == ["three dogs"]
    assert client.texts({**ADA, "agent_id": "a1", "app_id": "*"}) == ["four birds"]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert client.texts({"AND": [ADA, {"created_at": {"gte": tomorrow}}]}) == []
    page = client.call("POST", "/v3/memories/", params={"page": 2, "page_size": 3}, json={"filters": ADA})
    assert (page["count"], [one["memory"] for one in page["results"]], page["next"]) == (
        4,
        ["one apple"],
        None,
    )
    assert "three dogs" not in client.found("three dogs?", {**ADA, "metadata": {"kind": "fruit"}})


def test_expired_memories_are_left_out(client):
    raw(client, "on holiday", expiration_date="2020-01-01")
    raw(client, "at work", expiration_date="2999-01-01")
    assert client.texts() == ["at work"]
    assert client.texts(show_expired=True) == ["at work", "on holiday"]


def test_agents_have_memories_of_their_own(client):
    client.call("POST", "/v3/memories/add/", json={"messages": "Be brief", "agent_id": "bot", "infer": False})
    (found,) = client.listed({"agent_id": "bot"})["results"]
    assert (found["user_id"], found["agent_id"], found["memory"]) == (None, "bot", "Be brief")
    entities = client.call("GET", "/v1/entities/")["results"]
    assert [(one["type"], one["name"], one["total_memories"]) for one in entities] == [("agent", "bot", 1)]


def test_batches_and_deleting_all(client):
    first, second, _ = raw(client, "one apple", "two pears", "three dogs")
    client.call("PUT", "/v1/batch/", json={"memories": [{"memory_id": first, "text": "one plum"}]})
    client.call("DELETE", "/v1/batch/", json={"memories": [{"memory_id": second}]})
    assert client.texts() == ["three dogs", "one plum"]
    client.add("Something said in passing")
    client.call("DELETE", "/v1/memories/", params=ADA)
    assert client.texts() == []
    raw(client, "again")
    client.call("DELETE", "/v2/entities/user/ada/")
    assert client.call("GET", "/v1/entities/")["count"] == 0


def test_mistakes_are_told_in_its_shape(client):
    for answer in (
        client.call("POST", "/v3/memories/add/", 422, json={"messages": "x"}),
        client.add("my password is hunter2-abc!", 422, infer=False),
        client.call("POST", "/v3/memories/", 422, json={}),
        client.call("POST", "/v3/memories/search/", 422, json={"filters": ADA}),
        client.call("GET", "/v1/memories/none/", 404),
        client.call("GET", "/v1/memories/turn_zz/", 404),
        client.call("POST", "/v1/exports/", 501, json={}),
        client.call("GET", "/v9/unknown/", 404),
    ):
        assert list(answer) == ["detail"]
        assert len(answer["detail"]) > 10


def test_keys_reach_their_own_users_only(keyed):
    url, keys = keyed
    tenant, ada, bob, other = (Client(url, keys[name]) for name in ("tenant", "ada", "bob", "other"))
    (memory_id,) = raw(ada, "Loves hiking")
    assert tenant.texts() == ["Loves hiking"]
    assert other.texts() == []
    for client in (bob, other):
        client.call("GET", f"/v1/memories/{memory_id}/", 404)
        client.call("DELETE", f"/v1/memories/{memory_id}/", 404)
    bob.call("POST", "/v3/memories/", 403, json={"filters": ADA})
    bob.call("DELETE", "/v2/entities/user/ada/", 403)
    assert [one["name"] for one in bob.call("GET", "/v1/entities/")["results"]] == ["bob"]
    said = tenant.add("Nothing to learn here, really")["results"][0]["id"]
    bob.call("GET", f"/v1/memories/{said}/", 403)
    response = httpx.get(f"{url}/mem0/v1/ping/", headers={"authorization": "Token wrong"})
    assert (response.status_code, "detail" in response.json()) == (401, True)


@pytest.mark.parametrize(
    ("given", "record", "passes"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": {"in": [1, 2]}}, {"a": 2}, True),
        ({"a": {"gte": 2, "lt": 4}}, {"a": 4}, False),
        ({"a": {"ne": 2}}, {"a": None}, True),
        ({"OR": [{"a": 1}, {"b": 1}]}, {"b": 1}, True),
        ({"NOT": [{"a": 1}]}, {"a": 1}, False),
        ({"tags": {"contains": "x"}}, {"tags": ["x", "y"]}, True),
        ({"t": {"icontains": "ADA"}}, {"t": "ada l."}, True),
        ({"a": "*"}, {"a": None}, False),
        ({"created_at": {"lte": "2024-05-01"}}, {"created_at": "2024-05-01T10:00:00"}, True),
        ({"k": "v"}, {"metadata": {"k": "v"}}, True),
        (None, {}, True),
    ],
)
def test_filters(given, record, passes):
    assert passes is matches(given, record)


def test_filters_that_cannot_be_read_are_refused():
    deep = {"a": 1}
    for _ in range(30):
        deep = {"AND": [deep]}
    for bad in ({"a": {"near": 1}}, {"a": {"in": 1}}, [1], deep):
        with pytest.raises(InvalidArgumentError):
            matches(bad, {"a": 1})


def test_users_named_by_a_filter():
    assert values_of({"AND": [{"user_id": "a"}, {"x": 1}]}, "user_id") == ["a"]
    assert values_of({"OR": [{"user_id": "a"}, {"user_id": {"in": ["b", "a"]}}]}, "user_id") == ["a", "b"]
    assert values_of({"OR": [{"user_id": "a"}, {"agent_id": "b"}]}, "user_id") == []
    assert values_of({"user_id": "*"}, "user_id") == []


def test_an_agent_of_which_nothing_was_learnt_is_listed_and_found(client):
    said = "We had lunch with Anna at the harbour."
    client.call("POST", "/v3/memories/add/", json={"messages": said, "agent_id": "bot"})
    assert client.texts({"agent_id": "bot"}) == [said]
    assert client.found("lunch with Anna", {"agent_id": "bot"}) == [said]
    (entity,) = client.call("GET", "/v1/entities/")["results"]
    assert (entity["type"], entity["name"], entity["total_memories"]) == ("agent", "bot", 1)


def test_names_with_slashes_and_long_names_have_conversations_of_their_own(client):
    lunch, dinner = "We had lunch at the harbour.", "Dinner was in the old town."
    client.add(lunch, user_id="org/x")
    client.add(dinner, user_id="org", run_id="x")
    assert (client.texts({"user_id": "org/x"}), client.texts({"user_id": "org"})) == ([lunch], [dinner])
    for user in ("u" * 255, "用" * 100):
        (told,) = client.add(lunch, user_id=user, run_id="r" * 200)["results"]
        assert client.call("GET", f"/v1/memories/{told['id']}/")["user_id"] == user


@pytest.mark.parametrize("given", [{"run_id": "r1"}, {"agent_id": "bot"}, {"user_id": "*"}])
def test_everything_that_the_names_mean_is_deleted(client, given):
    raw(client, "Plays chess", run_id="r1", agent_id="bot")
    client.add("We had lunch at the harbour.", run_id="r1", agent_id="bot")
    client.call("DELETE", "/v1/memories/", params=given)
    assert client.texts() == []


def test_a_memory_changed_to_what_another_says_keeps_its_id(client):
    tea, _ = raw(client, "Likes tea", "Likes coffee")
    client.call("PUT", f"/v1/memories/{tea}/", 409, json={"text": "Likes coffee"})
    assert client.call("GET", f"/v1/memories/{tea}/")["memory"] == "Likes tea"


def test_filters_by_id_and_by_words(client):
    tea, _ = raw(client, "Likes tea", "Likes coffee")
    assert client.texts({"AND": [ADA, {"memory_ids": [tea]}]}) == ["Likes tea"]
    assert client.texts({"AND": [ADA, {"keywords": {"icontains": "COFFEE"}}]}) == ["Likes coffee"]


def test_of_many_who_change_a_memory_at_once_the_last_one_wins(client):
    (tea,) = raw(client, "Likes tea")
    with ThreadPoolExecutor(6) as pool:
        list(
            pool.map(
                lambda cups: client.call(
                    "PUT", f"/v1/memories/{tea}/", json={"text": f"Drinks {cups} cups of tea"}
                ),
                range(6),
            )
        )
    assert [one["id"] for one in client.listed()["results"]] == [tea]
    assert len(client.call("GET", f"/v1/memories/{tea}/history/")) == 7


def test_an_agent_is_deleted_with_what_it_has_of_users(client):
    raw(client, "Plays chess", agent_id="bot")
    raw(client, "Likes tea")
    client.call("DELETE", "/v2/entities/agent/bot/")
    assert client.texts() == ["Likes tea"]
    client.call("DELETE", "/v2/entities/robot/bot/", 422)


def test_what_is_said_again_is_there_once(client):
    for _ in range(2):
        client.add("I live in Bern.")
        client.add("We ate at the harbour.")
    assert sorted(client.texts()) == ["The user lives in Bern", "We ate at the harbour."]
