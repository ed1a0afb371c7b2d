"""Verbs and their statements: one that fails ends there and then, and no name is said twice."""

from contextlib import suppress
from threading import Lock

import pytest

from pagefile.stores.postgres import database
from pagefile.stores.sql import plays
from pagefile.stores.sql.texts import statement_texts
from pagefile.stores.sqlite import player


class Broken:
    """A connection on which every statement fails."""

    def execute(self, *_):
        raise ConnectionError

    async def row(self, *_):
        raise ConnectionError


def locking(lock):
    with lock:
        yield "row", "owner", {"tenant": "t", "conversation": "c", "user": None}


async def by_sqlite(play):
    player.played(Broken(), play)


async def by_postgres(play):
    await database.played(Broken(), play)


async def by_any(play):
    plays.played(play, Broken().execute)


@pytest.mark.parametrize("run", [by_sqlite, by_postgres, by_any])
async def test_a_verb_whose_statement_fails_lets_go_of_its_lock(run):
    """While somebody still has the error in hand, as a worker thread has."""
    lock = Lock()
    errors = []
    with suppress(ConnectionError):
        try:
            await run(locking(lock))
        except ConnectionError as error:
            errors.append(error)
            raise
    assert errors
    assert not lock.locked()


def test_a_name_that_is_said_twice_is_refused(tmp_path):
    """The second text would silently replace the first for the statements of all files."""
    (tmp_path / "a.sql").write_text("-- fragment: asked\nx = :x\n\n-- name: one\nSELECT 1 WHERE {asked}\n")
    (tmp_path / "b.sql").write_text("-- fragment: asked\ny = :y\n")
    with pytest.raises(ValueError, match=r"b\.sql has the fragment 'asked'"):
        statement_texts("sqlite", tmp_path)
