"""Facts, and the journal of their changes."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from pagefile.errors import ConflictError, InvalidArgumentError
from pagefile.ports import FactStore
from pagefile.records import Fact, Revision, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import from_json, moment, record_digest, stored, time_text, to_json
from pagefile.stores.sql.plays import Play, Row, SqlPort, Values, first, many, row, rows
from pagefile.stores.sql.reader import check_writable
from pagefile.stores.sql.rows import keys, of_tenant, values_of

_TIMES = ("valid_from", "valid_to", "recorded", "retracted")


class SqlFacts(SqlPort, FactStore):
    async def list(self, scope: Scope, *, retracted: bool = False) -> list[Fact]:
        statement = "facts_of_tenant" if scope.user is None else "facts_of_user"
        values = {**keys(scope), "with_retracted": retracted}
        return await self._each(statement, values, of_tenant(Fact, scope.tenant))

    async def get(self, scope: Scope, fact_id: str) -> Fact:
        fact = await self._player.read(lambda: _find(scope.tenant, fact_id))
        if fact is None or scope.user not in {None, fact.scope.user}:
            raise rules.no_fact(fact_id)
        return fact

    async def changed(self, scope: Scope) -> tuple[int, int]:
        rules.user_of(scope)
        # By every window.
        return await self._player.read(lambda: _changed(scope), often=("changed", scope))

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
        written = checked(scope, facts)

        def play() -> Play[Revision]:
            yield from check_writable(epoch, [scope, *(fact.scope for fact in written)])
            yield from row("fact_lock", keys(scope))
            newest, _ = yield from _changed(scope)
            check_expected(expected, newest)
            return (yield from _revise(scope, written, action, utc(at), newest))

        # A retry of a change that took effect would not find the revision it expects.
        return await self._player.write(play, again=expected is None)

    async def owners(self, tenant: str) -> Sequence[Scope]:
        return await self._each("fact_owners", {"tenant": tenant}, lambda one: Scope(tenant, *one))

    async def restore(
        self, scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]
    ) -> tuple[int, int]:
        held, journal = restored(scope, facts, revisions)

        def play() -> Play[tuple[int, int]]:
            yield from row("fact_lock", keys(scope))
            there = {fact_id for (fact_id,) in (yield from rows("fact_ids", keys(scope)))}
            newest, journal_rows = yield from _changed(scope)
            if journal and not there and not journal_rows:
                for fact in held:
                    yield from _owned(scope, fact.id)
                yield from _write(held, journal)
                return len(held), len(journal)
            new = [fact for fact in held if fact.id not in there]
            for fact in new:
                newest = (yield from _revise(scope, [fact], "stored", fact.recorded, newest)).number
            return len(new), 0

        return await self._player.write(play)

    async def revisions(self, scope: Scope, *, after: int = 0) -> Sequence[Revision]:
        rules.user_of(scope)
        return revisions_of(
            await self._rows("fact_revisions_after", {**keys(scope), "after_seq": after}), scope
        )


def _revise(scope: Scope, written: Sequence[Fact], action: str, at: datetime, newest: int) -> Play[Revision]:
    before: list[Fact | None] = []
    for fact in written:
        before += [(yield from _owned(scope, fact.id))]
    number = yield from row("fact_revision_next", {"newest": newest})
    assert number is not None
    owner = Scope(scope.tenant, scope.user)
    revision = Revision(number[0], owner, at, action, tuple(before), tuple(written))
    yield from _write(written, [revision])
    return revision


def _write(facts: Sequence[Fact], revisions: Sequence[Revision]) -> Play[None]:
    """Facts as they are now, and a row of the journal for each fact that a revision wrote."""
    yield from many("fact_put", [{**values_of(fact), "digest": record_digest(fact)} for fact in facts])
    journal: list[Values] = []
    for revision in revisions:
        change = {"seq": revision.number, "at": revision.at, "action": revision.action}
        for was, became in zip(revision.before, revision.after, strict=True):
            texts = {"was": was and fact_text(was), "became": fact_text(became)}
            journal.append({**keys(became.scope), "id": became.id, **change, **texts})
    yield from many("fact_revision_put", journal)


def _owned(scope: Scope, fact_id: str) -> Play[Fact | None]:
    """The fact with this id, which must not be another user's."""
    fact = yield from _find(scope.tenant, fact_id)
    if fact is not None:
        rules.check_fact_owner(fact, scope.user)
    return fact


