"""Checks a whole database, slice by slice: the log, the archive, facts, items, and everything derived from them.

Others may write meanwhile: a conversation that changed while it was read is read again.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pagefile.engine.engine import Engine
from pagefile.engine.verifying.archive import Pages
from pagefile.engine.verifying.attachments import Attachments
from pagefile.engine.verifying.beside import Calls, Sessions
from pagefile.engine.verifying.comparing import broken_chain, is_quoted
from pagefile.engine.verifying.derived import SAMPLE, Terms, Vectors
from pagefile.engine.verifying.findings import Finding, Report, Tally, at
from pagefile.engine.verifying.walking import LogWalk, compared
from pagefile.errors import SettingsError, StoreCorruptError
from pagefile.ports import (
    UNREADABLE,
    After,
    Auditor,
    Counters,
    ItemKey,
    KeptConversation,
    KeptEntry,
    Recount,
    Stray,
)
from pagefile.records import Fact, Scope, Turn

#: Log entries held in memory at a time.
_BATCH = 500
#: How often a conversation is read again because it was written to.
_MOST_ATTEMPTS = 5
#: Findings that are true regardless of concurrent writes.
_TOLD_ANYWAY = frozenset(
    {
        "log-unreadable",
        "log-digest",
        "log-tokens",
        "log-terms",
        "log-cut",
        "page-ref",
        "page-erased",
        "media-ref",
        "media-bytes",
    }
)
_STRAYS = 1000
_ITEMS = 500

#: Called with the number of rows checked and the total.
Progress = Callable[[int, int], None]


async def verify(
    engine: Engine,
    *,
    tenant: str | None = None,
    full: bool = False,
    repair: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Check everything of a tenant, or of all; with `repair`, rebuild derived data that is wrong.

    A turn, a checkpoint, a page or a fact is never changed. Without `full`, what must be recomputed for
    comparison (terms, token counts, recorded windows) is checked for a sample only.
    """
    if engine.store.audit is None:
        raise SettingsError("This store cannot be verified: it has no `audit` (see pagefile.ports.Auditor).")
    verifier = _Verifier(engine, engine.store.audit, tenant, full=full, repair=repair)
    return await verifier.run(progress or _nobody)


