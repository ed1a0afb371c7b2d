"""What lies beside the log: facts, recorded windows, session values and their cache."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pagefile.records import Call, Fact, JsonObject, Scope


class FactStore(ABC):
    """Lasting statements about users."""

    @abstractmethod
    async def put(self, fact: Fact) -> Fact:
        """Write a fact, or replace the one with the same id; the scope must name a user.

        An id that is another user's raises `ConflictError`.
        """

    @abstractmethod
    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        """Facts of a scope's user (of the whole tenant when it names none), oldest first."""

    @abstractmethod
    async def retract(self, scope: Scope, fact_id: str, at: datetime) -> Fact:
        """Mark a fact as no longer held. Twice is the same as once; unknown or foreign raises `NotFoundError`."""


class CallLog(ABC):
    """The windows that were handed out, for a while."""

    @abstractmethod
    async def add(self, calls: Sequence[Call], *, keep: int) -> None:
        """Write calls, and keep only the newest `keep` of each conversation they belong to.

        Newest is what was added last; an id that is there already is left as it is.
        """

    @abstractmethod
    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[Call]:
        """Calls of a conversation, newest first; `after` continues behind a call id."""


class SessionStore(ABC):
    """Document 001's `SessionValue`, as JSON."""

    @abstractmethod
    async def get(self, scope: Scope) -> JsonObject | None:
        """The session value of a conversation, or None when there is none.

        That of another user raises `ConflictError`.
        """

    @abstractmethod
    async def put(self, scope: Scope, value: JsonObject) -> None:
        """Replace the session value of a conversation, which begins with it if nobody wrote to it yet."""


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
        """Forget the value of a conversation; one that is not there is passed over."""

    @abstractmethod
    async def close(self) -> None:
        """Let go; from then on nothing is found or kept. Twice is the same as once."""
