"""What is stored beside the log: sessions, recorded windows, and facts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pagefile.engine.replay import UNNOTED, rebuilt
from pagefile.engine.verification.findings import Check, Finding, at
from pagefile.errors import ConflictError, NotFoundError, PagefileError
from pagefile.ports import UNREADABLE
from pagefile.records import Fact, Revision, Scope, Turn, WindowRecord
from pagefile.stores import versions_in
from pagefile.text.fact_rules import own_words
from pagefile.window.receipt import Receipt, receipt_from

#: Without `full`, the newest window of this many conversations is rebuilt.
SAMPLED = 100
#: How often something is read again because it was written to.
MOST_ATTEMPTS = 5
_ALL = 1_000_000
_PAGES = 500


class Sessions(Check):
    """Checks that the session value is readable, and that the cache agrees with the database."""

    async def look(self, scope: Scope) -> list[Finding]:
        engine = self.engine
        try:
            value = await engine.store.sessions.get(scope)
        except UNREADABLE as error:
            return [at(scope, "damage", "session", f"the session cannot be read: {error!r}")]
        except ConflictError:
            return []  # it got another owner meanwhile
        self.tally.checked["sessions"] += value is not None
        if engine.cache is None:
            return []
        cached, version = await engine.cache.get(scope), await versions_in(engine.store.reader)(scope)
        # A cached value of another version is never used, so its content does not matter.
        if cached is None or cached.version != version or cached.value == value:
            return []
        if self.repair:
            await engine.cache.drop(scope)
        what = "the session in the cache is not the database's"
        return [at(scope, "derived", "session-cache", what, mended=self.repair)]


@dataclass(slots=True)
class Calls(Check):
    """Checks that recorded windows can be rebuilt from the log."""

    #: When an owner's pages were last purged; None if never.
    purges: dict[Scope, datetime | None] = field(default_factory=dict[Scope, datetime | None])

    async def look(self, scope: Scope) -> list[Finding]:
        """What is wrong with a conversation's recorded calls: all of them, or the newest of the first conversations."""
        if not self.full and self.tally.checked["calls"] >= SAMPLED:
            return []
        try:
            calls = await self.engine.store.calls.list(scope, limit=_ALL if self.full else 1)
        except UNREADABLE as error:
            return [at(scope, "note", "call-unreadable", f"its recorded calls cannot be read: {error!r}")]
        self.tally.checked["calls"] += len(calls)
        return [finding for call in calls for finding in await self._again(scope, call)]

    async def _again(self, scope: Scope, call: WindowRecord) -> list[Finding]:
        try:
            again = await rebuilt(self.engine, call)
        except NotFoundError as error:
            what = f"the window of call {call.id!r} cannot be rebuilt: {error}"
            return [at(scope, "damage", "call", what, turn=call.turn_id)]
        except (*UNREADABLE, PagefileError) as error:
            # A damaged page is reported with the pages; a setting that no longer exists, or an unreadable
            # call, does no harm.
            return [at(scope, "note", "call-unreadable", f"call {call.id!r} cannot be rebuilt: {error!r}")]
        if again is None or again.exact:
            return []
        if UNNOTED in again.why or await self._lost_something(call, again.window.receipt):
            told = "; ".join(again.why) or "nothing tells why"
            what = f"the window of call {call.id!r} is different when rebuilt today: {told}"
            return [at(scope, "note", "call-differs", what, turn=call.turn_id)]
        what = (
            f"the window of call {call.id!r} cannot be rebuilt: its messages have another hash, and nothing it was built from "
            "was purged or erased, so either a text was changed or another version of Pagefile made it"
        )
        return [at(scope, "note", "call-changed", what, turn=call.turn_id)]

    async def _lost_something(self, call: WindowRecord, now: Receipt) -> bool:
        """Whether something that a window was built from no longer exists: a candidate, or the text of a page."""
        there = {verdict.id for verdict in now}
        if any(verdict.id not in there for verdict in receipt_from(call.receipt)):
            return True
        scope = call.scope
        # Pages may come from any conversation of the user.
        owner = scope if scope.user is None else Scope(scope.tenant, scope.user)
        if owner not in self.purges:
            self.purges[owner] = await self._last_purge(owner)
        last = self.purges[owner]
        return last is not None and last >= call.at

    async def _last_purge(self, owner: Scope) -> datetime | None:
        after: str | None = None
        purges: list[datetime] = []
        while pages := await self.engine.store.pages.list(owner, limit=_PAGES, after=after):
            purges += [page.purged for page in pages if page.purged is not None]
            after = pages[-1].uuid
        return max(purges, default=None)


class Facts(Check):
    """Checks that the facts about a user follow from their changes, and were read where they say."""

    async def look(self, owner: Scope) -> list[Finding]:
        """What is wrong with the facts about a user; nothing if they change all the time."""
        store = self.engine.store.facts
        for _ in range(MOST_ATTEMPTS):
            try:
                stamp = await store.changed(owner)
                facts = await store.list(owner, retracted=True)
                revisions = await store.revisions(owner)
            except UNREADABLE as error:
                return [at(owner, "damage", "facts-unreadable", f"facts cannot be read: {error!r}")]
            if await store.changed(owner) == stamp:
                break
        else:
            return []
        self.tally.checked["facts"] += len(facts)
        self.tally.checked["revisions"] += len(revisions)
        return [
            *(
                at(owner, "damage", "fact-chain", f"fact {fact_id!r}: {what}")
                for fact_id, what in broken_chain(facts, revisions)
            ),
            *(
                at(owner, "damage", "fact-digest", f"fact {fact_id!r} was changed after it was written")
                for fact_id in await self.audit.altered_facts(owner)
            ),
            *[finding for fact in facts for finding in await self._source(fact)],
        ]

    async def _source(self, fact: Fact) -> list[Finding]:
        """Check the turn a fact was read in. A fact given by a caller may name a turn from elsewhere."""
        if fact.source_turn is None or fact.scope.conversation is None:
            return []
        scope = Scope(fact.scope.tenant, None, fact.scope.conversation)
        kept = await self.audit.entry(scope, fact.source_turn)
        if kept is None:
            what = f"fact {fact.id!r} was read in turn {fact.source_turn!r}, which does not exist"
            return [at(fact.scope, "damage", "fact-source", what, turn=fact.source_turn)]
        turn, quote = kept.entry, fact.source_quote
        if isinstance(turn, Turn) and quote and not is_quoted(quote, turn):
            what = f"fact {fact.id!r} was read in turn {turn.id!r}, where its quote {quote!r} is not"
            return [at(fact.scope, "damage", "fact-quote", what, turn=turn.id, seq=turn.seq)]
        return []


def is_quoted(quote: str, turn: Turn) -> bool:
    said = turn.user or ""
    return quote in said or quote in own_words(said) or quote in (turn.assistant or "")


def broken_chain(facts: Sequence[Fact], revisions: Sequence[Revision]) -> Iterator[tuple[str, str]]:
    """Facts whose changes do not follow from one another or do not lead to the current state, with what is wrong."""
    became: dict[str, Fact] = {}
    told: set[str] = set()
    for revision in revisions:
        for before, after in zip(revision.before, revision.after, strict=True):
            known = became.get(after.id)
            if known is not None and before != known and after.id not in told:
                told.add(after.id)
                yield after.id, f"revision {revision.number} does not continue from the one before it"
            became[after.id] = after
    held = {fact.id: fact for fact in facts}
    for fact_id, last in became.items():
        if fact_id not in held:
            yield fact_id, "its changes exist, but it does not"
        elif held[fact_id] != last and fact_id not in told:
            yield fact_id, "it does not match its last change"
