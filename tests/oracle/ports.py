"""Everything besides the log, as dicts and lists: facts, calls, sessions, keys, watermarks, terms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pagefile.ports import (
    Behind,
    CallSize,
    FactStore,
    SessionStore,
    SinceRequest,
    TermStore,
    TurnTerms,
    Watermarks,
    WindowLog,
)
from pagefile.records import Fact, JsonObject, Revision, Scope, WindowRecord, utc
from pagefile.stores import rules
from pagefile.stores.encoding import json_copy, stored
from pagefile.stores.sql.facts import check_expected, checked, fact_text, restored, revisions_of
from tests.oracle.tables import Port, behind


class OracleCalls(Port, WindowLog):
    async def add(self, calls: Sequence[WindowRecord], *, keep: int, epoch: int | None = None) -> None:
        self._tables.check_epoch(epoch, *(call.scope for call in calls))
        for call in calls:
            self._tables.calls.setdefault((call.scope.tenant, call.id), stored(call))
        for tenant, name in {(call.scope.tenant, call.scope.conversation) for call in calls}:
            mine = [
                key
                for key, call in self._tables.calls.items()
                if (call.scope.tenant, call.scope.conversation) == (tenant, name)
            ]
            for key in mine[: max(0, len(mine) - keep)]:
                del self._tables.calls[key]

    async def list(self, scope: Scope, *, limit: int = 100, after: str | None = None) -> list[WindowRecord]:
        newest = [
            call for call in reversed(self._tables.calls.values()) if rules.lists(scope, rules.made_for(call))
        ]
        return behind(newest, lambda call: call.id, after)[:limit]

    async def sizes(self, scope: Scope, *, limit: int = 100) -> Sequence[CallSize]:
        newest = await self.list(scope, limit=limit)
        return [CallSize(one.id, rules.made_for(one), one.at, one.tokens, one.ratio) for one in newest]

    async def get(self, scope: Scope, call_id: str) -> WindowRecord:
        call = self._tables.calls.get((scope.tenant, call_id))
        if call is None or not rules.lists(scope, rules.made_for(call)):
            raise rules.no_call(call_id)
        return call

    async def loose(self, tenant: str | None) -> Sequence[Scope]:
        called = {call.scope for call in self._tables.calls.values() if call.scope.conversation is not None}
        unused = [
            scope for scope in called if (scope.tenant, scope.conversation) not in self._tables.conversations
        ]
        unused.sort(key=lambda scope: (scope.tenant, scope.conversation or "", scope.user or ""))
        return [scope for scope in unused if tenant in (None, scope.tenant)]

    async def restore(self, calls: Sequence[WindowRecord]) -> int:
        full = {(call.scope.tenant, call.scope.conversation) for call in self._tables.calls.values()}
        before = len(self._tables.calls)
        for call in calls:
            if (call.scope.tenant, call.scope.conversation) not in full:
                self._tables.calls.setdefault((call.scope.tenant, call.id), stored(call))
        return len(self._tables.calls) - before


class OracleSessions(Port, SessionStore):
    async def get(self, scope: Scope) -> JsonObject | None:
        self._tables.found(scope)
        value = self._tables.sessions.get((scope.tenant, rules.conversation_of(scope)))
        return None if value is None else json_copy(value)

    async def put(self, scope: Scope, value: JsonObject, *, epoch: int | None = None) -> None:
        fresh = json_copy(value)
        self._tables.check_epoch(epoch, scope)
        self._tables.written(scope)
        self._tables.sessions[scope.tenant, rules.conversation_of(scope)] = fresh

    async def change(self, scope: Scope, change: Callable[[JsonObject | None], JsonObject]) -> None:
        await self.put(scope, change(await self.get(scope)))


class OracleFacts(Port, FactStore):
    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        owner = Scope(scope.tenant, scope.user)
        facts = [
            fact
            for fact in self._tables.facts.values()
            if fact.scope.within(owner) and (retracted or fact.retracted is None)
        ]
        return sorted(facts, key=lambda fact: (fact.recorded, fact.id))

    async def get(self, scope: Scope, fact_id: str) -> Fact:
        fact = self._tables.facts.get((scope.tenant, fact_id))
        if fact is None or scope.user not in (None, fact.scope.user):
            raise rules.no_fact(fact_id)
        return fact

    async def changed(self, scope: Scope) -> tuple[int, int]:
        owner = Scope(scope.tenant, rules.user_of(scope))
        numbers = [row[0] for of, row in self._tables.fact_revisions if of.within(owner)]
        return max(numbers, default=0), len(numbers)

    async def revise(
        self,
        scope: Scope,
        facts: Sequence[Fact],
        *,
        action: str,
        at: datetime,
        epoch: int | None,
        expected: int | None = None,
    ) -> Revision:
        self._tables.check_epoch(epoch, scope, *(fact.scope for fact in facts))
        written = checked(scope, facts)
        newest = (await self.changed(scope))[0]
        check_expected(expected, newest)
        before = [self._owned(scope, fact.id) for fact in written]
        # A restored journal keeps the numbers it came with, and continues after them.
        self._tables.fact_revision += 1
        number = max(newest + 1, self._tables.fact_revision)
        owner = Scope(scope.tenant, scope.user)
        revision = Revision(number, owner, utc(at), action, tuple(before), tuple(written))
        self._write(written, [revision])
        return revision

    async def owners(self, tenant: str) -> Sequence[Scope]:
        users = {fact.scope.user for fact in self._tables.facts.values() if fact.scope.tenant == tenant}
        return [Scope(tenant, user) for user in sorted(filter(None, users))]

    async def restore(
        self, scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]
    ) -> tuple[int, int]:
        held, journal = restored(scope, facts, revisions)
        there = {fact.id for fact in await self.list(scope, retracted=True)}
        new = [fact for fact in held if fact.id not in there]
        for fact in new:
            self._owned(scope, fact.id)
        if journal and not there and await self.changed(scope) == (0, 0):
            self._write(held, journal)
            return len(held), len(journal)
        for fact in new:
            await self.put(fact)
        return len(new), 0

    def _owned(self, scope: Scope, fact_id: str) -> Fact | None:
        fact = self._tables.facts.get((scope.tenant, fact_id))
        if fact is not None:
            rules.check_fact_owner(fact, scope.user)
        return fact

    def _write(self, facts: Sequence[Fact], revisions: Sequence[Revision]) -> None:
        for fact in facts:
            self._tables.facts[fact.scope.tenant, fact.id] = fact
        for revision in revisions:
            told = revision.number, revision.at, revision.action
            for was, became in zip(revision.before, revision.after, strict=True):
                row = (*told, was and fact_text(was), fact_text(became))
                self._tables.fact_revisions.append((became.scope, row))

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        owner = Scope(scope.tenant, rules.user_of(scope))
        rows = [row for of, row in self._tables.fact_revisions if of.within(owner) and row[0] > after]
        return revisions_of(rows, owner)


class OracleWatermarks(Port, Watermarks):
    async def known(self, scope: Scope, tier: str) -> Mapping[str, int]:
        names = [rules.conversation_of(found.scope) for found in self._tables.seen(scope)]
        marks = {name: self._tables.watermarks.get((scope.tenant, name, tier)) for name in sorted(names)}
        return {name: seq for name, seq in marks.items() if seq is not None}

    async def advance(self, scope: Scope, tier: str, seq: int, *, epoch: int | None) -> None:
        self._tables.check_epoch(epoch, scope)
        key = scope.tenant, rules.conversation_of(scope), tier
        if key[:2] in self._tables.conversations:
            self._tables.watermarks[key] = max(seq, self._tables.watermarks.get(key, 0))

    async def behind(self, tier: str, *, limit: int = 100, tenant: str | None = None) -> list[Behind]:
        found = [
            Behind(conversation.scope, self._tables.watermarks.get((*key, tier), 0), len(conversation.ended))
            for key, conversation in sorted(self._tables.conversations.items())
            if tenant in (None, key[0])
        ]
        return [one for one in found if one.seq < one.last_seq][: max(0, limit)]

    async def tiers(self) -> list[str]:
        return sorted({tier for _, _, tier in self._tables.watermarks})

    async def drop(self, tier: str) -> int:
        gone = [key for key in self._tables.watermarks if key[2] == tier]
        for key in gone:
            del self._tables.watermarks[key]
        return len(gone)


class OracleTerms(Port, TermStore):
    async def since(self, request: SinceRequest, analyzer: str) -> list[TurnTerms]:
        seen = {rules.conversation_of(found.scope): found for found in self._tables.seen(request.scope)}
        turns = [
            (name, turn) for name in sorted(seen) for turn in seen[name].done(request.known.get(name, 0))
        ]
        found: list[TurnTerms] = []
        for name, turn in turns[: max(0, request.limit)]:
            made_by, said, answered = self._tables.terms.get(
                (request.scope.tenant, name, turn.seq or 0), ("", "", "")
            )
            kept = (said, answered) if made_by == analyzer else (None, None)
            found.append(TurnTerms(name, turn.seq or 0, turn.id, turn.at, *kept))
        return found

    async def write(
        self, scope: Scope, terms: Sequence[TurnTerms], analyzer: str, *, epoch: int | None = None
    ) -> None:
        self._tables.check_epoch(
            epoch, scope, *(replace(scope, conversation=one.conversation) for one in terms)
        )
        for one in terms:
            conversation = self._tables.conversations.get((scope.tenant, one.conversation))
            if conversation is not None and 0 < one.seq <= len(conversation.ended):
                key = scope.tenant, one.conversation, one.seq
                self._tables.terms[key] = analyzer, one.said or "", one.answered or ""
