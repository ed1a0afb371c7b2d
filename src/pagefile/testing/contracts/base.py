"""What every contract requires of a backend, and shared helpers."""

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any, TypeAlias

import pytest

from pagefile.ports import CheckpointDraft, EntryQuery, PageDraft, ResetDraft, Store, TurnDraft
from pagefile.ports.log import TurnChange
from pagefile.records import ApiKey, ConversationInfo, Fact, Scope, WindowRecord
from pagefile.testing.drafts import view
from pagefile.testing.fakes import FakeClock
from pagefile.testing.scopes import CHAT

Request: TypeAlias = (
    TurnDraft | TurnChange | CheckpointDraft | ResetDraft | PageDraft | Fact | WindowRecord | ApiKey
)


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


async def write(store: Store, *requests: Request) -> list[Any]:
    """Writes one after the other, each with the verb for its kind; returns what each verb returned."""
    return [await _written(store, request) for request in requests]


async def _written(store: Store, request: Request) -> object:
    match request:
        case TurnDraft():
            return await store.log.append(request)
        case CheckpointDraft() | ResetDraft():
            return await store.log.mark(request)
        case PageDraft():
            return await store.pages.put(request)
        case Fact():
            return await store.facts.put(request)
        case WindowRecord():
            return await store.calls.add([request], keep=10)
        case ApiKey():
            return await store.keys.add(request)
        case _:
            return await store.log.advance(request)


async def refused(error: type[Exception], *calls: Awaitable[object], match: str | None = None) -> None:
    """Every one of the calls raises this error."""
    for call in calls:
        with pytest.raises(error, match=match):
            await call


async def changes_nothing(
    store: Store,
    error: type[Exception],
    *calls: Awaitable[object],
    scope: Scope = CHAT,
    match: str | None = None,
) -> None:
    """Every one of the calls raises this error, and the conversation stays as it was."""
    before = await everything(store, scope), await head_of(store, scope)
    await refused(error, *calls, match=match)
    assert before == (await everything(store, scope), await head_of(store, scope))


async def everything(store: Store, scope: Scope = CHAT) -> list[Any]:
    """The whole log of a conversation; a test knows of what kind each entry is."""
    query = EntryQuery(scope, frozenset({"turn", "checkpoint", "reset"}), limit=10_000)
    return [*await store.reader.entries(query)]


async def session_of(store: Store, scope: Scope = CHAT) -> dict[str, Any]:
    """The session of a conversation, which must exist."""
    found = await store.sessions.get(scope)
    assert found is not None
    return json.loads(json.dumps(found))


async def view_of(store: Store, scope: Scope = CHAT) -> Any:
    """A view of everything live; a test knows whether there is a checkpoint."""
    return await store.reader.view(view(scope=scope))


async def head_of(store: Store, scope: Scope = CHAT) -> ConversationInfo:
    return (await view_of(store, scope)).head
