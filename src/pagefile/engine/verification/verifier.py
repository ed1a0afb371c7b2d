"""Checks a whole database, slice by slice: the log, the archive, facts, items, and everything derived from them.

Others may write meanwhile: a conversation that changed while it was read is read again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import anyio

from pagefile import ports
from pagefile.damage import damage_mark, damage_since
from pagefile.engine.engine import Engine
from pagefile.engine.log_queries import all_items
from pagefile.engine.verification import checks
from pagefile.engine.verification.findings import Check, Finding, Level, Report, Tally, at, at_entry
from pagefile.engine.verification.log_walk import LogWalk, compared
from pagefile.errors import SettingsError, StoreCorruptError
from pagefile.records import Turn

#: Log entries held in memory at a time.
_BATCH = 500
#: Findings that are true regardless of concurrent writes.
_TOLD_ANYWAY = frozenset(
    {"log-unreadable", "log-digest", "log-tokens", "log-terms", "log-cut"}
    | {"page-ref", "page-erased", "media-ref", "media-bytes"}
)
#: Rows that belong to nothing: the level and the kind of the finding, and what is wrong.
_ORPHANS: Mapping[str, tuple[Level, str, str]] = {
    "terms": ("derived", "terms", "there are terms of place {seq}, where no done turn is"),
    "vector": ("derived", "vector", "there is a vector of place {seq} ({name}), where no done turn is"),
    "watermark": ("derived", "watermark", "there is a watermark of {name}, and no such conversation"),
    "summary": ("derived", "summary", "there is a summary, and no such conversation"),
    "passage": ("derived", "passages", "there are passages, and no such page with a text"),
    "session": ("damage", "session", "there is a session, and no such conversation"),
    "text": ("note", "text", "no page and no turn names the text {name}"),
}
_MOST_ORPHANS = 1000

#: Called with the number of rows checked and the total.
Progress = Callable[[int, int], None]


async def verify(
    engine: Engine,
    *,
    tenant: str | None = None,
    full: bool = False,
    repair: bool = False,
    progress: Progress | None = None,
    within: anyio.CancelScope | None = None,
) -> Report:
    """Check everything of a tenant, or of all; with `repair`, rebuild derived data that is wrong.

    A turn, a checkpoint, a page or a fact is never changed. Without `full`, what must be recomputed for
    comparison (terms, token counts, recorded windows) is checked for a sample only. What was found before `within`
    is cancelled is reported.
    """
    if engine.store.audit is None:
        raise SettingsError("This store cannot be verified: it has no `audit` (see pagefile.ports.Auditor).")
    verifier = _Verifier(engine, engine.store.audit, tenant, full=full, repair=repair)
    verifier.progress = progress or verifier.progress
    return await verifier.run(within or anyio.CancelScope())


class _Verifier(Check):
    def __init__(
        self, engine: Engine, audit: ports.Auditor, tenant: str | None, *, full: bool, repair: bool
    ) -> None:
        given = engine, audit, Tally(), full, repair
        super().__init__(*given)
        self._tenant = tenant
        self._vectors = checks.Vectors(*given, engine.kit.vectors)
        self._pages, self._calls = checks.Pages(*given), checks.Calls(*given)
        #: Conversations with gaps: what is left of the missing turns is evidence, and is not cleaned up.
        self._damaged: set[tuple[str, str | None]] = set()
        self.progress: Progress = lambda _done, _total: None
        self._total = 0

    async def run(self, within: anyio.CancelScope) -> Report:
        mark = damage_mark()
        log = self._conversations, self._lost, self._asked_only
        with within:
            for part in (self._database, *log, self._archive, self._users, self._items, self._orphans):
                try:
                    await part()
                except (StoreCorruptError, *ports.UNREADABLE) as error:
                    # If one table cannot be read, the others may be.
                    self.tally.add([Finding("damage", "database", str(error))])
        # Rows that readers left out.
        unread = [one for one in damage_since(mark) if not self._is_told(one)]
        self.tally.add(Finding("damage", "row", one) for one in unread)
        return self.tally.report(full=self.full)

    def _is_told(self, damage: str) -> bool:
        """Whether a finding names the conversation already."""
        named = {one.conversation for one in self.tally.findings if one.level == "damage"}
        return any(name and f"conversation {name!r}" in damage for name in named)

    async def _database(self) -> None:
        errors = await self.audit.errors(full=self.full)
        self.tally.add(Finding("damage", "database", complaint) for complaint in errors)
        self.tally.add(await self._vectors.begin())
        self._total = await self.audit.size(self._tenant)

    # -- conversations ------------------------------------------------------------------------------------------------

    async def _conversations(self) -> None:
        after = ports.After(only=self._tenant, tenant=self._tenant or "")
        while found := await self.audit.conversations(after):
            for kept in found:
                await self._conversation(kept)
            last = found[-1].scope
            after = replace(after, tenant=last.tenant, name=last.conversation or "")

    async def _lost(self) -> None:
        for scope in await self.audit.lost(self._tenant):
            await self._conversation(ports.KeptConversation(scope, ports.Counters(), {}, there=False))

    async def _asked_only(self) -> None:
        """Windows of conversations that were never written to; if the log is damaged, they prove nothing."""
        for scope in await self.engine.store.calls.loose(self._tenant):
            if (scope.tenant, scope.conversation) not in self._damaged:
                self.tally.add(await self._calls.look(scope))

    async def _conversation(self, kept: ports.KeptConversation) -> None:
        self.tally.checked["conversations"] += 1
        before = self.tally.checked.copy()
        for _ in range(checks.MOST_ATTEMPTS):
            found = await self._tried(kept)
            now = await self.audit.conversation(kept.scope)
            if now is None and kept.there:
                return  # erased meanwhile
            seen, mended = (kept.counters, kept.marks, kept.scope), any(one.mended for one in found)
            if now is None or mended or seen == (now.counters, now.marks, now.scope):
                self.tally.add(found)
                if now is not None and not kept.there:
                    # Its row was recreated: derived data may be missing as well.
                    self.tally.add(await self._tried(now))
                return
            kept, self.tally.checked = now, before.copy()
        # It is written to all the time: its counters cannot be checked, the rest can.
        found = await self._tried(kept)
        self.tally.add(finding for finding in found if finding.kind in _TOLD_ANYWAY)

    async def _tried(self, kept: ports.KeptConversation) -> list[Finding]:
        try:
            return await self._read(kept)
        except StoreCorruptError as error:
            self._damaged.add((kept.scope.tenant, kept.scope.conversation))
            return [at(kept.scope, "damage", "log-unreadable", f"its log cannot be read: {error}")]

    async def _read(self, kept: ports.KeptConversation) -> list[Finding]:
        scope = kept.scope
        walk = LogWalk(scope, keeps_sums=self.audit.keeps_sums)
        found: list[Finding] = []
        # Its row as readers see it, with the times and labels that nothing else here looks at.
        await self.engine.store.reader.heads(ports.ConversationQuery(scope, limit=1))
        after, more = 0, True
        while more:
            # Read first, so that a repair cannot be written after an erasure.
            epoch = await self.engine.store.reader.epoch() if self.repair else 0
            rows = await self.audit.entries(scope, after_seq=after, limit=_BATCH)
            more = sum(row.seq is not None for row in rows) == _BATCH
            found += [finding for row in rows for finding in walk.take(row)]
            found += await self._batch(kept, after, rows, epoch)
            after = walk.last_seq
            self._count_rows(len(rows))
        found += await self._row(kept, walk)
        if walk.damaged or not kept.there:
            self._damaged.add((scope.tenant, scope.conversation))
        else:
            found += await self._marks(kept, walk)
        if kept.there:
            found += await checks.wrong_session(self, scope)
            found += await self._calls.look(scope)
        return found

    async def _batch(
        self, kept: ports.KeptConversation, after: int, rows: Sequence[ports.KeptEntry], epoch: int
    ) -> list[Finding]:
        """Check what the entries of a slice refer to, and what was derived from them."""
        turns = [row.entry for row in rows if isinstance(row.entry, Turn)]
        self.tally.checked["entries"] += len(rows)
        self.tally.checked["turns"] += len(turns)
        found = await self._pages.refs(kept.scope, rows)
        found += [finding for turn in turns for finding in await checks.wrong_attachments(self, turn)]
        altered = [row.entry for row in rows if row.altered and isinstance(row.entry, Turn)]
        doubtful = self._witnessed([turn for turn in turns if turn not in altered])
        for turn in altered:
            what = f"turn {turn.id!r} is not as it was written: what it says has another digest"
            doubtful.append(at_entry(turn, "damage", "log-digest", what))
        found += doubtful
        # What was derived from the original text is evidence: nothing is derived from the changed one.
        changed = {finding.turn for finding in doubtful}
        done = [turn.spoken for turn in turns if turn.counts and turn.id not in changed]
        if done and kept.there:
            terms = await checks.wrong_terms(self, kept, after, done, epoch)
            found += terms
            changed = {finding.turn for finding in terms if finding.level == "damage"}
            if sure := [turn for turn in done if turn.id not in changed]:
                found += await self._vectors.look(kept, after, sure, epoch)
        return found

    def _witnessed(self, turns: Sequence[Turn]) -> list[Finding]:
        """The stored token counts match the texts: a digest does not cover counts."""
        counter = self.engine.counter
        chosen = [turn for turn in turns if turn.counter == counter.name and self.sampled(turn.seq or 0)]
        self.tally.checked["token counts"] += len(chosen)
        found: list[Finding] = []
        for turn in chosen:
            user, assistant = (turn.user, turn.user_tokens), (turn.assistant, turn.assistant_tokens)
            for side, (text, stored) in (("user's", user), ("assistant's", assistant)):
                if (counted := counter.count(text or "")) != stored:
                    what = f"turn {turn.id!r} says that the {side} side has {stored} tokens, and it has {counted}"
                    found.append(at_entry(turn, "damage", "log-tokens", what))
        return found

    async def _row(self, kept: ports.KeptConversation, walk: LogWalk) -> list[Finding]:
        found = compared(kept, walk)
        derived = [finding for finding in found if finding.level == "derived"]
        if not (self.repair and derived):
            return found
        times = None if walk.first is None or walk.last is None else (walk.first.created, walk.last.created)
        summed = kept, walk.counters(), walk.checkpoint, walk.covered_messages
        done = await self.audit.recount(ports.Recount(*summed, owner=kept.scope.user, times=times))
        return [replace(one, mended=done) if one in derived else one for one in found]

    async def _marks(self, kept: ports.KeptConversation, walk: LogWalk) -> list[Finding]:
        found: list[Finding] = []
        for tier, seq in kept.marks.items():
            self.tally.checked["watermarks"] += 1
            if seq > walk.last_seq:
                if self.repair:
                    await self.audit.set_mark(kept.scope, tier, walk.last_seq)
                what = f"the watermark of {tier} is at {seq}, and the log ends at {walk.last_seq}"
                found.append(at(kept.scope, "derived", "watermark", what, seq=seq, mended=self.repair))
        return found

    # -- the rest -----------------------------------------------------------------------------------------------------

    async def _archive(self) -> None:
        after = ports.After(only=self._tenant, tenant=self._tenant or "", limit=50)
        while found := await self.audit.pages(after):
            for kept in found:
                self.tally.add(await self._pages.look(kept))
            self._count_rows(len(found))
            after = replace(after, tenant=found[-1].tenant, name=found[-1].uuid)

    async def _users(self) -> None:
        after = ports.After(only=self._tenant, tenant=self._tenant or "")
        while found := await self.audit.users(after):
            for owner in found:
                self.tally.add(await checks.wrong_facts(self, owner))
            after = replace(after, tenant=found[-1].tenant, name=found[-1].user or "")

    async def _items(self) -> None:
        store = self.engine.store.items
        for owner in await store.owners(self._tenant):
            last: ports.ItemKey | None = None
            try:
                async for kept in all_items(store, owner, self.engine.clock.now()):
                    self.tally.checked["items"] += 1
                    last = kept.item.item_key
            except ports.UNREADABLE as error:
                what = f"an item behind {last} cannot be read: {error!r}"
                self.tally.add([at(owner, "damage", "item", what)])

    async def _orphans(self) -> None:
        orphans = [
            orphan
            for orphan in await self.audit.orphans(self._tenant, limit=_MOST_ORPHANS)
            if (orphan.tenant or "", orphan.conversation) not in self._damaged
        ]
        if self.repair:
            await self.audit.drop(orphans)
        for orphan in orphans:
            level, kind, what = _ORPHANS[orphan.kind]
            what = what.format(seq=orphan.seq, name=orphan.name)
            page = orphan.name if orphan.kind == "passage" else None
            place = orphan.tenant, None, orphan.conversation, None, orphan.seq, page
            self.tally.add([Finding(level, kind, what, *place, mended=self.repair and level == "derived")])

    def _count_rows(self, rows: int) -> None:
        self.tally.checked["rows"] += rows
        done = self.tally.checked["rows"]
        self.progress(done, max(done, self._total))
