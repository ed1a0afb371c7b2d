"""What is asked of everybody in `pagefile bench peers`: take in a conversation, make a prompt, find something again."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.peers_script import Line
from benchmarks.peers_vectors import Vectors
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, TokenCounter, open_counter

#: The window that everybody keeps to, Pagefile's default.
BUDGET = 16_000
#: From here on Pagefile takes older turns out of the window; whoever has such a mark, has this one.
TRIGGER = 12_000
#: How many items are recalled.
RECALLED = 10
#: What every prompt begins with.
INSTRUCTIONS = "You are a helpful assistant. Answer from what you know of the conversation."

Message = dict[str, str]
Prompt = list[Message]


@dataclass(frozen=True, slots=True)
class Given:
    """What a peer works with."""

    folder: Path
    vectors: Vectors

    @property
    def counter(self) -> TokenCounter:
        """The tokenizer, opened by whoever asks for it first."""
        return open_counter()


class Peer(ABC):
    """Somebody who remembers conversations."""

    name: ClassVar[str]
    #: What must be installed for it, as pip names it; nothing for what is always there.
    package: ClassVar[str | None] = None
    #: How it is used here, for the page.
    used: ClassVar[str]
    #: True: making a prompt changes what it keeps, so that one must be made for every turn.
    every_turn: ClassVar[bool] = False
    #: True: it can be asked for what is in no prompt.
    recalls: ClassVar[bool] = True
    #: True: its prompt holds the latest turns, not only what was found for the question.
    makes_windows: ClassVar[bool] = True
    #: True: what it finds, it finds by vectors, and words count for nothing.
    vectors_only: ClassVar[bool] = False
    #: True: it has a disk, and its vectors are not on it.
    vectors_in_memory: ClassVar[bool] = False
    #: True: `fill` takes in many turns at once.
    bulk: ClassVar[bool] = False

    def __init__(self, given: Given) -> None:
        self.given = given

    @abstractmethod
    async def open(self) -> None:
        """Load it, and open what it keeps things in."""

    @abstractmethod
    async def record(self, line: Line) -> None:
        """Take in a turn."""

    @abstractmethod
    async def context(self, question: str) -> Prompt:
        """What would be sent to a model for this question."""

    @abstractmethod
    async def remains(self) -> Iterable[str]:
        """Every text that it still has somewhere."""

    async def recall(self, question: str) -> Sequence[str]:
        """The best texts for a question, if it `recalls`."""
        del question
        return ()

    async def recall_result(self, question: str) -> Sequence[str]:
        """The best texts of what tools returned, if that is asked for in another way."""
        return await self.recall(question)

    async def look_up(self, question: str) -> Sequence[str]:
        """What one call of a model brings it, if a prompt was not enough."""
        return await self.recall(question) if self.recalls else ()

    async def idle(self) -> None:
        """Its background work, until there is nothing left to do."""

    async def fill(self, lines: Sequence[Line]) -> None:
        """Take in many turns at once, faster if it can."""
        for line in lines:
            await self.record(line)

    async def close(self) -> None:
        """Let go of everything."""


def part(name: str) -> Any:
    """A module that only the extra `bench` brings; `ImportError` when it is not there."""
    return import_module(name)


def with_memories(question: str, memories: Iterable[str], counter: TokenCounter) -> Prompt:
    """The prompt as the guides to such stores build it: what was found, best first, as much as fits, and the question."""
    left = (
        BUDGET - counter.count(INSTRUCTIONS) - counter.count(question) - 2 * MESSAGE_OVERHEAD - REPLY_OVERHEAD
    )
    found = [INSTRUCTIONS]
    for memory in memories:
        # A line break and a dash, which may count for themselves.
        left -= counter.count(memory) + 2
        if left < 0:
            break
        found.append(f"- {memory}")
    return [{"role": "system", "content": "\n".join(found)}, {"role": "user", "content": question}]


def pieces(text: str, chars: int = 1000) -> list[str]:
    """A long text in pieces that the encoder reads whole."""
    return [text[at : at + chars] for at in range(0, len(text), chars)]
