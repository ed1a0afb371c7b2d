"""LangGraph's store in a Pagefile database, on every kind of store and from both faces."""

import anyio
import anyio.to_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from pagefile import BlockingMemory, ClosedError, Memory, ModelOutputError, SettingsError
from pagefile import Settings as PagefileSettings
from pagefile.integrations import langgraph_store
from pagefile.integrations.langgraph import ConversationState
from pagefile.integrations.langgraph_store import PagefileStore
from pagefile.standalone import AgentApp, MemoryQueryRequest
from pagefile.testing import FakeClock, HashingEmbedder
from tests.integration.postgres.serving import fresh_url

MANUAL = PagefileSettings(indexing="manual")
NOTES = ("notes", "用户-1")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request, tmp_path):
    made = {"memory": lambda: "memory://", "sqlite": lambda: f"sqlite:///{tmp_path}/x.db", "postgres": fresh_url}  # fmt: skip
    return made[request.param]()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def opened(url, clock):
    async with Memory.open(url, settings=MANUAL, embedder=HashingEmbedder(256), clock=clock) as memory:
        yield memory


# -- values --------------------------------------------------------------------------------------------------------------


async def test_values_go_in_and_come_out(opened):
    """Any JSON, with its times; deleted, it is gone."""
    store = PagefileStore(opened)
    value = {"text": "喜欢茶\u0000", "n": [1, 2.5, None, {"deep": True}]}
    await store.aput(NOTES, "k/~.é", value)
    item = await store.aget(NOTES, "k/~.é")
    assert (value, "k/~.é", NOTES) == (item.value, item.key, item.namespace)
    assert item.created_at == item.updated_at
    assert await store.aget(NOTES, "else") is None
    await store.adelete(NOTES, "k/~.é")
    assert await store.aget(NOTES, "k/~.é") is None


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
async def test_what_is_put_stays(url, clock):
    """Over a restart."""
    async with Memory.open(url, settings=MANUAL, embedder=HashingEmbedder(256), clock=clock) as memory:
        await PagefileStore(memory, index={}).aput(NOTES, "a", {"text": "绿茶"})
    async with Memory.open(url, settings=MANUAL, embedder=HashingEmbedder(256), clock=clock) as memory:
        (found,) = await PagefileStore(memory, index={}).asearch(NOTES, query="绿茶")
    assert ({"text": "绿茶"}, "a") == (found.value, found.key)
    assert found.score > 0.1


async def test_a_batch_reads_before_it_writes(opened):
    """As LangGraph's own stores do; of two puts of one key the last counts."""
    store = PagefileStore(opened)
    ops = [PutOp(NOTES, "a", {"n": 1}), GetOp(NOTES, "a"), PutOp(NOTES, "a", {"n": 2}), SearchOp(("notes",))]
    assert [None, None, None, []] == await store.abatch(ops)
    assert {"n": 2} == (await store.aget(NOTES, "a")).value


@pytest.mark.parametrize("label", ["a.b", "", "\0", 7])
async def test_labels_are_checked_in_batches_too(opened, label):
    """And nothing of the batch is done."""
    store = PagefileStore(opened)
    with pytest.raises(InvalidNamespaceError):
        await store.abatch([PutOp(NOTES, "a", {}), PutOp((label,), "a", {})])
    assert [] == await store.asearch(())


# -- whose it is ---------------------------------------------------------------------------------------------------------


async def test_what_pagefile_stores_for_itself_is_not_an_item_of_the_graph(opened):
    """A query that waits for its answer belongs to its conversation."""
    await AgentApp(opened).query_memory_context(MemoryQueryRequest("c", query="我对青霉素过敏"))
    store = PagefileStore(opened, index={})
    await store.aput(NOTES, "a", {"text": "绿茶"})
    for options in ({}, {"query": "青霉素"}, {"filter": {"text": "绿茶"}}):
        assert ["a"] == [item.key for item in await store.asearch((), **options)]
    assert [] == await store.asearch((), offset=1)
    assert [NOTES] == await store.alist_namespaces()
    own = "pagefile", "asked"
    for op in (
        GetOp(own, "c"),
        SearchOp(own[:1]),
        SearchOp([*own]),
        PutOp(own, "c", {}),
        PutOp(own, "c", None),
    ):
        with pytest.raises(InvalidNamespaceError, match="another first label"):
            await store.abatch([op])


