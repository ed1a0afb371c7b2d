"""The commands of docs/running.md for backup and restore, on the real thing."""

import os
import subprocess
from datetime import UTC, datetime

import anyio
import apsw
import pytest

from pagefile import Memory, Settings
from pagefile.engine.export import export_lines
from pagefile.records import Scope
from pagefile.settings import EmbedderSettings
from pagefile.stores.key_secrets import new_key
from tests.integration.postgres.serving import as_role, server, walled_role
from tests.servers.postgres import installed

PLAIN = EmbedderSettings(name="none")


async def written(url):
    async with Memory.open(settings=Settings(url=url, embedder=PLAIN)) as memory:
        chat = memory.conversation("门诊", user_id="李雷")
        steps = [{"tool": "search", "result": "高血压患者少盐。" * 2000}]
        await chat.record("我对青霉素过敏。", "已记录。", steps=steps)
        await chat.checkpoint("青霉素过敏", recent_turns=0)
        await memory.remember("对青霉素过敏", user_id="李雷")
        key, _ = new_key("laptop", Scope(), created=datetime.now(UTC))
        await memory.engine.store.keys.add(key)
    return await everything(url)


async def everything(url):
    async with Memory.open(settings=Settings(url=url, embedder=PLAIN)) as memory:
        lines = [line async for _, line in export_lines(memory.engine, Scope())]
        return lines, await memory.engine.store.keys.list()


def run(name, *arguments):
    command = [str(installed() / "bin" / name), *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C", "PGOPTIONS": "-c pagefile.tenants=all"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_dump_of_postgresql_is_all_there_is(tmp_path):
    """Dumped while it is open, by a role that row-level security holds, restored into another database: the same lines and keys."""
    base = as_role(server().url(), walled_role())
    maintenance, owner = f"--maintenance-db={server().url()}", f"--owner={walled_role()}"
    old, new = (f"backup_{os.getpid()}_{name}" for name in ("old", "new"))
    run("createdb", maintenance, owner, "--encoding=UTF8", "--template=template0", old)
    run("createdb", maintenance, owner, "--encoding=UTF8", "--template=template0", new)
    source, target = (f"{base.rpartition('/')[0]}/{name}" for name in (old, new))
    before = anyio.run(written, source)
    assert len(before[0]) > 4
    dump = str(tmp_path / "pagefile.dump")
    run("pg_dump", "--enable-row-security", "--format=custom", f"--file={dump}", source)
    run("pg_restore", "--no-owner", f"--dbname={target}", dump)
    assert before == anyio.run(everything, target)


def test_a_copy_of_a_sqlite_file_is_all_there_is(tmp_path):
    """Copied with SQLite's own words while the service has it open."""
    source, copy = tmp_path / "pagefile.db", tmp_path / "copy.db"

    async def copied():
        before = await written(f"sqlite:///{source}")
        async with Memory.open(settings=Settings(url=f"sqlite:///{source}", embedder=PLAIN)):
            apsw.Connection(str(source)).execute(f"VACUUM INTO '{copy}'")
        return before

    assert anyio.run(copied) == anyio.run(everything, f"sqlite:///{copy}")
