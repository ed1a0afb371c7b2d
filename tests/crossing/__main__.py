"""The crossing test at length: `make soak`, or `python -m tests.crossing --calls 200000`."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import anyio

from pagefile.testing.postgres import PostgresServer
from pagefile.testing.valkey import ValkeyServer

from .playing import play, playing, settings_of


def main() -> int:
    """Half of the calls on SQLite, half on PostgreSQL and Valkey; prints how often each verb and route was answered and refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    given = parser.parse_args()
    engines = [given.only] if given.only else ["sqlite", "postgres"]
    found = [_played(engine, given.calls // len(engines), given.seed) for engine in engines]
    return int(any(found))


def _played(engine: str, calls: int, seed: int) -> str | None:
    with tempfile.TemporaryDirectory(prefix="pagefile-crossing-") as name:
        folder = Path(name)
        if engine == "sqlite":
            settings = settings_of(f"sqlite:///{folder}/crossing.db")
            return anyio.run(_play, settings, folder, calls, seed)
        with PostgresServer() as server, ValkeyServer() as cache:
            settings = settings_of(server.url("crossing"), cache.url)
            return anyio.run(_play, settings, folder, calls, seed)


async def _play(settings, folder: Path, calls: int, seed: int) -> str | None:
    began = time.monotonic()
    async with playing(settings, folder) as player:
        found = await play(
            player, seed, calls, lambda line: print(f"{time.monotonic() - began:6.0f} s  {line}", flush=True)
        )
        for place, count in sorted(player.counts.items()):
            print(f"{count:8} {place}")
        verdict = f"CROSSED: {found}" if found else "NO CROSSING"
        print(f"{verdict} in {player.played} calls, seed {seed}, {len(player.names.owners)} names.")
    return found


if __name__ == "__main__":
    sys.exit(main())