async def test_users_and_tenants_never_meet(opened):
    """Each store sees its own; forgetting a user forgets what was kept as theirs."""
    stores = {
        name: PagefileStore(opened, user_id=user, tenant=tenant)
        for name, user, tenant in (("ada", "ada", None), ("bob", "bob", None), ("all", None, None), ("firm", "ada", "firm"))
    }  # fmt: skip
    for name, store in stores.items():
        await store.aput(NOTES, "a", {"of": name})
    for name, store in stores.items():
        assert [{"of": name}] == [item.value for item in await store.asearch(())]
        assert [NOTES] == await store.alist_namespaces()
    receipt = await opened.forget(user_id="ada")
    assert 1 == receipt.counts["items"]
    assert {"ada": 0, "bob": 1, "all": 1, "firm": 1} == {
        name: len(await store.asearch(())) for name, store in stores.items()
    }


# -- searching -----------------------------------------------------------------------------------------------------------


async def test_search_by_meaning_with_the_memorys_own_embedder(opened):
    """The likest first, with scores; what is not to be found comes last, without."""
    store = PagefileStore(opened, index={"fields": ["text"]})
    await store.aput(NOTES, "tea", {"text": "每天早上喝绿茶"})
    await store.aput(NOTES, "code", {"text": "writes Python"})
    await store.aput(NOTES, "hidden", {"text": "每天早上喝绿茶"}, index=False)
    found = await store.asearch(("notes",), query="早上喝什么茶？")
    assert ["tea", "code", "hidden"] == [item.key for item in found]
    assert found[0].score > found[1].score
    assert found[2].score is None
    (second,) = await store.asearch(("notes",), query="早上喝什么茶？", limit=1, offset=1)
    assert "code" == second.key
    (filtered,) = await store.asearch(("notes",), query="早上喝什么茶？", filter={"text": "writes Python"})
    assert "code" == filtered.key


async def test_the_best_text_of_a_value_counts(opened):
    """Each field, and each element of a list, is a text of its own."""
    store = PagefileStore(opened, index={"fields": ["title", "said[*].text"]})
    await store.aput(NOTES, "a", {"title": "天气", "said": [{"text": "晴"}, {"text": "我对青霉素过敏"}]})
    await store.aput(NOTES, "b", {"title": "过敏"})
    await store.aput(NOTES, "c", {"title": "我对青霉素过敏"}, index=["other"])
    found = await store.asearch(NOTES, query="我对青霉素过敏")
    assert [("a", 1.0), ("b", found[1].score), ("c", None)] == [
        (item.key, item.score and round(item.score, 4)) if item.key != "b" else (item.key, item.score)
        for item in found
    ]


async def test_an_embedder_of_ones_own(opened):
    """As LangGraph takes it; a length that does not fit is told."""

    async def embed(texts):
        return [[float(len(text)), 1.0] for text in texts]

    store = PagefileStore(opened, index={"dims": 2, "embed": embed, "fields": ["text"]})
    await store.aput(NOTES, "short", {"text": "a"})
    await store.aput(NOTES, "long", {"text": "a" * 100})
    assert "short" == (await store.asearch(NOTES, query="b"))[0].key
    with pytest.raises(ModelOutputError, match="dims=2"):
        await PagefileStore(opened, index={"dims": 3, "embed": embed}).aput(NOTES, "x", {"text": "a"})


