"""What LangGraph documents of its stores, case by case: its own tests are in no package. `InMemoryStore` plays each case, too: it is the measure."""

import asyncio
import string

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from pagefile import BlockingMemory
from pagefile.integrations.langgraph_store import PagefileStore
from pagefile.testing import FakeClock

NOTES = ("ada", "notes")


def letters(texts):
    """An embedder whose texts are near each other that have the same letters."""
    return [[float(text.lower().count(letter)) for letter in string.ascii_lowercase] for text in texts]


INDEX = {"dims": 26, "embed": letters}


@pytest.fixture(params=["langgraph's own", "pagefile, memory", "pagefile, sqlite"])
def make(request, tmp_path):
    """Makes stores: `make(index=…)`."""
    if request.param == "langgraph's own":
        yield InMemoryStore
        return
    url = "memory://" if request.param.endswith("memory") else f"sqlite:///{tmp_path}/store.db"
    with BlockingMemory.open(url, embedder="none") as memory:
        yield lambda **given: PagefileStore(memory, **given)


@pytest.fixture
def store(make):
    return make()


def keys(items):
    return sorted(item.key for item in items)


# -- items ----------------------------------------------------------------------------------------------------------------


def test_what_is_put_is_found(store):
    value = {"text": "喜欢绿茶 🍵", "deep": {"list": [1, 2.5, None, True]}}
    store.put(NOTES, "k1", value)
    found = store.get(NOTES, "k1")
    assert (value, "k1", NOTES) == (found.value, found.key, found.namespace)
    assert found.created_at.tzinfo is not None
    assert found.created_at <= found.updated_at


def test_what_is_not_there_is_none(store):
    assert [] == store.list_namespaces()
    assert [] == store.search(NOTES)
    assert store.get(NOTES, "k1") is None


def test_a_second_put_replaces_the_value(store):
    store.put(NOTES, "k1", {"n": 1, "old": True})
    first = store.get(NOTES, "k1")
    store.put(NOTES, "k1", {"n": 2})
    second = store.get(NOTES, "k1")
    assert {"n": 2} == second.value
    assert second.updated_at >= first.updated_at


def test_equal_keys_of_two_namespaces_are_two_items(store):
    store.put(("ada",), "k1", {"of": "ada"})
    store.put(("bob",), "k1", {"of": "bob"})
    assert [{"of": "ada"}, {"of": "bob"}] == [store.get((name,), "k1").value for name in ("ada", "bob")]


@pytest.mark.parametrize("way", ["delete", "put None"])
def test_an_item_is_deleted(store, way):
    store.put(NOTES, "k1", {"n": 1})
    store.delete(NOTES, "k1") if way == "delete" else store.put(NOTES, "k1", None)
    assert store.get(NOTES, "k1") is None
    assert [] == store.search(NOTES)
    store.delete(NOTES, "k1")


async def test_the_asynchronous_methods_do_the_same(store):
    await store.aput(NOTES, "k1", {"n": 1})
    await asyncio.gather(*(store.aput(NOTES, f"k{number}", {"n": number}) for number in range(2, 30)))
    assert {"n": 1} == (await store.aget(NOTES, "k1")).value
    assert 29 == len(await store.asearch(("ada",), limit=100))
    assert [NOTES] == await store.alist_namespaces()
    await store.adelete(NOTES, "k1")
    assert await store.aget(NOTES, "k1") is None


# -- namespaces -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("ok", ""), ("langgraph", "x"), (1,)], ids=repr)
async def test_a_namespace_that_is_none_is_refused(store, namespace):
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "k1", {"n": 1})
    with pytest.raises(InvalidNamespaceError):
        await store.aput(namespace, "k1", {"n": 1})
    assert [] == store.search(())


@pytest.mark.parametrize("namespace", [("a.b",), ("",)], ids=repr)
async def test_reading_refuses_it_too(store, namespace):
    for work in (lambda: store.get(namespace, "k1"), lambda: store.search(namespace)):
        with pytest.raises(InvalidNamespaceError):
            work()
    with pytest.raises(InvalidNamespaceError):
        await store.aget(namespace, "k1")


