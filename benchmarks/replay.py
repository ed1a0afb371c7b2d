"""Replays recorded runs through a memory, and counts the prompt of every model call with the archive and without it."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from benchmarks.corpus import url_of
from benchmarks.trajectories import Draft, Message, Trajectory
from pagefile.engine import Conversation, Memory
from pagefile.records import JsonObject, Turn
from pagefile.settings import ArchiveSettings, FactSettings, Settings
from pagefile.shapes.tool_arguments import compact
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, TokenCounter

#: Large enough that nothing but the archive makes a prompt shorter.
WINDOW_TOKENS = 200_000
#: Stands for the user where a run goes on by itself and every model call is a turn.
CONTINUE = "Continue."

#: When a turn is over: with the user's next message, or as soon as a model call has seen its results.
TurnEnd = Literal["next question", "next model call"]


@dataclass(slots=True)
class Tally:
    """What was counted for some runs."""

    calls: int = 0
    #: Prompt tokens of all model calls together.
    without_tokens: int = 0
    with_tokens: int = 0
    #: Results that left the window, results that have a page, and pages that did not load byte for byte.
    left: int = 0
    pages: int = 0
    wrong: int = 0
    #: Prompts from which something fell for want of room: their savings are not the archive's.
    cut: int = 0

    @property
    def saved(self) -> float:
        """The share of tokens that the archive saves."""
        return 1 - self.with_tokens / self.without_tokens if self.without_tokens else 0.0

    def add(self, other: "Tally") -> None:
        """Count another's runs too."""
        self.calls += other.calls
        self.without_tokens += other.without_tokens
        self.with_tokens += other.with_tokens
        self.left += other.left
        self.pages += other.pages
        self.wrong += other.wrong
        self.cut += other.cut


@dataclass(frozen=True, slots=True)
class Replayed:
    """The runs of one file (or of all), at one threshold."""

    source: str
    turn_end: TurnEnd
    threshold: int
    runs: int
    tally: Tally

    def to_json(self) -> JsonObject:
        """The line as plain JSON."""
        told = asdict(self)
        del told["tally"]
        return {**told, **asdict(self.tally), "saved": round(self.tally.saved, 4)}


async def replay(
    database: Path,
    sources: Iterable[tuple[str, Sequence[Trajectory]]],
    counter: TokenCounter,
    *,
    threshold: int,
    turn_end: TurnEnd,
) -> list[Replayed]:
    """A line for every source and one for all of them."""
    settings = Settings(
        window_tokens=WINDOW_TOKENS,
        recall="never",
        indexing="manual",
        synchronous="normal",
        calls_kept=0,
        facts=FactSettings(enabled=False),
        archive=ArchiveSettings(threshold=threshold),
    )
    lines: list[Replayed] = []
    everything, runs = Tally(), 0
    async with Memory.open(url_of(database), settings=settings) as memory:
        for source, trajectories in sources:
            tally = Tally()
            for trajectory in trajectories:
                chat = memory.conversation(f"{source}: {trajectory.id}", user_id="bench")
                tally.add(await _Run(chat, counter, turn_end).play(trajectory.messages))
            lines.append(Replayed(source, turn_end, threshold, len(trajectories), tally))
            everything.add(tally)
            runs += len(trajectories)
    return [*lines, Replayed("all", turn_end, threshold, runs, everything)]


@dataclass(slots=True)
class _Run:
    """One run: what is in the memory, and what its messages would cost in full."""

    chat: Conversation
    counter: TokenCounter
    turn_end: TurnEnd
    tally: Tally = field(default_factory=Tally)
    turn: Turn | None = None
    draft: Draft = field(default_factory=Draft)
    system: list[str] = field(default_factory=list[str])
    #: Tokens of all questions, results and answers so far.
    full_tokens: int = 0
    originals: dict[str, str] = field(default_factory=dict[str, str])

    async def play(self, messages: Sequence[Message]) -> Tally:
        """Message after message; a model call comes before each of the assistant's."""
        for message in messages:
            if message.role == "system":
                self.system.append(message.content)
            elif message.role == "user":
                await self._end_turn(self.draft.take())
                await self._begin(message.content)
            elif message.role == "tool":
                await self._result(message)
            else:
                await self._model_call()
                await self._said(message.content)
        await self._end_turn(self.draft.take())
        await self._check_pages()
        return self.tally

    async def _begin(self, user: str) -> None:
        self.turn = await self.chat.begin(user)
        self.full_tokens += self._message_tokens(user)

    async def _go_on(self) -> Turn:
        """The open turn; where a turn ended without a user, one that says nothing new and costs nothing in full."""
        if self.turn is None:
            self.turn = await self.chat.begin(CONTINUE)
        return self.turn

    async def _result(self, message: Message) -> None:
        turn = await self._go_on()
        tool, asked = self.draft.answered(message.name)
        self.turn = await self.chat.step(turn, tool=tool, input=asked, result=message.content)
        count = self.counter.count
        call_tokens = count(tool) + count(compact(asked))
        self.full_tokens += 2 * MESSAGE_OVERHEAD + call_tokens + count(message.content)
        step = self.turn.steps[-1]
        self.tally.left += not step.whole
        if step.page is not None:
            self.originals[step.page] = _hash(message.content)

    async def _model_call(self) -> None:
        await self._go_on()
        instructions = "\n\n".join(self.system) or None
        window = await self.chat.context(instructions=instructions)
        # What the model said since is not stored yet; a caller sends it behind the window.
        unstored = sum(map(self._message_tokens, self.draft.texts()))
        # Whoever keeps the history by hand says the day, too.
        told = "\n\n".join(text for text in (instructions, window.parts.today) if text)
        system = self._message_tokens(told) if told else 0
        self.tally.calls += 1
        self.tally.with_tokens += window.tokens + unstored
        self.tally.without_tokens += REPLY_OVERHEAD + system + self.full_tokens + unstored
        self.tally.cut += bool(window.receipt.dropped)

    async def _said(self, content: str) -> None:
        self.draft.hear(content)
        if self.turn_end == "next model call" and self.turn is not None and self.turn.steps:
            await self._end_turn(self.draft.take_said())

    async def _end_turn(self, answer: str | None) -> None:
        if self.turn is not None:
            await self.chat.complete(self.turn, answer)
            self.turn = None
            self.full_tokens += self._message_tokens(answer) if answer else 0

    async def _check_pages(self) -> None:
        """Every page that was made, beside the result it was made of."""
        self.tally.pages = len(self.originals)
        for uuid, expected in self.originals.items():
            self.tally.wrong += _hash(await self.chat.load(uuid)) != expected

    def _message_tokens(self, text: str) -> int:
        return MESSAGE_OVERHEAD + self.counter.count(text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
