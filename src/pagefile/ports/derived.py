"""What is derived from the log and can be rebuilt: tier watermarks, the terms of turns, vectors."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pagefile.arrays import Float32s, Keyed
from pagefile.ports.log import SinceRequest
from pagefile.records import JsonObject, Scope

__all__ = [
    "Behind",
    "Collection",
    "EmbeddingModel",
    "HeldVector",
    "TermStore",
    "TurnTerms",
    "Vector",
    "VectorHit",
    "VectorIndex",
    "VectorRow",
    "Watermarks",
]

Vector = Float32s


@dataclass(frozen=True, slots=True)
class Behind:
    """A conversation whose log has grown since a tier last read it."""

    scope: Scope
    #: The last `seq` the tier has read; 0 if it has read nothing.
    seq: int
    #: The last `seq` in the log.
    last_seq: int


class Watermarks(ABC):
    """How far each tier has read each conversation's log. A tier chooses its own name."""

    @abstractmethod
    async def known(self, scope: Scope, tier: str) -> Mapping[str, int]:
        """The watermarks of a scope's conversations, without those the tier has never read."""

    @abstractmethod
    async def advance(self, scope: Scope, tier: str, seq: int, *, epoch: int | None) -> None:
        """Record that the tier has read a conversation up to `seq`.

        A watermark only rises: a lower `seq` is ignored, as is a conversation that no longer exists. `epoch`
        is the `ConversationInfo.epoch` in which the data being written was produced: if the conversation, its user or the
        tenant has been erased since, `ErasedError` is raised and nothing is written. This holds for every
        `epoch` parameter; None skips the check.
        """

    @abstractmethod
    async def behind(self, tier: str, *, limit: int = 100, tenant: str | None = None) -> list[Behind]:
        """Conversations (of one tenant, or of all) that the tier has not fully read, by tenant and id."""

    @abstractmethod
    async def tiers(self) -> list[str]:
        """The names of all tiers that have a watermark, sorted."""

    @abstractmethod
    async def drop(self, tier: str) -> int:
        """Delete a tier's watermarks everywhere, so that it starts over; returns the number of conversations."""


@dataclass(frozen=True, slots=True)
class TurnTerms:
    """The position of a done turn, and its terms once they have been computed."""

    conversation: str
    seq: int
    turn_id: str
    at: datetime
    #: Space-separated terms of the user's side and of the assistant's; None if not computed yet.
    said: str | None
    answered: str | None


