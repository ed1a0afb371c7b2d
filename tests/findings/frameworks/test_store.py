"""LangGraph's store: where ours differs from LangGraph's own."""

from datetime import UTC, datetime

import pytest

from pagefile import BlockingMemory
from pagefile.integrations.langgraph_store import PagefileStore
from tests.findings.marks import still_open

from .promises import promised


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    with BlockingMemory.open(url, embedder="none") as memory:
        yield PagefileStore(memory)


def filled(store):
    for number in range(5):
        store.put(("u", "docs"), f"k{number}", {"n": number, "t": f"text {number}"})
    return store


@still_open("frameworks-F23")
def test_a_query_without_an_index_is_left_out_of_account(store):
    """As in LangGraph's own stores, a search with a query finds everything when nothing is indexed."""
    with promised("the search is answered"):
        found = filled(store).search(("u",), query="text 3")
    assert [f"k{number}" for number in range(5)] == sorted(item.key for item in found)


@still_open("frameworks-F23")
def test_a_time_in_a_value_is_kept_as_iso_text(store):
    """As in LangGraph's own SQLite store, a `datetime` in a value is kept as ISO text."""
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    with promised("the value is kept"):
        store.put(("a",), "k", {"when": when})
    assert when == datetime.fromisoformat(store.get(("a",), "k").value["when"])


def found_by_list(url):
    with BlockingMemory.open(url, embedder="none") as memory:
        return len(filled(PagefileStore(memory)).search(["u"]))


@still_open("frameworks-F23")
def test_a_list_as_prefix_finds_the_same_everywhere(tmp_path):
    """A list as prefix is a prefix, whichever database holds the items."""
    assert [5, 5] == [found_by_list(url) for url in ("memory://", f"sqlite:///{tmp_path}/store.db")]


@still_open("frameworks-F23")
def test_ended_items_can_be_swept_by_the_stores_own_thread(store):
    """As LangGraph's own stores do, the store starts and stops a sweeper of ended items."""
    with promised("the sweeper is started and stopped"):
        store.start_ttl_sweeper()
        store.stop_ttl_sweeper()