class _Verifier:
    def __init__(
        self, engine: Engine, audit: Auditor, tenant: str | None, *, full: bool, repair: bool
    ) -> None:
        self._engine = engine
        self._audit = audit
        self._tenant = tenant
        self._full = full
        self._repair = repair
        self._tally = Tally()
        self._terms = Terms(engine.store.terms, full=full, repair=repair)
        self._vectors = Vectors(engine.kit.vectors, repair=repair)
        self._attachments = Attachments(engine.store.media)
        self._pages = Pages(engine, audit, full=full, repair=repair)
        self._calls = Calls(engine, full=full)
        self._sessions = Sessions(engine, repair=repair)
        #: Conversations with gaps: what is left of the missing turns is evidence, and is not cleaned up.
        self._damaged: set[tuple[str, str | None]] = set()
        self._progress: Progress = _nobody
        self._total = 0

    async def run(self, progress: Progress) -> Report:
        """Run all checks in order."""
        self._progress = progress
        for part in (
            self._database,
            self._conversations,
            self._lost,
            self._asked_only,
            self._archive,
            self._facts,
            self._items,
            self._strays,
        ):
            try:
                await part()
            except StoreCorruptError as error:
                # If one table cannot be read, the others may be.
                self._tally.add([Finding("damage", "database", str(error))])
        return self._tally.report(full=self._full)

    async def _database(self) -> None:
        complaints = await self._audit.complaints(full=self._full)
        self._tally.add(Finding("damage", "database", complaint) for complaint in complaints)
        self._tally.add(await self._vectors.begin())
        self._total = await self._audit.size(self._tenant)

    # -- conversations ------------------------------------------------------------------------------------------------

    async def _conversations(self) -> None:
        after = After(only=self._tenant, tenant=self._tenant or "")
        while found := await self._audit.conversations(after):
            for kept in found:
                await self._conversation(kept)
            last = found[-1].scope
            after = replace(after, tenant=last.tenant, name=last.conversation or "")

    async def _lost(self) -> None:
        for scope in await self._audit.lost(self._tenant):
            await self._conversation(KeptConversation(scope, Counters(), {}, there=False))

    async def _asked_only(self) -> None:
        """Windows of conversations that were never written to; if the log is damaged, they prove nothing."""
        for scope in await self._engine.store.calls.loose(self._tenant):
            if (scope.tenant, scope.conversation) not in self._damaged:
                self._tally.add(await self._calls.look(scope, self._tally))

    async def _conversation(self, kept: KeptConversation) -> None:
        self._tally.checked["conversations"] += 1
        before = self._tally.checked.copy()
        for _ in range(_MOST_ATTEMPTS):
            found = await self._tried(kept)
            now = await self._audit.conversation(kept.scope)
            if now is None and kept.there:
                return  # erased meanwhile
            if now is None or _is_as_seen(kept, now) or any(finding.mended for finding in found):
                self._tally.add(found)
                if now is not None and not kept.there:
                    # Its row was recreated: derived data may be missing as well.
                    self._tally.add(await self._tried(now))
                return
            kept, self._tally.checked = now, before.copy()
        # It is written to all the time: its counters cannot be checked, the rest can.
        found = await self._tried(kept)
        self._tally.add(finding for finding in found if finding.kind in _TOLD_ANYWAY)

    async def _tried(self, kept: KeptConversation) -> list[Finding]:
        try:
            return await self._read(kept)
        except StoreCorruptError as error:
            self._damaged.add((kept.scope.tenant, kept.scope.conversation))
            return [at(kept.scope, "damage", "log-unreadable", f"its log cannot be read: {error}")]

    async def _read(self, kept: KeptConversation) -> list[Finding]:
        """Check everything about one conversation."""
        scope = kept.scope
        walk = LogWalk(scope, keeps_sums=self._audit.keeps_sums)
        found: list[Finding] = []
        after, more = 0, True
        while more:
            # Read first, so that a repair cannot be written after an erasure.
            epoch = await self._engine.store.reader.epoch() if self._repair else 0
            rows = await self._audit.entries(scope, after_seq=after, limit=_BATCH)
            ended = [row for row in rows if row.seq is not None]
            more = len(ended) == _BATCH
            for row in rows:
                found += walk.take(row)
            found += await self._batch(kept, after, rows, epoch)
            after = walk.last_seq
            self._told(len(rows))
        found += await self._row(kept, walk)
        if walk.damaged or not kept.there:
            self._damaged.add((scope.tenant, scope.conversation))
        else:
            found += await self._marks(kept, walk)
        if not kept.there:
            return found
        found += await self._sessions.look(scope, self._tally)
        found += await self._calls.look(scope, self._tally)
        return found

    async def _batch(
        self, kept: KeptConversation, after: int, rows: Sequence[KeptEntry], epoch: int
    ) -> list[Finding]:
        """Check what the entries of a slice refer to, and what was derived from them."""
        turns = [row.entry for row in rows if isinstance(row.entry, Turn)]
        self._tally.checked["entries"] += len(rows)
        self._tally.checked["turns"] += len(turns)
        found = await self._pages.refs(kept.scope, rows, self._tally)
        found += await self._attachments.look(turns, self._tally)
        altered = [row.entry for row in rows if row.altered and isinstance(row.entry, Turn)]
        unaltered = [turn for turn in turns if turn not in altered]
        doubtful = [_altered(turn) for turn in altered] + self._witnessed(unaltered)
        found += doubtful
        # What was derived from the original text is evidence: nothing is derived from the changed one.
        changed = {finding.turn for finding in doubtful}
        done = [turn for turn in turns if turn.status == "done" and turn.id not in changed]
        if done and kept.there:
            terms = await self._terms.look(kept, after, done, self._tally, epoch)
            found += terms
            changed = {finding.turn for finding in terms if finding.level == "damage"}
            if sure := [turn for turn in done if turn.id not in changed]:
                found += await self._vectors.look(kept, after, sure, self._tally, epoch)
        return found

    def _witnessed(self, turns: Sequence[Turn]) -> list[Finding]:
        """The stored token counts match the texts: a digest does not cover counts."""
        counter = self._engine.counter
        chosen = [
            turn
            for turn in turns
            if turn.counter == counter.name and (self._full or (turn.seq or 0) % SAMPLE == 1)
        ]
        self._tally.checked["token counts"] += len(chosen)
        return [
            at(
                turn.scope,
                "damage",
                "log-tokens",
                f"turn {turn.id!r} says that the {side} has {stored} tokens, and it has {counted}",
                turn=turn.id,
                seq=turn.seq,
            )
            for turn in chosen
            for side, text, stored in (
                ("user's side", turn.user, turn.user_tokens),
                ("assistant's side", turn.assistant, turn.assistant_tokens),
            )
            if (counted := counter.count(text or "")) != stored
        ]

    async def _row(self, kept: KeptConversation, walk: LogWalk) -> list[Finding]:
        found = compared(kept, walk)
        derived = [finding for finding in found if finding.level == "derived"]
        if not (self._repair and derived):
            return found
        times = None if walk.first is None or walk.last is None else (walk.first.created, walk.last.created)
        recount = Recount(
            kept,
            walk.counters(),
            walk.checkpoint,
            walk.covered_messages,
            owner=kept.scope.user,
            times=times,
        )
        done = await self._audit.recount(recount)
        return [replace(one, mended=done) if one in derived else one for one in found]

    async def _marks(self, kept: KeptConversation, walk: LogWalk) -> list[Finding]:
        found: list[Finding] = []
        for tier, seq in kept.marks.items():
            self._tally.checked["watermarks"] += 1
            if seq > walk.last_seq:
                if self._repair:
                    await self._audit.set_mark(kept.scope, tier, walk.last_seq)
                what = f"the watermark of {tier} is at {seq}, and the log ends at {walk.last_seq}"
                one = at(kept.scope, "derived", "watermark", what, seq=seq)
                found.append(replace(one, mended=self._repair))
        return found

    # -- the rest -----------------------------------------------------------------------------------------------------

    async def _archive(self) -> None:
        after = After(only=self._tenant, tenant=self._tenant or "", limit=50)
        while found := await self._audit.pages(after):
            for kept in found:
                self._tally.add(await self._pages.look(kept, self._tally))
            self._told(len(found))
            after = replace(after, tenant=found[-1].tenant, name=found[-1].uuid)

    async def _facts(self) -> None:
        after = After(only=self._tenant, tenant=self._tenant or "")
        while found := await self._audit.users(after):
            for owner in found:
                self._tally.add(await self._facts_of(owner))
            after = replace(after, tenant=found[-1].tenant, name=found[-1].user or "")

    async def _facts_of(self, owner: Scope) -> list[Finding]:
        store = self._engine.store.facts
        for _ in range(_MOST_ATTEMPTS):
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
        self._tally.checked["facts"] += len(facts)
        self._tally.checked["revisions"] += len(revisions)
        found = [
            at(owner, "damage", "fact-chain", f"fact {fact_id!r}: {what}")
            for fact_id, what in broken_chain(facts, revisions)
        ]
        found += [
            at(owner, "damage", "fact-digest", f"fact {fact_id!r} is not as it was written")
            for fact_id in await self._audit.altered_facts(owner)
        ]
        for fact in facts:
            found += await self._source(fact)
        return found

    async def _source(self, fact: Fact) -> list[Finding]:
        """Check the turn a fact was read in. A fact given by a caller may name a turn from elsewhere."""
        if fact.source_turn is None or fact.scope.conversation is None:
            return []
        scope = Scope(fact.scope.tenant, None, fact.scope.conversation)
        kept = await self._audit.entry(scope, fact.source_turn)
        if kept is None:
            what = f"fact {fact.id!r} was read in turn {fact.source_turn!r}, which is not there"
            return [at(fact.scope, "damage", "fact-source", what, turn=fact.source_turn)]
        turn, quote = kept.entry, fact.source_quote
        if isinstance(turn, Turn) and quote and not is_quoted(quote, turn):
            what = f"fact {fact.id!r} was read in turn {turn.id!r}, where its quote {quote!r} is not"
            return [at(fact.scope, "damage", "fact-quote", what, turn=turn.id, seq=turn.seq)]
        return []

    async def _items(self) -> None:
        store, now = self._engine.store.items, self._engine.clock.now()
        for owner in await store.owners(self._tenant):
            after: ItemKey | None = None
            try:
                while items := await store.kept(owner, now=now, after=after, limit=_ITEMS):
                    self._tally.checked["items"] += len(items)
                    after = items[-1].item.place
            except UNREADABLE as error:
                what = f"an item behind {after} cannot be read: {error!r}"
                self._tally.add([at(owner, "damage", "item", what)])

    async def _strays(self) -> None:
        strays = [
            stray
            for stray in await self._audit.strays(self._tenant, limit=_STRAYS)
            if (stray.tenant or "", stray.conversation) not in self._damaged
        ]
        if self._repair:
            await self._audit.drop(strays)
        self._tally.add(_stray(stray, mended=self._repair) for stray in strays)

    def _told(self, rows: int) -> None:
        self._tally.checked["rows"] += rows
        done = self._tally.checked["rows"]
        self._progress(done, max(done, self._total))


