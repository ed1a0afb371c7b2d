"""Databases that were damaged, deleted, copied or upgraded, and what they hold after an erasure."""

import contextlib
import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import apsw
import numpy as np
import pytest

from pagefile import Memory, PagefileError, Scope
from pagefile.ports import Embedder
from pagefile.standalone import AgentApp
from pagefile.testing.fakes import InMemorySessions
from tests.acceptance.cli_calling import pagefile
from tests.acceptance.http_serving import serving
from tests.findings.marks import finding, load
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer

from .looking import PLAIN, files_with, given

ROOT = Path(__file__).resolve().parents[3]
SCHEMA_1 = Path(__file__).with_name("schema_1.sql").read_text(encoding="utf-8")


# -- damage ------------------------------------------------------------------------------------------------------------


async def filled(path):
    async with Memory.open(f"sqlite:///{path}", settings=PLAIN) as memory:
        for number in range(10):
            for name in ("sick", "well"):
                chat = memory.conversation(name, user_id="ada")
                await chat.record(f"turn {number} in {name}", "fine")


@pytest.fixture
def damaged(tmp_path):
    """A database in which one byte of one turn is not UTF-8."""
    path = tmp_path / "a.db"
    anyio.run(filled, path)
    whole = path.read_bytes()
    given(b"turn 3 in sick" in whole, "the turn can be found in the file")
    path.write_bytes(whole.replace(b"turn 3 in sick", b"turn 3 in \xffick"))
    return path


def damaged_run(damaged, *arguments):
    """What a command says about a damaged database; a traceback is what must not be."""
    try:
        return pagefile(*arguments, "--db", f"sqlite:///{damaged}")
    except Exception as error:
        raise AssertionError(f"pagefile {arguments[0]} ended with a traceback: {error!r}") from error


@finding("security-F8")
def test_the_verifier_names_what_is_damaged(damaged):
    """`pagefile verify --full` finds the turn that cannot be read, and says in which conversation it stands."""
    verified = damaged_run(damaged, "verify", "--full")
    assert 1 == verified.code
    assert "sick" in verified.out + verified.err


@finding("security-F8")
def test_an_export_names_what_is_damaged(damaged, tmp_path):
    """`pagefile export` says which conversation cannot be read whole; if it writes a file, everything else is in it."""
    file = tmp_path / "all.jsonl"
    exported = damaged_run(damaged, "export", str(file))
    assert "sick" in exported.out + exported.err
    lines = file.read_text(encoding="utf-8") if file.exists() else None
    assert lines is None or 10 == sum(f"turn {number} in well" in lines for number in range(10))
    assert lines is None or 9 == sum(f"turn {number} in sick" in lines for number in range(10))


@finding("security-F8")
def test_the_doctor_does_not_call_a_damaged_database_well(damaged):
    """`pagefile doctor` does not say that all is well with a database that has a damaged turn."""
    assert "All is well" not in damaged_run(damaged, "doctor").out


TURNS = ("GET", "/v1/turns?conversation_id=sick&user_id=ada", None)
RECALL = ("POST", "/v1/recall", {"user_id": "ada", "query": "turn in well"})
WINDOW = ("POST", "/v1/context", {"conversation_id": "sick", "user_id": "ada", "query": "Hello"})


@pytest.mark.parametrize("request_", [TURNS, RECALL, WINDOW], ids=["turns", "recall", "window"])
@finding("security-F8")
async def test_one_damaged_turn_is_no_internal_error(damaged, request_):
    """The service answers about a damaged conversation, or says that it is damaged; it does not fail without a word."""
    method, path, body = request_
    async with serving(replace(PLAIN, url=f"sqlite:///{damaged}")) as client:
        given(404 != (await client.request(method, path, json=body)).status_code, "there is such a route")
        answer = await client.request(method, path, json=body)
    assert answer.is_success or answer.json()["code"] != "internal"


DAMAGE = {
    "steps": "UPDATE ai_message SET steps = '[{' WHERE query = 'turn 3 in sick'",
    "time": "UPDATE ai_message SET create_time = '2026-13-99' WHERE query = 'turn 3 in sick'",
    "kind": "UPDATE ai_message SET metadata = '{' WHERE query = 'turn 3 in sick'",
    "labels": "UPDATE conversations SET updated = 'yesterday' WHERE conversation_id = 'sick'",
    "session": "UPDATE sessions SET value = '{' WHERE conversation_id = 'sick'",
}


