"""Files that are too new, broken, foreign, locked or not to be written: each says what to do, and none is harmed."""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import apsw
import pytest

from pagefile.errors import (
    SchemaVersionError,
    SettingsError,
    StoreCorruptError,
    StoreFullError,
    StoreUnavailableError,
)
from pagefile.ports import ConversationQuery, EntryQuery, Store
from pagefile.records import Scope
from pagefile.stores import InMemoryStore, SqliteStore, StoreOptions, open_store
from pagefile.stores.sqlite import driver
from pagefile.stores.sqlite.database import migrations
from pagefile.testing.drafts import CHAT, done, view

from .schema_1 import write_schema_1


async def filled(path, count=3):
    """A closed database with some turns."""
    store = await open_store(f"sqlite:///{path}")
    for number in range(count):
        await store.log.append(done(f"t{number}", "text " * 100))
    await store.close()


async def test_a_newer_database_is_refused(path):
    """It says both versions and to upgrade, and leaves the file as it was."""
    await filled(path)
    with apsw.Connection(str(path)) as connection:
        connection.pragma("user_version", 99)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(
        SchemaVersionError, match=rf"version 99.* knows {len(migrations())}.*pip install --upgrade pagefile"
    ):
        await open_store(f"sqlite:///{path}")
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused(path):
    """And left untouched."""
    path.write_text("Dear diary, " * 500)
    with pytest.raises(StoreCorruptError, match=r"not a SQLite database.*name another"):
        await open_store(f"sqlite:///{path}")
    assert path.read_text() == "Dear diary, " * 500
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_a_damaged_database_is_named_so(path):
    """Where reading hits the damage, the error says what to do."""
    await filled(path, 50)
    content = bytearray(path.read_bytes())
    content[4096 * 2 :] = bytes(b ^ 0x5A for b in content[4096 * 2 :])
    path.write_bytes(content)
    with pytest.raises(StoreCorruptError, match="restore a backup"):
        store = await open_store(f"sqlite:///{path}")
        try:
            await store.reader.entries(EntryQuery(CHAT))
        finally:
            await store.close()


@pytest.mark.parametrize("wal", [False, True])
async def test_somebody_else_s_database_is_left_alone(path, wal):
    """A SQLite database of another program is refused and untouched."""
    connection = apsw.Connection(str(path))
    if wal:
        connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE contacts (name); INSERT INTO contacts VALUES ('Grace')")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreCorruptError, match="not one of Pagefile's"):
        await open_store(f"sqlite:///{path}")
    assert path.read_bytes() == before


async def test_an_empty_file_becomes_a_database(path):
    """As a file that is not there does."""
    path.touch()
    await filled(path)
    assert path.read_bytes().startswith(b"SQLite format 3")


async def test_a_missing_directory_is_named(path):
    """It says which, and how to make it."""
    with pytest.raises(StoreUnavailableError, match="mkdir -p"):
        await open_store(f"sqlite:///{path.parent}/no/such/memory.db")


READ = """
import asyncio, os, sys, tempfile
from pagefile.errors import StoreUnavailableError
from pagefile.ports import ConversationQuery
from pagefile.records import Scope
from pagefile.stores import open_store
from pagefile.testing.drafts import done


async def warmed():
    # Everything is imported and read while this process may still read it.
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{folder}/warm.db")
        await store.log.append(done("a"))
        await store.close()


async def main(path):
    store = await open_store(f"sqlite:///{path}")
    heads = await store.reader.heads(ConversationQuery(Scope("tenant")))
    print("turns", heads[0].turns, (await store.describe())["read_only"])
    try:
        await store.log.append(done("more"))
    except StoreUnavailableError as error:
        print("refused", error)
    await store.close()


asyncio.run(warmed())
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
asyncio.run(main(sys.argv[1]))
"""


