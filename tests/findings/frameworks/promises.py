"""Small things that several tests here need."""

import re
import subprocess
import sys
from contextlib import contextmanager

#: What a log may call a picture that it does not keep.
PICTURE = re.compile("image|picture|photo|binary|png", re.IGNORECASE)

#: A tool result that is long enough to be paged out, with one line worth asking for.
REPORT = "\n".join(
    [*["A line of the report."] * 300, "The vault code word is HELIOTROPE.", *["More of it."] * 100]
)

_LOCKING = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], timeout=5, isolation_level=None)
held.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def promised(what):
    """Whatever is raised inside breaks a promise, whoever raises it."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"{what}, but: {error!r}") from error


@contextmanager
def locked(database):
    """Another process holds the database's lock; within one process two SQLite libraries would not see each other's."""
    command = [sys.executable, "-c", _LOCKING, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        try:
            assert b"locked\n" == holder.stdout.readline()
            yield
        finally:
            holder.stdin.close()
            holder.wait()


def deleted(database):
    """Take the database's files away while it is open."""
    for file in database.parent.iterdir():
        file.unlink()


def words(messages):
    """All that a window's messages say, in one text."""
    return "\n".join(str(message["content"]) for message in messages)


def exchanged(turns):
    """What was asked and answered in each turn."""
    return [(turn.user, (turn.assistant or "").strip()) for turn in turns]
