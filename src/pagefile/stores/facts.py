"""Facts as every store writes them: which rows a revision needs, and a fact as JSON in the journal."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from pagefile.errors import ConflictError, InvalidTurnError
from pagefile.records import Fact, Revision, Scope
from pagefile.stores import rules
from pagefile.stores.encoding import from_json, text_time, time_text, to_json, utc_fact

#: A row of the journal: revision, time, action, the fact as it was, the fact as it became.
JournalRow = tuple[int, datetime, str, str | None, str]

_TIMES = ("valid_from", "valid_to", "recorded", "retracted")
_PLAIN = (
    "id",
    "text",
    "category",
    "confidence",
    "source_turn",
    "source_quote",
    "tokens",
    "counter",
    "subject",
    "attribute",
    "supersedes",
)


def checked(scope: Scope, facts: Sequence[Fact]) -> list[Fact]:
    """The facts as they will be read, each id once; only those of the scope's own user."""
    user = rules.user_of(scope)
    for fact in facts:
        if (fact.scope.tenant, fact.scope.user) != (scope.tenant, user):
            raise InvalidTurnError(
                f"Fact {fact.id!r} is not one of user {user!r}: write each user's facts apart."
            )
    return list({fact.id: utc_fact(fact) for fact in facts}.values())


def check_expected(expected: int | None, newest: int) -> None:
    """Nobody writes over a change they have not seen."""
    if expected is not None and expected != newest:
        raise ConflictError(
            f"The user's facts have moved on from revision {expected} to {newest}: read them and try again."
        )


def fact_text(fact: Fact) -> str:
    """A fact as JSON; whose it is stands beside it."""
    values: dict[str, Any] = {name: getattr(fact, name) for name in _PLAIN}
    for name in _TIMES:
        moment = getattr(fact, name)
        values[name] = moment and time_text(moment)
    return to_json({**values, "conversation": fact.scope.conversation})


def text_fact(text: str, scope: Scope) -> Fact:
    """What `fact_text` was given."""
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
