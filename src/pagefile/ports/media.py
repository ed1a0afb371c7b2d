"""Images and files attached to messages."""

from abc import ABC, abstractmethod

from pagefile.records import Scope


class MediaStore(ABC):
    """The bytes attached to turns. They are written with the turn, and deleted once no turn refers to them."""

    @abstractmethod
    async def load(self, scope: Scope, hash: str) -> bytes:  # noqa: A002 - the word of `Media.blob`'s comment
        """The bytes with this SHA-256 attached to a turn of the scope; `NotFoundError` if there are none.

        A scope with a conversation covers that conversation's turns, one with only a user all of that user's
        conversations, one with neither the whole tenant.
        """
