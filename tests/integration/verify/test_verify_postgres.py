"""The same damage to a PostgreSQL, one after the other in one schema: named, mended where it is derived, else left alone."""

import asyncpg
import pytest

from pagefile.engine.verification import verify
from pagefile.stores.postgres.address import Place
from tests.integration.postgres.serving import fresh_url

from .damage import LASTING, PASSING, filled, opened, packed_otherwise, told, verified

STAND_IN = """
CREATE FUNCTION stand_in.bt_index_check(index regclass, heapallindexed boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF index::text LIKE '%facts_by_user%' THEN
    RAISE 'item order invariant violated' USING ERRCODE = 'index_corrupted';
  END IF;
END $$
"""


@pytest.fixture
async def whole():
    """A database in which all is well, and a connection of somebody who knows nothing of Pagefile."""
    url = fresh_url()
    page = await filled(url)
    place = Place.of(url)
    plain = await asyncpg.connect(place.dsn, server_settings={"search_path": f'"{place.schema}", public'})
    yield url, page, plain
    await plain.close()


async def names(plain, page):
    rows = await plain.fetch(
        "SELECT conversation_id, message_id FROM ai_message WHERE kind = 'checkpoint' ORDER BY seq"
    )
    long = [key for name, key in rows if name == "long"]
    tools = [key for name, key in rows if name == "tools"]
    return {
        "page": page,
        "json": "json",
        "other_page": f"'\\x{packed_otherwise()}'",
        "rubbish": "'\\x00'",
        "first": long[0],
        "second": long[1],
        "checkpoint": tools[0],
    }


def expected(one, known):
    filled_in = [
        tuple(part.format_map(known) if isinstance(part, str) else part for part in row) for row in one.found
    ]
    return sorted(filled_in, key=str)


async def everything(plain):
    """Every row of every table of the schema, as text."""
    tables = await plain.fetch(
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
    )
    return {name: sorted(map(str, await plain.fetch(f'SELECT * FROM "{name}"'))) for (name,) in tables}


async def put_back(plain, rows):
    """Every table as it was."""
    names = [name for name in rows if name != "alembic_version"]
    await plain.execute("TRUNCATE " + ", ".join(f'"{name}"' for name in names))
    for name in ("conversations", "blobs", "tool_result_archive", *names):
        if await plain.fetchval(f'SELECT count(*) FROM "{name}"') == 0:
            await plain.execute(f'INSERT INTO "{name}" OVERRIDING SYSTEM VALUE SELECT * FROM "kept_{name}"')


@pytest.mark.slow
async def test_every_damage_is_named_and_what_is_derived_is_made_again(whole):
    """As on SQLite: exactly it; a repair mends what is derived and changes nothing else."""
    url, page, plain = whole
    known = await names(plain, page)
    good = await everything(plain)
    for name in good:
        await plain.execute(f'CREATE TEMPORARY TABLE "kept_{name}" AS SELECT * FROM "{name}"')
    async with opened(url) as memory:
        assert (await verify(memory.engine, full=True)).findings == ()
        for one in (*LASTING, *PASSING):
            if one.only != "sqlite":
                await harmed(memory, plain, one, known)
                await put_back(plain, good)
        assert await everything(plain) == good


async def harmed(memory, plain, one, known):
    """One damage, looked at and repaired."""
    for statement in one.statements:
        # Damage does not ask for references.
        await plain.execute("SET session_replication_role = replica")
        assert not (await plain.execute(statement.format_map(known))).endswith(" 0"), statement
        await plain.execute("SET session_replication_role = origin")
    before = await everything(plain)
    report = await verify(memory.engine)
    assert sorted(told(report), key=str) == expected(one, known), one.name
    assert not report.whole, one.name
    mended = await verify(memory.engine, repair=True)
    if one in LASTING:
        assert sorted(told(mended), key=str) == expected(one, known), one.name
        assert await everything(plain) == before, one.name
    else:
        assert mended.whole, one.name
        assert (await verify(memory.engine, full=True)).findings == (), one.name


async def test_indexes_are_looked_into_where_the_extension_is(whole):
    """With amcheck every index of the schema is asked about, and what it says of one is told."""
    url, _, plain = whole
    if await plain.fetchval("SELECT 1 FROM pg_available_extensions WHERE name = 'amcheck'"):
        await plain.execute("CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public")
        assert (await verified(url, full=True)).findings == ()
        return
    # The server of these tests comes without the extension: something that answers as it does is in for it.
    async with plain.transaction():
        await plain.execute("CREATE SCHEMA stand_in")
        await plain.execute(STAND_IN)
        await plain.execute(
            "INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion) VALUES"
            " (999999, 'amcheck', 10, 'stand_in'::regnamespace, false, '1')"
        )
    try:
        report = await verified(url, full=True)
        assert [(one.level, one.kind) for one in report.findings] == [("damage", "database")]
        assert "facts_by_user" in report.findings[0].what
        assert (await verified(url)).whole
    finally:
        await plain.execute("DELETE FROM pg_extension WHERE extname = 'amcheck'")
        await plain.execute("DROP SCHEMA stand_in CASCADE")