def read_as_nobody(path):
    """Read in a process to which permissions apply: they do not bind root."""
    command = [sys.executable, "-c", READ, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")


@pytest.fixture
def open_path():
    """A file in a folder that every user can reach, as pytest's own folders are not."""
    folder = Path(tempfile.mkdtemp(prefix="pagefile-"))
    folder.chmod(0o755)
    yield folder / "memory.db"
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("folder_mode", [0o777, 0o555], ids=["file", "directory"])
async def test_a_read_only_database_can_be_read(open_path, folder_mode):
    """A write says that permission is missing."""
    await filled(open_path)
    open_path.chmod(0o444)
    open_path.parent.chmod(folder_mode)
    result = read_as_nobody(open_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("turns 3 True\nrefused")
    assert "write permission" in result.stdout


async def test_an_older_database_that_cannot_be_written_is_refused(open_path):
    """It cannot be migrated: it says both versions and what to do, and is left as it was."""
    write_schema_1(open_path)
    open_path.chmod(0o444)
    before = open_path.read_bytes()
    result = read_as_nobody(open_path)
    assert result.returncode == 1
    assert "SchemaVersionError" in result.stderr
    assert f"version 1 and must be brought to {len(migrations())}" in result.stderr
    assert open_path.read_bytes() == before


async def test_a_database_in_a_read_only_directory_that_is_in_use_is_unavailable(open_path):
    """What another process has not folded into the file yet would be missed, so it is not read at all."""
    store = await open_store(f"sqlite:///{open_path}")
    await store.log.append(done("a"))
    for file in open_path.parent.iterdir():
        file.chmod(0o400)
    open_path.chmod(0o444)
    open_path.parent.chmod(0o555)
    result = read_as_nobody(open_path)
    await store.close()
    assert result.returncode == 1
    assert "StoreUnavailableError" in result.stderr
    assert "write permission" in result.stderr


async def test_a_new_database_in_a_read_only_directory_is_unavailable(open_path):
    """It says that the directory must be writable."""
    open_path.parent.chmod(0o555)
    result = read_as_nobody(open_path)
    assert result.returncode == 1
    assert "StoreUnavailableError" in result.stderr
    assert "write there" in result.stderr


async def test_a_full_disk_loses_nothing(store: Store):
    """`StoreFullError` for what did not fit; what was there before stays, and small things fit again later."""
    await store.log.append(done("a"))
    writer = store._writer
    pages = await writer.run(lambda connection: connection.pragma("page_count"))
    await writer.run(lambda connection: connection.pragma("max_page_count", pages + 2))
    with pytest.raises(StoreFullError, match="free some space"):
        await store.log.append(done("b", "x" * 1_000_000))
    assert [entry.id for entry in await store.reader.entries(EntryQuery(CHAT))] == ["a"]
    assert (await store.reader.view(view())).head.last_seq == 1
    await writer.run(lambda connection: connection.pragma("max_page_count", 1_000_000))
    assert (await store.log.append(done("b", "x" * 1_000_000))).seq == 2


async def test_a_database_locked_for_too_long_is_unavailable(path, monkeypatch):
    """A writer waits, then says who is to blame."""
    monkeypatch.setattr(driver, "BUSY_TIMEOUT_S", 0.05)
    store = await open_store(f"sqlite:///{path}")
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="another process"):
        await store.log.append(done("a"))
    assert (await store.reader.view(view())).head.last_seq == 0
    other.execute("ROLLBACK")
    other.close()
    assert (await store.log.append(done("a"))).seq == 1
    await store.close()


async def test_a_writer_notices_soon_that_another_process_is_done(path):
    """SQLite's own wait would sleep until 328 ms after its beginning, whenever the other one ends after 228."""
    store = await open_store(f"sqlite:///{path}")
    await store.log.append(done("a"))
    other = apsw.Connection(str(path))
    noticed = []
    for number in range(5):
        other.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as group:
            group.start_soon(store.log.append, done(f"b{number}"))
            await anyio.sleep(0.24)
            other.execute("ROLLBACK")
            released = time.monotonic()
        noticed.append(time.monotonic() - released)
    other.close()
    await store.close()
    assert min(noticed) < 0.05


async def test_urls_name_stores(tmp_path, monkeypatch):
    """Relative and absolute files, and nothing at all for what lives in memory only."""
    monkeypatch.chdir(tmp_path)
    for url, kind, file in (
        ("sqlite:///relative.db", SqliteStore, tmp_path / "relative.db"),
        (f"sqlite:///{tmp_path}/a%20b%23.db", SqliteStore, tmp_path / "a b#.db"),
        ("sqlite://", InMemoryStore, None),
        ("sqlite:///:memory:", InMemoryStore, None),
        ("memory://", InMemoryStore, None),
    ):
        store = await open_store(url)
        assert type(store) is kind
        assert file is None or Path(file).exists()
        assert await store.reader.heads(ConversationQuery(Scope("tenant"))) == []
        await store.close()


@pytest.mark.parametrize("url", ["nonsense", "mysql://me:secret@host/db", "sqlite://host/file.db", ""])
async def test_a_url_nobody_knows_is_refused(url):
    """It says what is known, and no password."""
    with pytest.raises(SettingsError, match=r"sqlite:///") as caught:
        await open_store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("options", [{"synchronous": "off"}, {"readers": 0}])
def test_options_are_checked(options):
    """Before anything is opened."""
    with pytest.raises(SettingsError):
        StoreOptions(**options)
