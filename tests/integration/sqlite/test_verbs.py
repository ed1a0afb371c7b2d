"""How verbs use the threads and the statements of SQLite."""

import threading

from pagefile.stores import encoding
from pagefile.stores.sql import plain
from pagefile.testing.drafts import done, page, view


async def test_a_page_is_compressed_in_a_thread(store, monkeypatch):
    """However short its text: the event loop has better things to do."""
    threads = []
    packed = encoding.packed

    def seen(text):
        threads.append(threading.current_thread())
        return packed(text)

    monkeypatch.setattr(encoding, "packed", seen)
    await store.pages.put(page("p"))
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


async def test_a_view_of_turns_that_became_short_takes_few_statements(store, monkeypatch):
    """One that was long makes the average say little of those that follow it."""
    await store.log.append(done("long", tokens=100_000))
    short = [await store.log.append(done(f"s{number}", tokens=1)) for number in range(300)]
    asked = []
    rows = plain.rows

    def counted(statement, values):
        asked.append(values["limit"])
        return rows(statement, values)

    monkeypatch.setattr(plain, "rows", counted)
    seen = await store.reader.view(view(budget=1000))
    assert list(seen.turns) == short
    assert len(asked) <= 8
