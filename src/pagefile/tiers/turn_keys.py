"""Which turn is in which slot of a user's word index, in as few bytes as it takes: there may be hundreds of thousands."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pagefile.arrays import Column, Texts, np


class TurnKey(NamedTuple):
    """A turn and its position; a plain tuple, because thousands of them are looked up per question."""

    conversation: str
    seq: int
    turn_id: str


class TurnKeys:
    """Turns by slot. As tuples they would take five times the memory, and the garbage collector would look at each."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._number_of: dict[str, int] = {}
        self._conversations = Column(np.int32)
        self._seqs = Column(np.int64)
        self._ids = Texts()

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, slot: int) -> TurnKey:
        name = self._names[int(self._conversations.view[slot])]
        return TurnKey(name, int(self._seqs.view[slot]), self._ids[slot])

    def __iter__(self) -> Iterator[TurnKey]:
        return map(self.__getitem__, range(len(self)))

    def extend(self, keys: Sequence[TurnKey]) -> None:
        self._conversations.extend([self._number(key.conversation) for key in keys])
        self._seqs.extend([key.seq for key in keys])
        self._ids.extend([key.turn_id for key in keys])

    def _number(self, name: str) -> int:
        if (number := self._number_of.get(name)) is None:
            number = self._number_of[name] = len(self._names)
            self._names.append(name)
        return number
