"""`kill -9` again and again under load, and whether anything acknowledged was lost: `make soak` ends with it.

    python -m tests.faults.killing --kills 2000 --state soak-state
    nice -n 10 python -m tests.faults.killing --patience 10        # beside other work

In rounds: a new database, clients that write down what they were promised, and a service with the default background work. A kill is
a SIGKILL at a random moment: of the service, or of one of its processes while the others go on (a worker that answers, the one that
works in the background, its keeper). Every second round has two workers, every fourth runs on PostgreSQL, which crashes now and then
as well; a crash is not counted. At the end of a round everything is read back and compared, and `verify` reads every row.
After every kill the count is kept in the state folder: a run that was interrupted goes on where it was; of its unfinished round nothing
counts. It exits with 1 at the first thing that is lost, twice, torn or damaged, and leaves that round's database where it is.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path

import anyio
import httpx

from pagefile import Memory, Settings
from pagefile.engine.verification import verify
from pagefile.settings import EmbedderSettings
from tests.integration.postgres.serving import fresh_url, server
from tests.integration.workers import serving
from tests.integration.workers.serving import Service, exists, served
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer

from . import load as load_of
from .load import Load, check
from .messages import PLAIN

KILLS_IN_A_ROUND = 40
#: Rounds with two workers, and rounds on PostgreSQL, which are some of those.
_WORKERS_EVERY = 2
_POSTGRES_EVERY = 4
#: The longest between two kills, seconds, and how many kills a service lives through before it is killed itself.
_LONGEST_LIFE_S = 1.5
_SURVIVED = (0, 1, 2, 3, 4)
#: How often PostgreSQL crashes in the life of a service.
_CRASHES = 0.15


@dataclass
class Count:
    """What was done so far."""

    kills: int = 0
    #: How many of them killed the whole service.
    services: int = 0
    crashes: int = 0
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


def own_tracebacks(said: str) -> list[str]:
    """The tracebacks with a frame of ours: a helper of Python's own ends with one when whoever it serves is killed."""
    blocks = [one.splitlines() for one in said.split("Traceback (most recent call last):")[1:]]
    traces = ["\n".join(takewhile(lambda line: line.startswith("  "), block[1:])) for block in blocks]
    return [trace for trace in traces if "pagefile" in re.sub(r"round-\S+", "", trace)]


@dataclass
class Round:
    """One database, one load, so many kills; what was promised is checked at the end."""

    folder: Path
    url: str
    dice: random.Random
    options: tuple[str, ...]
    #: Made to crash now and then.
    database: PostgresServer | None = None
    services: int = 0
    crashes: int = 0

    def run(self, kills: int) -> Load:
        port = free_port()
        load = Load(f"http://127.0.0.1:{port}", result_chars=2000)
        with load.running():
            while kills:
                with served(self.folder, self.url, *self.options, port=port, **PLAIN) as service:
                    below = []
                    for _ in range(min(self.dice.choice(_SURVIVED), kills - 1)):
                        time.sleep(self.dice.random() * _LONGEST_LIFE_S)
                        kills -= self._kill_one_below(service)
                    crashed = self._crash()
                    time.sleep(self.dice.random() * _LONGEST_LIFE_S)
                    below = children_of(service.process.pid)
                    service.process.kill()
                    service.process.wait()
                    kills, self.services = kills - 1, self.services + 1
                    assert crashed or not own_tracebacks(service.said), service.said
                load.wait(
                    lambda below=below: not any(map(exists, below)),
                    3 * load_of.ANSWER_S,
                    "the end of the children",
                )
            with served(self.folder, self.url, *self.options, port=port, **PLAIN):
                load.more(8, 6 * load_of.ANSWER_S)
                load.stop()
                with httpx.Client(
                    base_url=load.base_url, timeout=load_of.ANSWER_S, trust_env=False
                ) as client:
                    check(client, load)
        return load

    def _kill_one_below(self, service: Service) -> int:
        """A worker, its keeper or the background worker alone; returns how many died of it."""
        below = children_of(service.process.pid)
        if self.options:
            # What else there is are Python's own helpers, which tell of their deaths with tracebacks.
            named = {
                int(pid) for line in service.lines[:] for pid in re.findall(r" is process (\d+)\.", line)
            }
            below = [pid for pid in below if pid in named]
        if not below:
            return 0
        with suppress(ProcessLookupError):
            os.kill(self.dice.choice(below), signal.SIGKILL)
            return 1
        return 0

    def _crash(self) -> bool:
        if self.database is None or self.dice.random() >= _CRASHES:
            return False
        self.database.stop("QUIT")
        self.database.start()
        self.crashes += 1
        return True


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
            options = ("--workers", "2") if count.rounds % _WORKERS_EVERY else ()
            played = Round(folder, url, dice, options, server() if on_postgres else None)
            load = played.run(now)
            found = anyio.run(damage, url)
            assert found == [], found
            on_failure.pop_all()
        shutil.rmtree(folder)
        count.kills, count.rounds = count.kills + now, count.rounds + 1
        count.services, count.crashes = count.services + played.services, count.crashes + played.crashes
        count.acknowledged += len(load.promises)
        count.keep(state)
        where = ("PostgreSQL" if on_postgres else "SQLite") + (", two workers" if options else "")
        tell(
            f"{count.kills:5d} of {kills} kills  round {count.rounds} ({where}): {len(load.promises)} turns acknowledged, "
            f"0 lost, {load.broken} requests broken off; {count.acknowledged} acknowledged in all"
        )
    tell(
        f"NOTHING LOST: {count.kills} kills, {count.services} of them of the whole service, {count.crashes} crashes of PostgreSQL, "
        f"{count.acknowledged} acknowledged turns, all there, once and whole."
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--state", type=Path, default=Path("soak-state"), help="where the count is kept")
    parser.add_argument(
        "--patience", type=float, default=1.0, help="how many times longer a start or an answer may take"
    )
    given = parser.parse_args()
    serving.START_S *= given.patience
    load_of.ANSWER_S *= given.patience
    return run(given.kills, given.state.resolve(), tell=lambda line: print(line, flush=True))


if __name__ == "__main__":
    sys.exit(main())
