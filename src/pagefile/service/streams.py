"""Answers that outlive their connection: a reader who lost the line goes on after the last event it received.

A run belongs to the service, not to the request that began it. Its events are kept while it runs, each with an id that says which
turn it belongs to and how much of the answer was out. What is done is read from the log, so it can be resumed after a restart and by
every worker. A run holds a lease in the database while it lasts: another worker waits for it, and takes over if the lease ends because
its worker died. The open turns of such workers are closed by the next answer in their conversation.
"""

import hashlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Protocol, TypeAlias
from urllib.parse import quote, unquote

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from fastapi import Response
from pydantic import BaseModel

from pagefile.edge.recorder import given_up
from pagefile.engine import Conversation, Memory
from pagefile.engine.dead_writers import KEPT, about
from pagefile.errors import ConflictError, PagefileError
from pagefile.ports import Claim, EntryQuery, LogReader
from pagefile.records import Turn
from pagefile.service.events import CLEAN_UP_S, RETRY_MS, EventStream, SendEvent, encoded
from pagefile.service.problems import answered, problem_of
from pagefile.wire import chat as wire
from pagefile.wire.responses import Problem

logger = logging.getLogger("pagefile.service")

#: How often a run looks whether its turn was stopped, or ended elsewhere.
_LOOK_EVERY_S = 0.5
#: How long a lease lasts, and how often it is renewed: a worker that died is taken over from after so long.
_LEASE_S = 15.0
_RENEW_EVERY_S = 4.0
#: After every entry that has a place in a log: of such a query, open turns are left.
_BEHIND_ALL = 2**62
#: How long a response waits for the model's first word, so that a refusal is the response's own status. Those come at once.
_HOLD_S = 1.0
_END = "end"
_REPLAYED = {"Idempotency-Replayed": "true"}

#: A turn among those of all conversations.
Place: TypeAlias = tuple[str, str, str]


class Run(Protocol):
    """Work that answers a turn."""

    chat: Conversation
    turn: Turn
    #: Whether it is ending its turn itself.
    ending: bool

    async def run(self, say: "Say") -> None: ...
    async def end(self) -> None: ...


class Say(Protocol):
    """Sends an event: its name and its data."""

    async def __call__(self, name: str, data: BaseModel, /) -> None: ...


@dataclass(frozen=True, slots=True)
class EventId:
    """The id of an event: the turn, the event's number, and how many characters of the answer were out after it.

    The digest of these characters tells whether they are those of the stored answer: an answer that was begun again differs.
    """

    turn_id: str
    number: str
    chars: int = 0
    digest: str = ""

    def __str__(self) -> str:
        name = quote(self.turn_id, safe="")
        return f"{name}:{_END}" if self.is_end else f"{name}:{self.number}:{self.chars}:{self.digest}"

    @property
    def is_end(self) -> bool:
        return self.number == _END

    @classmethod
    def read(cls, header: str | None) -> "EventId | None":
        """That of a `Last-Event-ID`; None for anything else, which may be another service's."""
        name, *rest = (header or "").split(":")
        if rest == [_END]:
            return cls(unquote(name), _END)
        if (
            len(rest) != 3
            or not (rest[0] + rest[1]).isascii()
            or not (rest[0].isdigit() and rest[1].isdigit())
        ):
            return None
        return cls(unquote(name), rest[0], int(rest[1]), rest[2])