@pytest.fixture
def documents(store):
    for namespace in (
        ("a", "b", "c"),
        ("a", "b", "d", "e"),
        ("a", "b", "d", "i"),
        ("a", "b", "f"),
        ("a", "c", "f"),
        ("b", "a", "f"),
        ("users", "123"),
        ("users", "1234", "settings"),
    ):
        store.put(namespace, "id", {"in": list(namespace)})
    return store


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"prefix": ("a", "b")}, {("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f")}),
        ({"suffix": ("f",)}, {("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")}),
        ({"prefix": ("a",), "suffix": ("f",)}, {("a", "b", "f"), ("a", "c", "f")}),
        ({"prefix": ("a", "*", "f")}, {("a", "b", "f"), ("a", "c", "f")}),
        ({"suffix": ("*", "f")}, {("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")}),
        ({"prefix": ("users", "123")}, {("users", "123")}),
        ({"prefix": ("nothing",)}, set()),
        ({"max_depth": 1}, {("a",), ("b",), ("users",)}),
        ({"prefix": ("a", "b"), "max_depth": 3}, {("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")}),
    ],
    ids=str,
)  # fmt: skip
def test_namespaces_are_listed(documents, given, found):
    listed = documents.list_namespaces(**given)
    assert found == set(listed)
    assert len(listed) == len(found)


def test_namespaces_are_listed_in_pages(documents):
    whole = documents.list_namespaces()
    assert 8 == len(whole)
    assert whole == sorted(whole)
    pages = [documents.list_namespaces(limit=3, offset=offset) for offset in (0, 3, 6)]
    assert whole == [name for page in pages for name in page]
    assert [] == documents.list_namespaces(offset=100)


def test_a_namespace_without_items_is_not_listed(store):
    store.put(NOTES, "k1", {"n": 1})
    store.delete(NOTES, "k1")
    assert [] == [name for name in store.list_namespaces() if store.search(name)]


# -- searches -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(store):
    for key, value in {
        "tea": {"kind": "drink", "price": 3, "hot": True, "of": {"land": "CN"}, "tags": ["leaf", "green"]},
        "coffee": {"kind": "drink", "price": 4.5, "hot": True, "of": {"land": "ET"}},
        "water": {"kind": "drink", "price": 0, "hot": False},
        "cake": {"kind": "food", "price": 6, "it's": "50% off; DROP TABLE items"},
    }.items():
        store.put(("shop", "menu"), key, value)
    store.put(("shop", "menu", "old"), "beer", {"kind": "drink", "price": 5})
    store.put(("shopping",), "list", {"kind": "drink", "price": 5})
    return store


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, ["beer", "cake", "coffee", "tea", "water"]),
        ({"kind": "drink"}, ["beer", "coffee", "tea", "water"]),
        ({"kind": "drink", "hot": True}, ["coffee", "tea"]),
        ({"kind": {"$eq": "food"}}, ["cake"]),
        ({"kind": {"$ne": "drink"}}, ["cake"]),
        ({"price": {"$gt": 4}}, ["beer", "cake", "coffee"]),
        ({"price": {"$gte": 4.5, "$lt": 6}}, ["beer", "coffee"]),
        ({"price": {"$lte": 0}}, ["water"]),
        ({"price": 0}, ["water"]),
        ({"of": {"land": "CN"}}, ["tea"]),
        ({"tags": ["leaf", "green"]}, ["tea"]),
        ({"it's": "50% off; DROP TABLE items"}, ["cake"]),
        ({"kind": "' OR '1'='1"}, []),
        ({"nothing": 1}, []),
    ],
    ids=str,
)
def test_a_filter_finds(shop, wanted, found):
    assert found == keys(shop.search(("shop",), filter=wanted))


def test_an_operator_that_is_none_is_refused(shop):
    with pytest.raises(ValueError, match="perator"):
        shop.search(("shop",), filter={"price": {"$near": 4}})


def test_a_prefix_is_of_whole_labels(shop):
    assert ["beer"] == keys(shop.search(("shop", "menu", "old")))
    assert [] == shop.search(("sho",))
    assert [] == shop.search(("Shop",))
    assert 6 == len(shop.search(()))


