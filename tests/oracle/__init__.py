"""The oracle: the ports of conversations, facts, pages and vectors in the plainest Python, obviously correct.

It recounts what a database keeps in counters. Stores are played against it; see `tests/property/stores`.
"""

from tests.oracle.store import OracleStore

__all__ = ["OracleStore"]
