"""What is held about users, and how it changes: confirmed by repetition, replaced by contradiction, undone by revision.

The facts of a user are cached and indexed in memory until the store reports a change; changes are then read
from the journal. So a window costs one small query, and adding one fact to ten thousand costs one fact.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from uuid import uuid4
from weakref import WeakValueDictionary

import anyio

from pagefile.errors import ConflictError, ErasedError, FactRejectedError, InvalidArgumentError, NotFoundError
from pagefile.lru import Lru
from pagefile.ports import Clock, FactStore
from pagefile.records import Fact, Outcome, Revision, Scope, checked_id, checked_text, utc
from pagefile.text.fact_ranking import FactIndex, coerced_confidence, confirmed_confidence, statement_key
from pagefile.text.fact_rules import order_in, secret_in
from pagefile.tiers.base import Counter, Redact, off_loop, unredacted

MAX_FACT_CHARS = 10_000
#: Facts cached in memory, of all users together; the least recently used users are evicted first.
MAX_CACHED = 200_000
_MOST_ATTEMPTS = 64
#: How often a user's facts are read again because they changed, or something was erased, meanwhile.
_MOST_READS = 5
#: The stamp of facts that were not read consistently: no store returns it.
_UNKNOWN = (-1, -1)
#: The subject of a fact that names an attribute but no subject.
USER = "user"


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement about to be stored."""

    text: str
    category: str | None = None
    confidence: object = 1.0
    source_turn: str | None = None
    source_quote: str | None = None
    conversation: str | None = None
    subject: str | None = None
    attribute: str | None = None
    #: As in `Proposal`.
    ends: str | None = None
    valid_from: datetime | None = None
    #: Turns after the source in its conversation that may have been read before it; None if unknown.
    later: frozenset[str] | None = None
    #: `ConversationInfo.epoch` when the source was read: what was erased since is not written back. None for a new
    #: statement.
    epoch: int | None = None
    project: str | None = None
    agent: str | None = None
    #: Its id, if the caller has one; a new one otherwise.
    id: str | None = None


#: The columns that may say anything.
_REDACTED = ("text", "category", "subject", "attribute", "source_quote")
#: What is compared, and the project and the agent.
_Key = tuple[str | None, str | None, str | None, str | None]


#: More facts of a user are compared in a thread.
THREAD_FROM_FACTS = 300


def _says(fact: Fact) -> _Key:
    who = None if fact.subject == USER else fact.subject
    return who, statement_key(fact.text), fact.project, fact.agent


def _about(fact: Fact) -> _Key:
    return fact.subject, fact.attribute, fact.project, fact.agent


class Held:
    """The facts of one user that were not retracted, ready to be searched."""

    def __init__(self, stamp: tuple[int, int], facts: Iterable[Fact] = ()) -> None:
        self.stamp = stamp
        #: Held while the index changes, or is searched in a thread.
        self.lock = anyio.Lock()
        self.facts: dict[str, Fact] = {}
        self.index: FactIndex[str] = FactIndex(translates=True)
        #: By what a fact says, and by what it is about: facts of two projects or agents never meet.
        self._by_key: defaultdict[_Key, set[str]] = defaultdict(set)
        self._by_attribute: defaultdict[_Key, set[str]] = defaultdict(set)
        self.take(facts)

    def take(self, facts: Iterable[Fact]) -> None:
        """Replace facts by their current versions."""
        added: list[tuple[str, str]] = []
        gone: list[str] = []
        for fact in facts:
            if (before := self.facts.pop(fact.id, None)) is not None:
                self._by_key[_says(before)].discard(fact.id)
                self._by_attribute[_about(before)].discard(fact.id)
            if fact.retracted is None and fact.valid_to is None:
                self.facts[fact.id] = fact
                self._by_key[_says(fact)].add(fact.id)
                if fact.attribute is not None:
                    self._by_attribute[_about(fact)].add(fact.id)
                if before is None or before.text != fact.text:
                    added.append((fact.id, fact.text))
            elif before is not None:
                gone.append(fact.id)
        self.index.remove(gone)
        self.index.add(added)

    def equal_to(self, fact: Fact) -> Fact | None:
        """The fact that says the same, punctuation and the like aside."""
        return self._newest(self._by_key.get(_says(fact), ()))

    def about(self, fact: Fact) -> Fact | None:
        """The fact that it would replace."""
        return None if fact.attribute is None else self._newest(self._by_attribute.get(_about(fact), ()))

    def _newest(self, ids: Iterable[str]) -> Fact | None:
        return max((self.facts[i] for i in ids), key=lambda fact: (fact.recorded, fact.id), default=None)


