"""Which erasures have reached the places that are not in the database, such as a Milvus."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owed:
    """Erasures that a place has still to carry out."""

    #: The number of the last erasure that it has carried out.
    since: int
    #: What was erased behind that, by key (`pagefile.stores.epochs.scope_key`), and the number of its last erasure.
    scopes: Mapping[str, int]

    @property
    def through(self) -> int:
        """The number of the last erasure among them."""
        return max(self.scopes.values(), default=self.since)


class Erasures(ABC):
    """How far places outside the database have followed its erasures.

    An erasure is owed to every known place from the transaction on that erases the rows, whichever process makes it, and stays so
    until somebody says that it is done there: nothing is forgotten by a process that dies.
    """

    @abstractmethod
    async def begin(self, place: str) -> None:
        """A place is used from now on: erasures so far do not concern it. Nothing changes for a place that is known."""

    @abstractmethod
    async def owed(self, place: str) -> Owed:
        """What a place has still to erase; nothing for one that is unknown."""

    @abstractmethod
    async def done(self, place: str, owed: Owed) -> None:
        """The place has erased all of that. Passed over where something else was said of it meanwhile."""

    @abstractmethod
    async def redo(self, place: str, epoch: int) -> None:
        """Something made in this epoch was put there behind an erasure: those after it are owed again."""

    @abstractmethod
    async def places(self) -> Mapping[str, int]:
        """Every known place, and how many scopes it has still to erase, by name."""
