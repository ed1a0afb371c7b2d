"""Facts as other vendors' APIs have them: entries with an id that outlasts corrections, a history, and attributes of the caller's.

An entry is a fact with those that it was corrected from; its id is that of the first. Attributes (mem0's `metadata`, topics,
sessions) are items beside the fact. So windows, the journal, undo, exports and erasures apply to what these APIs write.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from pagefile.engine import Memory
from pagefile.errors import AccessError, ConflictError, NotFoundError
from pagefile.ports import OWN_NAMESPACE, ItemWrite, Namespace
from pagefile.records import DEFAULT_TENANT, Fact, JsonValue, Scope, checked_id
from pagefile.tiers.fact_book import Draft
from pagefile.tiers.facts import Facts, Topic

_ATTRIBUTES: Namespace = (OWN_NAMESPACE, "memory attributes")
#: How often a correction is repeated because somebody else corrected the fact meanwhile.
_ATTEMPTS = 20
Attributes = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    fact: Fact
    created: datetime
    attributes: Attributes

    @property
    def user(self) -> str:
        return self.fact.scope.user or ""

    @property
    def updated(self) -> datetime:
        return self.fact.recorded


class Change(NamedTuple):
    """What happened to an entry: before and after, None where there is nothing."""

    before: str | None
    after: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Memories:
    """The entries of a tenant, or of one of its users only."""

    memory: Memory
    tenant: str = DEFAULT_TENANT
    #: The only user within reach; None: every user of the tenant.
    only: str | None = None

    def owner(self, user: str) -> Scope:
        if self.only not in {None, user}:
            raise AccessError(
                f"This key is for the user {self.only!r}: it does not open other users' memories."
            )
        return Scope(self.tenant, checked_id(user, "user id"))

    async def owners(self) -> list[str]:
        """The users who have facts."""
        if self.only is not None:
            return [self.only]
        return [one.user or "" for one in await self.memory.engine.store.facts.owners(self.tenant)]

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get(self, entry_id: str) -> Entry:
        chain, attributes = await self._chain(entry_id)
        if chain[-1].retracted is not None:
            raise NotFoundError(f"Memory {entry_id!r} was deleted.")
        return Entry(chain[0].id, chain[-1], chain[0].recorded, attributes)

    async def of(self, users: Sequence[str]) -> list[Entry]:
        """What is held about these users, oldest first."""
        found: list[Entry] = []
        for user in users:
            owner = self.owner(user)
            facts = await self.memory.facts(user, self.tenant, history=True)
            items = await self._items.under(owner, _ATTRIBUTES, now=self._now())
            attributes = {item.key: item.value for item in items}
            known = {fact.id: fact for fact in facts}
            for fact in facts:
                if fact.retracted is None and fact.valid_to is None:
                    first = _first(fact, known)
                    found.append(Entry(first.id, fact, first.recorded, attributes.get(first.id) or {}))
        return sorted(found, key=lambda one: (one.created, one.id))

    async def read_turns(self, users: Sequence[str]) -> set[str | None]:
        """The turns from which anything was learnt, whatever became of it."""
        listed = [await self.memory.facts(user, self.tenant, history=True) for user in users]
        return {fact.source_turn for facts in listed for fact in facts}

    async def ranked(self, query: str, entries: Sequence[Entry]) -> list[tuple[Entry, float]]:
        """Entries that have to do with a query, best first, each with a score from 0 to 1."""
        tier, found = self.memory.engine.tier(Facts), list[tuple[Entry, float]]()
        by_user: dict[str, list[Entry]] = {}
        for entry in entries:
            by_user.setdefault(entry.user, []).append(entry)
        topic = Topic(query, (), asked=True)
        for user, some in by_user.items():
            owner = self.owner(user)
            # A window never waits for vectors; who searches does.
            await tier.maintain(owner)
            held, by_fact = await tier.book.held(owner), {one.fact.id: one for one in some}
            facts = [one.fact for one in some if one.fact.id in held.facts]
            for one in await tier.ranked(held, facts, topic, owner, lambda _: None) if facts else ():
                if one.value:
                    found.append((by_fact[one.fact.id], min(1.0, max(0.0, one.value))))
        return sorted(found, key=lambda one: -one[1])

    async def history(self, entry_id: str) -> list[Change]:
        chain, _ = await self._chain(entry_id)
        texts = [None, *(fact.text for fact in chain)]
        changes = [
            Change(before, after, fact.recorded)
            for before, after, fact in zip(texts, texts[1:], chain, strict=False)
        ]
        last = chain[-1]
        return [*changes, *([] if last.retracted is None else [Change(last.text, None, last.retracted)])]

    # -- changing ------------------------------------------------------------------------------------------------------

    async def add(self, user: str, draft: Draft, attributes: Attributes | None = None) -> Entry:
        """Store a statement; one that is known already is confirmed, and keeps its id."""
        owner = self.owner(user)
        fact = await self.memory.engine.tier(Facts).book.remember(owner, draft)
        self.memory.engine.worker.wake(Facts.name, owner)
        chain, known = await self._chain(fact.id)
        merged = {**known, **(attributes or {})}
        if merged != known:
            await self.annotate(user, chain[0].id, merged)
        return Entry(chain[0].id, chain[-1], chain[0].recorded, merged)

    async def annotate(self, user: str, entry_id: str, attributes: Attributes) -> None:
        write = ItemWrite(_ATTRIBUTES, entry_id, dict(attributes) or None)
        await self._items.write(self.owner(user), [write], now=self._now())

    async def update(
        self, entry_id: str, text: str | None = None, attributes: Attributes | None = None
    ) -> Entry:
        entry = await (self.get(entry_id) if text is None else self._corrected(entry_id, text))
        if attributes is not None:
            await self.annotate(entry.user, entry.id, attributes)
        return await self.get(entry_id)

    async def _corrected(self, entry_id: str, text: str) -> Entry:
        """The last of several writers wins, as with the vendors."""
        for attempt in range(1, _ATTEMPTS + 1):
            entry = await self.get(entry_id)
            await self._check_new(entry, text)
            try:
                await self.memory.correct(entry.fact.id, text, user_id=entry.user, tenant=self.tenant)
            except ConflictError:
                if attempt == _ATTEMPTS:
                    raise
                continue
            return entry
        raise AssertionError("unreachable")

    async def delete(self, entry_id: str) -> Entry:
        """Retract the fact; the journal keeps it, so that it can be undone until the user is erased."""
        entry = await self.get(entry_id)
        await self.retract(entry)
        return entry

    async def retract(self, entry: Entry) -> None:
        await self.memory.retract(entry.fact.id, user_id=entry.user, tenant=self.tenant)

    async def _check_new(self, entry: Entry, text: str) -> None:
        """Facts with the same statement become one: an entry that was changed to another's would lose its id."""
        held = await self.memory.engine.tier(Facts).book.held(self.owner(entry.user))
        same = held.equal_to(replace(entry.fact, text=text.strip()))
        if same is not None and same.id != entry.fact.id:
            raise ConflictError("Another memory says this already: delete this one instead of changing it.")

    # -- facts and items -----------------------------------------------------------------------------------------------

    @property
    def _items(self) -> Any:
        return self.memory.engine.store.items

    def _now(self) -> datetime:
        return self.memory.engine.clock.now()

    async def _chain(self, entry_id: str) -> tuple[list[Fact], Attributes]:
        """The fact with this id and those that it was corrected to, from the first to the last."""
        store = self.memory.engine.store.facts
        scope = Scope(self.tenant, self.only)
        fact = await store.get(scope, checked_id(entry_id, "memory id"))
        owner = Scope(self.tenant, fact.scope.user)
        # Nothing corrected a fact that is held, so most need not read all the others.
        known = [fact] if fact.retracted is None else await store.list(owner, retracted=True)
        facts = {one.id: one for one in known}
        with suppress(NotFoundError):
            earliest = fact
            while earliest.supersedes is not None and earliest.supersedes not in facts:
                earliest = await store.get(owner, earliest.supersedes)
                facts[earliest.id] = earliest
        corrected = {one.supersedes: one for one in facts.values() if _is_correction(one, facts)}
        chain = [_first(fact, facts)]
        while (following := corrected.get(chain[-1].id)) is not None:
            chain.append(following)
        (item,) = await self._items.get(owner, [(_ATTRIBUTES, chain[0].id)], now=self._now())
        return chain, {} if item is None else item.value


def _is_correction(fact: Fact, known: Mapping[str, Fact]) -> bool:
    """Whether it replaced a statement that was wrong, and not one that was true until then."""
    before = None if fact.supersedes is None else known.get(fact.supersedes)
    return before is not None and before.retracted is not None


def _first(fact: Fact, known: Mapping[str, Fact]) -> Fact:
    while _is_correction(fact, known):
        fact = known[fact.supersedes or ""]
    return fact
