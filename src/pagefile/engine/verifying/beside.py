"""What is stored beside the log of a conversation: its session, and its recorded windows."""

from dataclasses import replace
from datetime import datetime

from pagefile.engine.engine import Engine
from pagefile.engine.replaying import UNNOTED, rebuilt
from pagefile.engine.verifying.findings import Finding, Tally, at
from pagefile.errors import ConflictError, NotFoundError, PagefileError
from pagefile.ports import UNREADABLE
from pagefile.records import Call, Scope
from pagefile.stores import versions_in
from pagefile.window.receipt import Receipt, receipt_from

#: Without `full`, the newest window of this many conversations is rebuilt.
SAMPLED = 100
_ALL = 1_000_000
_PAGES = 500


class Sessions:
    """Checks that the session value is readable, and that the cache agrees with the database."""

    def __init__(self, engine: Engine, *, repair: bool) -> None:
        self._sessions = engine.store.sessions
        self._cache = engine.cache
        self._version_of = versions_in(engine.store.reader)
        self._repair = repair

    async def look(self, scope: Scope, tally: Tally) -> list[Finding]:
        """What is wrong with a conversation's session."""
        try:
            value = await self._sessions.get(scope)
        except UNREADABLE as error:
            return [at(scope, "damage", "session", f"the session cannot be read: {error!r}")]
        except ConflictError:
            return []  # it got another owner meanwhile
        tally.checked["sessions"] += value is not None
        if self._cache is None:
            return []
        cached, version = await self._cache.get(scope), await self._version_of(scope)
        # A cached value of another version is never used, so its content does not matter.
        if cached is None or cached.version != version or cached.value == value:
            return []
        if self._repair:
            await self._cache.drop(scope)
        what = "the session in the cache is not the database's"
        return [replace(at(scope, "derived", "session-cache", what), mended=self._repair)]


class Calls:
    """Checks that recorded windows can be rebuilt from the log."""

    def __init__(self, engine: Engine, *, full: bool) -> None:
        self._engine = engine
        self._full = full
        #: When an owner's pages were last purged; None if never.
        self._purges: dict[Scope, datetime | None] = {}

    async def look(self, scope: Scope, tally: Tally) -> list[Finding]:
        """What is wrong with a conversation's recorded calls: all of them, or the newest of the first conversations."""
        if not self._full and tally.checked["calls"] >= SAMPLED:
            return []
        try:
            calls = await self._engine.store.calls.list(scope, limit=_ALL if self._full else 1)
        except UNREADABLE as error:
            return [at(scope, "note", "call-unreadable", f"its recorded calls cannot be read: {error!r}")]
        tally.checked["calls"] += len(calls)
        return [finding for call in calls for finding in await self._again(scope, call)]

    async def _again(self, scope: Scope, call: Call) -> list[Finding]:
        try:
            again = await rebuilt(self._engine, call)
        except NotFoundError as error:
            what = f"the window of call {call.id!r} cannot be made again: {error}"
            return [at(scope, "damage", "call", what, turn=call.turn_id)]
        except (*UNREADABLE, PagefileError) as error:
            # A damaged page is reported with the pages; a setting that no longer exists, or an unreadable
            # call, does no harm.
            return [at(scope, "note", "call-unreadable", f"call {call.id!r} cannot be made again: {error!r}")]
        if again is None or again.exact:
            return []
        if UNNOTED in again.why or await self._lost_something(call, again.window.receipt):
            told = "; ".join(again.why) or "nothing tells why"
            what = f"the window of call {call.id!r} comes out otherwise today: {told}"
            return [at(scope, "note", "call-differs", what, turn=call.turn_id)]
        what = (
            f"the window of call {call.id!r} cannot be made again: its messages have another hash, and nothing it was made of "
            "was purged or erased, so either a text was changed or another version of Pagefile made it"
        )
        return [at(scope, "note", "call-changed", what, turn=call.turn_id)]

    async def _lost_something(self, call: Call, now: Receipt) -> bool:
        """Whether something that a window was built from no longer exists: a candidate, or the text of a page."""
        there = {verdict.id for verdict in now}
        if any(verdict.id not in there for verdict in receipt_from(call.receipt)):
            return True
        scope = call.scope
        # Pages may come from any conversation of the user.
        owner = scope if scope.user is None else Scope(scope.tenant, scope.user)
        if owner not in self._purges:
            self._purges[owner] = await self._last_purge(owner)
        last = self._purges[owner]
        return last is not None and last >= call.at

    async def _last_purge(self, owner: Scope) -> datetime | None:
        after: str | None = None
        purges: list[datetime] = []
        while pages := await self._engine.store.pages.list(owner, limit=_PAGES, after=after):
            purges += [page.purged for page in pages if page.purged is not None]
            after = pages[-1].uuid
        return max(purges, default=None)
