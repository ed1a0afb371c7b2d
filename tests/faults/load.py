"""A load that remembers on its own side what it was promised, and holds the service to it afterwards.

Each client records into a conversation of its own and into one that all share, and repeats a request unchanged, with the same
Idempotency-Key, until somebody answers it; one more asks for windows and recalls all the while. Every 2xx for a turn goes into the
journal with the bytes that were sent. `check` reads everything back through the API and compares.
"""

import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

#: A single answer may take so long; nothing in these tests has a reason to take longer.
ANSWER_S = 20.0
SHARED = "共享/all:1"
#: Between two turns of a client, and before it asks again who got no answer: the service needs the machine too.
_PAUSE_S = 0.1
_AGAIN_S = 0.1
_PIECES = (
    "高血压患者每天食盐不超过五克。",
    "Zażółć gęślą jaźń 🧬 ",
    'quotes "and" \\ backslashes\n\tand tabs ',
    "我对青霉素过敏，已记录。",
    "𠮷野家 é ́ combining ",
    "0123456789 " * 8,
)


@dataclass(frozen=True, slots=True)
class Sent:
    """A turn as a client sent it."""

    chat: str
    user_id: str
    key: str
    user: str
    assistant: str
    steps: tuple[tuple[str, str], ...]

    @property
    def body(self) -> dict[str, Any]:
        steps = [{"tool": tool, "result": result, "call_id": f"{self.key}/1"} for tool, result in self.steps]
        return {
            "conversation_id": self.chat,
            "user_id": self.user_id,
            "user": self.user,
            "assistant": self.assistant,
            "steps": steps,
            "metadata": {"key": self.key},
        }


