"""Facts as every store writes them: which rows a revision needs, and a fact as JSON in the journal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from pagefile.errors import ConflictError, InvalidArgumentError
from pagefile.records import Fact, Revision, Scope, utc
from pagefile.stores import rules
from pagefile.stores.encoding import from_json, stored, text_time, time_text, to_json

#: A row of the journal: revision, time, action, the fact as it was, the fact as it became.
JournalRow = tuple[int, datetime, str, str | None, str]

_TIMES = ("valid_from", "valid_to", "recorded", "retracted")


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
    """Refuse a write that has not seen the latest change."""
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
        values[name] = values[name] and text_time(values[name])
    return Fact(scope=Scope(scope.tenant, scope.user, values.pop("conversation")), **values)


def revisions_of(rows: Iterable[JournalRow], scope: Scope) -> list[Revision]:
    """Rows of the journal in order, a revision for each number."""
    found: dict[int, Revision] = {}
    owner = Scope(scope.tenant, scope.user)
    for number, at, action, was, became in rows:
        known = found.get(number)
        before = (None if was is None else text_fact(was, owner),)
        after = (text_fact(became, owner),)
        if known is not None:
            before, after = known.before + before, known.after + after
        found[number] = Revision(number, owner, at, action, before, after)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Restored:
    """What an import holds for one user: every fact as it is now, and the journal in order."""

    facts: tuple[Fact, ...]
    revisions: tuple[Revision, ...]

    def rows(self) -> Iterable[tuple[Revision, Fact | None, Fact]]:
        """A row of the journal for each fact that a revision wrote."""
        for revision in self.revisions:
            for before, after in zip(revision.before, revision.after, strict=True):
                yield revision, before, after


def restored(scope: Scope, facts: Sequence[Fact], revisions: Sequence[Revision]) -> Restored:
    journal: dict[int, Revision] = {}
    ends: dict[str, Fact] = {}
    for revision in sorted(revisions, key=lambda one: one.number):
        own = _checked_revision(scope, revision)
        if journal.setdefault(own.number, own) != own:
            raise InvalidArgumentError(f"There are two revisions {own.number} of user {scope.user!r}.")
        ends |= {fact.id: fact for fact in own.after}
    ends |= {fact.id: fact for fact in checked(scope, facts)}
    held = sorted(ends.values(), key=lambda fact: (fact.recorded, fact.id))
    return Restored(tuple(held), tuple(journal.values()))


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
