"""The short form of `make races`, and that its raw search finds what there is to find."""

import asyncio
import sys
import zlib

import pytest
import redis

from pagefile import BlockingMemory
from tests.servers.valkey import ValkeyServer

from .marking import bulky, marks_in, new_mark
from .process import SETTINGS, TOOL
from .racing import race
from .searching import Found, look_into_redis

#: Among them are erasures by the command, by HTTP and by the library; behind the last one everything is searched.
SHORT = range(11, 17)


@pytest.mark.slow
@pytest.mark.waits
@pytest.mark.skipif(sys.platform != "linux", reason="reads the files of running servers")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_nothing_erased_comes_back(engine):
    """Whatever was under way: through no verb of any process, and in no file but PostgreSQL's write-ahead log."""
    counts = asyncio.run(race(engine, SHORT, every=len(SHORT), tell=print))
    assert len(SHORT) == counts["rounds"]
    for what in ("forgets by library", "forgets by HTTP", "forgets by command", "late writes refused"):
        assert counts[what], f"there were no {what}: the race tests less than it says"
    assert counts["verbs asked"] > 300
    assert counts["bytes searched"] > 100_000


def test_the_raw_search_finds_what_is_there(tmp_path):
    """A turn, a question and a compressed page in a database that nobody erased; a mark in a dump of Redis."""
    said, page = new_mark(), new_mark()
    with BlockingMemory.open(f"sqlite:///{tmp_path}/a.db", settings=SETTINGS) as memory:
        chat = memory.conversation("chat", user_id="ada")
        chat.record(f"I am {said}.", "Hello.", steps=[{"tool": TOOL, "result": bulky(page)}])
    (tmp_path / "page").write_bytes(b"before" + zlib.compress(bulky(page).encode(), 6) + b"behind")
    found = Found()
    found.look_into(tmp_path, [page])
    assert {said, page} == found.places["a.db"]
    assert {page} == found.places["page"]


def test_the_raw_search_finds_what_redis_keeps(tmp_path):
    """In a value, and in the dump that is written then."""
    mark = new_mark()
    with ValkeyServer(settings={"rdbcompression": "no", "dir": str(tmp_path)}) as server:
        found = Found()
        look_into_redis(found, server.url, [])
        assert {} == found.places
        _set(server.url, mark)
        look_into_redis(found, server.url, [])
        found.look_into(tmp_path, [])
    assert {mark} == found.places["Redis value name"] == found.places["dump.rdb"]


def _set(url, mark):
    with redis.Redis.from_url(url) as server:
        server.set("name", f"I am {mark}")


def test_a_mark_is_found_in_any_case_and_is_no_accident():
    """Whoever folds the case of words leaves it a mark; what only looks like one is none."""
    mark = new_mark()
    assert {mark} == marks_in(f"…{mark.upper()}…") == marks_in(f"{mark}".encode())
    assert set() == marks_in(mark[:-1] + "b" if mark[-1] != "b" else mark[:-1] + "c")
