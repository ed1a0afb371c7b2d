"""Requests that must be carried out once, by whichever process they reach."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from pagefile.records import Scope

__all__ = ["Claim", "KeptResponse", "LeaseStore"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a process wants to carry out alone.

    `id` identifies the work in the whole database. It is a hash, since it outlives an erasure.
    """

    id: str
    #: The tenant, and the user if its result is about one user only: an erasure of either removes the result.
    scope: Scope
    #: A digest of what was requested.
    asked: str
    now: datetime
    #: Until then it counts as running; afterwards its process may have died.
    leased: datetime
    #: Until then its result is kept.
    expires: datetime
    #: What it is about, for whoever finds the claim after its process died; erased as a result is.
    about: str | None = None


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """Work that was claimed before, with its result once it is done."""

    asked: str
    leased: datetime
    done: bool
    #: Status and headers as JSON, and the body; None where they were erased or never kept.
    head: str | None
    body: bytes | None


class LeaseStore(ABC):
    """Claims on work and the results of it, shared by all processes that use the database."""

    @abstractmethod
    async def claim(self, claim: Claim, *, take_over: bool = False) -> KeptResponse | None:
        """Claim work; None if it is the caller's from now on, otherwise what is known of the earlier claim.

        Of several callers one succeeds. With `take_over`, a claim whose lease has ended and that is not done passes to the
        caller. Claims and results past `expires` are deleted first.
        """

    @abstractmethod
    async def renew(self, ids: Collection[str], leased: datetime) -> None:
        """Extend leases; ids that are not claimed are ignored."""

    @abstractmethod
    async def keep(self, claim_id: str, head: str | None, body: bytes | None) -> None:
        """Store the result of claimed work, which is done. After an erasure of its scope only the fact that it is done is kept."""

    @abstractmethod
    async def release(self, claim_id: str) -> None:
        """Forget a claim, so that the work may be done again; idempotent."""

    @abstractmethod
    async def running(self, ids: Collection[str], now: datetime) -> frozenset[str]:
        """Which of these are claimed and not done, and their lease has not ended."""

    @abstractmethod
    async def lapsed(self, before: datetime, *, kept: datetime, limit: int) -> list[tuple[str, str]]:
        """Claims with an `about` that are not done and whose lease ended before then: ids with what they are about, oldest first.

        Only those that are kept until `kept` or longer, so that this stays fast beside any number of claims for a day.
        """

    @abstractmethod
    async def ended(self, ids: Collection[str], now: datetime) -> frozenset[str]:
        """Which of these are claimed and not done although their lease has ended."""