async def _made(stamp: tuple[int, int], facts: Sequence[Fact]) -> Held:
    return await off_loop(partial(Held, stamp, facts), len(facts), THREAD_FROM_FACTS)


@dataclass(eq=False, repr=False)
class FactBook:
    """Reads and changes the facts of users."""

    store: FactStore
    counter: Counter
    clock: Clock
    epoch: Callable[[], Awaitable[int]]
    #: What may not be stored of a tenant's texts is removed by this.
    redact: Redact = unredacted

    def __post_init__(self) -> None:
        self._held: Lru[Scope, Held] = Lru(MAX_CACHED, lambda held: len(held.facts))
        #: The lock for the writers of a user, as long as there are any: within a process they queue, between
        #: processes the revision decides.
        self._writers: WeakValueDictionary[Scope, anyio.Lock] = WeakValueDictionary()

    async def held(self, scope: Scope) -> Held:
        owner = Scope(scope.tenant, scope.user)
        stamp = await self.store.changed(owner)
        known = self._held.get(owner)
        if known is None or known.stamp != stamp:
            known = await self._caught_up(owner, known, stamp)
        self._held[owner] = known
        return known

    async def revision(self, scope: Scope) -> int:
        """The number of the newest change to what is held about a user; 0 if there is none, or no user."""
        if scope.user is None:
            return 0
        return (await self.store.changed(Scope(scope.tenant, scope.user)))[0]

    async def remember(self, scope: Scope, draft: Draft) -> Fact:
        """Store a statement, and return the fact with its outcome.

        However many others write at the same time, each decision is based on what the store holds then.
        """
        owner = Scope(scope.tenant, scope.user)
        draft = replace(
            draft, **{name: self.redact(owner.tenant, getattr(draft, name)) for name in _REDACTED}
        )
        async with self._writers.setdefault(owner, anyio.Lock()):
            for _ in range(_MOST_ATTEMPTS):
                fact = self._fact(owner, draft)
                # Read before what is held: one of those facts may be written again in a different state.
                epoch = await self.epoch() if draft.epoch is None else draft.epoch
                held = await self.held(owner)
                seen = held.stamp  # what is held may catch up while we wait
                if draft.ends is not None and not _ended(held, fact, draft.ends):
                    raise FactRejectedError(f"no fact names what it ends, {draft.ends!r}")
                outcome, written = decided(held, fact, dated=draft.valid_from is not None, later=draft.later)
                if not written:
                    same = held.equal_to(fact)
                    assert same is not None
                    return replace(same, outcome=outcome)
                try:
                    revision = await self.store.revise(
                        owner, written, action=outcome, at=fact.recorded, expected=seen[0], epoch=epoch
                    )
                except ErasedError:
                    if draft.epoch is not None:
                        raise
                    # What it would have changed is gone; the statement itself still holds.
                    continue
                except ConflictError:
                    if await self.store.changed(owner) == seen:
                        raise  # not because another writer was faster
                    continue
                return replace(revision.after[-1], outcome=outcome)
        raise ConflictError(
            f"The facts of user {owner.user!r} change faster than one more can be written: try again."
        )

    async def retract(self, scope: Scope, fact_id: str) -> Fact:
        """Stop holding a fact; idempotent."""

        async def change(fact: Fact, now: datetime) -> list[Fact]:
            return [] if fact.retracted is not None else [_retracted(fact, now)]

        return await self._changed(scope, fact_id, "retracted", change)

    async def correct(self, scope: Scope, fact_id: str, text: str) -> Fact:
        """Replace what a fact says; the wrong one stays on record as retracted."""
        text = self.redact(scope.tenant, checked_text(text, "fact")).strip()
        _check(text, None)

        async def change(fact: Fact, now: datetime) -> list[Fact]:
            if fact.retracted is not None or fact.valid_to is not None:
                raise ConflictError(
                    f"Fact {fact_id!r} is no longer current: remember the new statement instead."
                )
            if fact.text == text:
                return []
            right = replace(
                fact,
                id=str(uuid4()),
                text=text,
                confidence=1.0,
                recorded=max(utc(now), fact.recorded),
                source_turn=None,
                source_quote=None,
                tokens=self.counter.count(text),
                counter=self.counter.name,
                supersedes=fact.id,
                **_topic(fact, text),
            )
            same = (await self.held(fact.scope)).equal_to(right)
            if same is not None and same.id != fact.id:
                right = replace(same, confidence=1.0)
            return [_retracted(fact, now), right]

        fact = await self._changed(scope, fact_id, "corrected", change)
        return fact if fact.id == fact_id else replace(fact, outcome="corrected")

    async def _changed(
        self,
        scope: Scope,
        fact_id: str,
        action: str,
        change: Callable[[Fact, datetime], Awaitable[Sequence[Fact]]],
    ) -> Fact:
        """The last of the facts that a change gives for one, written as one revision; the fact itself if it gives none."""
        fact = await self.store.get(scope, fact_id)
        owner = Scope(fact.scope.tenant, fact.scope.user)
        for _ in range(_MOST_ATTEMPTS):
            epoch, expected = await self.epoch(), (await self.store.changed(owner))[0]
            fact = await self.store.get(scope, fact_id)
            now = self.clock.now()
            written = await change(fact, now)
            if not written:
                return fact
            try:
                revision = await self.store.revise(
                    owner, written, action=action, at=now, expected=expected, epoch=epoch
                )
            except ConflictError:
                continue
            return revision.after[-1]
        raise ConflictError(f"Fact {fact_id!r} changes faster than it can be {action}: try again.")

    async def undo(self, scope: Scope, number: int | None) -> Revision:
        """Undo a change; the undo is a change too, and can be undone."""
        owner = Scope(scope.tenant, scope.user)
        epoch, newest = await self.epoch(), (await self.store.changed(owner))[0]
        wanted = newest if number is None else number
        found = await self.store.revisions(owner, after=wanted - 1)
        if not found or found[0].number != wanted:
            raise NotFoundError(f"User {scope.user!r} has no revision {wanted}: there is nothing to undo.")
        target, *later = found
        touched = {fact.id for fact in target.after}
        for revision in reversed(later):
            if touched & {fact.id for fact in revision.after}:
                raise ConflictError(
                    f"Revision {revision.number} changed the same fact after revision {wanted}: undo it first."
                )
        now = self.clock.now()
        restored = [
            _retracted(after, now) if before is None else before
            for before, after in zip(target.before, target.after, strict=True)
        ]
        return await self.store.revise(owner, restored, action="undone", at=now, expected=newest, epoch=epoch)

    async def as_of(self, scope: Scope, moment: datetime) -> list[Fact]:
        """What was held at a moment, in its state at the time."""
        owner = Scope(scope.tenant, scope.user)
        moment = utc(moment)
        facts = {fact.id: fact for fact in await self.store.list(owner, retracted=True)}
        for revision in reversed(await self.store.revisions(owner)):
            if revision.at > moment:
                revision.take_back(facts)
        held = [fact for fact in facts.values() if fact.held_at(moment)]
        return sorted(held, key=lambda fact: (fact.recorded, fact.id))

    def forget(self) -> None:
        self._held.clear()

    async def _caught_up(self, owner: Scope, known: Held | None, stamp: tuple[int, int]) -> Held:
        if known is not None and stamp[0] > known.stamp[0]:
            before = known.stamp
            revisions = await self.store.revisions(owner, after=before[0])
            rows = before[1] + sum(len(revision.after) for revision in revisions)
            # Another task may have caught up further while we read: do not overwrite that.
            if revisions and (revisions[-1].number, rows) == stamp and known.stamp == before:
                async with known.lock:
                    if known.stamp == before:
                        known.take(fact for revision in revisions for fact in revision.after)
                        known.stamp = stamp
                        return known
        return await self._read(owner)

    async def _read(self, owner: Scope) -> Held:
        """Everything that is held, read consistently: an erasure restores an earlier stamp, which nothing newer may get."""
        for _ in range(_MOST_READS):
            epoch, stamp = await self.epoch(), await self.store.changed(owner)
            facts = await self.store.list(owner)
            if (stamp, epoch) == (await self.store.changed(owner), await self.epoch()):
                return await _made(stamp, facts)
        # They change faster than they can be read: the next caller reads them again.
        return await _made(_UNKNOWN, await self.store.list(owner))

    def _fact(self, owner: Scope, draft: Draft) -> Fact:
        text = checked_text(draft.text, "fact").strip()
        _check(text, draft.source_quote)
        now = utc(self.clock.now())
        attribute = None if draft.attribute is None else checked_id(draft.attribute, "attribute")
        subject = None if draft.subject is None else checked_id(draft.subject, "subject")
        return Fact(
            id=str(uuid4()) if draft.id is None else checked_id(draft.id, "fact id"),
            scope=Scope(owner.tenant, owner.user, draft.conversation),
            text=text,
            category=None if draft.category is None else checked_text(draft.category, "category"),
            confidence=coerced_confidence(draft.confidence),
            valid_from=now if draft.valid_from is None else min(utc(draft.valid_from), now),
            valid_to=None,
            recorded=now,
            retracted=None,
            source_turn=draft.source_turn,
            source_quote=draft.source_quote,
            tokens=self.counter.count(text),
            counter=self.counter.name,
            subject=subject or (None if attribute is None else USER),
            attribute=attribute,
            project=draft.project,
            agent=draft.agent,
        )


