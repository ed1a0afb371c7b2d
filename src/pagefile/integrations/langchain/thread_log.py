"""Records a thread's messages as turns in the log: each once, whatever LangGraph replays, interrupts or resumes.

A turn takes the id of the user's message. It is opened when the model is first called for it, gets its tool results as they arrive,
and is completed when the agent ends. Middleware is not told when an agent ends with an error or is cancelled, and the run may be
resumed. So its turn stays open, which keeps it out of every window, until the user's next message shows that it was
abandoned: then it is aborted, or completed if the thread does have its answer.

A message that is run again after its turn is done (LangGraph's time travel) opens no turn as long as everything happens as it did
then: with the same answer it is the same turn. As soon as a call, a result or the answer differs, it is a turn of its own.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

import anyio

from pagefile.edge.recorder import Happened, begun, completed, unwritten, written
from pagefile.engine import Conversation
from pagefile.errors import ConflictError
from pagefile.integrations.langchain.messages import Exchange, ToolUse, turn_id
from pagefile.records import Turn

#: How many turns of the log to read beyond those new to this process.
_LOOK_BACK = 20
#: Marks the turn of a regenerated answer to the same message.
_VERSION = re.compile(r"~[0-9a-f]{8}$")


@dataclass(slots=True)
class Talk:
    """One conversation as known to this process."""

    chat: Conversation
    #: The newest turns of the log, by id.
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    #: The turn being answered, a done one where it is run again, and what it answers.
    running: Turn | None = None
    answers: Exchange | None = None
    #: Messages whose run raised in this process.
    failed: set[str] = field(default_factory=set[str])
    #: The done turn of each exchange that needs no further work; None for an abandoned one.
    settled: dict[tuple[str, int], str | None] = field(default_factory=dict[tuple[str, int], "str | None"])
    #: Tools run concurrently, and each result is written as it arrives.
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    # -- the life of a turn ----------------------------------------------------------------------------------------------

    async def begun(self, found: Sequence[Exchange]) -> Turn | None:
        """The turn of the last exchange with everything so far; None if there is no exchange.

        It is open, or done where all of this happened before. A thread without any user message lost it to a summary in the middle of a turn; this then returns the running turn.
        """
        async with self._lock:
            return await self._begun(found)

    async def _begun(self, found: Sequence[Exchange]) -> Turn | None:
        if not found:
            if self.running is None:
                await self._look(0)
                self.running = next((t for t in reversed(self.turns.values()) if t.status == "open"), None)
            return self.running
        current = found[-1]
        # What may be the answer is written when the agent ends.
        happened = current.happened if current.answer is None else current.happened[:-1]
        is_same = self.answers is not None and self.answers.id == current.id
        self.answers = current
        if self.running is None or not is_same or self.running.status != "open":
            await self._settle(found)
            self.running = await self._opened(current, happened)
        self.failed.discard(current.id)
        return self._keep(await written(self.chat, self.running, happened))

    async def add(self, turn: Turn, use: ToolUse) -> Turn:
        """Add a tool's result to its turn, archiving it if it is bulky."""
        async with self._lock:
            # A concurrent call may have added its result since the turn was read.
            known = self.turns.get(turn.id, turn)
            happened: list[Happened] = [use.returned]
            if known.status == "done" and self.answers is not None:
                # Run again: another result than then makes it a turn of its own.
                happened = [*self.answers.happened, use.returned]
                known = self.running = await self._opened(self.answers, happened)
            return self._keep(await written(self.chat, known, happened))

    async def finish(self, found: Sequence[Exchange], last: Exchange, answer: str | None) -> None:
        """Complete the turn of the last exchange; of one whose user message is gone, `last` has the rest."""
        async with self._lock:
            turn = await self._begun(found)
            if turn is None:
                return
            try:
                done = self._answered(found, answer) if turn.status == "done" else None
                done = done or self._keep(await completed(self.chat, turn, last.happened, answer))
            except ConflictError:
                # The turn was ended elsewhere meanwhile, or earlier with another answer: record what was said anyway.
                if not found:
                    raise
                done = await self._recorded(found[-1], answer)
            if self.running is not None and self.running.id == turn.id:
                self.running, self.answers = None, None
            if found:
                self.settled[_key(found[-1])] = done.id

    def done(self, exchange: Exchange) -> str | None:
        """The id of the done turn for an earlier exchange; None if the log has none."""
        return self.settled.get(_key(exchange))

    # -- internals --------------------------------------------------------------------------------------------------------

    async def _look(self, turns: int) -> None:
        listing = await self.chat.turns(newest=True, limit=turns + _LOOK_BACK)
        self.turns = {turn.id: turn for turn in listing}

    async def _settle(self, found: Sequence[Exchange]) -> None:
        """Bring the log up to date with the thread's earlier turns."""
        new = [exchange for exchange in found[:-1] if _key(exchange) not in self.settled]
        await self._look(len(new))
        known = _Index(self.turns.values())
        for exchange in new:
            self.settled[_key(exchange)] = await self._ended(exchange, known.find(exchange))
        given_up = {turn_id(human) for exchange in found for human in exchange.humans[:-1]} | self.failed
        for message_id in given_up - {found[-1].id}:
            for turn in known.versions(message_id):
                if self.turns[turn.id].status == "open":
                    self._keep(await self.chat.abort(turn))
        self.failed &= {found[-1].id}
        present = {_key(exchange) for exchange in found}
        self.settled = {key: turn for key, turn in self.settled.items() if key in present}

    async def _ended(self, exchange: Exchange, turn: Turn | None) -> str | None:
        """End an earlier exchange's turn as the thread shows it; returns its id if it is done."""
        if turn is None:
            return None if exchange.answer is None else (await self._recorded(exchange, exchange.answer)).id
        if turn.status != "open":
            return turn.id if turn.status == "done" else None
        if exchange.answer is None:
            self._keep(await self.chat.abort(turn))
            return None
        return self._keep(await completed(self.chat, turn, exchange.happened)).id

    async def _opened(self, exchange: Exchange, happened: Sequence[Happened]) -> Turn:
        """The turn that a message's run is written to; a done one if all of this happened in it."""
        versions = _Index(self.turns.values()).versions(exchange.id)
        for turn in versions:
            if turn.status == "open":
                return turn
        words = exchange.asked.text
        for turn in versions:
            if turn.status == "done" and turn.user == words and not unwritten(turn, happened):
                return turn
        with suppress(ConflictError):
            turn = await begun(self.chat, exchange.asked, exchange.id)
            if turn.status == "open" or (turn.status == "done" and not unwritten(turn, happened)):
                return self._keep(turn)
        # The message was answered before: this run regenerates the answer from an earlier point of the thread.
        return self._keep(await begun(self.chat, exchange.asked, f"{exchange.id}~{uuid4().hex[:8]}"))

    def _answered(self, found: Sequence[Exchange], answer: str | None) -> Turn | None:
        """The done turn that has this answer to the last message already."""
        versions = _Index(self.turns.values()).versions(found[-1].id) if found else ()
        same = (turn for turn in versions if turn.status == "done" and turn.assistant == (answer or None))
        return next(same, None)

    async def _recorded(self, exchange: Exchange, answer: str | None) -> Turn:
        try:
            return await self._write(exchange, answer, exchange.id)
        except ConflictError:
            words = hashlib.sha256((answer or "").encode("utf-8", "replace")).hexdigest()
            return await self._write(exchange, answer, f"{exchange.id}~{words[:8]}")

    async def _write(self, exchange: Exchange, answer: str | None, turn_id: str) -> Turn:
        turn = await begun(self.chat, exchange.asked, turn_id)
        return self._keep(await completed(self.chat, turn, exchange.happened, answer))

    def _keep(self, turn: Turn) -> Turn:
        self.turns[turn.id] = turn
        if self.running is not None and self.running.id == turn.id:
            self.running = turn
        return turn


