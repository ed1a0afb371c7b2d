"""Images and files of turns are looked at as pages are: they are there, and are what came."""

import json
import sqlite3

import asyncpg
import pytest
from anyio import to_thread

from pagefile import Memory
from pagefile.stores.postgres.address import Place
from tests.acceptance.cli_calling import pagefile
from tests.integration.postgres.serving import fresh_url

from .damage import opened, told, verified

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
TURN = [
    {"role": "user", "content": [PICTURE, {"type": "text", "text": "What is this?"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
]
CHANGED = "UPDATE blobs SET codec = 'raw', data = {other}"
BROKEN = "UPDATE blobs SET codec = 'zlib', data = {other}"
UNNAMED = "DELETE FROM attachments"
DAMAGES = [(CHANGED, "media-bytes"), (BROKEN, "media-bytes"), (UNNAMED, "media-ref")]


async def shown(url):
    """A database with one picture in it, in which all is well."""
    async with opened(url) as memory:
        await memory.conversation("c", user_id="u").record(messages=TURN, id="t")
    report = await verified(url)
    assert (report.whole, report.checked["attachments"]) == (True, 1)


def damaged(report):
    return [finding for finding in told(report) if finding[0] == "damage"]


@pytest.mark.parametrize(("statement", "kind"), DAMAGES)
async def test_a_changed_picture_is_found_in_a_sqlite_file(statement, kind, tmp_path):
    """Every byte is hashed again; what is wrong is told with its turn."""
    url = f"sqlite:///{tmp_path}/a.db"
    await shown(url)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute(statement.format(other="x'00'"))
    connection.close()
    assert damaged(await verified(url)) == [("damage", kind, "c", "t")]


@pytest.mark.parametrize(("statement", "kind"), DAMAGES)
async def test_a_changed_picture_is_found_in_postgres(statement, kind):
    """As in a file."""
    url = fresh_url()
    await shown(url)
    place = Place.of(url)
    plain = await asyncpg.connect(place.dsn, server_settings={"search_path": f'"{place.schema}", public'})
    await plain.execute(statement.format(other="'\\x00'"))
    await plain.close()
    assert damaged(await verified(url)) == [("damage", kind, "c", "t")]


async def test_a_turn_whose_bytes_never_came_is_exported_and_told(tmp_path):
    """An import without the bytes: the next export has the turn and says what is missing, and so does a look."""
    whole, less, again = (tmp_path / name for name in ("whole.jsonl", "less.jsonl", "again.jsonl"))
    async with Memory.open("memory://") as memory:
        await memory.conversation("c", user_id="u").record(messages=TURN, id="t")
        assert (await memory.export(whole))["media"] == 1
    lines = whole.read_text().splitlines(keepends=True)
    less.write_text("".join(line for line in lines if json.loads(line)["type"] != "media"))
    url = f"sqlite:///{tmp_path}/a.db"
    async with opened(url) as memory:
        await memory.import_(less)
        counts = await memory.export(again)
        assert (counts["turn"], counts["missing"], "media" in counts) == (1, 1, False)
        assert '"turn_id":"t"' in next(line for line in again.read_text().splitlines() if '"missing"' in line)
    assert damaged(await verified(url)) == [("damage", "media-ref", "c", "t")]
    said = await to_thread.run_sync(pagefile, "--db", str(tmp_path / "a.db"), "export", str(again))
    assert "Without the bytes of 1 attachment, which are not here" in said.words
    async with Memory.open("memory://") as other:
        assert "missing" not in await other.import_(again)
        (turn,) = await other.conversation("c", user_id="u").turns()
        assert turn.user == "What is this?\n[image: image/png, 8 bytes]"