class Answer:
    """The events of one turn's answer, for any number of readers, who may come and go."""

    def __init__(self, turn_id: str, linger_s: float = 0.0) -> None:
        self._turn_id = turn_id
        #: How long the run goes on without a reader.
        self.linger_s = linger_s
        self.readers = 0
        #: Cancelled when there is no reader left.
        self.scope: anyio.CancelScope | None = None
        self._first = 1
        self._events: list[tuple[str, bytes]] = []
        self._ended = False
        self._chars = 0
        self._digest = hashlib.blake2b(digest_size=4)
        self._news = anyio.Event()
        #: Set when the model has begun to answer, or nothing more comes.
        self._under_way = anyio.Event()
        self._refusal: Problem | None = None

    @classmethod
    async def stored(cls, turn: Turn, last: EventId | None) -> "Answer":
        """The answer of a done turn: the rest of it if the reader has its beginning, or else all of it."""
        answer, text = cls(turn.id), turn.assistant or ""
        answer._add(text[: last.chars] if last else "")
        if last and last.turn_id == turn.id and last.digest == answer._digest.hexdigest():
            answer._first, text = int(last.number) + 1, text[last.chars :]
        else:
            answer = cls(turn.id)
            await answer.say(
                "turn", wire.ChatTurn(turn_id=turn.id, conversation_id=turn.scope.conversation or "")
            )
        await answer.say_stored(turn, text)
        return answer

    async def say_stored(self, turn: Turn, text: str) -> None:
        if text:
            await self.say("token", wire.ChatToken(text=text))
        await self.say("done", wire.ChatDone.of_turn(turn, finish="", window_tokens=0, model_calls=0))
        self.end()

    async def say(self, name: str, data: BaseModel, /) -> None:
        if isinstance(data, wire.ChatToken):
            self._add(data.text)
        number = str(self._first + len(self._events))
        last = name in {"done", "error"}
        if isinstance(data, Problem) and data.status == HTTPStatus.TOO_MANY_REQUESTS:
            self._refusal = None if self._under_way.is_set() else data
        generated = isinstance(data, wire.ChatNode) and data.node == "generate"
        if last or generated or isinstance(data, wire.ChatToken):
            self._under_way.set()
        event_id = str(
            EventId(self._turn_id, _END if last else number, self._chars, self._digest.hexdigest())
        )
        retry = RETRY_MS if not self._events else None
        if isinstance(data, Problem) and data.retry_after_s is not None:
            retry = data.retry_after_s * 1000
        self._events.append((event_id, encoded(name, data, event_id, retry_ms=retry)))
        self._tell()
        # Readers send it, or are found to have left, before the work goes on.
        await anyio.lowlevel.checkpoint()

    def end(self) -> None:
        self._ended = True
        self._under_way.set()
        self._tell()

    async def follow(self, send: SendEvent, last: str | None = None) -> None:
        """Send what comes after an event, until the end; everything if that event is not one of these."""
        known = [event_id for event_id, _ in self._events]
        place = known.index(last) + 1 if last in known else 0
        while True:
            for _, event in self._events[place:]:
                place += 1
                await send(event)
            if place < len(self._events):
                continue
            if self._ended:
                return
            await self._news.wait()

    def response(self, last: str | None = None, *, replayed: bool = False) -> EventStream:
        """A response with a reader's events. The reader counts from now on, until the response is over."""
        self.readers += 1

        async def left() -> None:
            self.readers -= 1
            self._tell()

        def gone() -> None:
            # At once: the rest of the answer may be on its way.
            if self.scope is not None and self.readers == 1 and not self.linger_s:
                self.scope.cancel()

        headers = _REPLAYED if replayed else None
        return EventStream(lambda send: self.follow(send, last), left, gone=gone, headers=headers)

    async def opened(self) -> Response:
        """The same for a reader of the whole answer, once the model has begun; its 429 is the response's own, with `Retry-After`."""
        self.readers += 1
        try:
            with anyio.move_on_after(_HOLD_S):
                await self._under_way.wait()
        finally:
            self.readers -= 1
            self._tell()
        return self.response() if self._refusal is None else answered(self._refusal)

    async def deserted(self) -> None:
        """Return when there has been no reader for as long as a run continues without one."""
        while True:
            await self._until(lambda: not self.readers)
            with anyio.move_on_after(self.linger_s):
                await self._until(lambda: self.readers > 0)
            if not self.readers:
                return

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._news.wait()

    def _add(self, text: str) -> None:
        self._chars += len(text)
        self._digest.update(text.encode("utf-8", "surrogatepass"))

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


