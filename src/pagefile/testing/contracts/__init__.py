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

from pagefile.testing.contracts.auditing import AuditorContract
from pagefile.testing.contracts.derived import TermStoreContract, WatermarksContract
from pagefile.testing.contracts.epochs import EpochContract
from pagefile.testing.contracts.erasures import ErasuresContract
from pagefile.testing.contracts.items import ItemStoreContract
from pagefile.testing.contracts.keeping import PageIndexContract, PageKeeperContract
from pagefile.testing.contracts.keys import KeyStoreContract
from pagefile.testing.contracts.log import TurnLogContract
from pagefile.testing.contracts.markers import MarkerContract
from pagefile.testing.contracts.messages import MediaStoreContract, MessagesContract
from pagefile.testing.contracts.pages import PageStoreContract
from pagefile.testing.contracts.parts import PartContract
from pagefile.testing.contracts.reader import LogReaderContract
from pagefile.testing.contracts.restoring import RestoreContract
from pagefile.testing.contracts.session_cache import SessionCacheContract
from pagefile.testing.contracts.sessions import SessionStoreContract
from pagefile.testing.contracts.shelves import CallLogContract, FactRestoreContract, FactStoreContract
from pagefile.testing.contracts.source import TurnSourceContract
from pagefile.testing.contracts.store import StoreContract
from pagefile.testing.contracts.tiers import TierContract
from pagefile.testing.contracts.vectors import VectorHomeContract

__all__ = [
    "AuditorContract",
    "CallLogContract",
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
    "VectorHomeContract",
    "WatermarksContract",
]