async def test_without_an_index_a_query_is_ignored_with_a_warning(opened, caplog):
    """As in LangGraph's own stores, but not in silence."""
    langgraph_store._warn_of_no_index.cache_clear()
    store = PagefileStore(opened)
    await store.aput(NOTES, "x", {"text": "coffee"})
    assert ["x"] == [item.key for item in await store.asearch(NOTES, query="茶")]
    assert "index={}" in caplog.text


async def test_without_an_embedder_an_index_is_refused(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/y.db", settings=MANUAL, embedder="none") as memory:
        with pytest.raises(SettingsError, match="embedder"):
            PagefileStore(memory, index={})


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"n": 1}, ["a"]),
        ({"n": {"$gt": 1}}, ["b"]),
        ({"n": {"$gte": 1, "$lt": 2}}, ["a"]),
        ({"n": {"$ne": 1}}, ["c", "b"]),
        ({"n": {"$lte": "1"}}, ["a"]),
        ({"flag": True}, ["a"]),
        ({"flag": 1}, []),
        ({"user": {"name": "李雷"}}, ["b"]),
        ({"user.name": "李雷"}, ["b"]),
        ({"tags": ["x", "y"]}, ["c"]),
        ({"tags": {"$eq": ["x"]}}, []),
        ({"date": {"$gt": "2026-01-15"}}, ["c"]),
        ({"none": None}, ["c", "b", "a"]),
        ({"x') OR 1=1 --": 1}, []),
    ],
)
async def test_filters(opened, clock, wanted, keys):
    """Every operator, nested values, lists and texts; keys are data, never SQL."""
    store = PagefileStore(opened)
    values = {
        "a": {"n": 1, "flag": True},
        "b": {"n": 2.5, "user": {"name": "李雷", "age": 9}},
        "c": {"tags": ["x", "y"], "n": "many", "date": "2026-02-01"},
    }
    for key, value in values.items():
        await store.aput(NOTES, key, value)
        clock.advance(1)
    assert keys == [item.key for item in await store.asearch(("notes",), filter=wanted)]
    assert keys[1:2] == [
        item.key for item in await store.asearch(("notes",), filter=wanted, limit=1, offset=1)
    ]


async def test_an_unknown_operator_is_told(opened):
    store = PagefileStore(opened)
    await store.aput(NOTES, "a", {"n": 1})
    with pytest.raises(ValueError, match=r"\$like"):
        await store.asearch(NOTES, filter={"n": {"$like": "x"}})


# -- what ends -----------------------------------------------------------------------------------------------------------


async def test_what_has_ended_is_not_there(opened, clock):
    """Swept or not; reading keeps it alive, unless that is not wanted."""
    store = PagefileStore(opened, ttl={"default_ttl": 10.0})
    for key in ("read", "unread", "peeked"):
        await store.aput(NOTES, key, {})
    await store.aput(NOTES, "stays", {}, ttl=None)
    clock.advance(6 * 60)
    await store.aget(NOTES, "read")
    await store.aget(NOTES, "peeked", refresh_ttl=False)
    clock.advance(6 * 60)
    found = await store.asearch(NOTES, refresh_ttl=False)
    assert {"read", "stays"} == {item.key for item in found}
    assert 2 == await store.asweep_ttl()
    assert 0 == await store.asweep_ttl()


# -- both faces ----------------------------------------------------------------------------------------------------------


def test_a_blocking_memory_serves_without_a_loop(tmp_path):
    """The synchronous verbs, and the asynchronous ones from any loop."""
    with BlockingMemory.open(f"sqlite:///{tmp_path}/x.db", settings=MANUAL, embedder="none") as memory:
        store = PagefileStore(memory)
        store.put(NOTES, "a", {"n": 1})

        async def elsewhere():
            await store.aput(NOTES, "b", {"n": 2})
            return [item.key for item in await store.asearch(NOTES)]

        assert {"a", "b"} == set(anyio.run(elsewhere))
        assert {"n": 1} == store.get(NOTES, "a").value
        assert [NOTES] == store.list_namespaces(prefix=("notes",))
        assert 0 == store.sweep_ttl()
    with pytest.raises(ClosedError):
        store.get(NOTES, "a")