def _is_as_seen(kept: KeptConversation, now: KeptConversation) -> bool:
    return (kept.counters, kept.marks, kept.scope) == (now.counters, now.marks, now.scope)


def _stray(stray: Stray, *, mended: bool) -> Finding:
    where = Finding(
        "derived", "terms", "", stray.tenant, conversation=stray.conversation, seq=stray.seq, mended=mended
    )
    match stray.kind:
        case "terms":
            return replace(where, what=f"there are terms of place {stray.seq}, where no done turn is")
        case "vector":
            what = f"there is a vector of place {stray.seq} ({stray.name}), where no done turn is"
            return replace(where, kind="vector", what=what)
        case "watermark":
            what = f"there is a watermark of {stray.name}, and no such conversation"
            return replace(where, kind="watermark", what=what)
        case "summary":
            return replace(where, kind="summary", what="there is a summary, and no such conversation")
        case "passage":
            what = "there are passages, and no such page with a text"
            return replace(where, kind="passages", what=what, page=stray.name)
        case "session":
            what = "there is a session, and no such conversation"
            return replace(where, level="damage", kind="session", what=what, mended=False)
        case "text":
            what = f"no page and no turn names the text {stray.name}"
            return replace(where, level="note", kind="text", what=what, mended=False)


def _altered(turn: Turn) -> Finding:
    what = f"turn {turn.id!r} is not as it was written: what it says has another digest"
    return at(turn.scope, "damage", "log-digest", what, turn=turn.id, seq=turn.seq)


def _nobody(_done: int, _total: int) -> None:
    """Progress is not reported."""
