"""Milvus holds no text, and its files nothing of what was erased; collections of earlier versions are written again."""

import json
import signal
import subprocess
import sys

import pytest
from pymilvus import MilvusClient

from pagefile import Memory, Settings
from pagefile.ports import Collection
from pagefile.records import Scope
from pagefile.settings import EmbedderSettings
from pagefile.stores import InMemoryStore, open_vectors
from pagefile.stores.erasure import scope_key
from pagefile.stores.milvus.schema import REWRITTEN, collection_of
from pagefile.testing import HashingEmbedder
from pagefile.testing.contracts.vectors import MODEL, said, seqs, vector
from tests.findings.security.looking import files_with
from tests.servers.ports import free_port

from .old_milvus import old_collection

pytestmark = pytest.mark.timeout(300)

ADA, BOB = Scope("tenant", "ada", "adas-chat"), Scope("tenant", "bob", "bobs-chat")
QUERY = vector(1, 0, 0, 0)
PLAIN = Settings(language="en", embedder=EmbedderSettings(name="none"))


@pytest.fixture
async def store(clock):
    store = InMemoryStore(clock)
    yield store
    await store.close()


@pytest.fixture
def url(tmp_path):
    return f"milvus:///{tmp_path}/vectors.db"


async def put(store, home, *scopes):
    await home.put(MODEL, [await said(store, scope, 1, (1, 0, 0, 0)) for scope in scopes], epoch=1)


async def test_no_text_is_in_it(store, url, tmp_path):
    """Nor who the user is: ids of conversations and turns, hashes, vectors."""
    home = open_vectors(url, store)
    await put(store, home, ADA)
    await home.close()
    client = MilvusClient(f"{tmp_path}/vectors.db")
    (name,) = client.list_collections()
    client.load_collection(name)
    (row,) = client.query(name, filter="seq == 1", output_fields=["*"])
    client.close()
    keys = {"tenant_key": scope_key("tenant"), "user_key": scope_key("tenant", "ada")}
    keys["conversation_key"] = scope_key("tenant", None, "adas-chat")
    told = {"conversation_id": "adas-chat", "turn_id": "turn-1", "seq": 1, "epoch": 1, **keys}
    assert told == {key: value for key, value in row.items() if key not in {"id", "embedding"}}


async def test_collections_with_texts_are_written_again(store, url, tmp_path):
    """When they are first used: every vector is found by its user, no word is left, and nobody else's collection is touched."""
    client = MilvusClient(f"{tmp_path}/vectors.db")
    old_collection(client)
    client.close()
    assert files_with(tmp_path, "OLDWORDS")
    home = open_vectors(url, store)
    assert [Collection(MODEL, 3)] == await home.collections()
    assert [1, 2] == seqs(await home.search(MODEL, Scope("tenant", "ada"), QUERY, 10))
    assert [1] == seqs(await home.search(MODEL, Scope("tenant", None, "chat of "), QUERY, 10))
    assert 2 == await home.erase_before({scope_key("tenant", "ada"): 1})
    await home.close()
    assert [] == files_with(tmp_path, "OLDWORDS")
    client = MilvusClient(f"{tmp_path}/vectors.db")
    assert {"conversation_episodes", collection_of(MODEL)} == set(client.list_collections())
    client.close()
    assert files_with(tmp_path, "THEIRS")


async def test_a_file_holds_nothing_of_what_was_erased(store, url, tmp_path):
    """Not even ids, also of rows that were written out long ago; what stays is found, before and after opening again."""
    home = open_vectors(url, store)
    await put(store, home, ADA, BOB)
    await home._driver.run(lambda client: client.flush(collection_of(MODEL)))
    assert 1 == await home.erase_before({scope_key("tenant", "ada"): 2})
    assert [1] == seqs(await home.search(MODEL, Scope("tenant"), QUERY, 10))
    await home.put(MODEL, [await said(store, BOB, 2, (1, 0, 0, 0))])
    await home.close()
    assert [] == files_with(tmp_path, "adas-chat")
    assert files_with(tmp_path, "bobs-chat")
    again = open_vectors(url, store)
    assert [1, 2] == seqs(await again.search(MODEL, Scope("tenant", "bob"), QUERY, 10))
    await again.close()


@pytest.mark.parametrize("dropped", [False, True], ids=["while copying", "behind the drop"])
async def test_a_rewriting_that_was_cut_short_is_seen_to(store, url, dropped):
    """By a process that died: the old collection counts while it is there, else the new one, which is complete then."""
    home = open_vectors(url, store)
    await put(store, home, ADA, BOB)
    name = collection_of(MODEL)

    def cut(client):
        if dropped:
            client.rename_collection(name, f"{name}{REWRITTEN}")
        else:
            home._rewriter(client).create(f"{name}{REWRITTEN}", MODEL)

    await home._driver.run(cut)
    await home.close()
    again = open_vectors(url, store)
    assert [1, 1] == seqs(await again.search(MODEL, Scope("tenant"), QUERY, 10))
    assert 1 == await again.erase_before({scope_key("tenant", "ada"): 2})
    assert [name] == await again._driver.run(lambda client: client.list_collections())
    await again.close()


#: Erases a user while Milvus is away, says what the receipt says, and dies as by `kill -9`.
DYING = """
import asyncio, json, os, signal, sys
from pagefile import Memory, Settings
from pagefile.settings import EmbedderSettings
from pagefile.testing import HashingEmbedder
async def main():
    settings = Settings(embedder=EmbedderSettings(name="none"))
    async with Memory.open(sys.argv[1], settings=settings, embedder=HashingEmbedder(), vectors=sys.argv[2]) as memory:
        receipt = await memory.forget(user_id="ada")
        print(json.dumps(receipt.pending), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


async def test_a_process_that_died_leaves_the_rest_to_the_next(tmp_path, url):
    """Erased while Milvus was away, by a process that was then killed: who finds Milvus back finishes it."""
    database = f"sqlite:///{tmp_path}/a.db"

    def opened():
        return Memory.open(database, settings=PLAIN, embedder=HashingEmbedder(), vectors=url)

    async with opened() as memory:
        for user in ("ada", "bob"):
            chat = memory.conversation(f"{user}s-chat", user_id=user)
            await chat.record(f"{user} likes hiking", "Noted.")
        await memory.settle()
    away = f"milvus://127.0.0.1:{free_port()}"
    died = subprocess.run([sys.executable, "-c", DYING, database, away], capture_output=True, check=False)
    assert -signal.SIGKILL == died.returncode, died.stderr
    assert ["milvus" in one for one in json.loads(died.stdout)] == [True]
    assert files_with(tmp_path / "vectors.db", "adas-chat")
    async with opened() as memory:
        assert {"milvus": 2} == (await memory.describe())["erasures_owed"]
        assert [] == await memory.recall("hiking", user_id="ada")
        await memory.settle()
        assert {} == (await memory.describe())["erasures_owed"]
        assert 1 == len(await memory.recall("hiking", user_id="bob"))
    assert [] == files_with(tmp_path, "adas-chat")
