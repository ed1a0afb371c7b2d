from .audit import AuditorContract
from .erasures import EpochContract, ErasuresContract, StoreContract
from .facts import FactRestoreContract, FactStoreContract
from .leases import LeaseStoreContract
from .log import MarkerContract, TurnLogContract
from .messages import MessagesContract
from .pages import MediaStoreContract, PageIndexContract, PageKeeperContract, PageStoreContract
from .parts import PartContract
from .reader import (
    LogReaderContract,
    TermStoreContract,
    TurnSourceContract,
    WatermarksContract,
)
from .restore import RestoreContract
from .sessions import SessionCacheContract, SessionStoreContract
from .tables import ItemStoreContract, KeyStoreContract, WindowLogContract
from .tiers import TierContract
from .vectors import VectorIndexContract

__all__ = [
    "AuditorContract",
    "EpochContract",
    "ErasuresContract",
    "FactRestoreContract",
    "FactStoreContract",
    "ItemStoreContract",
    "KeyStoreContract",
    "LeaseStoreContract",
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