async def test_a_thread_may_use_the_store_of_a_loop(opened):
    """As LangGraph does with synchronous nodes; in the loop itself a synchronous call is refused, not hung."""
    store = PagefileStore(opened)
    await anyio.to_thread.run_sync(lambda: store.put(NOTES, "a", {"n": 1}))
    assert {"n": 1} == (await anyio.to_thread.run_sync(lambda: store.get(NOTES, "a"))).value
    with pytest.raises(SettingsError, match="aput"):
        store.get(NOTES, "a")


async def test_a_graph_remembers_across_threads(opened):
    """Compiled with the store, its nodes find what other threads of the same user left."""

    async def node(state, *, store):
        known = await store.asearch(NOTES, query=state["messages"][-1].text)
        await store.aput(NOTES, str(len(known)), {"text": state["messages"][-1].text})
        return {"memory_context": "; ".join(item.value["text"] for item in known)}

    builder = StateGraph(ConversationState)
    builder.add_node("note", node)
    builder.add_edge(START, "note")
    graph = builder.compile(store=PagefileStore(opened, user_id="ada", index={"fields": ["text"]}))
    for text in ("我喜欢茶", "我喜欢咖啡"):
        await graph.ainvoke({"messages": [HumanMessage(text)]})
    state = await graph.ainvoke({"messages": [HumanMessage("喜欢茶吗？")]})
    assert "我喜欢茶; 我喜欢咖啡" == state["memory_context"]


# -- beside LangGraph's own ----------------------------------------------------------------------------------------------

_label = st.sampled_from(["a", "b", "ab", "a/b", "~", "*", "中", "A", "%", "_"])
_namespace = st.lists(_label, min_size=1, max_size=3).map(tuple)
_value = st.one_of(st.none(), st.dictionaries(st.sampled_from(["n", "t"]), st.integers(0, 3), max_size=2))
_puts = st.lists(st.tuples(_namespace, st.sampled_from(["k", "l"]), _value), max_size=12)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("beside")
    with BlockingMemory.open(f"sqlite:///{folder}/x.db", settings=MANUAL, embedder="none") as memory:
        yield memory


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_puts, st.lists(_label, max_size=2).map(tuple), st.integers(0, 3), st.sampled_from([None, 1, 2]))
def test_the_same_as_langgraphs_own_store(shared, puts, prefix, wanted, depth):
    """Whatever is put and deleted: the same items, the same namespaces, the same filters."""
    shared.forget(user_id="beside")
    ours, theirs = PagefileStore(shared, user_id="beside"), InMemoryStore()
    for store in (ours, theirs):
        for namespace, key, value in puts:
            store.batch([PutOp(namespace, key, value)])

    def told(store):
        listed = store.list_namespaces(max_depth=depth, limit=100)
        by_suffix = store.list_namespaces(suffix=prefix, limit=100) if prefix else []
        found = store.search(prefix, limit=100)
        kept = store.search(prefix, filter={"n": wanted}, limit=100)
        return (
            [
                {(item.namespace, item.key, str(sorted(item.value.items()))) for item in items}
                for items in (found, kept)
            ],
            [namespace for namespace in listed if namespace],
            by_suffix,
        )

    mine, own = told(ours), told(theirs)
    assert own[0] == mine[0]
    # LangGraph's own still lists a namespace whose last item was deleted.
    assert set(mine[1]) <= set(own[1])
    assert set(mine[2]) <= set(own[2])
    living = {namespace for namespace, _, _ in told(theirs)[0][0]} if not prefix else None
    if living is not None:
        assert {namespace[:depth] for namespace in living} == set(mine[1])
