"""Databases as every earlier schema left them come up with nothing lost, whoever is killed or comes at once."""

import json
import sqlite3
import subprocess
import sys

import anyio
import numpy as np
import pytest
from typer.testing import CliRunner

from pagefile.cli.app import app
from pagefile.errors import ErasedError
from pagefile.ports import EmbeddingModel, PageDraft
from pagefile.stores import open_store
from pagefile.stores.sqlite.database import migrations
from pagefile.testing.drafts import CHAT, done, page, view
from tests.integration.old_contents import OLD, OPENING, check_contents, check_whole
from tests.servers.forked import Forked, forking

SCHEMAS = range(1, len(migrations()))


def made(number, path):
    """The file as that schema left it."""
    connection = sqlite3.connect(path)
    connection.executescript((OLD / f"sqlite_{number}.sql").read_text(encoding="utf-8"))
    connection.execute("PRAGMA journal_mode = wal")
    connection.close()
    return f"sqlite:///{path}"


async def check(url, number):
    """Everything that was written is read."""
    store = await open_store(url)
    assert (await store.describe())["schema"] == len(migrations())
    await check_contents(store, number)
    await store.close()


def columns(path, statement):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("number", SCHEMAS)
async def test_everything_of_an_earlier_schema_is_there(tmp_path, number):
    """Read through the ports; the rows got what this schema adds, and the log goes on."""
    path = tmp_path / "old.db"
    url = made(number, path)
    await check(url, number)
    assert columns(
        path, "SELECT count(*) FROM ai_message WHERE kind = 'turn' AND status <> 'open' AND digest IS NULL"
    ) == [(0,)]
    assert columns(path, "SELECT count(*) FROM tool_result_archive WHERE digest IS NULL") == [(0,)]
    assert columns(path, "SELECT count(*) FROM facts WHERE digest IS NULL") == [(0,)]
    owners = columns(path, "SELECT conversation_id, owner FROM conversations ORDER BY 1")
    since_files = [("scan", "eve")] if number >= 8 else []
    assert owners == [("chat", "ada"), ("nobody", None), ("other", "bob"), *since_files]
    assert columns(path, "PRAGMA foreign_key_check") == []
    assert columns(path, "PRAGMA integrity_check") == [("ok",)]
    store = await open_store(url)
    assert (await store.log.append(done("new"))).seq == 6
    epoch = (await store.reader.view(view())).head.epoch
    await store.erase(CHAT)
    with pytest.raises(ErasedError):
        await store.pages.put(PageDraft(page("late").page, "the whole result", epoch=epoch))
    await store.close()


async def test_vectors_of_the_first_files_of_schema_3_get_their_owner(tmp_path):
    """Their table had no column for it, and is made again with everything that is in it."""
    path = tmp_path / "old.db"
    url = made(3, path)
    half = np.array([1, 0], "<f2").tobytes()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO episode_makers VALUES ('old/2', 'old', 2)")
    connection.execute(
        "INSERT INTO conversation_episodes (id, conversation_id, tenant, seq, maker, embedding, created_at)"
        " VALUES ('a', 'chat', 'tenant', 1, 'old/2', ?, 0)",
        [half],
    )
    connection.commit()
    connection.close()
    store = await open_store(url)
    near = await store.vectors().search(EmbeddingModel("old", 2), CHAT, np.array([1, 0], np.float32), 1)
    assert [hit.turn_id for hit in near] == ["a"]
    assert columns(path, "SELECT id, user_id FROM conversation_episodes") == [("a", "ada")]
    await store.erase(CHAT)
    assert columns(path, "SELECT count(*) FROM conversation_episodes") == [(0,)]
    await store.close()


@pytest.mark.parametrize("number", SCHEMAS)
async def test_an_earlier_schema_is_whole_and_works(tmp_path, number):
    """`verify` finds no damage, recall finds a turn, and an export holds every turn."""
    await check_whole(made(number, tmp_path / "old.db"), tmp_path / "out.jsonl")


#: Dies as by `kill -9` in the middle of the migration: behind the statements, before they are committed.
DYING = """
import os, signal, sys
from pagefile.stores.sqlite import database
def die():
    os.kill(os.getpid(), signal.SIGKILL)
database.fill_digests = die
"""


