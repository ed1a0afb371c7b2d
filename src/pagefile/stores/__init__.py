"""Where memory is kept: every backend of the ports, and the door to them."""

from pagefile.stores.clock import SystemClock
from pagefile.stores.inmemory import InMemoryStore
from pagefile.stores.opening import StoreOptions, open_store
from pagefile.stores.sqlite import SqliteStore

__all__ = ["InMemoryStore", "SqliteStore", "StoreOptions", "SystemClock", "open_store"]
