"""Pagefile on SQLite: one file, one writer thread, readers that never wait for it."""

from pagefile.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
