"""Writes the demo into a database as the agents would have, and removes it again.

Ids of its users and conversations begin with `demo-`; nothing else is touched. Each person is written completely or not at all:
leftovers of an interrupted run are erased before that person is written again, and complete ones are left alone.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast

from pagefile.engine import Conversation, Memory
from pagefile.errors import ConflictError, InvalidArgumentError
from pagefile.inspector.demo.script import PEOPLE, Data, Person, Said, Talk
from pagefile.records import JsonObject, Turn
from pagefile.settings import EmbedderSettings, Settings
from pagefile.standalone import AgentApp, SessionValue

PREFIX = "demo-"
#: Windows kept per conversation: all of them, so that the inspector shows how it grew.
_CALLS_KEPT = 100
#: How long each window waits for its query's embedding: long, so that a busy machine does not change the result.
_TIMEOUT_S = 30.0
#: How many of a user's conversations are checked before anything is erased.
_LISTED = 100
#: Of what an agent learnt, where the data says nothing else.
_CONFIDENCE = 0.9


class DemoClock:
    """A clock that shows the time of the turn being written."""

    def __init__(self) -> None:
        self._at = PEOPLE[0].talks[0].began

    def now(self) -> datetime:
        """Advances slightly on each call: no two events of a conversation share a timestamp."""
        self._at += timedelta(milliseconds=40)
        return self._at

    def set(self, moment: datetime) -> None:
        """Jump to a point in time, possibly an earlier one for another conversation."""
        self._at = moment


@dataclass(frozen=True, slots=True)
class DemoReport:
    conversations: int
    turns: int
    facts: int
    windows: int


async def fill_demo(
    settings: Settings,
    progress: Callable[[int, int], None] | None = None,
    *,
    people: Sequence[Person] = PEOPLE,
) -> DemoReport:
    """Write the missing parts of the demo into the configured database, and wait until they are indexed.

    It opens the database itself, with its own clock, so that the turns are spread over months.
    """
    if settings.url.startswith("memory:") or settings.url in {"sqlite://", "sqlite:///:memory:"}:
        raise InvalidArgumentError(
            f"The demo needs a database that others can open, not {settings.url!r}: name a file, "
            "for instance sqlite:///pagefile.db."
        )
    total = sum(map(_turns, people))
    done, written, clock = 0, Counter(conversations=0, turns=0, facts=0, windows=0), DemoClock()

    def report(turns: int) -> None:
        nonlocal done
        done += turns
        if progress is not None:
            progress(done, total)

    for language in ("en", "zh"):
        async with Memory.open(settings=_demo_settings(settings, language), clock=clock) as memory:
            for person in (one for one in people if one.language == language):
                if await _complete(memory, person):
                    report(_turns(person))
                else:
                    await _Writer(memory, clock, person, written, report).write()
            await memory.settle()
    return DemoReport(**written)


async def demo_present(memory: Memory) -> bool:
    return all([await _complete(memory, person) for person in PEOPLE])


async def remove_demo(memory: Memory) -> dict[str, int]:
    """Erase the demo; returns the number of rows removed by table."""
    for person in PEOPLE:
        await _check_ours(memory, person)
    counts = Counter[str]()
    for person in PEOPLE:
        counts.update((await memory.forget(user_id=person.user_id)).counts)
    return counts


def _demo_settings(settings: Settings, language: str) -> Settings:
    embedder = settings.embedder
    if embedder.query_timeout_s == EmbedderSettings().query_timeout_s:
        # No user is waiting for the demo's windows, so wait longer, unless a timeout was set explicitly.
        embedder = replace(embedder, query_timeout_s=_TIMEOUT_S)
    facts = replace(settings.facts, enabled=True, extract="off")
    archive = replace(settings.archive, retention_days=0, max_bytes=0, synopsis="extract")
    told = replace(settings, language=language, facts=facts, archive=archive, embedder=embedder)
    # Synchronous checkpoints make the demo identical every time it is written.
    modes = {"checkpoints": "sync", "synchronous": "normal", "indexing": "background", "recall": "auto"}
    return replace(told, calls_kept=_CALLS_KEPT, **modes)


def _turns(person: Person) -> int:
    return sum(len(talk.turns()) for talk in person.talks)


async def _complete(memory: Memory, person: Person) -> bool:
    """Whether the person's last turn exists: it is written last."""
    last = person.talks[-1]
    newest = await memory.conversation(last.id, user_id=person.user_id).turns(limit=1, newest=True)
    return bool(newest) and newest[0].id == _turn_id(last, len(last.turns()) - 1)