class _Index:
    """Turns by the message they answer, and by their text."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._by_message: dict[str, list[Turn]] = {}
        self._by_words: dict[tuple[str | None, str | None], Turn] = {}
        for turn in turns:
            for name in {turn.id, _VERSION.sub("", turn.id)}:
                self._by_message.setdefault(name, []).append(turn)
            if turn.status == "done":
                self._by_words[turn.user, turn.assistant] = turn

    def versions(self, message_id: str) -> Sequence[Turn]:
        """The turns that answer a message: several if the answer was regenerated from an earlier point of the thread."""
        return self._by_message.get(message_id, ())

    def find(self, exchange: Exchange) -> Turn | None:
        """The turn of an exchange: by id, else by text, for clients whose messages get new ids each time."""
        versions, answer = self.versions(exchange.id), exchange.answer or None
        if not versions:
            return self._by_words.get((exchange.asked.text, answer))
        same = [turn for turn in versions if turn.status == "done" and turn.assistant == answer]
        still_open = [turn for turn in versions if turn.status == "open"]
        unanswered = versions if exchange.answer is None else ()
        return next(iter((*same, *still_open, *unanswered)), None)


def _key(exchange: Exchange) -> tuple[str, int]:
    """Identifies an exchange with its answer: another answer to the same message is another turn."""
    return exchange.id, hash(exchange.answer)