def _retracted(fact: Fact, now: datetime) -> Fact:
    return replace(fact, retracted=max(utc(now), fact.recorded))


def _topic(fact: Fact, text: str) -> dict[str, str | None]:
    """What a corrected fact is still about: neither a key ("allergy:nuts") nor somebody that the new text does not name."""
    subject, attribute = fact.subject, fact.attribute
    if subject is not None and subject != USER and subject.casefold() not in text.casefold():
        return {"subject": None, "attribute": None}
    return {"subject": subject, "attribute": None if ":" in (attribute or "") else attribute}


def _check(text: str, quote: str | None) -> None:
    if not text:
        raise InvalidArgumentError("The fact is empty: say something about the user.")
    if len(text) > MAX_FACT_CHARS:
        raise InvalidArgumentError(
            f"The fact has {len(text)} characters, at most {MAX_FACT_CHARS} are allowed: split it."
        )
    if (secret := secret_in(text) or secret_in(quote or "")) is not None:
        raise FactRejectedError(
            f"This was not kept: it holds {secret}. State it without the secret, which belongs in a password manager."
        )


def refuse_orders(*texts: str) -> None:
    """Raise `FactRejectedError` for text that instructs a model: people may state it, models and rules may not."""
    for text in texts:
        if (order := order_in(text)) is not None:
            raise FactRejectedError(
                f"This was not kept: it tells a model {order}. Only what is true of the user is a fact."
            )


