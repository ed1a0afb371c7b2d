"""From a thread's messages to turns in the log: each once, whatever LangGraph replays, interrupts or resumes.

A turn is named by the id of the user's message. It is opened when the model is first called for it, gets its tool results as they come,
and is completed when the agent ends. An agent that ends by an error or a cancellation never says so to a middleware,
and may be resumed; so its turn stays open, which keeps it out of every window, until the next message of the user shows that
it was given up: then it is aborted, or completed if the thread has its answer after all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pagefile.errors import ConflictError
from pagefile.integrations.langchain.reading import Exchange, ToolUse
from pagefile.memory import Conversation
from pagefile.records import Turn
from pagefile.tiers.archive import LOADING_TOOLS

#: How much of the log is looked at beyond the turns that the thread has.
_LOOK_BACK = 50


@dataclass(slots=True)
class Talk:
    """One conversation as this process knows it."""

    chat: Conversation
    #: The turns of the log that were looked at or written, by id.
    turns: dict[str, Turn] = field(default_factory=dict[str, Turn])
    #: The turn that is being answered, and the id of the message it answers.
    running: Turn | None = None
    answers: str | None = None
    #: Messages whose run raised here.
    failed: set[str] = field(default_factory=set[str])

    # -- one turn, from its beginning to its end ------------------------------------------------------------------------

    async def begun(self, found: Sequence[Exchange]) -> Turn | None:
        """The open turn of the last exchange with all its results so far; None when there is no exchange to speak of.

        A thread without any user message has lost it to a summary in the middle of a turn: then it is the running turn.
        """
        if not found:
            return await self._still_running()
        current = found[-1]
        if self.running is None or self.answers != current.id or self.running.status != "open":
            await self._look(len(found))
            await self._settle(found)
            self.running = await self._opened(current)
            self.answers = current.id
        turn = self.running
        self.failed.discard(current.id)
        for use in self._unwritten(turn, current.uses):
            turn = await self.add(turn, use)
        return turn

    async def add(self, turn: Turn, use: ToolUse) -> Turn:
        """Add a tool's result to an open turn; a bulky one is archived on the way."""
        return self._keep(await self.chat.step(turn, **use.step()))  # pyright: ignore[reportArgumentType] - a step's own keys

    async def finish(self, found: Sequence[Exchange], answer: str | None) -> Turn | None:
        """Complete the turn of the last exchange."""
        turn = await self.begun(found)
        if turn is None:
            return None
        try:
            done = self._keep(await self.chat.complete(turn, answer))
        except ConflictError:
            # Somebody ended it meanwhile: what was said is kept all the same.
            if not found:
                raise
            await self._look(len(found))
            done = self._keep(await self._recorded(found[-1], answer))
        if self.running is not None and self.running.id == turn.id:
            self.running, self.answers = None, None
        return done

    def stored(self, exchange: Exchange) -> Turn | None:
        """The turn that holds this exchange: by its id, else by its words, for clients whose messages get new ids each time."""
        versions = self._versions(exchange.id)
        for turn in versions:
            if (
                turn.status == "open"
                or exchange.answer is None
                or turn.assistant == (exchange.answer or None)
            ):
                return turn
        if versions:
            return None
        words = (exchange.user, exchange.answer)
        return next(
            (t for t in self.turns.values() if t.status == "done" and (t.user, t.assistant) == words), None
        )

    # -- inside ---------------------------------------------------------------------------------------------------------

    async def _look(self, turns: int) -> None:
        listing = await self.chat.turns(newest=True, limit=turns + _LOOK_BACK)
        self.turns = {turn.id: turn for turn in listing}

    async def _still_running(self) -> Turn | None:
        if self.running is None:
            await self._look(0)
            self.running = next((t for t in reversed(self.turns.values()) if t.status == "open"), None)
        return self.running

    async def _settle(self, found: Sequence[Exchange]) -> None:
        """Bring the log up to what the thread tells of earlier turns."""
        for exchange in found[:-1]:
            turn = self.stored(exchange)
            if turn is None and exchange.answer is not None:
                self._keep(await self._recorded(exchange, exchange.answer))
            elif turn is not None and turn.status == "open":
                await self._ended(turn, exchange)
        given_up = {human.id for exchange in found for human in exchange.humans[:-1]} | self.failed
        for turn in [self.turns[id_] for id_ in given_up - {found[-1].id} if id_ in self.turns]:
            if turn.status == "open":
                self._keep(await self.chat.abort(turn))
        self.failed &= {found[-1].id}

    async def _ended(self, turn: Turn, exchange: Exchange) -> None:
        if exchange.answer is None:
            self._keep(await self.chat.abort(turn))
            return
        for use in self._unwritten(turn, exchange.uses):
            turn = await self.add(turn, use)
        self._keep(await self.chat.complete(turn, exchange.answer))

    async def _opened(self, exchange: Exchange) -> Turn:
        versions = self._versions(exchange.id)
        still_open = next((turn for turn in versions if turn.status == "open"), None)
        if still_open is not None:
            return still_open
        return self._keep(await self.chat.begin(exchange.user, id=self._new_id(exchange.id)))

    async def _recorded(self, exchange: Exchange, answer: str | None) -> Turn:
        steps = [use.step() for use in exchange.uses]
        return await self.chat.record(
            exchange.user, answer, steps=steps, id=self._new_id(exchange.id), metadata={"source": "langchain"}
        )

    def _versions(self, message_id: str) -> list[Turn]:
        """The turns that answer a message: more than one when it was answered anew from an earlier point of the thread."""
        return [
            turn for id_, turn in self.turns.items() if id_ == message_id or id_.startswith(f"{message_id}~")
        ]

    def _new_id(self, message_id: str) -> str:
        count = len(self._versions(message_id))
        return message_id if not count else f"{message_id}~{count + 1}"

    def _unwritten(self, turn: Turn, uses: Sequence[ToolUse]) -> list[ToolUse]:
        return [use for use in uses if step_of(turn, use) is None]

    def _keep(self, turn: Turn) -> Turn:
        self.turns[turn.id] = turn
        if self.running is not None and self.running.id == turn.id:
            self.running = turn
        return turn


def step_of(turn: Turn, use: ToolUse) -> int | None:
    """Which step of a turn holds a tool's result; some models give the same call id to every call."""
    text = use.text
    for number, step in enumerate(turn.steps):
        if step.call_id != use.message.tool_call_id or step.tool != use.tool:
            continue
        same_page = step.page is not None and step.page_chars == len(text)
        same_load = step.tool in LOADING_TOOLS and step.input == use.input
        if step.result == text or same_page or same_load or step.lost_chars:
            return number
    return None
