"""Back to a moment before a mistake, as docs/running.md describes it: a base backup and the log that the server archived."""

import shutil
import time

import asyncpg
import pytest

from pagefile import Memory, Settings
from pagefile.engine.verification import verify
from pagefile.settings import EmbedderSettings
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.waits]

PLAIN = Settings(embedder=EmbedderSettings(name="none"), worker="apart")
ARCHIVING = {
    "fsync": "off",
    "archive_mode": "on",
    "archive_command": "test ! -f ../archive/%f && cp %p ../archive/%f",
}
PATIENCE_S = 60


async def say(url, text):
    async with Memory.open(url, settings=PLAIN) as memory:
        await memory.conversation("c", user_id="ada").record(text, "Noted.")


async def asked(url, statement):
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def archived(url):
    """The log up to now is in the archive."""
    await asked(url, "SELECT pg_switch_wal()")
    wanted = await asked(url, "SELECT pg_walfile_name(pg_current_wal_lsn())")
    end = time.monotonic() + PATIENCE_S
    while await asked(url, "SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver") < wanted[:23]:
        if await asked(url, "SELECT last_archived_wal IS NOT NULL FROM pg_stat_archiver"):
            return
        assert time.monotonic() < end
        time.sleep(0.1)


async def test_everything_up_to_the_mistake_is_back():
    """Turns after the backup and before an erasure by mistake are there; what came after that moment is not."""
    with PostgresServer(ARCHIVING) as server:
        url = server.url()
        server.run("mkdir", str(server.folder / "archive"))
        await say(url, "before the backup")
        server.run(
            "pg_basebackup", f"--dbname={url}", f"--pgdata={server.folder / 'base'}", "--checkpoint=fast"
        )
        await say(url, "after the backup")
        moment = await asked(url, "SELECT now()::text")
        async with Memory.open(url, settings=PLAIN) as memory:
            await memory.forget(user_id="ada")
        await say(url, "after the mistake")
        await archived(url)
        server.stop()

        shutil.rmtree(server.folder / "data")
        (server.folder / "base").rename(server.folder / "data")
        with (server.folder / "data" / "postgresql.auto.conf").open("a") as settings:
            settings.write(
                "restore_command = 'cp ../archive/%f %p'\n"
                f"recovery_target_time = '{moment}'\n"
                "recovery_target_action = 'promote'\n"
            )
        server.run("touch", str(server.folder / "data" / "recovery.signal"))
        server.start()
        async with Memory.open(url, settings=PLAIN) as memory:
            turns = await memory.conversation("c", user_id="ada").turns()
            assert ["before the backup", "after the backup"] == [turn.user for turn in turns]
            report = await verify(memory.engine, full=True)
            assert (True, 0) == (report.whole, report.damage)
        # It goes on from there.
        await say(url, "after the restore")
