"""The door to the homes of vectors: what a URL names, and what is said when it names nothing."""

import sys

import pytest

from pagefile.errors import MissingExtraError, SettingsError
from pagefile.ports import VectorHit
from pagefile.stores import InMemoryStore, open_vectors
from pagefile.stores.milvus import Place
from pagefile.stores.milvus.index import Recent, Written
from pagefile.testing import FlakyStore
from pagefile.testing.contracts.vectors import vector


@pytest.fixture
def store(clock):
    return InMemoryStore(clock)


def test_no_url_is_the_stores_own_home(store):
    """Also behind a wrapper; "none" is no home."""
    assert "memory" == open_vectors(None, store).name
    assert "memory" == open_vectors(None, FlakyStore(store)).name
    assert open_vectors("none", store) is None


@pytest.mark.parametrize(
    "url", ["", "milvus", "qdrant://secret@host", "milvus:/x.db", "sqlite:///x.db", "NONE"]
)
def test_what_is_unknown_is_told_what_is_known(store, url):
    """Without repeating what may hold a password."""
    with pytest.raises(SettingsError, match=r"milvus://host:19530.*'none'") as caught:
        open_vectors(url, store)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "milvus://host:port",
        "milvus://host:99999",
        "milvus://:19530",
        "milvus://host?x=1",
        "milvus:///",
        "milvus:///folder/",
        "milvus:///x.sqlite",
        "milvus://u:geheim@[::1",
    ],
)
def test_what_cannot_be_read_says_how_to_write_it(store, url):
    """And keeps the password to itself."""
    with pytest.raises(SettingsError, match="milvus://") as caught:
        open_vectors(url, store)
    assert "geheim" not in str(caught.value)


def test_places_are_read_from_urls():
    """Servers and files, with what a URL escapes."""
    server = Place.of("milvus://me:p%40ss@host/db%201")
    assert ("http://host:19530", "db 1", "me", "p@ss") == (
        server.uri,
        server.database,
        server.user,
        server.password,
    )
    assert "milvus://host:19530/db 1" == server.shown
    assert "p@ss" not in repr(server)
    assert "http://[::1]:7" == Place.of("milvus://[::1]:7").uri
    assert "./a b.db" == Place.of("milvus:///a%20b.db").uri
    assert "/a/b.db" == Place.of("milvus:////a/b.db").uri
    assert Place.of("milvus:///a.db").is_file


def test_a_missing_package_is_named(store, monkeypatch):
    """With the command that brings it."""
    for module in [name for name in sys.modules if name.startswith("pagefile.stores.milvus")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(MissingExtraError, match=r"pagefile\[milvus\]"):
        open_vectors("milvus://host", store)


def test_what_was_written_a_moment_ago_is_known():
    """For ten seconds; beyond a few thousand rows the server is waited for instead, as after a removal."""
    now = [0.0]
    recent = Recent(lambda: now[0])
    keys = {"user_key": "ada"}
    one = Written(VectorHit("chat", 1, "t", 0.0), keys, vector(1, 0))
    recent.wrote([("a", one), ("b", Written(one.near, keys, None))])
    assert ({"a", "b"}, "Bounded") == (recent.ids, recent.consistency)
    assert [VectorHit("chat", 1, "t", 1.0)] == recent.search(lambda row: row == keys, vector(1, 0))
    now[0] = 9.0
    recent.wrote([("a", one)])
    now[0] = 11.0
    assert {"a"} == recent.ids
    recent.removed(lambda row: row == keys)
    assert (set(), "Strong") == (recent.ids, recent.consistency)
    now[0] = 22.0
    assert "Bounded" == recent.consistency
    recent.wrote((str(number), one) for number in range(5000))
    assert (set(), "Strong") == (recent.ids, recent.consistency)