@pytest.mark.parametrize("number", SCHEMAS)
async def test_a_process_killed_in_the_middle_leaves_a_database_that_opens(tmp_path, number):
    """What was not committed is not there; the next one does it."""
    path = tmp_path / "old.db"
    url = made(number, path)
    with forking():
        died = subprocess.run([sys.executable, "-c", DYING + OPENING, url], check=False, capture_output=True)
    assert died.returncode == -9, died.stderr
    assert columns(path, "PRAGMA user_version") == [(len(migrations()) - 1,)]
    await check(url, number)


async def test_four_processes_at_once_upgrade_it_once(tmp_path):
    """Each finds the schema of today, and nothing is there twice."""
    path = tmp_path / "old.db"
    url = made(1, path)
    racers = [
        Forked([sys.executable, "-c", OPENING, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    told = [racer.communicate(timeout=120) for racer in racers]
    assert [(out.strip(), errors) for out, errors in told] == [(str(len(migrations())).encode(), b"")] * 4
    await check(url, 1)


def test_doctor_only_looks(tmp_path):
    """Whoever looks before an upgrade finds the schema, and has the database as it was."""
    path = tmp_path / "old.db"
    made(3, path)
    before = path.read_bytes()
    result = CliRunner().invoke(app, ["doctor", "--db", str(path), "--json"])
    assert result.exit_code == 0, result.output
    (found,) = [one for one in json.loads(result.output)["checks"] if one["name"] == "database"]
    assert (found["state"], f"schema 3, and this version wants {len(migrations())}" in found["found"]) == (
        "note",
        True,
    )
    assert "pagefile upgrade" in found["advice"]
    assert path.read_bytes() == before
    assert [path] == [file for file in tmp_path.iterdir() if not file.name.endswith(("-wal", "-shm"))]


class TestUpgrade:
    """`pagefile upgrade`."""

    def test_a_copy_is_made_before_anything_changes(self, tmp_path):
        """It has the old schema and everything in it; the database has the new one."""
        path = tmp_path / "old.db"
        made(3, path)
        result = CliRunner().invoke(app, ["upgrade", "--db", str(path)])
        assert result.exit_code == 0, result.output
        assert f"at schema {len(migrations())} now" in result.output.replace("\n", " ")
        assert columns(path, "PRAGMA user_version") == [(len(migrations()),)]
        copy = tmp_path / "old.db.schema-3"
        assert columns(copy, "PRAGMA user_version") == [(3,)]
        assert columns(copy, "SELECT count(*) FROM ai_message") == [(9,)]

    def test_the_copy_opens_like_any_other(self, tmp_path):
        """Should the new version not do, it is all there."""
        path, copy = tmp_path / "old.db", tmp_path / "copy.db"
        made(7, path)
        result = CliRunner().invoke(app, ["upgrade", "--db", str(path), "--backup", str(copy), "--json"])
        assert json.loads(result.stdout) == {"from": "7", "to": str(len(migrations())), "backup": str(copy)}
        anyio.run(check, f"sqlite:///{copy}", 7)

    def test_a_file_that_is_there_is_not_written_over(self, tmp_path):
        """And nothing is upgraded without the copy that was asked for."""
        path = tmp_path / "old.db"
        made(2, path)
        (tmp_path / "mine").write_text("mine")
        result = CliRunner().invoke(app, ["upgrade", "--db", str(path), "--backup", str(tmp_path / "mine")])
        assert result.exit_code == 1
        assert (tmp_path / "mine").read_text() == "mine"
        assert columns(path, "PRAGMA user_version") == [(2,)]

    def test_without_a_backup_and_twice(self, tmp_path):
        """The second time there is nothing to do."""
        path = tmp_path / "old.db"
        made(6, path)
        assert CliRunner().invoke(app, ["upgrade", "--db", str(path), "--no-backup"]).exit_code == 0
        again = CliRunner().invoke(app, ["upgrade", "--db", str(path)])
        assert "nothing to do" in again.output
        assert [file.name for file in tmp_path.iterdir() if "schema" in file.name] == []

    def test_a_database_that_is_not_there_is_not_made(self, tmp_path):
        """The path was mistyped."""
        result = CliRunner().invoke(app, ["upgrade", "--db", str(tmp_path / "none.db")])
        assert result.exit_code == 3
        assert not (tmp_path / "none.db").exists()
