"""Usage over time, from what is stored: the windows of each day, and the models that answered them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date
from itertools import groupby

from pagefile.engine.annotations import ModelCall, model_calls
from pagefile.engine.memory import Memory
from pagefile.ports import CallSize
from pagefile.records import DEFAULT_TENANT, Scope

#: Windows that are looked at, newest first, and conversations whose model calls are.
MOST_CALLS, MOST_CONVERSATIONS = 5_000, 200


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    #: Windows that were made, and their tokens in all and at most.
    calls: int
    tokens: int
    largest: int
    #: How full windows would have been with every live turn in them, on average.
    ratio: float
    #: Of those whose model is known: how many, how long they took on average, and what they cost.
    answered: int
    seconds: float | None
    price: float | None


@dataclass(frozen=True, slots=True)
class Usage:
    #: Oldest first; days without a window are left out.
    days: tuple[Day, ...]
    currency: str
    #: Whether there are older windows than those that were looked at.
    more: bool


async def usage(memory: Memory, *, tenant: str | None = None, user_id: str | None = None) -> Usage:
    engine, scope = memory.engine, Scope(tenant or DEFAULT_TENANT, user_id)
    await engine.write_calls()
    sizes = await engine.store.calls.sizes(scope, limit=MOST_CALLS)
    models = await _models(memory, sizes)
    ordered = sorted(sizes, key=lambda one: one.at)
    days = [_day(day, [*group], models) for day, group in groupby(ordered, key=_date)]
    currency = next((one.currency for one in models.values() if one.currency), "")
    return Usage(tuple(days), currency, len(sizes) == MOST_CALLS)


def _date(one: CallSize) -> date:
    return one.at.astimezone(UTC).date()


async def _models(memory: Memory, sizes: Iterable[CallSize]) -> dict[str, ModelCall]:
    ids: dict[Scope, list[str]] = {}
    for one in sizes:
        if one.scope.conversation is not None:
            ids.setdefault(one.scope, []).append(one.id)
    found: dict[str, ModelCall] = {}
    for scope in list(ids)[:MOST_CONVERSATIONS]:
        found |= await model_calls(memory, scope, ids[scope])
    return found


def _day(day: date, calls: list[CallSize], models: dict[str, ModelCall]) -> Day:
    answered = [models[one.id] for one in calls if one.id in models]
    prices = [one.price for one in answered if one.price is not None]
    tokens = [one.tokens for one in calls]
    return Day(
        day,
        len(calls),
        sum(tokens),
        max(tokens),
        sum(one.ratio for one in calls) / len(calls),
        len(answered),
        sum(one.seconds for one in answered) / len(answered) if answered else None,
        sum(prices) if prices else None,
    )
