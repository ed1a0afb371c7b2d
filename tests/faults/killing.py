"""`kill -9` again and again under load, and whether anything acknowledged was lost: `make soak` ends with it.

    python -m tests.faults.killing --kills 2000 --state soak-state

In rounds: a new database (every fourth time PostgreSQL with two workers), clients that write down what they were promised, and a
service with the default background work that is killed at a random moment, sometimes while it starts, sometimes only its
background worker. At the end of a round everything is read back and compared, and `verify` reads every row.
After every kill the count is kept in the state folder: a run that was interrupted goes on where it was; of its unfinished round nothing
counts. It exits with 1 at the first thing that is lost, twice, torn or damaged, and leaves that round's database where it is.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
import httpx

from pagefile import Memory, Settings
from pagefile.engine.verification import verify
from pagefile.settings import EmbedderSettings
from tests.integration.postgres.serving import fresh_url
from tests.integration.workers.serving import exists, served
from tests.servers.ports import free_port

from .load import ANSWER_S, Load, check
from .messages import PLAIN

KILLS_IN_A_ROUND = 20
#: Rounds on PostgreSQL with two workers.
_POSTGRES_EVERY = 4
#: The longest that a service lives, seconds.
_LONGEST_LIFE_S = 2.0


@dataclass
class Count:
    """What was done so far."""

    kills: int = 0
    rounds: int = 0
    acknowledged: int = 0
    lost: int = 0

    @classmethod
    def of(cls, state: Path) -> "Count":
        file = state / "count.json"
        return cls(**json.loads(file.read_text())) if file.exists() else cls()

    def keep(self, state: Path) -> None:
        new = state / "count.json.new"
        new.write_text(json.dumps(asdict(self)))
        new.replace(state / "count.json")


def children_of(pid):
    """The processes below one, itself left out."""
    found, left = [], [pid]
    while left:
        file = Path(f"/proc/{left.pop()}/task")
        below = (
            [int(one) for task in file.glob("*/children") for one in task.read_text().split()]
            if file.exists()
            else []
        )
        found += below
        left += below
    return found


def killed_round(folder: Path, url: str, kills: int, dice: random.Random, options: tuple[str, ...]) -> Load:
    """One database, one load, so many kills; what was promised is checked at the end."""
    port = free_port()
    load = Load(f"http://127.0.0.1:{port}", result_chars=2000)
    with load.running():
        for _ in range(kills):
            with served(folder, url, *options, port=port, **PLAIN) as service:
                time.sleep(dice.random() * _LONGEST_LIFE_S)
                below = children_of(service.process.pid)
                if below and dice.random() < 0.3:
                    # A worker, its keeper or the background worker alone: the service goes on.
                    os.kill(dice.choice(below), signal.SIGKILL)
                    time.sleep(dice.random())
                    below = children_of(service.process.pid)
                service.process.kill()
                service.process.wait()
                assert "Traceback" not in service.said, service.said
            load.wait(lambda below=below: not any(map(exists, below)), 60, "the end of the children")
        with served(folder, url, *options, port=port, **PLAIN):
            load.more(8, 120)
            load.stop()
            with httpx.Client(base_url=load.base_url, timeout=ANSWER_S, trust_env=False) as client:
                check(client, load)
    return load


async def damage(url: str) -> list[str]:
    """What `pagefile verify --full` would name."""
    settings = Settings(worker="apart", embedder=EmbedderSettings(name="none"))
    async with Memory.open(url, settings=settings) as memory:
        report = await verify(memory.engine, full=True)
        return [str(finding) for finding in report.findings if finding.level == "damage"]


def run(kills: int, state: Path, tell=print) -> int:
    """Go on until so many kills are done in all; returns the exit code."""
    state.mkdir(parents=True, exist_ok=True)
    count = Count.of(state)
    tell(
        f"{count.kills} of {kills} kills done so far, {count.acknowledged} turns acknowledged, {count.lost} lost"
    )
    while count.kills < kills:
        dice = random.Random(count.rounds)
        now = min(KILLS_IN_A_ROUND, kills - count.kills)
        on_postgres = count.rounds % _POSTGRES_EVERY == _POSTGRES_EVERY - 1
        folder = Path(tempfile.mkdtemp(prefix=f"round-{count.rounds}-", dir=state))
        url = fresh_url() if on_postgres else f"sqlite:///{folder}/a.db"
        with ExitStack() as on_failure:
            on_failure.callback(tell, f"NOT WELL: round {count.rounds}, see {folder}")
            load = killed_round(folder, url, now, dice, ("--workers", "2") if on_postgres else ())
            found = anyio.run(damage, url)
            assert found == [], found
            on_failure.pop_all()
        shutil.rmtree(folder)
        count.kills, count.rounds = count.kills + now, count.rounds + 1
        count.acknowledged += len(load.promises)
        count.keep(state)
        where = "PostgreSQL, two workers" if on_postgres else "SQLite"
        tell(
            f"{count.kills:5d} of {kills} kills  round {count.rounds} ({where}): {len(load.promises)} turns acknowledged, "
            f"0 lost, {load.broken} requests broken off; {count.acknowledged} acknowledged in all"
        )
    tell(
        f"NOTHING LOST: {count.kills} kills, {count.acknowledged} acknowledged turns, all there, once and whole."
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--state", type=Path, default=Path("soak-state"), help="where the count is kept")
    given = parser.parse_args()
    return run(given.kills, given.state.resolve(), tell=lambda line: print(line, flush=True))


if __name__ == "__main__":
    sys.exit(main())
