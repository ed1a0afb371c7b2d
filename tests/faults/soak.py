"""A long mixed load on the service, and what becomes of its memory, files, threads and tasks: `make soak`.

Six clients record, ask, recall, load, learn, chat, leave in the middle of answers, and erase, for users of whom there is always the
same number. Every minute one line is printed. The verdict looks at the second half alone, when everything is warm:

* the memory of its last third is at most 5 % and 8 MB above that of its first third (medians),
* open files differ by at most 5, threads by at most 5, tasks by at most 10,
* every request was answered, and none with a failure of the service.

Run it by hand as `python -m tests.faults.soak --minutes 6`; it exits with 1 when something is not flat.
"""

import argparse
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import httpx

from tests.integration.workers.serving import served

from .moods import DIMENSION, Endpoint

CLIENTS = 6
USERS_OF_A_CLIENT = 10
#: A client erases one of its users after this many actions: what is held stays about the same from then on.
LIFE = 30
#: Between two actions of a client: a load to live with, not a race.
PAUSE_S = 0.05
SAMPLE_S = 2.0
ANSWER_S = 60.0

RSS_GROWTH, RSS_SLACK_KB = 0.05, 8_192
WORDS = (
    "高血压",
    "青霉素过敏",
    "少盐",
    "每天早晚各测一次血压",
    "blood pressure",
    "the compressor",
    "住在杭州",
    "喜欢喝茶",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The process at a moment."""

    at: float
    rss_kb: int
    files: int
    threads: int
    tasks: int
    database_kb: int


@dataclass
class Tally:
    """What the clients saw since somebody last looked."""

    taken: dict[str, list[float]] = field(default_factory=dict)
    bad: Counter = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what, seconds, status):
        with self.lock:
            self.taken.setdefault(what, []).append(seconds)
            if status >= 400:
                self.bad[f"{what} {status}"] += 1

    def emptied(self):
        """What was there, to be counted again."""
        with self.lock:
            taken, self.taken = self.taken, {}
        return taken


class Client:
    """Somebody with a few users, who does one thing after the other."""

    def __init__(self, number: int, base_url: str, tally: Tally) -> None:
        self._dice = random.Random(number)
        self._number = number
        self._tally = tally
        self._http = httpx.Client(base_url=base_url, timeout=ANSWER_S, trust_env=False)
        self._pages: dict[str, str] = {}
        self._actions = 0

    def run(self, over: threading.Event) -> None:
        """Act until it is over."""
        kinds = [self.record, self.long_turn, self.context, self.recall, self.load, self.facts, self.chat]
        rare = [self.leave, self.steps, self.checkpoint, self.look]
        with self._http:
            while not over.wait(PAUSE_S):
                self._actions += 1
                user = f"u{self._number}-{self._dice.randrange(USERS_OF_A_CLIENT)}"
                self._dice.choices([*kinds, *rare], [8, 2, 6, 4, 3, 2, 2, 1, 1, 1, 1])[0](user)
                if self._actions % LIFE == 0:
                    self.forget(user)

    # -- what a client does -----------------------------------------------------------------------------------------------

    def record(self, user):
        self._post("record", "/v1/turns", user, user=self._said(), assistant=self._said(5))

    def long_turn(self, user):
        steps = [{"tool": "search", "input": {"q": self._said()}, "result": self._said(400)}]
        turn = self._post("record", "/v1/turns", user, user=self._said(), assistant="好。", steps=steps)
        if turn is not None and turn["steps"][0]["page"]:
            self._pages[user] = turn["steps"][0]["page"]

    def context(self, user):
        self._post("context", "/v1/context", user, query=self._said(), window_tokens=3000)

    def recall(self, user):
        body = {"user_id": user, "query": self._said(), "limit": 5}
        self._send("recall", "POST", "/v1/recall", json=body)

    def load(self, user):
        if user in self._pages:
            self._post("load", "/v1/load", user, uuid=self._pages[user])

    def facts(self, user):
        self._send("facts", "POST", "/v1/facts", json={"user_id": user, "text": f"用户{self._said()}"})
        self._send("facts", "GET", "/v1/facts", params={"user_id": user})

    def chat(self, user):
        began = time.perf_counter()
        answer = self._http.post("/v1/chat/stream", json={**self._of(user), "message": self._said()})
        good = answer.status_code == 200 and "event: done" in answer.text
        self._tally.note("chat", time.perf_counter() - began, 200 if good else 500)

    def leave(self, user):
        """Go away in the middle of an answer."""
        asked = {**self._of(user), "message": self._said()}
        with self._http.stream("POST", "/v1/chat/stream", json=asked) as answer:
            for _ in answer.iter_raw():
                break
        self._tally.note("leave", 0.0, answer.status_code)

    def steps(self, user):
        turn = self._post("step", "/v1/turns/begin", user, user=self._said())
        if turn is None:
            return
        given = {"turn_id": turn["id"], "tool": "read", "input": {"n": 1}, "result": self._said(60)}
        self._post("step", "/v1/turns/step", user, **given)
        if self._dice.random() < 0.5:
            self._post("step", "/v1/turns/complete", user, turn_id=turn["id"], assistant=self._said(3))
        else:
            self._post("step", "/v1/turns/abort", user, turn_id=turn["id"])

    def checkpoint(self, user):
        answer = self._http.post("/v1/checkpoints", json=self._of(user))
        # A conversation that was just erased, or is too short, has nothing to sum up.
        self._tally.note("checkpoint", 0.0, 200 if answer.status_code < 500 else answer.status_code)

    def look(self, user):
        self._send("pages", "GET", "/")
        self._send("export", "GET", "/v1/export", params={"user_id": user})

    def forget(self, user):
        self._send("forget", "POST", "/v1/forget", json={"user_id": user})
        self._pages.pop(user, None)

    # -- parts of it ------------------------------------------------------------------------------------------------------

    def _said(self, times=1):
        return "，".join(self._dice.choices(WORDS, k=3 * times)) + f" {self._dice.randrange(1000)}"

    def _of(self, user):
        return {"conversation_id": f"c-{user}", "user_id": user}

    def _post(self, what, path, owner, /, **body):
        headers = {"Idempotency-Key": f"{self._number}-{self._actions}"} if path == "/v1/turns" else None
        return self._send(what, "POST", path, json={**self._of(owner), **body}, headers=headers)

    def _send(self, what, method, path, **request):
        began = time.perf_counter()
        answer = self._http.request(method, path, **request)
        self._tally.note(what, time.perf_counter() - began, answer.status_code)
        return answer.json() if answer.is_success and path.startswith("/v1/turns") else None


# -- the process --------------------------------------------------------------------------------------------------------------


def sampled(service, folder: Path) -> Sample:
    """The process as /proc and its own metrics have it."""
    place = Path(f"/proc/{service.process.pid}")
    status = (place / "status").read_text()
    tasks = re.search(r"^pagefile_tasks (\S+)$", service.get("/metrics").text, re.MULTILINE)
    return Sample(
        time.monotonic(),
        int(re.search(r"VmRSS:\s+(\d+)", status)[1]),
        len(list((place / "fd").iterdir())),
        int(re.search(r"Threads:\s+(\d+)", status)[1]),
        int(float(tasks[1])),
        sum(file.stat().st_size for file in folder.glob("soak.db*")) // 1024,
    )


def minute_line(minute: float, samples: Sequence[Sample], taken) -> str:
    """One minute, for whoever watches."""

    def of(name):
        return round(median(getattr(sample, name) for sample in samples))

    def times(what):
        found = taken.get(what, [])
        if len(found) < 2:
            return f"{what} -"
        return f"{what} {median(found) * 1e3:.0f}/{quantiles(found, n=100)[98] * 1e3:.0f} ms"

    asked = sum(map(len, taken.values()))
    spoken = ", ".join(times(what) for what in ("record", "context", "recall", "chat"))
    return (
        f"{minute:5.1f} min  {asked:6d} requests  RSS {of('rss_kb') / 1024:6.1f} MB  files {of('files'):3d}  "
        f"threads {of('threads'):3d}  tasks {of('tasks'):3d}  database {of('database_kb') / 1024:5.1f} MB  p50/p99 {spoken}"
    )


def complaints(samples: Sequence[Sample], bad: Counter) -> list[str]:
    """What is not flat in the second half, and what went wrong at all."""
    late = samples[len(samples) // 2 :]
    third = max(1, len(late) // 3)
    found = [f"{count} answers were {what}" for what, count in sorted(bad.items())]

    def ends(name):
        return tuple(
            median(getattr(sample, name) for sample in part) for part in (late[:third], late[-third:])
        )

    before, after = ends("rss_kb")
    if after > before * (1 + RSS_GROWTH) and after > before + RSS_SLACK_KB:
        found.append(f"memory grew from {before / 1024:.1f} MB to {after / 1024:.1f} MB")
    for name, most in (("files", 5), ("threads", 5), ("tasks", 10)):
        before, after = ends(name)
        if abs(after - before) > most:
            found.append(f"{name} went from {before:g} to {after:g}")
    return found


def soak(minutes: float, db: str | None = None, tell=print) -> list[str]:
    """Load the service for so long; returns what is wrong."""
    with tempfile.TemporaryDirectory(prefix="pagefile-soak-") as name, Endpoint() as endpoint:
        model = {"name": "stub", "base_url": endpoint.url, "api_key": "none"}
        settings = {f"{who}__{key}": value for who in ("model", "embedder") for key, value in model.items()}
        settings |= {"embedder__dimension": DIMENSION, "facts__extract": "rules", "archive__threshold": 2000}
        folder = Path(name)
        with served(folder, db or f"sqlite:///{folder}/soak.db", **settings) as service:
            return _loaded(service, folder, minutes, tell)


def _loaded(service, folder, minutes, tell) -> list[str]:
    tally, over = Tally(), threading.Event()
    failures: list[BaseException] = []

    def act(client):
        try:
            client.run(over)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [
        threading.Thread(target=act, args=(Client(number, str(service.client.base_url), tally),))
        for number in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    samples: list[Sample] = []
    began = told = time.monotonic()
    try:
        while time.monotonic() < began + minutes * 60 and not failures:
            over.wait(SAMPLE_S)
            samples.append(sampled(service, folder))
            if time.monotonic() >= told + 60:
                recent = [sample for sample in samples if sample.at > told]
                told = time.monotonic()
                tell(minute_line((told - began) / 60, recent, tally.emptied()))
    finally:
        over.set()
        for thread in threads:
            thread.join(ANSWER_S)
    lost = [f"a client ended with {error!r}" for error in failures]
    return complaints(samples, tally.bad) + lost


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--db", help="another database than a new SQLite file")
    given = parser.parse_args()
    found = soak(given.minutes, given.db, tell=lambda line: print(line, flush=True))
    for complaint in found:
        print(f"NOT FLAT: {complaint}")
    if not found:
        print(
            "FLAT: memory, files, threads and tasks stayed where they were, and every request was answered."
        )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