@pytest.mark.parametrize("damage", DAMAGE)
@finding("security-F8")
async def test_a_damaged_row_is_survived_and_named(tmp_path, damage):
    """The other conversation is read, written and recalled as before; `verify`, `export` and `doctor` say what is damaged."""
    path = tmp_path / "a.db"
    await filled(path)
    connection = apsw.Connection(str(path))
    connection.execute(DAMAGE[damage])
    given(connection.changes(), "there is such a row")
    connection.close()
    well = {"conversation_id": "well", "user_id": "ada"}
    async with serving(replace(PLAIN, url=f"sqlite:///{path}")) as client:
        assert 10 == len((await client.get("/v1/turns", params=well)).json()["items"])
        assert (await client.post("/v1/recall", json={"user_id": "ada", "query": "turn 7 well"})).json()[
            "items"
        ]
        assert (await client.post("/v1/context", json=well | {"query": "Hello"})).is_success
        assert (await client.post("/v1/turns", json=well | {"user": "more", "assistant": "yes"})).is_success
        for method, at, body in (TURNS, WINDOW):
            answer = await client.request(method, at, json=body)
            assert answer.is_success or answer.json()["code"] == "store-corrupt", answer.text
    verified = await anyio.to_thread.run_sync(damaged_run, path, "verify", "--full")
    assert (1, True) == (verified.code, "sick" in verified.out)
    file = tmp_path / "all.jsonl"
    exported = await anyio.to_thread.run_sync(damaged_run, path, "export", str(file))
    assert (1, True) == (exported.code, "sick" in exported.err)
    assert 10 == sum(f"turn {number} in well" in file.read_text(encoding="utf-8") for number in range(10))
    examined = await anyio.to_thread.run_sync(damaged_run, path, "doctor")
    assert (1, True) == (examined.code, "sick" in examined.out)


@load
@finding("security-F8")
def test_the_verifier_survives_any_byte(tmp_path, counted):
    """Whichever byte of a database is flipped, `verify --full`, `export` and `doctor` end with a report and no traceback."""
    path, chance, tries, wrong = tmp_path / "a.db", random.Random(7), 60, 0
    anyio.run(filled, path)
    whole = path.read_bytes()
    # Most of a small file is empty, and damage to the header is told by SQLite itself.
    written = [place for place in range(4096, len(whole)) if whole[place]]
    for number, place in enumerate(chance.sample(written, tries)):
        flipped = tmp_path / f"{number}.db"
        flipped.write_bytes(whole[:place] + bytes([whole[place] ^ 0x80]) + whole[place + 1 :])
        for arguments in (("verify", "--full"), ("export", str(tmp_path / "all.jsonl")), ("doctor",)):
            try:
                damaged_run(flipped, *arguments)
            except AssertionError:
                wrong += 1
    counted(tries=tries, wrong=wrong)
    assert 0 == wrong


@finding("security-F12")
async def test_a_deleted_database_acknowledges_nothing(tmp_path):
    """Once the file of the database is gone, the service refuses to write and is not ready, for nothing would be kept."""
    turn = {"conversation_id": "chat", "user_id": "ada", "user": "Hello", "assistant": "Hi"}
    settings = replace(PLAIN, url=f"sqlite:///{tmp_path}/a.db")
    async with serving(settings) as client:
        given((await client.post("/v1/turns", json=turn)).is_success, "a turn is written")
        for path in tmp_path.glob("a.db*"):
            path.unlink()
        written = [(await client.post("/v1/turns", json=turn)).is_success for _ in range(3)]
        ready = await client.get("/readyz")
    async with serving(settings) as client:
        kept = await client.get("/v1/turns", params={"conversation_id": "chat", "user_id": "ada"})
    there = len(kept.json()["items"]) if kept.is_success else 0
    assert there >= sum(written)
    assert any(written) or 503 == ready.status_code


# -- copies ------------------------------------------------------------------------------------------------------------


@finding("security-F11")
async def test_an_import_drops_no_fact(tmp_path):
    """Every fact of an export is there after the import, also where the file has no journal of how facts changed."""
    async with Memory.open("memory://", settings=PLAIN) as memory:
        await memory.remember("Likes tea", user_id="ada")
        await memory.export(tmp_path / "one.jsonl")
    head, *rows = (tmp_path / "one.jsonl").read_text(encoding="utf-8").splitlines()
    pattern = next(row for row in map(json.loads, rows) if row["type"] == "fact")
    facts = [
        pattern | {"id": f"fact {number}", "user_id": f"user {number // 150}", "text": f"Likes tea {number}"}
        for number in range(1200)
    ]
    (tmp_path / "many.jsonl").write_text("\n".join([head, *map(json.dumps, facts)]) + "\n")
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=PLAIN) as memory:
        counts = await memory.import_(tmp_path / "many.jsonl")
        kept = {fact.text for number in range(8) for fact in await memory.facts(f"user {number}")}
    assert set() == {fact["text"] for fact in facts} - kept
    assert 1200 == counts["fact"]


# -- erasure in the other stores ---------------------------------------------------------------------------------------


class Same(Embedder):
    """The same vector for every text, without loading an encoder."""

    name = "same"
    dimension = 8

    async def embed(self, texts):
        return np.full((len(texts), self.dimension), self.dimension**-0.5, dtype=np.float32)


async def told_and_erased(memory):
    chat = memory.conversation("chat", user_id="ada")
    for number in range(30):
        await chat.record(f"ERASED hiking {number}", "ok", metadata={"about": "ERASED"})
        await memory.conversation("bobs", user_id="bob").record(f"KEPT {number}", "ok")
    await memory.settle()
    await memory.forget(user_id="ada")


