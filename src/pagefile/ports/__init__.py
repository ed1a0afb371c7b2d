"""What Pagefile asks of the world: small abstract classes that a backend fills.

Each verb is coarse (one hop to the database) and takes one request object, so that a port can grow a field without
breaking the backends others wrote. What must hold is written here and has a contract test of the same
name in `pagefile.testing`.
"""

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
    Meter,
    Summarizer,
    SummaryRequest,
)

__all__ = [
    "Abort",
    "AddStep",
    "CachedSession",
    "CallLog",
    "ChatModel",
    "CheckpointDraft",
    "Clock",
    "Complete",
    "EntryQuery",
    "FactStore",
    "HeadQuery",
    "LogReader",
    "LogView",
    "Meter",
    "Neighbourhood",
    "PageDraft",
    "PageIndex",
    "PageKeeper",
    "PageStore",
    "PageTerms",
    "PurgeRequest",
    "ResetDraft",
    "SessionCache",
    "SessionStore",
    "SinceRequest",
    "Store",
    "Summarizer",
    "SummaryRequest",
    "TurnChange",
    "TurnDraft",
    "TurnLog",
    "TurnRef",
    "TurnSource",
    "ViewRequest",
]
