"""Images and files that came with messages."""

from abc import ABC, abstractmethod

from pagefile.records import Scope


class MediaStore(ABC):
    """The bytes that turns brought with them. They are written with the turn, and go when no turn names them any more."""

    @abstractmethod
    async def load(self, scope: Scope, hash: str) -> bytes:  # noqa: A002 - the word of `Media.blob`'s comment
        """The bytes of this SHA-256 that a turn of the scope brought; `NotFoundError` where none did.

        A scope with a conversation gives what that one's turns brought, one with only a user what that user's conversations
        did, one with neither what came with any turn of the tenant.
        """
