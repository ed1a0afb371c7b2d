"""The promises of `pagefile.ports` as tests: a backend is done when it passes all of them.

Subclass each class and give it a `store` fixture; the store must be opened with the `clock` fixture:

    class Backend:
        @pytest.fixture
        async def store(self, clock):
            store = await open_my_store(clock=clock)
            yield store
            await store.close()

    class TestTurnLog(Backend, TurnLogContract): ...
"""

from pagefile.testing.contracts.audit import AuditorContract
from pagefile.testing.contracts.erasures import EpochContract, ErasuresContract, StoreContract
from pagefile.testing.contracts.facts import FactRestoreContract, FactStoreContract
from pagefile.testing.contracts.log import MarkerContract, TurnLogContract
from pagefile.testing.contracts.messages import MediaStoreContract, MessagesContract
from pagefile.testing.contracts.pages import PageIndexContract, PageKeeperContract, PageStoreContract
from pagefile.testing.contracts.parts import PartContract
from pagefile.testing.contracts.reader import (
    LogReaderContract,
    TermStoreContract,
    TurnSourceContract,
    WatermarksContract,
)
from pagefile.testing.contracts.restore import RestoreContract
from pagefile.testing.contracts.sessions import SessionCacheContract, SessionStoreContract
from pagefile.testing.contracts.tables import ItemStoreContract, KeyStoreContract, WindowLogContract
from pagefile.testing.contracts.tiers import TierContract
from pagefile.testing.contracts.vectors import VectorIndexContract

__all__ = [
    "AuditorContract",
    "EpochContract",
    "ErasuresContract",
    "FactRestoreContract",
    "FactStoreContract",
    "ItemStoreContract",
    "KeyStoreContract",
    "LogReaderContract",
    "MarkerContract",
    "MediaStoreContract",
    "MessagesContract",
    "PageIndexContract",
    "PageKeeperContract",
    "PageStoreContract",
    "PartContract",
    "RestoreContract",
    "SessionCacheContract",
    "SessionStoreContract",
    "StoreContract",
    "TermStoreContract",
    "TierContract",
    "TurnLogContract",
    "TurnSourceContract",
    "VectorIndexContract",
    "WatermarksContract",
    "WindowLogContract",
]