def _ended(held: Held, fact: Fact, what: str) -> bool:
    """Whether a fact names what is over."""
    other = held.about(fact)
    return other is not None and what.casefold() in other.text.casefold()


def decided(
    held: Held, fact: Fact, *, dated: bool = False, later: frozenset[str] | None = None
) -> tuple[Outcome, Sequence[Fact]]:
    """What becomes of a new statement, and the facts to write, the resulting one last.

    Pure: the same facts and the same statement give the same decision. `dated` means that it is known since
    when the statement is true; otherwise it counts as the newest, whatever the clocks of two machines say.
    For two statements in one conversation the order in the log decides: `later` are the turns after this
    one's, None if unknown.
    """
    if (same := held.equal_to(fact)) is not None:
        confirmed = _confirmed(same, fact)
        return "duplicate", () if confirmed == same else (confirmed,)
    other = held.about(fact)
    if other is None:
        return "stored", (fact,)
    late = dated and fact.valid_from < other.valid_from
    same_log = other.source_turn is not None and fact.scope.conversation == other.scope.conversation
    if later is not None and same_log:
        late = other.source_turn in later
    if late:
        # Learnt late: it was true until the fact that is already known took over.
        return "stored", (replace(fact, valid_to=max(fact.valid_from, other.valid_from)),)
    since = max(fact.valid_from, other.valid_from)
    closed = replace(other, valid_to=since)
    return "superseded", (closed, replace(fact, valid_from=since, supersedes=other.id))


def _confirmed(same: Fact, fact: Fact) -> Fact:
    if fact.source_turn is not None and fact.source_turn == same.source_turn:
        return same  # the same turn read twice is no confirmation
    known = {
        name: getattr(same, name) or getattr(fact, name) for name in ("category", "subject", "attribute")
    }
    return replace(same, confidence=confirmed_confidence(same.confidence, fact.confidence), **known)
