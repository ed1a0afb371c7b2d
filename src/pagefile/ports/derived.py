"""What is derived from the log and can be made again: how far each tier has caught up, the terms of turns, vectors."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from pagefile.ports.log import SinceRequest
from pagefile.records import JsonObject, Scope

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Behind:
    """A conversation whose log has grown beyond what a tier has read of it."""

    scope: Scope
    #: The tier has read up to here, 0 for nothing.
    seq: int
    #: The log goes up to here.
    last_seq: int


class Watermarks(ABC):
    """How far each tier has read each conversation's log. A tier is named by a text of its own choice."""

    @abstractmethod
    async def known(self, scope: Scope, tier: str) -> Mapping[str, int]:
        """The watermarks of a scope's conversations; those the tier never read are left out."""

    @abstractmethod
    async def advance(self, scope: Scope, tier: str, seq: int, *, epoch: int | None) -> None:
        """The tier has read a conversation up to `seq`.

        A watermark only rises: a lower `seq` is passed over, as is a conversation that is gone. `epoch` is the `Head.epoch` that
        what is written was made in: where the conversation, its user or the tenant was erased since, `ErasedError` is raised and
        nothing is written, here as wherever an epoch can be named. None: not checked.
        """

    @abstractmethod
    async def behind(self, tier: str, *, limit: int = 100, tenant: str | None = None) -> list[Behind]:
        """Conversations (of one tenant, or of all) that the tier has not read to the end, by tenant and id."""

    @abstractmethod
    async def tiers(self) -> list[str]:
        """The tiers that have read anything, by name."""

    @abstractmethod
    async def drop(self, tier: str) -> int:
        """Forget how far a tier has read, everywhere, so that it begins anew; returns how many conversations that were."""


@dataclass(frozen=True, slots=True)
class TurnTerms:
    """Where a done turn stands, and its terms once somebody worked them out."""

    conversation: str
    seq: int
    turn_id: str
    at: datetime
    #: Terms of the user's side and of the assistant's, each a text with spaces between; None: not worked out yet.
    said: str | None
    answered: str | None


class TermStore(ABC):
    """The terms of turns, kept so that an index need not segment everything again when a process starts.

    `analyzer` names the way terms are worked out: terms of another one count as none.
    """

    @abstractmethod
    async def since(self, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
        """As `TurnSource.since`, but the terms instead of the texts."""

    @abstractmethod
    async def write(
        self, scope: Scope, terms: Sequence[TurnTerms], analyzer: str, *, epoch: int | None = None
    ) -> None:
        """Keep the terms of a tenant's turns, in place of those before; turns that are gone are passed over."""


@dataclass(frozen=True, slots=True)
class Maker:
    """What made a vector: vectors of two makers cannot be compared."""

    #: The embedder's own name.
    name: str
    dimension: int
    #: Of its weights or of its service, where it tells; another version makes other vectors.
    version: str = ""

    @property
    def key(self) -> str:
        """One text for all of it."""
        return f"{self.name}{self.version and '@'}{self.version}/{self.dimension}"


@dataclass(frozen=True, slots=True)
class VectorRow:
    """The vector of a turn (document 002's episode)."""

    #: The tenant, the conversation, and its owner if it has one.
    scope: Scope
    seq: int
    turn_id: str
    at: datetime
    vector: Vector


@dataclass(frozen=True, slots=True)
class Near:
    """A turn whose vector lies near the one asked for."""

    conversation: str
    seq: int
    turn_id: str
    #: The cosine, 1 for the same direction.
    likeness: float


@dataclass(frozen=True, slots=True)
class Shelf:
    """The vectors of one maker that a home holds."""

    maker: Maker
    vectors: int


@dataclass(frozen=True, slots=True)
class HeldVector:
    """A turn that has a vector in a home."""

    seq: int
    turn_id: str
    #: Whether it can be found: of the right length, and known under its conversation's owner.
    fits: bool = True


class VectorHome(ABC):
    """Where vectors of turns live. Vectors of several makers may stand side by side; each verb speaks of one.

    What is in it is derived: it may be empty or behind, and losing it costs only the work of making it again.
    """

    #: The word for it in receipts, logs and `doctor`: "sqlite", "pgvector", "milvus", "memory".
    name: str
    #: Whether it is outside the store's database. Then it need not be there when something is erased: what it owes is remembered, and
    #: `erase_before` is called when it is back. What is inside goes with what the store erases, in its transaction.
    apart: bool = False
    #: What of erased vectors stays in its files, and until when; empty where nothing does.
    leaves: str = ""

    @abstractmethod
    async def prepare(self, maker: Maker) -> None:
        """Make what is missing for this maker's vectors; again is the same as once.

        Raises `VectorHomeError` that says what to do when that cannot be done (no extension, wrong server).
        """

    @abstractmethod
    async def put(self, maker: Maker, rows: Sequence[VectorRow], *, epoch: int | None = None) -> None:
        """Write vectors, each in place of the one its turn had, and prepare what was not prepared.

        A vector of another dimension, or one with what is no number, raises `VectorHomeError`, and nothing of the call is
        written. One of zeros only takes away the one before. What was put is found by the next search of this process.

        `epoch` is checked where the home is the log's own database (`ErasedError`). A home apart cannot: it writes the epoch down with
        the vector, and what is put behind an erasure belongs to no turn, is found by nobody, and goes with `erase_before`.
        """

    @abstractmethod
    async def search(self, maker: Maker, scope: Scope, vector: Vector, limit: int) -> list[Near]:
        """The `limit` nearest turns of a scope, nearest first, or all there are if they are fewer.

        A scope with a user gives that user's turns, with a conversation those of that one, with both those that are
        both; never anything of another user or tenant. A conversation that nobody owns is given where it is named. Vectors
        need not be of unit length; one of zeros is near nothing. A maker that is unknown has nothing.
        """

    @abstractmethod
    async def shelves(self) -> list[Shelf]:
        """The makers this home was prepared for, and how many vectors of each it holds, by key."""

    async def held(self, maker: Maker, scope: Scope, after: int, through: int) -> list[HeldVector] | None:
        """Which turns of a conversation behind one place, up to another, have a vector; None where a home cannot tell."""
        return None

    @abstractmethod
    async def drop(self, maker: Maker) -> int:
        """Remove everything of a maker; returns how many vectors went."""

    @abstractmethod
    async def erase(self, scope: Scope) -> int:
        """Remove the vectors of a conversation, a user or a tenant, of every maker, while the log knows whose they are. An erasure
        does not ask for it: what is inside goes with it, and of a home apart `erase_before` is asked behind it.
        """

    async def erase_before(self, erased: Mapping[str, int]) -> int:
        """Remove what was put before erasures, of every maker: by key of the scope (`pagefile.stores.epochs.scope_key`), the number
        of its last erasure. What was put in that epoch or a later one belongs to somebody who began again, and stays.

        Only a home apart is asked.
        """
        raise NotImplementedError

    @abstractmethod
    async def describe(self) -> JsonObject:
        """What this home is and where, read from itself: fails when it cannot be reached."""

    @abstractmethod
    async def close(self) -> None:
        """Let go. Twice is the same as once."""
