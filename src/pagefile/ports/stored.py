"""What is stored beside the log: facts, recorded windows, session values and their cache."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from secrets import token_bytes

from pagefile.records import Fact, JsonObject, Revision, Scope, WindowRecord

__all__ = ["CachedSession", "CallSize", "FactStore", "SessionCache", "SessionStore", "WindowLog"]


class FactStore(ABC):
    """Lasting statements about users, and the journal of their changes."""

    @abstractmethod
    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        """Facts of a scope's user (of the whole tenant if it names none), oldest first.

        Facts that are no longer valid are included; retracted ones only on request.
        """

    @abstractmethod
    async def get(self, scope: Scope, fact_id: str) -> Fact:
        """One fact, retracted or not; unknown or foreign raises `NotFoundError`."""

    @abstractmethod
    async def changed(self, scope: Scope) -> tuple[int, int]:
        """The number of the user's newest revision (0 for none), and the number of rows in the journal.

        The pair differs whenever anything about the user's facts changed, erasure included.
        """

    @abstractmethod
    async def revise(
        self,
        scope: Scope,
        facts: Sequence[Fact],
        *,
        action: str,
        at: datetime,
        epoch: int | None,
        expected: int | None = None,
    ) -> Revision:
        """Write facts of one user, each replacing the one with its id, and journal the change, atomically.

        `expected` is the newest revision known to the caller: if there is a newer one, `ConflictError` is
        raised, as it is for an id that is another user's. The scope must name a user; a fact of another user
        raises `InvalidArgumentError`. If the user, or a conversation that a fact names, was erased since `epoch`,
        `ErasedError` is raised; None, for facts not based on earlier reads, skips the check.
        """

    @abstractmethod
    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        """The changes to a user's facts after a revision, oldest first."""

    @abstractmethod
    async def owners(self, tenant: str) -> Sequence[Scope]:
        """Users of a tenant who have facts, retracted ones included, by id."""

    @abstractmethod
    async def restore(
        self, scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]
    ) -> tuple[int, int]:
        """Write a user's facts and their journal as they were (for imports), atomically.

        Returns how many facts and how many revisions were new. A user without stored facts gets both, and the
        revisions keep their numbers, below those of later ones; a fact that appears only in the journal ends
        as the journal left it. For a user with stored facts, or an import without a journal, only facts with
        a new id are written, as new ones. The scope must name a user; another user's data or an impossible
        revision raises `InvalidArgumentError`, an id taken by another user `ConflictError`.
        """

    async def put(self, fact: Fact) -> Fact:
        """Write a fact as it is, or replace the one with the same id."""
        scope = Scope(fact.scope.tenant, fact.scope.user)
        revision = await self.revise(scope, [fact], action="stored", at=fact.recorded, epoch=None)
        return revision.after[0]


@dataclass(frozen=True, slots=True)
class CallSize:
    """A recorded window in numbers."""

    id: str
    #: Whom it was made for.
    scope: Scope
    at: datetime
    tokens: int
    #: How full the window would have been with every live turn in it.
    ratio: float


class WindowLog(ABC):
    """Recently compiled windows."""

    @abstractmethod
    async def add(self, calls: Sequence[WindowRecord], *, keep: int, epoch: int | None = None) -> None:
        """Write calls, and keep only the newest `keep` of each conversation they belong to.

        Newest means added last; an existing id is left as it is. If the scope of any of them was erased since
        `epoch`, `ErasedError` is raised and none is written.
        """

    @abstractmethod
    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[WindowRecord]:
        """Calls made for this scope (tenant, user or conversation), newest first; `after` continues after a call id."""

    @abstractmethod
    async def sizes(self, scope: Scope, *, limit: int = 100) -> Sequence[CallSize]:
        """How large the newest calls of a scope were, newest first: a row of each without its receipt."""

    @abstractmethod
    async def get(self, scope: Scope, call_id: str) -> WindowRecord:
        """One call of a scope; unknown, expired or foreign raises `NotFoundError`."""

    @abstractmethod
    async def loose(self, tenant: str | None) -> Sequence[Scope]:
        """Conversations without an owner (of a tenant, or of all) that have calls, by tenant and id, each
        with the calls' user.

        They date from before asking for a window claimed the conversation.
        """

    @abstractmethod
    async def restore(self, calls: Sequence[WindowRecord]) -> int:
        """Write all calls of a conversation as they were, oldest first (for imports); returns how many were new.

        A conversation that has calls keeps them and gets no others: later calls must not appear older. A call
        whose id exists is skipped.
        """


