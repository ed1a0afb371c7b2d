"""LangGraph's store: where ours differs from LangGraph's own."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from pagefile import BlockingMemory
from pagefile.integrations.langgraph_store import PagefileStore
from tests.findings.marks import finding

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


@finding("frameworks-F23")
def test_a_query_without_an_index_is_left_out_of_account(store):
    """As in LangGraph's own stores, a search with a query finds everything when nothing is indexed."""
    with promised("the search is answered"):
        found = filled(store).search(("u",), query="text 3")
    assert [f"k{number}" for number in range(5)] == sorted(item.key for item in found)


@finding("frameworks-F23")
def test_a_time_in_a_value_is_kept_as_iso_text(store):
    """As in LangGraph's own SQLite store, a `datetime` in a value is kept as ISO text."""
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    with promised("the value is kept"):
        store.put(("a",), "k", {"when": when})
    assert when == datetime.fromisoformat(store.get(("a",), "k").value["when"])


def found_by_list(url):
    with BlockingMemory.open(url, embedder="none") as memory:
        return len(filled(PagefileStore(memory)).search(["u"]))


@finding("frameworks-F23")
def test_a_list_as_prefix_finds_the_same_everywhere(tmp_path):
    """A list as prefix is a prefix, whichever database holds the items."""
    assert [5, 5] == [found_by_list(url) for url in ("memory://", f"sqlite:///{tmp_path}/store.db")]


#: Waits until the table of items is empty; in another process, as two SQLite libraries in one undo each other's locks.
_EMPTIED = """
import sqlite3, sys, time
kept, until = sqlite3.connect(sys.argv[1]), time.monotonic() + 20
while kept.execute("SELECT count(*) FROM items").fetchone()[0]:
    if time.monotonic() > until:
        sys.exit("the item is still there")
    time.sleep(0.05)
"""


@finding("frameworks-F23")
def test_ended_items_are_swept_without_a_call(tmp_path):
    """As in LangGraph's own stores, a sweeper can be started that removes what has ended, and stopped."""
    with BlockingMemory.open(f"sqlite:///{tmp_path}/store.db", embedder="none") as memory:
        store = PagefileStore(memory)
        store.put(("a",), "k", {"v": 1}, ttl=0.001)
        with promised("the sweeper is started, sweeps and is stopped"):
            store.start_ttl_sweeper(sweep_interval_minutes=0.001)
            subprocess.run([sys.executable, "-c", _EMPTIED, f"{tmp_path}/store.db"], check=True)
            store.stop_ttl_sweeper()