@pytest.mark.parametrize("label", ["%", "_", "*", "?", "[a]", "a'b", 'a"b', "a\\b", "a\n"], ids=ascii)
def test_a_label_is_taken_to_the_letter(store, label):
    store.put(("x", label), "here", {"n": 1})
    store.put(("x", "abc"), "there", {"n": 2})
    assert ["here"] == keys(store.search(("x", label)))


def test_a_search_comes_in_pages(store):
    for number in range(25):
        store.put(NOTES, f"k{number:02}", {"n": number})
    assert 10 == len(store.search(NOTES))
    pages = [store.search(NOTES, limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    assert [10, 10, 5, 0] == [len(page) for page in pages]
    assert [f"k{number:02}" for number in range(25)] == keys([item for page in pages for item in page])


def test_without_an_index_a_query_is_left_out_of_account(store):
    store.put(NOTES, "k1", {"text": "green tea"})
    (found,) = store.search(NOTES, query="tea")
    assert found.score is None


# -- searches by meaning --------------------------------------------------------------------------------------------------


def test_the_nearest_comes_first_with_its_score(make):
    store = make(index=INDEX)
    for key, text in {"near": "aaab", "far": "xyz", "half": "aazz"}.items():
        store.put(NOTES, key, {"text": text})
    found = store.search(NOTES, query="text aaaa")
    assert "near" == found[0].key
    scores = [item.score for item in found]
    assert all(isinstance(score, float) for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert ["near"] == [item.key for item in store.search(NOTES, query="text aaaa", limit=1)]
    assert found[1].key == store.search(NOTES, query="text aaaa", limit=1, offset=1)[0].key


async def test_an_asynchronous_search_finds_the_same(make):
    store = make(index=INDEX)
    await store.aput(NOTES, "near", {"text": "aaab"})
    await store.aput(NOTES, "far", {"text": "xyz"})
    found = await store.asearch(NOTES, query="aaaa")
    assert "near" == found[0].key
    assert [item.score for item in found] == [item.score for item in store.search(NOTES, query="aaaa")]


def test_a_changed_item_is_found_by_what_it_says_now(make):
    store = make(index={**INDEX, "fields": ["text"]})
    store.put(NOTES, "k1", {"text": "zzz"})
    store.put(NOTES, "k2", {"text": "mmm"})
    store.put(NOTES, "k1", {"text": "aaa"})
    assert "k1" == store.search(NOTES, query="aaa")[0].key
    assert "k1" != store.search(NOTES, query="mmm")[0].key


def test_a_query_and_a_filter_go_together(make):
    store = make(index={**INDEX, "fields": ["text"]})
    for key, text, color in (("a", "aaa", "red"), ("b", "aab", "blue"), ("c", "ccc", "red")):
        store.put(NOTES, key, {"text": text, "color": color})
    assert ["a", "c"] == [item.key for item in store.search(NOTES, query="aaa", filter={"color": "red"})]
    assert ["b"] == [item.key for item in store.search(NOTES, query="aaa", filter={"color": "blue"})]


def test_the_fields_of_the_index_are_what_is_searched(make):
    store = make(index={**INDEX, "fields": ["title", "parts[*].text", "author.name"]})
    store.put(NOTES, "by title", {"title": "aaaa", "body": "qqqq"})
    store.put(NOTES, "by part", {"title": "m", "parts": [{"text": "xxxx"}, {"text": "zzzz"}]})
    store.put(NOTES, "by author", {"title": "m", "author": {"name": "kkkk"}})
    for query, key in (("aaaa", "by title"), ("zzzz", "by part"), ("xxxx", "by part"), ("kkkk", "by author")):
        assert key == store.search(NOTES, query=query)[0].key
    assert all((item.score or 0) < 0.5 for item in store.search(NOTES, query="qqqq"))


def test_an_item_says_what_of_it_is_indexed(make):
    store = make(index={**INDEX, "fields": ["text"]})
    store.put(NOTES, "not at all", {"text": "aaaa"}, index=False)
    store.put(NOTES, "by its title", {"text": "aaaa", "title": "zzzz"}, index=["title"])
    store.put(NOTES, "as always", {"text": "aaab"})
    assert "as always" == store.search(NOTES, query="aaaa")[0].key
    assert "by its title" == store.search(NOTES, query="zzzz")[0].key
    whole = {item.key: item.score for item in store.search(NOTES, query="aaaa")}
    assert "not at all" in whole
    assert whole["not at all"] is None


# -- batches --------------------------------------------------------------------------------------------------------------


def test_the_results_of_a_batch_are_in_its_order(store):
    store.put(NOTES, "k1", {"n": 1})
    store.put(NOTES, "k2", {"n": 2})
    got, put, found, names, nothing = store.batch(
        [
            GetOp(NOTES, "k1"),
            PutOp(NOTES, "k3", {"n": 3}),
            SearchOp(NOTES, filter={"n": 2}),
            ListNamespacesOp(match_conditions=(MatchCondition("prefix", ("ada",)),)),
            GetOp(NOTES, "k9"),
        ]
    )
    assert ({"n": 1}, None, ["k2"], [NOTES], None) == (got.value, put, keys(found), names, nothing)
    assert {"n": 3} == store.get(NOTES, "k3").value


def test_of_two_puts_of_a_key_the_last_counts(store):
    store.batch([PutOp(NOTES, "k1", {"n": 1}), PutOp(NOTES, "k1", {"n": 2}), PutOp(NOTES, "k2", None)])
    assert {"n": 2} == store.get(NOTES, "k1").value
    assert store.get(NOTES, "k2") is None


async def test_asynchronous_batches_do_the_same(store):
    await store.abatch([PutOp(NOTES, f"k{number}", {"n": number}) for number in range(5)])
    got, found = await store.abatch([GetOp(NOTES, "k4"), SearchOp(NOTES, limit=3, offset=3)])
    assert {"n": 4} == got.value
    assert 2 == len(found)


# -- ends: `InMemoryStore` has none ---------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def timed(request, tmp_path):
    """Makes stores with a clock that can be set: `timed(ttl=…)`."""
    clock = FakeClock()
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    with BlockingMemory.open(url, embedder="none", clock=clock) as memory:
        yield lambda **given: (PagefileStore(memory, **given), lambda minutes: clock.advance(60 * minutes))


def test_an_item_ends(timed):
    store, wait = timed()
    store.put(NOTES, "short", {"n": 1}, ttl=1)
    store.put(NOTES, "long", {"n": 2}, ttl=3)
    store.put(NOTES, "ever", {"n": 3})
    wait(2)
    assert ["ever", "long"] == keys(store.search(NOTES, refresh_ttl=False))
    assert store.get(NOTES, "short") is None
    wait(2)
    assert ["ever"] == keys(store.search(NOTES))


def test_the_store_has_a_usual_end_that_an_item_overrides(timed):
    store, wait = timed(ttl={"default_ttl": 5, "refresh_on_read": False})
    store.put(NOTES, "usual", {"n": 1})
    store.put(NOTES, "sooner", {"n": 2}, ttl=1)
    store.put(NOTES, "never", {"n": 3}, ttl=None)
    wait(2)
    assert ["never", "usual"] == keys(store.search(NOTES))
    wait(4)
    assert ["never"] == keys(store.search(NOTES))


def test_reading_prolongs_an_item_unless_it_is_told_not_to(timed):
    store, wait = timed(ttl={"default_ttl": 5})
    for key in ("read", "looked at"):
        store.put(NOTES, key, {"n": 1})
    wait(4)
    store.get(NOTES, "read")
    store.get(NOTES, "looked at", refresh_ttl=False)
    wait(4)
    assert ["read"] == keys(store.search(NOTES))


def test_sweeping_counts_what_it_removes(timed):
    store, wait = timed(ttl={"default_ttl": 5})
    for number in range(3):
        store.put(NOTES, f"k{number}", {"n": number})
    assert 0 == store.sweep_ttl()
    wait(6)
    assert 3 == store.sweep_ttl()
    assert 0 == store.sweep_ttl()
