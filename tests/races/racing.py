"""The race suite: processes write, sum up, learn, ask and repeat requests while others erase. `make races`.

Each round plays on a few ids of conversations and users, which are used again and again. An incarnation of a conversation is
written by two processes and a service, every text with a mark of its own; while summaries, facts, vectors, windows, pages, sessions
and forks of it are under way, somebody erases it, and somebody else begins it again. Then every verb of every process is asked:
what it shows may hold marks of the living only. A write that was under way during the erasure may count as before it or after it,
and must be whole or gone.

Every few rounds everything is erased, `pagefile verify --full` must call the database whole, and the raw search goes through the
database, its WAL, temporary files, logs and Redis: no mark is left. Of PostgreSQL's own WAL it is counted how many it still has.

Run it by hand as `python -m tests.races.racing --engine sqlite --rounds 1000`; it goes on behind `--first`, and exits with 1 when
something came back.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import asyncpg
import httpx

from tests.acceptance.cli_calling import pagefile
from tests.servers.forked import forking
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

from .gates import DEFERRED
from .marking import bulky, marks_in, new_mark, places_in
from .searching import Found, look_into_redis

CHATS = ("chat one", "chat two")
USERS = ("ada", "bob", "eve")
#: After this many rounds everything is erased and searched for.
SEARCH_EVERY = 10
#: A command is a process that takes a second to start: one erasure in this many is its.
COMMAND_EVERY = 12
PAUSE_S = 0.02
ANSWER_S = 120.0
#: A machine with far more to do than it can is no failure.
START_S = 300.0
#: What a write may be answered that came too late.
TOO_LATE = frozenset({"erased", "not-found", "handle-not-found", "conflict"})
#: How much of each log is told when something came back.
_LOG_CHARS = 6000
#: This many writes are waited for at a gate, and so often it is looked at.
_AT_GATE = 3
_LOOKS_AT_GATE = 30
#: And a checkpoint.
NOTHING_LEFT = "Nothing to cover"
SERVICE = {
    "EMBEDDER__NAME": "none",
    "FACTS__EXTRACT": "rules",
    "WINDOW_TOKENS": "4000",
    "RECENT_TURNS": "1",
    "RECALL": "always",
    "SYNCHRONOUS": "normal",
    "LANGUAGE": "en",
    "ARCHIVE__THRESHOLD": "400",
    "ARCHIVE__PAGE_FROM": "200",
    "SERVICE__LOGS": "json",
}


class CameBackError(AssertionError):
    """Something erased was seen, or something whole is damaged."""


class TooLateError(Exception):
    """A request that came too late."""


class Racer:
    """A process with a memory of its own."""

    def __init__(self, name: str, process, log) -> None:
        self.name, self._process, self._log = name, process, log
        self._answers: dict[int, asyncio.Future] = {0: asyncio.get_running_loop().create_future()}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def started(cls, name, place, how):
        log = (place.folder / "logs" / f"{name}.stderr").open("ab")
        command = [sys.executable, "-m", "tests.races.process", place.url, place.sessions, str(PAUSE_S), how]
        pipe = asyncio.subprocess.PIPE
        with forking():
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=log, env=place.environment, limit=1 << 26
            )
        racer = cls(name, process, log)
        await asyncio.wait_for(racer._answers[0], START_S)
        return racer

    async def _read(self):
        while line := await self._process.stdout.readline():
            told = json.loads(line)
            self._answers.pop(told.pop("number")).set_result(told)
        for waiting in self._answers.values():
            waiting.set_result({"failed": f"{self.name} ended"})

    async def __call__(self, verb, **given):
        number = self._number = getattr(self, "_number", 0) + 1
        self._answers[number] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"number": number, "do": verb, "with": given}).encode() + b"\n")
        answer = await asyncio.wait_for(self._answers[number], ANSWER_S)
        if answer.get("refused") in TOO_LATE or NOTHING_LEFT in answer.get("why", ""):
            raise TooLateError(answer["why"])
        if "ok" not in answer:
            raise CameBackError(f"{self.name}: {verb} {given} was answered {answer}")
        return answer["ok"]

    async def look(self, **given):
        return await self("look", **given)

    async def end(self):
        self._process.stdin.close()
        await asyncio.wait_for(self._process.wait(), ANSWER_S)
        await self._reading
        self._log.close()


class Service:
    """`pagefile serve` beside them: the same verbs over HTTP, some of them with an Idempotency-Key."""

    name = "service"

    def __init__(self, process, client, log) -> None:
        self._process, self._client, self._log = process, client, log

    @classmethod
    async def started(cls, place):
        port, log = free_port(), (place.folder / "logs" / "service.log").open("ab")
        named = {f"PAGEFILE_{name}": value for name, value in SERVICE.items()}
        if place.sessions:
            named["PAGEFILE_SESSIONS"] = place.sessions
        command = [sys.executable, "-m", "pagefile", "serve", "--port", str(port), "--db", place.url]
        with forking():
            process = await asyncio.create_subprocess_exec(
                *command, stdout=log, stderr=log, env={**place.environment, **named}, cwd=place.folder
            )
        # A connection that is kept may be closed by the service just when it is used again.
        limits = httpx.Limits(max_keepalive_connections=0)
        base = f"http://127.0.0.1:{port}"
        client = httpx.AsyncClient(base_url=base, timeout=ANSWER_S, trust_env=False, limits=limits)
        service = cls(process, client, log)
        async with asyncio.timeout(START_S):
            while not await service._is_ready():
                await asyncio.sleep(0.05)
        return service

    async def _is_ready(self):
        try:
            return (await self._client.get("/readyz")).is_success
        except httpx.TransportError:
            return False

    async def _asked(self, method, path, *, key=None, **request):
        headers = {"Idempotency-Key": key} if key else None
        answer = await self._client.request(method, path, headers=headers, **request)
        if answer.status_code in {404, 409, 410} or NOTHING_LEFT in answer.text:
            raise TooLateError(answer.text)
        if not answer.is_success:
            raise CameBackError(
                f"the service answered {method} {path} with {answer.status_code}: {answer.text}"
            )
        return answer.text

    async def record(self, chat, user, mark, key, bulk=False):
        steps = [{"tool": "read_page_range", "result": bulky(mark), "call_id": mark}] if bulk else []
        said = {"user": f"I am allergic to {mark}.", "assistant": f"Noted {mark}.", "steps": steps}
        where = {"conversation_id": chat, "user_id": user}
        return await self._asked("POST", "/v1/turns", key=key, json={**where, **said})

    async def context(self, chat, user, mark, key=None):
        asked = {"query": f"What about {mark}?", "instructions": f"Be kind to {mark}."}
        where = {"conversation_id": chat, "user_id": user}
        return await self._asked("POST", "/v1/context", key=key, json={**where, **asked})

    async def checkpoint(self, chat, user):
        await self._asked("POST", "/v1/checkpoints", json={"conversation_id": chat, "user_id": user})

    async def forget(self, chat=None, user=None):
        named = {"conversation_id": chat, "user_id": user}
        await self._asked("POST", "/v1/forget", json={name: one for name, one in named.items() if one})

    async def settle(self):
        await self._asked("POST", "/v1/settle", json={"timeout_s": 60})

    async def look(self, chats, users):
        """Every mark that any route shows, by route."""
        found: dict[str, dict[str, str]] = {}
        asked = [("GET", "/v1/memory/conversations", {}), ("GET", "/v1/pages", {}), ("GET", "/v1/export", {})]
        for user in users:
            asked += [
                (m, p, {"user_id": user}) for m, p in (("GET", "/v1/facts"), ("GET", "/v1/facts/revisions"))
            ]
            asked += [
                ("POST", p, {"user_id": user, "query": "allergic line of"})
                for p in ("/v1/recall", "/v1/pages/search")
            ]
        for chat, user in chats:
            where = {"conversation_id": chat, **({"user_id": user} if user else {})}
            asked += [
                ("GET", f"/v1/{one}", where)
                for one in ("turns", "log", "checkpoints", "calls", "costs", "session")
            ]
            asked += [
                ("POST", "/v1/context", {**where, "query": "What am I allergic to? Please look it up."})
            ]
        for method, path, given in asked:
            with suppress(TooLateError):
                shown = await self._asked(method, path, **{"params" if method == "GET" else "json": given})
                found.setdefault(path, {}).update(places_in(shown))
        return {"found": found, "verbs": len(found)}

    async def end(self):
        await self._client.aclose()
        self._process.terminate()
        await asyncio.wait_for(self._process.wait(), ANSWER_S)
        self._log.close()


@dataclass
class Place:
    """Where the processes work: the database, the cache, and folders of their own for temporary files and logs."""

    folder: Path
    url: str
    postgres: PostgresServer | None = None
    valkey: ValkeyServer | None = None

    @property
    def sessions(self) -> str:
        return self.valkey.url if self.valkey else ""

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.folder / "temporary"), "PYTHONDEVMODE": ""}


@dataclass
class Race:
    """The processes, the marks that live, and what was counted."""

    place: Place
    racers: list[Racer]
    service: Service
    live: set[str] = field(default_factory=set)
    #: Marks of pages since the last raw search.
    recent: set[str] = field(default_factory=set)
    counts: Counter = field(default_factory=Counter)

    def mark(self) -> str:
        made = new_mark()
        self.recent.add(made)
        self.counts["marks"] += 1
        return made

    # -- a round --------------------------------------------------------------------------------------------------------

    async def round(self, number: int) -> None:
        """An incarnation, its erasure in the middle of everything, and the next one."""
        dice = random.Random(number)
        await _Round(self, dice, number).run()
        self.counts["rounds"] += 1

    async def look(self, chats, what: str) -> None:
        """Nothing but the living is shown by any verb of anybody."""
        lookers = [*self.racers, self.service]
        for looker, seen in zip(
            lookers,
            await asyncio.gather(*(one.look(chats=chats, users=USERS) for one in lookers)),
            strict=True,
        ):
            self.counts["verbs asked"] += seen["verbs"]
            back = [
                f"{looker.name} shows {mark} by {verb}: …{around}…"
                for verb, marks in seen["found"].items()
                for mark, around in marks.items()
                if mark not in self.live
            ]
            if back:
                raise CameBackError("\n".join([what, *back]))

    # -- erasing and searching ------------------------------------------------------------------------------------------

    async def command(self, *arguments, codes=(0,)) -> str:
        """`pagefile …` in a process of its own."""
        pipe = asyncio.subprocess.PIPE
        with forking():
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "pagefile", "--db", self.place.url, *arguments,
                stdout=pipe, stderr=asyncio.subprocess.STDOUT, env={**self.place.environment, **_named(SERVICE, self.place)},
            )  # fmt: skip
        said, _ = await asyncio.wait_for(process.communicate(), ANSWER_S)
        with (self.place.folder / "logs" / "commands.log").open("ab") as log:
            log.write(said)
        if process.returncode not in codes:
            raise CameBackError(f"pagefile {arguments} ended with {process.returncode}: {said.decode()}")
        return said.decode()

    async def search(self) -> Found:
        """Erase everything, and look for what is left of it."""
        for user in USERS:
            await self.racers[0]("forget", user=user)
        await self.settle()
        await self.look([(chat, None) for chat in CHATS], "after everything was erased")
        self.live.clear()
        await self.free_chats()
        await asyncio.to_thread(self._verify)
        if self.place.postgres is not None:
            await self.command("forget", "--user-id", USERS[0], "--yes", "--scrub", "--json")
        found = await asyncio.to_thread(self._searched)
        self.counts["searches"] += 1
        self.counts["bytes searched"] += found.size
        self.counts["files searched"] += found.files
        self.counts["marks searched for"] += len(self.recent)
        self.recent.clear()
        if found.places:
            raise CameBackError(f"the raw search found {await self._named(found.places)}")
        return found

    async def free_chats(self) -> None:
        """Looking is a use: looking without a user makes a conversation of no user. One of a user came back, and is not hidden."""
        owners = await self.racers[0]("owners")
        if back := {chat: user for chat, user in owners.items() if user is not None}:
            raise CameBackError(f"after their users were erased there are conversations of {back}")
        for chat in owners:
            await self.racers[0]("forget", chat=chat)

    async def _named(self, places):
        """Files of PostgreSQL with the names of what they hold."""
        if self.place.postgres is None:
            return places
        connection = await asyncpg.connect(self.place.url.partition("?")[0])
        rows = await connection.fetch("SELECT relfilenode::text, relname FROM pg_class")
        await connection.close()
        names = dict(map(tuple, rows))
        return {f"{place} ({names.get(place.rpartition('/')[2])})": marks for place, marks in places.items()}

    def _verify(self) -> None:
        verified = pagefile("--db", self.place.url, "verify", "--full")
        if verified.code:
            raise CameBackError(f"pagefile verify says: {verified.out}")

    def _searched(self) -> Found:
        found = Found()
        if self.place.valkey is not None:
            look_into_redis(found, self.place.sessions, self.recent)
        found.look_into(self.place.folder, self.recent)
        if self.place.postgres is not None:
            data = self.place.postgres.folder / "data"
            found.look_into(data / "base", self.recent)
            found.look_into(data / "global", self.recent)
            found.look("PostgreSQL's log", (self.place.postgres.folder / "log").read_bytes(), self.recent)
            logged = Found()
            logged.look_into(data / "pg_wal", ())
            # Out of our reach, as the receipt says: counted, not refused.
            self.counts["bytes of pg_wal"] = logged.size
            self.counts["marks in pg_wal"] = len(set().union(*logged.places.values()))
        return found

    async def settle(self) -> None:
        await asyncio.gather(*(one("settle") for one in self.racers), self.service.settle())


class _Round:
    """What happens in a round, thrown with its own dice."""

    def __init__(self, race: Race, dice: random.Random, number: int) -> None:
        self._race, self._dice, self._number = race, dice, number
        self._chat = dice.choice(CHATS)
        self._user, self._next_user = dice.choice(USERS), dice.choice(USERS)
        self._one, self._other = dice.sample(race.racers, 2)
        self._fork = f"fork {number}"
        self._whole_user = dice.random() < 0.5
        #: Marks of what may count as before the erasure or after it, with whether it was acknowledged.
        self._under_way: list[str] = []

    @property
    def _chats(self):
        return [(self._chat, None), (self._chat, self._next_user), (self._fork, self._user)]

    async def run(self) -> None:
        race, dice = self._race, self._dice
        await self._first_life()
        held = dice.random() < 0.5
        if held:
            verbs = sorted(DEFERRED) if dice.random() < 0.5 else dice.sample(sorted(DEFERRED), 5)
            await self._one("close_gate", verbs=verbs)
        late = [asyncio.create_task(self._tried(work)) for work in self._late()]
        await (self._at_the_gate() if held else asyncio.sleep(dice.uniform(0, 0.08)))
        await self._erase(self._other if held else dice.choice([self._one, self._other]))
        race.live.clear()
        race.live.update(self._under_way)
        second = asyncio.create_task(self._second_life())
        if held:
            # The gate opens before or after the next life has begun.
            await asyncio.sleep(dice.uniform(0, 0.1))
            reached = (await self._one("open_gate"))["reached"]
            race.counts["writes held at a gate"] += len(reached)
        await asyncio.gather(second, *late)
        await race.settle()
        await race.look(self._chats, f"round {self._number}")
        await self._clean_up()

    async def _first_life(self) -> None:
        chat, user, race = self._chat, self._user, self._race
        where = {"chat": chat, "user": user}
        marks = [race.mark() for _ in range(9)]
        first, *_ = await asyncio.gather(
            self._one("record", **where, mark=marks[0], bulk=True),
            self._other("record", **where, mark=marks[1], bulk=True),
            race.service.record(chat, user, marks[2], key=f"first {self._number}", bulk=True),
        )
        opened, *_ = await asyncio.gather(
            self._one("begin", **where, mark=marks[3]),
            self._other("context", **where, mark=marks[4]),
            race.service.context(chat, user, marks[5], key=f"asked {self._number}"),
            self._one("snapshot", **where, mark=marks[6]),
            *([self._other("remember", user=user, mark=marks[7])] if self._whole_user else []),
        )
        self._turn, self._open, self._marks = first["turn"], opened["turn"], marks
        race.counts["writes acknowledged"] += 7 + self._whole_user

    def _late(self):
        """What is under way when the erasure comes."""
        chat, user, race = self._chat, self._user, self._race
        where = {"chat": chat, "user": user}
        marks = [race.mark() for _ in range(6)]
        # A request of the first life is repeated, too: after the erasure it is a new one.
        self._under_way = [*marks, self._marks[2]]
        work = [
            self._one("checkpoint", **where),
            self._other("checkpoint", **where),
            self._one("step", **where, turn=self._open, mark=marks[0]),
            self._one("record", **where, mark=marks[1], bulk=True),
            self._other("record", **where, mark=marks[2]),
            self._one("context", **where, mark=marks[3]),
            self._other("session", **where),
            self._one("snapshot", **where, mark=marks[4]),
            # A copy of a conversation outlives it, but not its user.
            *([self._one("fork", **where, turn=self._turn, name=self._fork)] if self._whole_user else []),
            self._one("settle"),
            race.service.record(chat, user, marks[5], key=f"late {self._number}", bulk=True),
            race.service.checkpoint(chat, user),
            race.service.record(chat, user, self._marks[2], key=f"first {self._number}", bulk=True),
        ]
        self._dice.shuffle(work)
        return work

    async def _at_the_gate(self) -> None:
        """Wait for writes to be at the gate; with other dice there may be none."""
        for _ in range(_LOOKS_AT_GATE):
            if (await self._one("waiting"))["waiting"] >= _AT_GATE:
                return
            await asyncio.sleep(0.01)

    async def _tried(self, work) -> None:
        try:
            await work
            self._race.counts["late writes acknowledged"] += 1
        except TooLateError:
            self._race.counts["late writes refused"] += 1

    async def _erase(self, racer) -> None:
        chat, user = (None, self._user) if self._whole_user else (self._chat, None)
        race = self._race
        if self._number % COMMAND_EVERY == 0:
            how = "command"
            named = ["--user-id", user] if user else [chat]
            await race.command("forget", *named, "--yes", codes=(0, 1))
        elif self._dice.random() < 0.4:
            how = "HTTP"
            await race.service.forget(chat=chat, user=user)
        else:
            how = "library"
            await racer("forget", chat=chat, user=user)
        race.counts["forgets"] += 1
        race.counts[f"forgets by {how}"] += 1

    async def _second_life(self) -> None:
        """Somebody begins it again, in two processes and the service; requests of the first life are repeated."""
        chat, user, race = self._chat, self._next_user, self._race
        marks = [race.mark() for _ in range(4)]
        race.live.update(marks)
        where = {"chat": chat, "user": user}
        work = [
            partial(self._other, "record", **where, mark=marks[0], bulk=True),
            partial(race.service.record, chat, user, marks[1], key=f"second {self._number}"),
            partial(self._one, "context", **where, mark=marks[2]),
            partial(self._other, "snapshot", **where, mark=marks[3]),
            self._answer_is_not_kept,
        ]
        for one in work:
            await self._tried(one())

    async def _answer_is_not_kept(self) -> None:
        """The answer to a question of the first life is made again, not given again."""
        asked = self._marks[5]
        self._race.live.add(asked)
        shown = marks_in(
            await self._race.service.context(self._chat, self._user, asked, key=f"asked {self._number}")
        )
        back = shown - self._race.live
        if back:
            raise CameBackError(f"round {self._number}: an answer kept for {asked} shows {back}")

    async def _clean_up(self) -> None:
        """Everybody of this round is erased, by somebody who may not have erased before."""
        race = self._race
        for user in {self._user, self._next_user}:
            await self._dice.choice([self._one, self._other])("forget", user=user)
            race.counts["forgets"] += 1
        await race.free_chats()
        race.live.clear()


def _named(settings, place):
    named = {f"PAGEFILE_{name}": value for name, value in settings.items()}
    return {**named, "PAGEFILE_SESSIONS": place.sessions} if place.sessions else named


# -- the whole race -------------------------------------------------------------------------------------------------------------


async def race(engine: str, rounds, *, every: int = SEARCH_EVERY, tell=print) -> Counter:
    """Play these rounds; raises `CameBackError` when something comes back. Returns what was counted."""
    async with AsyncExitStack() as stack:
        place = await asyncio.to_thread(_place, stack, engine)
        # The first one makes the tables.
        one = await Racer.started("one", place, "slow")
        stack.push_async_callback(one.end)
        two, service = await asyncio.gather(Racer.started("two", place, "extract"), Service.started(place))
        stack.push_async_callback(two.end)
        stack.push_async_callback(service.end)
        running = Race(place, [one, two], service)
        if place.postgres is not None:
            await _unpacked(place.url)
        try:
            await _played(running, rounds, every, tell)
        except CameBackError as error:
            raise CameBackError(f"{error}\n{_said(place)}") from error
        return running.counts


async def _played(running: Race, rounds, every, tell) -> None:
    began, numbers = time.monotonic(), list(rounds)
    for place, number in enumerate(numbers, 1):
        await running.round(number)
        if place % every == 0 or place == len(numbers):
            await running.search()
            tell(_line(numbers[place - 1], time.monotonic() - began, running.counts))


def _said(place: Place) -> str:
    """The end of what each process said."""
    logs = sorted((place.folder / "logs").iterdir())
    return "\n".join(f"-- {log.name}\n{log.read_text(errors='replace')[-_LOG_CHARS:]}" for log in logs)


def _line(number, seconds, counts) -> str:
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    return f"round {number} after {seconds:.0f} s: {told}"


def _place(stack: AsyncExitStack, engine: str) -> Place:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pagefile-races-")))
    for name in ("temporary", "logs", "redis"):
        (folder / name).mkdir()
    if engine == "sqlite":
        return Place(folder, f"sqlite:///{folder}/race.db")
    server = stack.enter_context(PostgresServer())
    valkey = stack.enter_context(
        ValkeyServer(settings={"rdbcompression": "no", "dir": str(folder / "redis")})
    )
    return Place(folder, server.url("race", pool_max=5), server, valkey)


async def _unpacked(url: str) -> None:
    """Long values are kept as they are: a raw search reads nothing that PostgreSQL has compressed."""
    connection = await asyncpg.connect(url.partition("?")[0])
    rows = await connection.fetch(
        "SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN pg_tables t"
        " ON t.schemaname = c.table_schema AND t.tablename = c.table_name"
        " WHERE c.table_schema = 'race' AND c.data_type IN ('text', 'jsonb', 'bytea')"
    )
    for table, column in rows:
        await connection.execute(f'ALTER TABLE race."{table}" ALTER COLUMN "{column}" SET STORAGE EXTERNAL')
    await connection.close()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument(
        "--first", type=int, default=1, help="the number of the first round, to go on after a break"
    )
    given = parser.parse_args()
    rounds = range(given.first, given.first + given.rounds)
    try:
        asyncio.run(race(given.engine, rounds, tell=lambda line: print(line, flush=True)))
    except CameBackError as error:
        print(f"CAME BACK: {error}")
        return 1
    print(f"NOTHING CAME BACK in {given.rounds} rounds on {given.engine}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
