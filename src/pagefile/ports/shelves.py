"""What lies beside the log: facts, recorded windows, session values and their cache."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pagefile.records import Call, Fact, JsonObject, Revision, Scope


class FactStore(ABC):
    """Lasting statements about users, and every change of them."""

    @abstractmethod
    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        """Facts of a scope's user (of the whole tenant when it names none), oldest first.

        Those that no longer hold are among them; retracted ones only when asked for.
        """

    @abstractmethod
    async def get(self, scope: Scope, fact_id: str) -> Fact:
        """One fact, retracted or not; unknown or foreign raises `NotFoundError`."""

    @abstractmethod
    async def changed(self, scope: Scope) -> tuple[int, int]:
        """The number of the user's newest revision, 0 for none, and how many rows tell of all of them.

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
        """Write facts of one user, each in place of the one with its id, and note the change: all of it or nothing.

        `expected` is the newest revision the caller knows of: if there is a newer one, `ConflictError` is raised. So is it for
        an id that is another user's. The scope must name a user; a fact of another user raises `InvalidTurnError`. `epoch`: what
        was erased since, of the user or of a conversation that a fact names, raises `ErasedError`; None, for facts that were not
        read before, is not checked.
        """

    @abstractmethod
    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        """The changes of a user's facts behind a revision, oldest first."""

    @abstractmethod
    async def owners(self, tenant: str) -> Sequence[Scope]:
        """Users of a tenant who have facts, retracted ones too, by id."""

    @abstractmethod
    async def restore(
        self, scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]
    ) -> tuple[int, int]:
        """Write a user's facts and the journal that led to them as they were (for imports): all of it or nothing.

        Returns how many facts and how many revisions were new. A user of whom nothing is held gets both, and the revisions keep
        their numbers, which the next ones are higher than; a fact that only the journal tells of is as that left it. Of a user of
        whom something is held, or who comes without a journal, facts whose id is not there yet are written as new ones, and
        nothing else. The scope must name a user; what is another user's, and a revision that cannot be one, raises
        `InvalidTurnError`, an id that another user has `ConflictError`.
        """

    async def put(self, fact: Fact) -> Fact:
        """Write a fact as it is, or replace the one with the same id."""
        scope = Scope(fact.scope.tenant, fact.scope.user)
        revision = await self.revise(scope, [fact], action="stored", at=fact.recorded, epoch=None)
        return revision.after[0]


class CallLog(ABC):
    """The windows that were handed out, for a while."""

    @abstractmethod
    async def add(self, calls: Sequence[Call], *, keep: int, epoch: int | None = None) -> None:
        """Write calls, and keep only the newest `keep` of each conversation they belong to.

        Newest is what was added last; an id that is there already is left as it is. `epoch`: where the scope of one of them was
        erased since, `ErasedError` is raised and none is written.
        """

    @abstractmethod
    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Call]:
        """Calls of a tenant, a user, or a conversation that were made for this scope, newest first; `after` continues behind a call id."""

    @abstractmethod
    async def get(self, scope: Scope, call_id: str) -> Call:
        """One call of a scope; unknown, no longer kept or foreign raises `NotFoundError`."""

    @abstractmethod
    async def loose(self, tenant: str | None) -> Sequence[Scope]:
        """Conversations of a tenant, or of all, that have calls and that nobody owns, by tenant and id, with whose calls they are.

        There are such from before asking made somebody the owner.
        """

    @abstractmethod
    async def restore(self, calls: Sequence[Call]) -> int:
        """Write calls as they were, all of a conversation together, oldest first (for imports); returns how many were new.

        A conversation that has calls keeps those, and gets no others: what came later must not seem older. Nor is a call written
        whose id is there.
        """


class SessionStore(ABC):
    """Document 001's `SessionValue`, as JSON."""

    @abstractmethod
    async def get(self, scope: Scope) -> JsonObject | None:
        """The session value of a conversation, or None when there is none.

        That of another user raises `ConflictError`.
        """

    @abstractmethod
    async def put(self, scope: Scope, value: JsonObject, *, epoch: int | None = None) -> None:
        """Replace the session value of a conversation, which begins with it if nobody wrote to it yet.

        `epoch`: a conversation that was erased since raises `ErasedError`.
        """


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A session value, and the change of the conversation after which it was read."""

    value: JsonObject
    version: int


class SessionCache(ABC):
    """Document 001's `SessionValue` close at hand for half an hour: only a cache, which may lose anything at any time.

    * A version is a whole number from 0 to 2^53 - 1 that the database knows and that rises with every change of the session.
      Whoever reads compares it with the database's: a value of another version is no better than none.
    * A value lives for 1800 s after it was put.
    * A cache that is down, slow, full or read-only raises nothing: to read is a miss, to write is `False`.
    """

    #: Reads that found a value, reads that did not, and calls that the cache failed to answer.
    hits: int = 0
    misses: int = 0
    errors: int = 0

    @abstractmethod
    async def get(self, scope: Scope) -> CachedSession | None:
        """The value of a conversation, exactly as it was put, or None. Whose it is was not checked."""

    @abstractmethod
    async def put(self, scope: Scope, value: JsonObject, *, version: int) -> bool:
        """Keep a value, whole or not at all, unless one of this version or a newer one is kept; tell whether it was.

        So of any number of writers the newest wins, however late an older one comes. What is kept but damaged counts as nothing.
        A value that is not JSON and a version out of range raise `InvalidTurnError`.
        """

    @abstractmethod
    async def drop(self, scope: Scope) -> None:
        """Forget the value of a conversation; one that is not there is passed over. What was erased stays refused."""

    @abstractmethod
    async def erase(self, scope: Scope, *, version: int) -> bool:
        """Forget the value and, for as long as one lives, refuse any up to this version; tell whether it was done.

        Whoever read the value before the conversation was erased may put it back afterwards: that is what is refused.
        """

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in a receipt, and where erasures note what it has carried out; without a password."""

    @abstractmethod
    async def kept(self) -> list[Scope]:
        """The conversations of which there is a value; raises `StoreUnavailableError` when it cannot say."""

    @abstractmethod
    async def close(self) -> None:
        """Let go; from then on nothing is found or kept. Twice is the same as once."""