def _turn_id(talk: Talk, number: int) -> str:
    return f"{talk.id}-{number:04}"


async def _check_ours(memory: Memory, person: Person) -> None:
    """Refuse to erase a real user who has the same id."""
    heads = await memory.conversations(user_id=person.user_id, limit=_LISTED)
    ours = {talk.id for talk in person.talks}
    foreign = [head.scope.conversation for head in heads if head.scope.conversation not in ours]
    if foreign:
        raise ConflictError(
            f"User {person.user_id!r} has conversations that are not the demo's ({', '.join(map(str, foreign[:3]))}): "
            "erase them first, or keep the demo in a database of its own; nothing was changed."
        )


@dataclass(frozen=True, slots=True)
class _Writer:
    _memory: Memory
    _clock: DemoClock
    _person: Person
    _written: Counter[str]
    #: Called with the number of turns written since the last call.
    _report: Callable[[int], None]

    async def write(self) -> None:
        await _check_ours(self._memory, self._person)
        await self._memory.forget(user_id=self._person.user_id)
        for talk in self._person.talks:
            await self._talk(talk)
            self._written["conversations"] += 1

    async def _talk(self, talk: Talk) -> None:
        chat = self._memory.conversation(talk.id, user_id=self._person.user_id, agent=talk.agent)
        said = talk.turns()
        pause = timedelta(days=talk.days) / max(1, len(said) - 1)
        for number, one in enumerate(said):
            # Turns of one session are minutes apart, sessions days apart.
            session, place = divmod(number, 5)
            self._clock.set(talk.began + session * 5 * pause + place * timedelta(minutes=7))
            await self._turn(chat, talk, one, _turn_id(talk, number))
            self._written["turns"] += 1
            self._report(1)
        # Listing the calls waits for them to be written, so that not all of the demo's are pending at once.
        await chat.calls(limit=1)

    async def _turn(self, chat: Conversation, talk: Talk, said: Said, turn_id: str) -> None:
        turn = await chat.begin(said.user, id=turn_id, at=self._clock.now())
        if said.window:
            await self._window(chat, talk)
        for number, tool in enumerate(said.tools):
            turn = await chat.step(turn, **tool, call_id=f"{turn_id}-{number}")
            if said.window:
                await self._window(chat, talk)
        if said.loads is not None:
            turn = await self._loaded(chat, turn, said.loads, said.user)
            await self._window(chat, talk)
        if said.aborted:
            await chat.abort(turn)
        else:
            await chat.complete(turn, said.assistant)
        for learnt in said.learnt:
            await self._learn(learnt, turn_id)
        if said.snapshot is not None:
            app = AgentApp(self._memory)
            value = (await app.get_short_memory(chat.id)).to_json()
            value["user_snapshot"] = {**cast("JsonObject", value["user_snapshot"]), **said.snapshot}
            await app.set_short_memory(chat.id, SessionValue.of(value))
        if said.resets:
            await chat.reset()

    async def _window(self, chat: Conversation, talk: Talk) -> None:
        # What is recalled depends on what the background has indexed: the demo says the same every time.
        await self._memory.settle()
        await chat.context(window_tokens=talk.window_tokens, instructions=talk.instructions)
        self._written["windows"] += 1

    async def _loaded(self, chat: Conversation, turn: Turn, tool: str, query: str) -> Turn:
        page = next((page for page in await chat.pages() if page.tool == tool), None)
        if page is None:
            return turn
        name, asked = "load_tool_history", {"uuid": page.uuid, "query": query}
        text = await chat.call_tool(name, asked, turn=turn)
        return await chat.step(turn, tool=name, input=asked, result=text, call_id=f"{turn.id}-load")

    async def _learn(self, learnt: Data, turn_id: str) -> None:
        user_id = self._person.user_id
        if learnt.get("kind") != "wrong":
            given: Data = {"confidence": _CONFIDENCE, **learnt}
            await self._memory.remember(**given, user_id=user_id, source=turn_id)
            self._written["facts"] += 1
            return
        for fact in await self._memory.facts(user_id):
            if fact.text == learnt["text"]:
                await self._memory.retract(fact.id)