class TermStore(ABC):
    """The terms of turns, stored so that an index need not segment everything again when a process starts.

    `analyzer` names the method that computes terms; terms from another analyzer are ignored.
    """

    @abstractmethod
    async def since(self, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
        """Like `TurnSource.since`, but with terms instead of texts."""

    @abstractmethod
    async def write(
        self, scope: Scope, terms: Sequence[TurnTerms], analyzer: str, *, epoch: int | None = None
    ) -> None:
        """Store the terms of a tenant's turns, replacing earlier ones; missing turns are ignored."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """What produced a vector. Vectors from different models cannot be compared."""

    #: The embedder's own name.
    name: str
    dimension: int
    #: Version of the weights or service, if reported; a different version produces different vectors.
    version: str = ""

    @property
    def key(self) -> str:
        """A single string that identifies the model."""
        return f"{self.name}{self.version and '@'}{self.version}/{self.dimension}"


@dataclass(frozen=True, slots=True)
class VectorRow:
    """The vector of a turn."""

    #: Tenant and conversation, plus the owner if there is one.
    scope: Scope
    seq: int
    turn_id: str
    at: datetime
    vector: Vector


class VectorHit(NamedTuple):
    """A turn whose vector is close to the query vector; a plain tuple, because a question finds a thousand."""

    conversation: str
    seq: int
    turn_id: str
    #: Cosine similarity; 1 means the same direction.
    similarity: float


@dataclass(frozen=True, slots=True)
class Collection:
    """How many vectors of one model are stored."""

    model: EmbeddingModel
    vectors: int


@dataclass(frozen=True, slots=True)
class HeldVector:
    """A turn that has a stored vector."""

    seq: int
    turn_id: str
    #: Whether a search can find it: right dimension, filed under its conversation's owner.
    fits: bool = True


class VectorIndex(ABC):
    """Stores the vectors of turns. Vectors of several models may coexist; each verb concerns one model.

    The contents are derived: they may be empty or behind, and losing them costs only the work of rebuilding.
    """

    #: How receipts, logs and `doctor` call it: "sqlite", "pgvector", "milvus", "memory".
    name: str
    #: Whether it lives outside the store's database. If so, it may be unreachable during an erasure: the
    #: pending erasure is recorded, and `erase_before` is called once it is back. Vectors inside the database
    #: are erased in the same transaction.
    apart: bool = False
    #: What remains of erased vectors in its files, and until when; empty if nothing does.
    leaves: str = ""

    @abstractmethod
    async def prepare(self, model: EmbeddingModel) -> None:
        """Create whatever this model's vectors need; idempotent.

        Raises `VectorIndexError` with instructions if that is impossible (no extension, wrong server).
        """

    @abstractmethod
    async def put(
        self, model: EmbeddingModel, rows: Sequence[VectorRow], *, epoch: int | None = None
    ) -> None:
        """Write vectors, each replacing the one its turn had; prepares the model if necessary.

        A vector with the wrong dimension or a non-finite component raises `VectorIndexError`, and nothing of
        the call is written. An all-zero vector only removes the previous one. The next search in this process
        sees what was put.

        `epoch` is checked if the vectors are in the log's own database (`ErasedError`). An external index
        cannot check it: it stores the epoch with the vector, and a vector put after an erasure belongs to no
        turn, is never returned, and is removed by `erase_before`.
        """

    @abstractmethod
    async def search(
        self, model: EmbeddingModel, scope: Scope, vector: Vector, limit: int
    ) -> list[VectorHit]:
        """Up to `limit` nearest turns of a scope, nearest first.

        A scope with a user gives that user's turns, one with a conversation that conversation's turns, one
        with both their intersection; never anything of another user or tenant. Scopes with a user never
        match a conversation without an owner. Vectors need not have unit length; an all-zero vector matches
        nothing. An unknown model has no vectors.
        """

    async def similarities(self, model: EmbeddingModel, scope: Scope, vector: Vector, limit: int) -> Keyed:
        """The similarity of each turn that `search` finds, in any order, by the hash of its conversation, seq and id."""
        found = await self.search(model, scope, vector, limit)
        return Keyed.of({one[:3]: one.similarity for one in found})

    @abstractmethod
    async def collections(self) -> list[Collection]:
        """The models this index was prepared for, with their number of vectors, sorted by key."""

    async def models(self) -> list[EmbeddingModel]:
        """The models of which there are vectors, sorted by key. Asked whenever a process begins: counting may take long."""
        return [one.model for one in await self.collections() if one.vectors]

    async def held(
        self, model: EmbeddingModel, scope: Scope, after: int, through: int
    ) -> list[HeldVector] | None:
        """Which turns of a conversation in (`after`, `through`] have a vector; None if the index cannot tell."""
        return None

    @abstractmethod
    async def drop(self, model: EmbeddingModel) -> int:
        """Remove everything of a model; returns the number of vectors removed."""

    @abstractmethod
    async def erase(self, scope: Scope) -> int:
        """Remove the vectors of a conversation, a user or a tenant, of every model, while the log still knows the owner;
        a scope without a user covers every owner.

        Erasures do not call this: internal vectors are erased with the rows, and an external index gets
        `erase_before`.
        """

    async def erase_before(self, erased: Mapping[str, int]) -> int:
        """Remove what was put before erasures, of every model.

        `erased` maps a scope's key (`pagefile.stores.erasure.scope_key`) to the number of its last erasure.
        Vectors put in that epoch or a later one belong to a scope that was used again afterwards, and stay.
        Only external homes are called.
        """
        raise NotImplementedError

    @abstractmethod
    async def describe(self) -> JsonObject:
        """What this index is and where, as reported by the index itself: fails if it cannot be reached."""

    @abstractmethod
    async def close(self) -> None:
        """Release all resources; idempotent."""
