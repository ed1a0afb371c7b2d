"""What Pagefile asks of the world: small abstract classes that a backend fills.

Each verb is coarse (one hop to the database) and takes one request object, so that a port can grow a field without
breaking the backends others wrote. What must hold is written here and has a contract test of the same
name in `pagefile.testing`.
"""

from pagefile.ports.derived import (
    Behind,
    Maker,
    Near,
    Shelf,
    TermStore,
    TurnTerms,
    Vector,
    VectorHome,
    VectorRow,
    Watermarks,
)
from pagefile.ports.items import ItemKey, ItemStore, ItemVectors, ItemWrite, Namespace, StoredItem
from pagefile.ports.keys import KeyStore
from pagefile.ports.learning import FactExtractor, Proposal, Said
from pagefile.ports.log import (
    Abort,
    AddStep,
    CheckpointDraft,
    Complete,
    EntryQuery,
    HeadQuery,
    LogReader,
    LogView,
    Neighbourhood,
    ResetDraft,
    SinceRequest,
    TurnChange,
    TurnDraft,
    TurnLog,
    TurnRef,
    TurnSource,
    ViewRequest,
)
from pagefile.ports.pages import (
    PageDraft,
    PageIndex,
    PageKeeper,
    PageStore,
    PageTerms,
    PurgeRequest,
)
from pagefile.ports.shelves import (
    CachedSession,
    CallLog,
    FactStore,
    SessionCache,
    SessionStore,
)
from pagefile.ports.store import (
    Store,
)
from pagefile.ports.world import (
    ChatModel,
    Clock,
    Embedder,
    Meter,
    Spoken,
    Summarizer,
    SummaryRequest,
    ToolCall,
)

__all__ = [
    "Abort",
    "AddStep",
    "Behind",
    "CachedSession",
    "CallLog",
    "ChatModel",
    "CheckpointDraft",
    "Clock",
    "Complete",
    "Embedder",
    "EntryQuery",
    "FactExtractor",
    "FactStore",
    "HeadQuery",
    "ItemKey",
    "ItemStore",
    "ItemVectors",
    "ItemWrite",
    "KeyStore",
    "LogReader",
    "LogView",
    "Maker",
    "Meter",
    "Namespace",
    "Near",
    "Neighbourhood",
    "PageDraft",
    "PageIndex",
    "PageKeeper",
    "PageStore",
    "PageTerms",
    "Proposal",
    "PurgeRequest",
    "ResetDraft",
    "Said",
    "SessionCache",
    "SessionStore",
    "Shelf",
    "SinceRequest",
    "Spoken",
    "Store",
    "StoredItem",
    "Summarizer",
    "SummaryRequest",
    "TermStore",
    "ToolCall",
    "TurnChange",
    "TurnDraft",
    "TurnLog",
    "TurnRef",
    "TurnSource",
    "TurnTerms",
    "Vector",
    "VectorHome",
    "VectorRow",
    "ViewRequest",
    "Watermarks",
]