@dataclass(frozen=True, slots=True)
class Promise:
    """A turn that was acknowledged: what was sent, and what the service called it."""

    sent: Sent
    id: str
    seq: int
    #: Characters of each result that the answer says are gone, with what is left: an archive that was down.
    cut: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that a client got, and when it had asked."""

    what: str
    status: int
    began: float
    ended: float
    problem: dict[str, Any] | None = None
    retry_after: str | None = None


@dataclass
class Load:
    """The clients, what they were told and what they hold in their hands."""

    base_url: str
    clients: int = 4
    #: The number of the first client: two loads beside each other have clients of different numbers.
    first: int = 0
    #: Turns carry tool results of this many characters.
    result_chars: int = 200
    promises: list[Promise] = field(default_factory=list)
    #: Every turn that was ever sent, by its key: an unacknowledged one may be there or not.
    sent: dict[str, Sent] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    #: Requests that got no answer at all.
    broken: int = 0
    failures: list[BaseException] = field(default_factory=list)
    #: Statuses that are a reason to ask again.
    again: frozenset[int] = frozenset({503})
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    @contextmanager
    def running(self):
        """The clients work as long as the block; what they were doing at its end they still finish."""
        self._threads = [
            threading.Thread(target=self._guarded, args=(work, number))
            for number, work in enumerate([*[self._talk] * self.clients, self._look], start=self.first)
        ]
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self.stop()

    def stop(self):
        """Ends the clients, each after the request it is at."""
        self._stop.set()
        for thread in self._threads:
            thread.join(3 * ANSWER_S)
        assert self.failures == []
        assert not any(thread.is_alive() for thread in self._threads), "a client still waits"

    def wait(self, met, seconds=ANSWER_S, what="it"):
        """Waits for something to be so."""
        end = time.monotonic() + seconds
        while not met():
            assert self.failures == [], self.failures
            assert time.monotonic() < end, f"{what} did not come to be within {seconds} s: {self.told()}"
            time.sleep(0.02)

    def more(self, turns, seconds=60.0):
        """Waits until this many more turns are acknowledged."""
        enough = len(self.promises) + turns
        self.wait(lambda: len(self.promises) >= enough, seconds, f"{turns} more turns")

    def good_since(self, moment, what="turn"):
        """The first good answer to a request that was made after a moment, None while there is none."""
        good = [
            answer
            for answer in self.answers[:]
            if answer.what == what and answer.began >= moment and answer.status < 300
        ]
        return min(good, key=lambda answer: answer.ended, default=None)

    def told(self):
        """How many answers of each kind there were."""
        return dict(Counter((answer.what, answer.status) for answer in self.answers[:])), self.broken

    def joined(self, other):
        """What two loads were promised together."""
        return Load(self.base_url, promises=self.promises + other.promises, sent={**self.sent, **other.sent})

    # -- a client -------------------------------------------------------------------------------------------------------

    def _guarded(self, work, number):
        try:
            with httpx.Client(base_url=self.base_url, timeout=ANSWER_S, trust_env=False) as client:
                work(client, number)
        except BaseException as error:
            self.failures.append(error)
            raise

    def _talk(self, client, number):
        dice = random.Random(number)
        for turn in count():
            self._record(client, self._turn(dice, number, turn))
            if self._stop.wait(_PAUSE_S):
                return

    def _look(self, client, _number):
        for turn in count():
            number = self.first + turn % self.clients
            self._ask(client, "context", number, {"query": "怎么办？", "window_tokens": 2000})
            self._ask(client, "recall", number, {"query": "青霉素", "limit": 3})
            if self._stop.wait(3 * _PAUSE_S):
                return

    def _turn(self, dice, number, turn):
        key = f"{number}-{turn}"
        text = "".join(dice.choices(_PIECES, k=dice.randint(1, 12)))
        chat, user = (SHARED, "李雷") if turn % 4 == 3 else (own(number), f"user-{number}")
        result = (text * 200)[: dice.randint(1, self.result_chars)]
        steps = (("search", result),) if turn % 2 else ()
        return Sent(chat, user, key, f"{key} {text}", f"{text[::-1]} {key}", steps)

    def _record(self, client, sent):
        self.sent[sent.key] = sent
        answer = self._patiently(client, "turn", "/v1/turns", sent.body, {"Idempotency-Key": sent.key})
        if answer is not None:
            stored = answer.json()
            assert {**sent.body, "steps": None}.items() <= {**stored, "steps": None}.items(), stored
            cut = tuple((step["lost_chars"], step["result"]) for step in stored["steps"])
            self.promises.append(Promise(sent, stored["id"], stored["seq"], cut))

    def _ask(self, client, what, number, body):
        """Ask once: there is always a next time."""
        where = {"conversation_id": own(number), "user_id": f"user-{number}"}
        answer = self._answer(client, what, f"/v1/{what}", {**where, **body})
        if what == "context" and answer is not None and answer.is_success:
            assert answer.json()["tokens"] <= 2000
            assert answer.json()["messages"][-1]["content"].endswith("怎么办？")

    def _patiently(self, client, what, path, body, headers=None):
        """The good answer to a request that is repeated, unchanged, until there is one; None when it was time to stop."""
        while True:
            answer = self._answer(client, what, path, body, headers)
            if answer is not None and answer.is_success:
                return answer
            if self._stop.wait(_AGAIN_S):
                return None

    def _answer(self, client, what, path, body, headers=None):
        """The answer to a request, None when the connection broke."""
        began = time.monotonic()
        try:
            answer = client.post(path, json=body, headers=headers)
        except httpx.TransportError:
            self.broken += 1
            return None
        if "x-content-type-options" not in answer.headers:
            # Every answer of ours has it: while nobody serves, somebody else's server may have taken the port.
            self.broken += 1
            return None
        self._note(what, answer, began)
        again = answer.is_success or answer.status_code in self.again
        assert again or answer.json().get("code") == "idempotency-running", (what, answer.text)
        return answer

    def _note(self, what, answer, began):
        problem = None if answer.is_success else answer.json()
        self.answers.append(
            Answer(
                what,
                answer.status_code,
                began,
                time.monotonic(),
                problem,
                answer.headers.get("Retry-After"),
            )
        )


def own(number):
    """The conversation that one client has for itself."""
    return f"诊疗/{number}:7"


# -- afterwards ---------------------------------------------------------------------------------------------------------------


def check(client, load, *, may_cut=False):
    """Nothing acknowledged is lost, changed, moved or there twice, and nothing is there that nobody sent.

    `may_cut`: the archive itself could fail. Then the middle of a bulky result may be gone, if the very answer said so.
    """
    assert load.promises, "nothing was acknowledged, so nothing was tested"
    assert may_cut or not any(lost for promise in load.promises for lost, _ in promise.cut)
    for chat, user in sorted({(sent.chat, sent.user_id) for sent in load.sent.values()}):
        _check_conversation(client, load, chat, user)


def _check_conversation(client, load, chat, user):
    turns = everything(client, "/v1/turns", chat, user)
    by_key = {turn["metadata"]["key"]: turn for turn in turns}
    assert len(by_key) == len(turns), "a turn is there twice"
    for promise in load.promises:
        if promise.sent.chat == chat:
            found = by_key.get(promise.sent.key)
            assert found is not None, f"turn {promise.sent.key} of {chat} was acknowledged and is lost"
            assert (promise.id, promise.seq) == (found["id"], found["seq"])
            assert promise.cut == tuple((step["lost_chars"], step["result"]) for step in found["steps"])
    for key, turn in by_key.items():
        sent = load.sent[key]
        assert (sent.user, sent.assistant, "done") == (turn["user"], turn["assistant"], turn["status"]), (
            "torn"
        )
        assert [tool for tool, _ in sent.steps] == [step["tool"] for step in turn["steps"]]
        for (_, result), step in zip(sent.steps, turn["steps"], strict=True):
            assert step["lost_chars"] or result == whole(client, sent, step), "torn"
    _check_order(turns, everything(client, "/v1/checkpoints", chat, user))
    if chat != SHARED:
        # One client waits for each answer: its turns are as it sent them.
        numbers = [int(turn["metadata"]["key"].partition("-")[2]) for turn in turns]
        assert numbers == sorted(numbers)


def _check_order(turns, checkpoints):
    places = [turn["seq"] for turn in turns]
    assert places == sorted(places)
    # No place is empty: what is between two turns is a checkpoint.
    taken = sorted(places + [one["seq"] for one in checkpoints])
    assert taken == list(range(1, len(taken) + 1))
    created = [turn["created"] for turn in turns]
    assert created == sorted(set(created)), "time does not rise with the places"


def whole(client, sent, step):
    """A tool's result with every byte of it, from its page if it has one."""
    if step["page"] is None:
        return step["result"]
    asked = {"conversation_id": sent.chat, "user_id": sent.user_id, "uuid": step["page"]}
    answer = client.post("/v1/load", json=asked)
    assert answer.is_success, answer.text
    return answer.json()["text"]


def everything(client, path, chat, user):
    """All of a list of a user's conversation, page by page."""
    asked = {"conversation_id": chat, "user_id": user, "limit": 1000}
    items, after = [], 0
    while after is not None:
        answer = client.get(path, params={**asked, "after": after})
        assert answer.is_success, answer.text
        items += answer.json()["items"]
        after = answer.json()["next"]
    return items


# -- the stopwatch ------------------------------------------------------------------------------------------------------------


@dataclass
class Stopwatch:
    """Tells how long it took from a fault to the first good answer: on the terminal, and in the report of the run."""

    record: Any

    def recovered(self, load, fault, since, *, asked=None, what="turn", within=60.0):
        """Waits for the first good answer to a request made after the fault, or after a later moment."""
        asked = since if asked is None else asked
        load.wait(lambda: load.good_since(asked, what) is not None, within, f"a good {what} after {fault}")
        self.told(fault, load.good_since(asked, what).ended - since)

    def told(self, fault, seconds):
        """A recovery that was measured elsewhere."""
        line = f"{fault}: recovered in {seconds:.1f} s"
        print(line)
        self.record("recovered", line)
