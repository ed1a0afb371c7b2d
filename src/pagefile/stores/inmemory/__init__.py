"""The oracle: every port in the plainest Python, obviously correct; nothing survives the process.

It recounts what a database would keep in counters. Other stores are tested against it, and it is the store of
`memory://`.
"""

from pagefile.stores.inmemory.store import InMemoryStore

__all__ = ["InMemoryStore"]
