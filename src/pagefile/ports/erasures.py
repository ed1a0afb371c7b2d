"""Which erasures have reached places outside the database, such as Milvus."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owed:
    """Erasures that a place has yet to carry out."""

    #: The number of the last erasure it has carried out.
    since: int
    #: The scopes erased since, by key (`pagefile.stores.epochs.scope_key`), each with the number of its last
    #: erasure.
    scopes: Mapping[str, int]

    @property
    def through(self) -> int:
        """The number of the last erasure among them."""
        return max(self.scopes.values(), default=self.since)


class Erasures(ABC):
    """How far places outside the database have followed its erasures.

    An erasure is owed to every known place from the transaction that erases the rows, whichever process runs
    it, until it is reported as done: a process that dies loses nothing.
    """

    @abstractmethod
    async def begin(self, place: str) -> None:
        """Start tracking a place from now on: earlier erasures do not concern it. Idempotent."""

    @abstractmethod
    async def owed(self, place: str) -> Owed:
        """What a place has yet to erase; nothing if the place is unknown."""

    @abstractmethod
    async def done(self, place: str, owed: Owed) -> None:
        """Record that the place has carried out `owed`. Ignored if its state has changed in the meantime."""

    @abstractmethod
    async def redo(self, place: str, epoch: int) -> None:
        """Data from this epoch was put there after an erasure: erasures since the epoch are owed again."""

    @abstractmethod
    async def places(self) -> Mapping[str, int]:
        """Every known place by name, with the number of scopes it has yet to erase."""