@finding("security-F10")
async def test_milvus_holds_nothing_of_an_erased_user(tmp_path):
    """After an erasure the files of Milvus in the process hold no words of the erased user."""
    pytest.importorskip("milvus_lite")
    place = f"milvus:///{tmp_path}/vectors.db"
    url = f"sqlite:///{tmp_path}/a.db"
    async with Memory.open(url, settings=PLAIN, embedder=Same(), vectors=place) as memory:
        await told_and_erased(memory)
    assert [] == files_with(tmp_path, "ERASED")


@finding("security-F10")
async def test_a_user_is_erased_while_milvus_is_away(tmp_path):
    """While Milvus is away an erasure still removes a user from every table, as the documents say."""
    url, away = f"sqlite:///{tmp_path}/a.db", f"milvus://127.0.0.1:{free_port()}/vectors"
    async with Memory.open(url, settings=PLAIN) as memory:
        await memory.conversation("chat", user_id="ada").record("ERASED words", "ok")
    async with Memory.open(url, settings=PLAIN, embedder=Same(), vectors=away) as memory:
        try:
            await memory.forget(user_id="ada")
        except PagefileError as error:
            told = str(error)
        else:
            told = ""
    async with Memory.open(url, settings=PLAIN) as memory:
        left = await memory.conversation("chat", user_id="ada").turns()
    assert [] == list(left), told


@finding("security-F10")
async def test_postgresql_holds_nothing_after_the_documented_command():
    """Once the command that SECURITY.md names has run, the tables on PostgreSQL's disk hold no words of an erased user."""
    given("pagefile forget --scrub" in (ROOT / "SECURITY.md").read_text(encoding="utf-8"), "it is documented")
    with PostgresServer() as server:
        url = server.url(schema="vacuumed")
        async with Memory.open(url, settings=PLAIN) as memory:
            await told_and_erased(memory)
        scrub = ("forget", "--user-id", "ada", "--scrub", "--yes", "--json", "--db", url)
        done = await anyio.to_thread.run_sync(pagefile, *scrub)
        left = files_with(server.folder / "data" / "base", "ERASED")
        kept = files_with(server.folder / "data" / "base", "KEPT")
    assert any("write-ahead log" in one for one in done.json["pending"])
    given(kept, "words can be found in the files")
    assert [] == left


@finding("security-F10")
def test_an_upgraded_database_holds_nothing_of_an_erased_user(tmp_path):
    """A database of the first schema that was upgraded holds no words of a user who was then erased."""
    path = tmp_path / "a.db"
    connection = apsw.Connection(str(path))
    connection.pragma("secure_delete", True)
    connection.execute(SCHEMA_1)
    connection.pragma("application_id", 0x5047464C)
    connection.pragma("user_version", 1)
    now = "2026-01-01T00:00:00.000000Z"
    blobs = [(f"hash {number}", "raw", f"ERASED text {number}".encode()) for number in range(300)]
    connection.executemany("INSERT INTO blobs VALUES (?, ?, ?)", blobs)
    connection.executemany(
        "INSERT INTO tool_result_archive (uuid, conversation_id, tool_name, tool_input, query_summary, result_summary,"
        " result_length, sources, created_at, tenant, user_id, content_hash, blob, tokens, counter)"
        f" VALUES (?, 'chat', 'search', '{{}}', 'ERASED', 'ERASED', 12, '[]', '{now}', 'default', 'ada', ?1, ?1, 1,"
        " 'o200k_base')",
        [(name,) for name, _, _ in blobs],
    )
    connection.execute(
        "INSERT INTO conversations (tenant, conversation_id, user_id, created, updated)"
        f" VALUES ('default', 'chat', 'ada', '{now}', '{now}')"
    )
    connection.close()
    done = pagefile("forget", "--user-id", "ada", "--yes", "--db", f"sqlite:///{path}")
    given(0 == done.code, done.err)
    assert [] == files_with(tmp_path, "ERASED")


class Today:
    """The time of day."""

    def now(self):
        return datetime.now(UTC)


class Reread(InMemorySessions):
    """A cache of sessions whose conversation somebody reads at once, whenever it was dropped."""

    reader = None

    async def drop(self, scope):
        await super().drop(scope)
        await self._read(scope)

    async def erase(self, scope, *, version):
        done = await super().erase(scope, version=version)
        await self._read(scope)
        return done

    async def _read(self, scope):
        if self.reader is not None:
            with contextlib.suppress(PagefileError):
                await self.reader.get_short_memory(scope.conversation or "chat")


@finding("security-F10")
async def test_no_session_of_an_erased_user_stays_in_the_cache(tmp_path):
    """A session that is read while its user is being erased is not in the cache of sessions afterwards."""
    cache, scope = Reread(Today()), Scope("default", "ada", "chat")
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=PLAIN, sessions=cache) as memory:
        app = AgentApp(memory)
        await memory.conversation("chat", user_id="ada").record("Hello", "Hi")
        await app.get_short_memory("chat")
        given(await cache.get(scope), "sessions are cached at all")
        cache.reader = app
        await memory.forget(user_id="ada")
        left = await cache.get(scope)
    assert left is None
