"""Fakes for tests, and the contracts that every store must pass.

The contracts are pytest classes in `pagefile.testing.contracts`; they need pytest, the fakes need nothing.
"""

from pagefile.testing.clock import FakeClock
from pagefile.testing.flaky import FlakyStore
from pagefile.testing.hashing import HashingEmbedder
from pagefile.testing.session_cache import InMemorySessions

__all__ = ["FakeClock", "FlakyStore", "HashingEmbedder", "InMemorySessions"]
