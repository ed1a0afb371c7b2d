"""The crossing test at length: `make soak`, or `python -m tests.crossing --calls 200000`."""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import anyio

from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

from .playing import play, playing, settings_of

#: Calls that one database sees; the more it holds, the longer the exports that are searched.
AT_ONCE = 5_000


def main() -> int:
    """Half of the calls on SQLite, half on PostgreSQL and Valkey; prints how often each verb and route was answered and refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first database; go on with the next one after a break"
    )
    parser.add_argument("--only", choices=["sqlite", "postgres"])
    given = parser.parse_args()
    engines = [given.only] if given.only else ["sqlite", "postgres"]
    counts, played = Counter[str](), 0
    for seed in range(given.seed, given.seed + -(-given.calls // (AT_ONCE * len(engines)))):
        for engine in engines:
            began = time.monotonic()
            found, calls = _played(engine, min(AT_ONCE, given.calls - played), seed, counts)
            played += calls
            if found:
                print(f"CROSSED on {engine}, seed {seed}: {found}")
                return 1
            print(
                f"{engine}, seed {seed}: {calls} calls in {time.monotonic() - began:.0f} s, {played} in all",
                flush=True,
            )
    for place, count in sorted(counts.items()):
        print(f"{count:8} {place}")
    print(f"NO CROSSING in {played} calls.")
    return 0


def _played(engine: str, calls: int, seed: int, counts: Counter[str]) -> tuple[str | None, int]:
    with tempfile.TemporaryDirectory(prefix="pagefile-crossing-") as name:
        folder = Path(name)
        if engine == "sqlite":
            return anyio.run(
                _play, settings_of(f"sqlite:///{folder}/crossing.db"), folder, calls, seed, counts
            )
        with PostgresServer() as server, ValkeyServer() as cache:
            return anyio.run(
                _play, settings_of(server.url("crossing"), cache.url), folder, calls, seed, counts
            )


async def _play(
    settings, folder: Path, calls: int, seed: int, counts: Counter[str]
) -> tuple[str | None, int]:
    async with playing(settings, folder) as player:
        found = await play(player, seed, calls, lambda _: None)
        counts.update(player.counts)
        return found, player.played


if __name__ == "__main__":
    sys.exit(main())
