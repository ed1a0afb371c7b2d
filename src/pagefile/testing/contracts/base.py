"""What every contract requires of a backend, and shared helpers."""

from abc import ABC, abstractmethod
from typing import Any, Literal

import pytest

from pagefile.ports import EntryQuery, Store
from pagefile.records import Entry, Head, Scope
from pagefile.testing.clock import FakeClock
from pagefile.testing.drafts import CHAT, view

_EVERYTHING: frozenset[Literal["turn", "checkpoint", "reset"]] = frozenset({"turn", "checkpoint", "reset"})


class Contract(ABC):
    """A suite that runs on any store."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The clock the store is opened with."""
        return FakeClock()

    @pytest.fixture
    @abstractmethod
    async def store(self, clock: FakeClock) -> Any:
        """An empty store, opened with `clock`."""


async def everything(store: Store, scope: Scope = CHAT) -> list[Entry]:
    """The whole log of a conversation."""
    return await store.reader.entries(EntryQuery(scope, _EVERYTHING, limit=10_000))


async def head_of(store: Store, scope: Scope = CHAT) -> Head:
    """The counters of a conversation."""
    return (await store.reader.view(view(scope=scope))).head
