"""How verbs use the threads and the statements of SQLite."""

import threading

from pagefile.stores.sql import pages
from pagefile.testing.drafts import page


async def test_a_page_is_compressed_in_a_thread(store, monkeypatch):
    """However short its text: the event loop has better things to do."""
    threads = []
    packed = pages.packed

    def seen(text):
        threads.append(threading.current_thread())
        return packed(text)

    monkeypatch.setattr(pages, "packed", seen)
    await store.pages.put(page("p"))
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