def _find(tenant: str, fact_id: str) -> Play[Fact | None]:
    return (yield from first("fact_get", {"tenant": tenant, "id": fact_id}, of_tenant(Fact, tenant)))


def _changed(scope: Scope) -> Play[tuple[int, int]]:
    found = yield from row("facts_changed", keys(scope))
    assert found is not None
    return found[0], found[1]


# -- which rows a revision needs, and a fact as JSON in the journal


def checked(scope: Scope, facts: Sequence[Fact]) -> list[Fact]:
    """The facts as they will be read, each id once; only those of the scope's own user."""
    user = rules.user_of(scope)
    for fact in facts:
        if (fact.scope.tenant, fact.scope.user) != (scope.tenant, user):
            raise InvalidArgumentError(
                f"Fact {fact.id!r} is not one of user {user!r}: write each user's facts apart."
            )
    return list({fact.id: stored(fact) for fact in facts}.values())


def check_expected(expected: int | None, newest: int) -> None:
    if expected is not None and expected != newest:
        raise ConflictError(
            f"The user's facts have moved on from revision {expected} to {newest}: read them and try again."
        )


def fact_text(fact: Fact) -> str:
    """A fact as JSON, without its owner, which the row names."""
    values: dict[str, Any] = {field.name: getattr(fact, field.name) for field in fields(fact)}
    values["conversation"] = values.pop("scope").conversation
    del values["outcome"]
    return to_json(values | {name: values[name] and time_text(values[name]) for name in _TIMES})


def text_fact(text: str, scope: Scope) -> Fact:
    values = from_json(text)
    for name in _TIMES:
        values[name] = values[name] and moment(values[name])
    return Fact(scope=Scope(scope.tenant, scope.user, values.pop("conversation")), **values)


def revisions_of(rows: Iterable[Row], scope: Scope) -> list[Revision]:
    """Rows of the journal in order (number, time, action, the fact as it was and as it became), a revision for each number."""
    owner = Scope(scope.tenant, scope.user)
    revisions: list[Revision] = []
    for (number, at, action), group in groupby(rows, key=lambda row: row[:3]):
        facts = [(was and text_fact(was, owner), text_fact(became, owner)) for *_, was, became in group]
        before, after = zip(*facts, strict=True)
        revisions.append(Revision(number, owner, moment(at), action, before, after))
    return revisions


def restored(
    scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]
) -> tuple[list[Fact], list[Revision]]:
    """What an import holds for one user: every fact as it is now, and the journal in order."""
    journal: dict[int, Revision] = {}
    ends: dict[str, Fact] = {}
    for revision in sorted(revisions, key=lambda one: one.number):
        own = _checked_revision(scope, revision)
        if journal.setdefault(own.number, own) != own:
            raise InvalidArgumentError(f"There are two revisions {own.number} of user {scope.user!r}.")
        ends |= {fact.id: fact for fact in own.after}
    ends |= {fact.id: fact for fact in checked(scope, facts)}
    return sorted(ends.values(), key=lambda fact: (fact.recorded, fact.id)), list(journal.values())


def _checked_revision(scope: Scope, revision: Revision) -> Revision:
    ids = [fact.id for fact in revision.after]
    before = [None if was is None else stored(was) for was in revision.before]
    after = checked(scope, revision.after)
    checked(scope, [was for was in before if was is not None])
    paired = len(before) == len(ids) and all(
        was is None or was.id == name for was, name in zip(before, ids, strict=True)
    )
    if revision.number < 1 or not ids or len(set(ids)) < len(ids) or not paired:
        raise InvalidArgumentError(
            f"Revision {revision.number} of user {scope.user!r} does not say what became of each fact."
        )
    owner = Scope(scope.tenant, scope.user)
    return replace(revision, scope=owner, at=utc(revision.at), before=tuple(before), after=tuple(after))
