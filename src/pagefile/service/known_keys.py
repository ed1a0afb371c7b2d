"""Keys that were good when the database last answered: an outage of it must cost memory, and neither answers nor the metrics.

Such a key opens the metrics, and for some minutes the gateway, which then has no memory to give. Nothing else: what is stored is
out of reach anyway. A key that was revoked during the outage is found out when the database is back, or when the minutes are over.
"""

from collections.abc import Callable
from time import monotonic

import anyio

from pagefile.errors import StoreUnavailableError
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
    f"{REMEMBERED_S / 60:.0f} minutes open the gateway, without memory."
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
        except StoreUnavailableError as error:
            raise StoreUnavailableError(UNCHECKED) from error
        if key is None:
            self._known.pop(key_id, None)
        else:
            self._known[key_id] = key, self._now()
        return key

    async def find_in_outage(
        self, keys: KeyStore, key_id: str, *, for_s: float | None = REMEMBERED_S
    ) -> tuple[ApiKey | None, bool]:
        """The same, or the key as it last was, for so many seconds (None: as long as there is no other); and whether the database was asked."""
        try:
            with anyio.fail_after(_STORE_S):
                return await self.find(keys, key_id), True
        except (StoreUnavailableError, TimeoutError) as error:
            key, at = self._known.get(key_id, (None, 0.0))
            if key is None or (for_s is not None and self._now() - at > for_s):
                raise StoreUnavailableError(UNCHECKED) from error
            return key, False
