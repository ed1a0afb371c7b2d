"""Where memory is stored: every backend of the ports, and the functions that open one by its URL."""

from pagefile.stores.inmemory import InMemoryStore
from pagefile.stores.registry import StoreOptions, SystemClock, open_store, open_vectors
from pagefile.stores.session_cache import head_version, open_sessions
from pagefile.stores.sqlite import SqliteStore

__all__ = [
    "InMemoryStore",
    "SqliteStore",
    "StoreOptions",
    "SystemClock",
    "head_version",
    "open_sessions",
    "open_store",
    "open_vectors",
]
