"""Fakes for tests, and the contracts that every store must pass.

The contracts are pytest classes in `pagefile.testing.contracts`; they need pytest, the fakes need nothing.
"""

from pagefile.testing.fakes import FakeClock, FlakyStore, HashingEmbedder, InMemorySessions

__all__ = ["FakeClock", "FlakyStore", "HashingEmbedder", "InMemorySessions"]
