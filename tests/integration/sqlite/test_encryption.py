"""A SQLite database with a key: nothing that was said is readable in its files. Without a SQLite that encrypts, it is refused."""

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from pagefile import Memory, Settings
from pagefile.errors import SettingsError, StoreCorruptError
from pagefile.settings import EmbedderSettings

pytestmark = pytest.mark.anyio

needs_cipher = pytest.mark.skipif(
    not hasattr(apsw, "mc_version"),
    reason="the SQLite here does not encrypt: `make encrypted` brings one that does",
)
SECRET = "opal-17 is the word at the gate"
PLAIN = EmbedderSettings(name="none")


@pytest.fixture
def key(tmp_path):
    file = tmp_path / "key"
    file.write_text(os.urandom(32).hex() + "\n")
    return str(file)


def settings(folder, key, name="memory.db"):
    return Settings(url=f"sqlite:///{folder}/{name}", encryption_key_file=key, embedder=PLAIN)


async def said(given):
    async with Memory.open(settings=given) as memory:
        return [turn.user for turn in await memory.conversation("c").turns()]


async def say(given, folder):
    """Record the secret, and read the files as they are meanwhile, the write-ahead log included."""
    async with Memory.open(settings=given) as memory:
        await memory.conversation("c").record(SECRET, "Noted.")
        return b"".join(file.read_bytes() for file in Path(folder).glob("*.db*"))


def pagefile(*arguments, key=None):
    """A command in a process of its own."""
    named = {} if key is None else {"PAGEFILE_ENCRYPTION_KEY_FILE": key}
    environment = {**os.environ, "PAGEFILE_EMBEDDER__NAME": "none", **named}
    return subprocess.run(
        [sys.executable, "-m", "pagefile", *map(str, arguments)],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
    )


@needs_cipher
async def test_nothing_said_is_in_the_files(tmp_path, key):
    """Neither in the database nor in its log, while it is open; the same key opens it again."""
    assert b"opal-17" not in await say(settings(tmp_path, key), tmp_path)
    assert [SECRET] == await said(settings(tmp_path, key))
    assert b"SQLite format 3" not in (tmp_path / "memory.db").read_bytes()


@needs_cipher
async def test_other_keys_open_nothing(tmp_path, key):
    """Neither another one nor none, and nothing is changed by trying; a passphrase is a key, too."""
    await say(settings(tmp_path, key), tmp_path)
    before = (tmp_path / "memory.db").read_bytes()
    (tmp_path / "other").write_text("correct horse battery staple")
    for wrong in (str(tmp_path / "other"), None):
        with pytest.raises(StoreCorruptError, match="encryption_key_file"):
            await said(settings(tmp_path, wrong))
    assert before == (tmp_path / "memory.db").read_bytes()
    await say(settings(tmp_path, str(tmp_path / "other"), "own.db"), tmp_path)
    assert [SECRET] == await said(settings(tmp_path, str(tmp_path / "other"), "own.db"))


@needs_cipher
async def test_an_existing_database_is_encrypted_by_its_backup(tmp_path, key):
    """A database without a key is refused with one; `pagefile backup` makes the encrypted copy, also of an encrypted one."""
    await say(settings(tmp_path, None), tmp_path)
    with pytest.raises(SettingsError, match="pagefile backup"):
        await said(settings(tmp_path, key))
    for source, copy in (("memory.db", "first.db"), ("first.db", "second.db")):
        done = pagefile("--db", tmp_path / source, "backup", tmp_path / copy, key=key)
        assert 0 == done.returncode, done.stderr
        assert b"opal-17" not in (tmp_path / copy).read_bytes()
        assert [SECRET] == await said(settings(tmp_path, key, copy))
    assert 0 == pagefile("--db", tmp_path / "second.db", "verify", "--full", key=key).returncode


@pytest.mark.skipif(hasattr(apsw, "mc_version"), reason="the SQLite here encrypts")
async def test_without_such_a_sqlite_it_is_refused(tmp_path, key):
    """A plain SQLite would ignore the key and store everything as it is."""
    with pytest.raises(SettingsError, match="apsw-sqlite3mc"):
        await said(settings(tmp_path, key))
    assert not list(tmp_path.glob("*.db*")) or b"opal" not in (tmp_path / "memory.db").read_bytes()
    doctor = pagefile("doctor", "--db", tmp_path / "other.db", key=key)
    assert 1 == doctor.returncode
    assert "apsw-sqlite3mc" in doctor.stdout


@pytest.mark.parametrize(("text", "why"), [("short", "5 characters"), (None, "cannot be read")])
async def test_a_key_that_is_none(tmp_path, text, why):
    """A key that is too short, or is not there."""
    if text is not None:
        (tmp_path / "key").write_text(text)
    with pytest.raises(SettingsError, match=why):
        await said(settings(tmp_path, str(tmp_path / "key")))
