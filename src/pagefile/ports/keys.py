"""Who may use the service: the keys, of which only hashes are kept."""

from abc import ABC, abstractmethod
from datetime import datetime

from pagefile.records import ApiKey


class KeyStore(ABC):
    """API keys by id. They are the operator's, not memory: erasing a user or a tenant leaves them, and exports hold none."""

    @abstractmethod
    async def add(self, key: ApiKey) -> None:
        """Write a new key; an id that is there already raises `ConflictError`."""

    @abstractmethod
    async def get(self, key_id: str) -> ApiKey | None:
        """One key, revoked and expired ones too; None when there is none."""

    @abstractmethod
    async def list(self) -> list[ApiKey]:
        """Every key, oldest first, those of one moment by id."""

    @abstractmethod
    async def rotate(self, key_id: str, successor: ApiKey, until: datetime) -> ApiKey:
        """Write the key that takes another's place, and let the old one in until then, or until it ends by itself. Returns the old one.

        All or nothing. `ConflictError` when the old one opens nothing any more or the successor's id is taken; an unknown one raises
        `NotFoundError`.
        """

    @abstractmethod
    async def revoke(self, key_id: str, at: datetime) -> ApiKey:
        """No longer let a key in. The first time counts; an unknown one raises `NotFoundError`."""

    @abstractmethod
    async def used(self, key_id: str, at: datetime) -> None:
        """Note that a key was used. The time only rises; an unknown key is passed over."""