class SessionStore(ABC):
    """Session values (`SessionValue`), as JSON."""

    @abstractmethod
    async def get(self, scope: Scope) -> JsonObject | None:
        """The session value of a conversation, or None.

        Another user's raises `ConflictError`.
        """

    @abstractmethod
    async def put(self, scope: Scope, value: JsonObject, *, epoch: int | None = None) -> None:
        """Replace the session value of a conversation, creating the conversation if it is unused.

        A conversation that was erased since `epoch` raises `ErasedError`.
        """

    @abstractmethod
    async def change(self, scope: Scope, change: Callable[[JsonObject | None], JsonObject]) -> None:
        """Atomically replace the value with `change(current)`, or `change(None)` if there is none.

        `change` may be called more than once; its last result counts.
        """

    async def secret(self) -> bytes:
        """A random secret of this database, the same for every process: caches seal with it what they are given.

        A store that keeps none has one for each process: what others put is a miss.
        """
        return self._own_secret

    @cached_property
    def _own_secret(self) -> bytes:
        return token_bytes(32)


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A session value, and the version of the session it was read at."""

    value: JsonObject
    version: int


class SessionCache(ABC):
    """Session values close at hand for half an hour: only a cache, which may lose anything at any time.

    * A version is an integer from 0 to 2^53 - 1, known to the database, that rises with every change of the
      session. Readers compare it with the database's now and then: a value with a different version is a miss.
    * A value is sealed with `secret`: one that was not put with the same secret, under this version and for this
      conversation, is a miss, and gives way to the next that is put.
    * A value lives for 1800 s after it was put.
    * A cache that is down, slow, full or read-only raises nothing: a read is a miss, a write returns `False`.
    """

    #: Reads that found a value, reads that did not, and calls that failed.
    hits: int = 0
    misses: int = 0
    errors: int = 0
    #: Why the last call that failed did so; without a password.
    failure: str | None = None
    #: What values are sealed with.
    secret: bytes = b""

    @abstractmethod
    async def get(self, scope: Scope) -> CachedSession | None:
        """The value of a conversation, exactly as it was put, or None. Ownership is not checked."""

    @abstractmethod
    async def permit(self, scope: Scope) -> str | None:
        """Allows `put` of what is read of the database from now on; None if the cache was not reached."""

    @abstractmethod
    async def put(self, scope: Scope, value: JsonObject, *, version: int, permit: str | None = None) -> bool:
        """Store a value atomically, unless this version or a newer one is cached; returns whether it was stored.

        So the newest of any number of writers wins, however late an older one arrives. With a permit, nothing is stored if the
        conversation was invalidated since: what was read before a write does not come back after it. A damaged cached value
        counts as absent. A value that is not JSON or a version out of range raises `InvalidArgumentError`.
        """

    @abstractmethod
    async def drop(self, scope: Scope) -> None:
        """Drop the value of a conversation, if there is one. Versions refused by `erase` stay refused."""

    @abstractmethod
    async def invalidate(self, scope: Scope) -> bool:
        """Hide the cached value until a new one is put, and end all permits; returns whether the cache was reached.

        Other programs may still read it meanwhile. Versions refused by `erase` stay refused.
        """

    @abstractmethod
    async def erase(self, scope: Scope, *, version: int) -> bool:
        """Drop the value and, for one lifetime of a value, refuse any up to this version; returns whether it was done.

        A reader that fetched the value before the erasure may try to put it back afterwards: this is what is
        refused.
        """

    @property
    def answers(self) -> bool:
        """Whether it answered when it was last asked."""
        return True

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in receipts and in the record of erasures; without a password."""

    @abstractmethod
    async def kept(self) -> list[Scope]:
        """The conversations that have a cached value; raises `StoreUnavailableError` if it cannot tell."""

    @abstractmethod
    async def close(self) -> None:
        """Release all resources; afterwards nothing is found or stored. Idempotent."""