class Streams:
    """The answers in progress of this process, and the leases that keep other workers from beginning them too."""

    def __init__(self, group: TaskGroup, memory: Memory) -> None:
        self._group = group
        self._answers: dict[Place, Answer] = {}
        self._leases, self._clock = memory.engine.store.leases, memory.engine.clock
        #: The leases that this process has to renew.
        self._held: set[str] = set()

    def find(self, chat: Conversation, turn_id: str) -> Answer | None:
        return self._answers.get(_place(chat, turn_id))

    def start(self, run: Run, linger_s: float) -> Answer:
        place = _place(run.chat, run.turn.id)
        answer = self._answers[place] = Answer(run.turn.id, linger_s)
        self._group.start_soon(self._carried_out, run, answer, place)
        return answer

    async def close_abandoned(self, chat: Conversation, reader: LogReader, *, besides: str) -> None:
        """Abort the open turns of a conversation whose workers died while they answered them."""
        query = EntryQuery(chat.scope, statuses=frozenset({"open"}), after_seq=_BEHIND_ALL)
        names = [turn.id for turn in await reader.entries(query) if turn.id != besides]
        turns = {_lease_id(_place(chat, name)): name for name in names}
        for lease in await self._leases.ended(turns.keys() - self._held, self._clock.now()) if turns else ():
            if await given_up(chat, turns[lease]):
                await self._leases.release(lease)

    @contextmanager
    def holding(self, lease: str) -> Generator[None]:
        """Renew a lease for as long as the work in this context takes."""
        self._held.add(lease)
        try:
            yield
        finally:
            self._held.discard(lease)

    async def renew(self) -> None:
        while True:
            await anyio.sleep(_RENEW_EVERY_S)
            try:
                await self._leases.renew(self._held, self._clock.now() + timedelta(seconds=_LEASE_S))
            except PagefileError as error:
                logger.warning("The leases of answers in progress could not be renewed: %s", error)

    async def _carried_out(self, run: Run, answer: Answer, place: Place) -> None:
        try:
            async with anyio.create_task_group() as together:
                answer.scope = together.cancel_scope
                together.start_soon(_cancel_after, answer.deserted, together.cancel_scope)
                if await self._locked(run, answer, place):
                    try:
                        await _run_unless_stopped(run, answer)
                    finally:
                        await self._give_back(place)
                answer.end()
                # Keep the answer for a client that reconnects after a failure; a completed answer is in the log.
                await anyio.sleep(answer.linger_s)
                together.cancel_scope.cancel()
        finally:
            answer.end()
            del self._answers[place]

    async def _locked(self, run: Run, answer: Answer, place: Place) -> bool:
        """Whether this process answers the turn; if another one does, its answer is waited for."""
        while True:
            taken = await self._take(run, place)
            # Whoever had the lease may have answered since the request was read.
            turn = await reread(run)
            if turn.status == "open":
                if taken:
                    return True
                await anyio.sleep(_LOOK_EVERY_S)
                continue
            if taken:
                await self._give_back(place)
            if turn.status == "done":
                began = wire.ChatTurn(turn_id=turn.id, conversation_id=run.chat.id)
                await answer.say("turn", began)
                await answer.say_stored(turn, turn.assistant or "")
            else:
                await answer.say("error", problem_of(ended(turn)))
            return False

    async def _take(self, run: Run, place: Place) -> bool:
        lease, now = _lease_id(place), self._clock.now()
        end = now + timedelta(seconds=_LEASE_S)
        said = about(run.chat.scope, place[-1])
        claim = Claim(lease, run.chat.scope, "stream", now, end, now + KEPT, said)
        try:
            if await self._leases.claim(claim, take_over=True) is not None:
                return False
        except PagefileError as error:
            # A turn must not stay unanswered for this; two workers that answer it are told apart when the first completes it.
            logger.warning("An answer begins without a lease: %s", error)
        self._held.add(lease)
        return True

    async def _give_back(self, place: Place) -> None:
        lease = _lease_id(place)
        self._held.discard(lease)
        with anyio.move_on_after(CLEAN_UP_S, shield=True), suppress(PagefileError):
            await self._leases.release(lease)


@asynccontextmanager
async def open_streams(memory: Memory) -> AsyncGenerator[Streams]:
    """The answers in progress; those that are left at the end are aborted."""
    async with anyio.create_task_group() as group:
        streams = Streams(group, memory)
        group.start_soon(streams.renew)
        yield streams
        group.cancel_scope.cancel()


def ended(turn: Turn) -> ConflictError:
    """Why a turn that is over is not answered."""
    return ConflictError(f"Turn {turn.id!r} is {turn.status}: ask again under a new id.")


async def _run_unless_stopped(run: Run, answer: Answer) -> None:
    """Run until the end, or until anybody aborts the turn, in this worker or another."""
    try:
        async with anyio.create_task_group() as together:

            async def stopped() -> None:
                turn = run.turn
                while turn.status != "aborted":
                    await anyio.sleep(_LOOK_EVERY_S)
                    turn = await reread(run)
                if run.ending:
                    await anyio.sleep_forever()
                await answer.say("error", problem_of(ended(turn)))

            together.start_soon(_cancel_after, stopped, together.cancel_scope)
            await run.run(answer.say)
            together.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(CLEAN_UP_S, shield=True):
            await run.end()


async def reread(run: Run) -> Turn:
    """The turn as the log has it now, or as it was while the log cannot be read."""
    with suppress(PagefileError):
        # Adding nothing returns what is there.
        return await run.chat.extend(run.turn.id, ())
    return run.turn


async def _cancel_after(wait: Callable[[], Awaitable[None]], scope: anyio.CancelScope) -> None:
    await wait()
    scope.cancel()


def _place(chat: Conversation, turn_id: str) -> Place:
    return chat.scope.tenant, chat.id, turn_id


def _lease_id(place: Place) -> str:
    digest = hashlib.blake2b(digest_size=16, person=b"stream")
    for name in place:
        digest.update(name.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
