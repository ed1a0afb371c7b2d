"""A store that fails on demand, for testing the layers above it."""

from collections.abc import Callable, Iterable
from typing import Any, cast

from pagefile.errors import StoreUnavailableError
from pagefile.ports import (
    CallLog,
    Erasures,
    FactStore,
    ItemStore,
    KeyStore,
    LogReader,
    MediaStore,
    PageIndex,
    PageKeeper,
    PageStore,
    Part,
    SessionStore,
    Store,
    TermStore,
    TurnLog,
    TurnSource,
    VectorHome,
    Watermarks,
)
from pagefile.records import ErasureReceipt, JsonObject, Scope


class FlakyStore(Store):
    """Passes everything on to another store, but raises for the named verbs.

    Verbs are written `port.verb`: `log.append`, `reader.view`, `pages.load` …, and `erase`, `describe` for the store
    itself. A failing verb never reaches the underlying store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._error: Exception = StoreUnavailableError()
        self._failing: set[str] = set()
        self._left: int | None = None
        self.log = cast("TurnLog", _FlakyPort("log", store.log, self.check))
        self.reader = cast("LogReader", _FlakyPort("reader", store.reader, self.check))
        self.source = cast("TurnSource", _FlakyPort("source", store.source, self.check))
        self.facts = cast("FactStore", _FlakyPort("facts", store.facts, self.check))
        self.pages = cast("PageStore", _FlakyPort("pages", store.pages, self.check))
        self.page_keeper = cast("PageKeeper", _FlakyPort("page_keeper", store.page_keeper, self.check))
        self.page_index = cast("PageIndex", _FlakyPort("page_index", store.page_index, self.check))
        self.media = cast("MediaStore", _FlakyPort("media", store.media, self.check))
        self.calls = cast("CallLog", _FlakyPort("calls", store.calls, self.check))
        self.sessions = cast("SessionStore", _FlakyPort("sessions", store.sessions, self.check))
        self.watermarks = cast("Watermarks", _FlakyPort("watermarks", store.watermarks, self.check))
        self.terms = cast("TermStore", _FlakyPort("terms", store.terms, self.check))
        self.keys = cast("KeyStore", _FlakyPort("keys", store.keys, self.check))
        self.items = cast("ItemStore", _FlakyPort("items", store.items, self.check))
        self.erasures = cast("Erasures", _FlakyPort("erasures", store.erasures, self.check))

    def vectors(self, *, cache_bytes: int | None = None) -> VectorHome | None:
        home = self._store.vectors(cache_bytes=cache_bytes)
        if home is None:
            return None
        flaky = _FlakyPort("vectors", home, self.check)
        flaky.name, flaky.apart = home.name, home.apart
        return cast("VectorHome", flaky)

    def fail(self, verbs: Iterable[str], *, error: Exception | None = None, times: int | None = None) -> None:
        """Fail these verbs from now on, or only the next few times."""
        self._failing = set(verbs)
        self._error = error or StoreUnavailableError()
        self._left = times

    def mend(self) -> None:
        """Stop failing."""
        self._failing = set()

    def check(self, verb: str) -> None:
        """Raise if this verb is to fail now."""
        if verb not in self._failing or self._left == 0:
            return
        if self._left is not None:
            self._left -= 1
        raise self._error

    async def erase(self, scope: Scope, part: Part | None = None) -> ErasureReceipt:
        self.check("erase")
        return await self._store.erase(scope, part)

    async def describe(self) -> JsonObject:
        self.check("describe")
        return await self._store.describe()

    async def close(self) -> None:
        await self._store.close()


class _FlakyPort:
    """Any port: every verb first checks whether it is to fail."""

    def __init__(self, name: str, port: object, check: Callable[[str], None]) -> None:
        #: Only a vector store has these.
        self.name, self.apart = "", False
        self._prefix = name
        self._port = port
        self._check = check

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._port, verb)

        async def checked(*args: Any, **kwargs: Any) -> Any:
            self._check(f"{self._prefix}.{verb}")
            return await method(*args, **kwargs)

        return checked
