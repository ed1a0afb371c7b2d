"""Keys that were good when this process last looked them up: an outage of the database must cost memory, and neither answers nor the metrics.

Such a key opens the metrics and the gateway for some minutes, and the gateway has no memory to give then. Nothing else: what is stored
is out of reach anyway. A key that was revoked since then, before the outage or during it, is found out when the database is back, or when
the minutes are over.
"""

from collections.abc import Callable
from time import monotonic

import anyio

from pagefile.errors import StoreError, StoreUnavailableError
from pagefile.lru import Lru
from pagefile.ports import KeyStore
from pagefile.records import ApiKey

#: How long a key opens the gateway without the database, in seconds.
REMEMBERED_S = 600.0
#: How long the database may take to tell of a key that is known, in seconds.
_STORE_S = 2.0
_MOST = 10_000
UNCHECKED = (
    "The database does not answer, so this key cannot be checked: try again in a moment. Until then, only keys that were used in the last "
    f"{REMEMBERED_S / 60:.0f} minutes open the metrics and, without memory, the gateway."
)


class KnownKeys:
    def __init__(self, *, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        #: By id, with the time at which the database had it.
        self._known: Lru[str, tuple[ApiKey, float]] = Lru(_MOST)

    async def find(self, keys: KeyStore, key_id: str) -> ApiKey | None:
        """The key as the database has it, which is then known."""
        try:
            key = await keys.get(key_id)
        except StoreError as error:
            # A disk that is full or a file that is damaged tells of no key, either.
            raise StoreUnavailableError(UNCHECKED) from error
        if key is None:
            self._known.pop(key_id, None)
        else:
            self._known[key_id] = key, self._now()
        return key

    async def find_in_outage(self, keys: KeyStore, key_id: str) -> tuple[ApiKey | None, bool]:
        """The same, or the key as it was some minutes ago; and whether the database was asked."""
        try:
            with anyio.fail_after(_STORE_S):
                return await self.find(keys, key_id), True
        except (StoreError, TimeoutError) as error:
            key, at = self._known.get(key_id, (None, 0.0))
            if key is None or self._now() - at > REMEMBERED_S:
                raise StoreUnavailableError(UNCHECKED) from error
            return key, False
