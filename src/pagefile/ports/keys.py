"""Who may use the service: API keys, stored only as hashes."""

from abc import ABC, abstractmethod
from datetime import datetime

from pagefile.records import ApiKey


class KeyStore(ABC):
    """API keys by id. They belong to the operator: erasures keep them, and exports omit them."""

    @abstractmethod
    async def add(self, key: ApiKey) -> None:
        """Write a new key; an existing id raises `ConflictError`."""

    @abstractmethod
    async def get(self, key_id: str) -> ApiKey | None:
        """One key, revoked and expired ones included; None if unknown."""

    @abstractmethod
    async def list(self) -> list[ApiKey]:
        """Every key, oldest first, ties by id."""

    @abstractmethod
    async def rotate(self, key_id: str, successor: ApiKey, until: datetime) -> ApiKey:
        """Write a key's successor, and let the old key work until `until` or its own expiry. Returns the old one.

        Atomic. Raises `ConflictError` if the old key is no longer usable or the successor's id is taken,
        `NotFoundError` if the old key is unknown.
        """

    @abstractmethod
    async def revoke(self, key_id: str, at: datetime) -> ApiKey:
        """Stop accepting a key. Only the first revocation counts; an unknown key raises `NotFoundError`."""

    @abstractmethod
    async def used(self, key_id: str, at: datetime) -> None:
        """Note that a key was used. The time only rises; an unknown key is ignored."""
