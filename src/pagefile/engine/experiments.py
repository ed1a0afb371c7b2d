"""Batch replay: many recorded calls under other settings, measured, and kept as a named experiment.

Only numbers and ids are kept, as items: what was said stays in the log. A row goes with its user, its conversation or its call.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from pagefile.engine.annotations import EXPERIMENTS
from pagefile.engine.arguments import moment
from pagefile.engine.replay import Replay, checked_changes, checked_from_afar, replayed
from pagefile.errors import BudgetError, ConflictError, InvalidArgumentError, NotFoundError
from pagefile.ports import ItemWrite
from pagefile.records import DEFAULT_TENANT, JsonObject, JsonValue, Scope, WindowRecord, checked_id
from pagefile.window.candidates import Block
from pagefile.window.comparison import message_tokens, shared_messages
from pagefile.window.receipt import Window

if TYPE_CHECKING:
    from pagefile.engine.engine import Engine
    from pagefile.engine.memory import Memory

#: Calls of one experiment, and experiments that are kept of a tenant or of a user.
MOST_CALLS, MOST_EXPERIMENTS = 300, 100
#: Calls that are looked at to choose them by time.
_LOOKED_AT = 3_000
_READ = 200
#: What a window shows besides the question, the instructions and the frame: what the model can know the answer from.
EVIDENCE: frozenset[Block] = frozenset(
    {"safety", "recent", "corrections", "summary", "loaded", "facts", "episodes", "chunks", "older", "steps"}
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which calls to replay: of a user, of a conversation, of a time, or all of a tenant's."""

    tenant: str = DEFAULT_TENANT
    user_id: str | None = None
    conversation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Side:
    """A window in numbers."""

    tokens: int
    #: Candidates in it that are evidence.
    evidence: int
    #: Tokens at its beginning that the window before it in the conversation had too: what a prompt cache saves.
    reused: int


@dataclass(frozen=True, slots=True)
class Measured:
    """One call, as it was and as it would have been."""

    call_id: str
    user_id: str | None
    conversation_id: str
    at: datetime
    before: Side | None
    after: Side | None
    #: Evidence that both have.
    kept: int = 0
    #: Whether `before` is byte for byte what was handed out.
    exact: bool = True
    #: Why there is nothing to compare: the window is too small, or the call is too old.
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    id: str
    name: str
    created: datetime
    changes: Mapping[str, JsonValue]
    rows: tuple[Measured, ...] = ()
    #: How many calls were chosen; there are fewer rows while it runs, and of one that was interrupted.
    total: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """Both sides of an experiment added up, over the calls that could be replayed."""

    calls: int
    failed: int
    tokens: tuple[int, int]
    reused: tuple[int, int]
    evidence: tuple[int, int]
    #: Evidence of before that is still there.
    kept: int


def totals(rows: Sequence[Measured]) -> Totals:
    done = [(row.before, row.after, row.kept) for row in rows if row.before and row.after]

    def both(name: str) -> tuple[int, int]:
        return sum(getattr(one[0], name) for one in done), sum(getattr(one[1], name) for one in done)

    kept = sum(one[2] for one in done)
    return Totals(len(done), len(rows) - len(done), both("tokens"), both("reused"), both("evidence"), kept)


# -- choosing and replaying --------------------------------------------------------------------------------------------


async def chosen_calls(memory: "Memory", choice: Choice) -> list[WindowRecord]:
    """The newest calls that were chosen, each conversation's oldest first."""
    scope = Scope(choice.tenant, choice.user_id, choice.conversation_id)
    await memory.engine.write_calls()
    found: list[WindowRecord] = []
    after, seen = None, 0
    most = max(1, min(choice.limit, MOST_CALLS))
    while len(found) < most and seen < _LOOKED_AT:
        calls = await memory.engine.store.calls.list(scope, limit=_READ, after=after)
        seen += len(calls)
        found += [call for call in calls if call.scope.conversation is not None and _within(call, choice)]
        if len(calls) < _READ:
            break
        after = calls[-1].id
    place = {call.id: number for number, call in enumerate(found[:most])}
    return sorted(found[:most], key=lambda call: (call.scope.conversation or "", -place[call.id]))


def _within(call: WindowRecord, choice: Choice) -> bool:
    since = choice.since is None or call.at >= moment(choice.since)
    return since and (choice.until is None or call.at < moment(choice.until))


def checked_settings(changes: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The changes of an experiment, which hold for every call: a question belongs to one."""
    if not changes:
        raise InvalidArgumentError("Change at least one setting: otherwise nothing would differ.")
    if "query" in changes:
        raise InvalidArgumentError("An experiment changes settings, not questions: replay that call alone.")
    return dict(checked_from_afar(changes))


async def check_replayable(memory: "Memory", call: WindowRecord, changes: Mapping[str, JsonValue]) -> None:
    """Refuse settings that no call can be replayed with; one for which this window is too small may suit another."""
    with suppress(BudgetError, NotFoundError):
        await replayed(memory.engine, call, changes)


async def measured_calls(
    memory: "Memory", calls: Sequence[WindowRecord], changes: Mapping[str, JsonValue]
) -> AsyncIterator[Measured]:
    """Each call replayed and measured, one after another; the windows of a conversation are compared with those before them."""
    for _, group in groupby(calls, key=lambda call: call.scope.conversation):
        past: Replay | None = None
        for call in group:
            row, past = await _measured(memory.engine, call, changes, past)
            yield row


async def _measured(
    engine: "Engine", call: WindowRecord, changes: Mapping[str, JsonValue], past: Replay | None
) -> tuple[Measured, Replay | None]:
    row = Measured(call.id, call.scope.user, call.scope.conversation or "", call.at, None, None)
    try:
        replay = await replayed(engine, call, checked_changes(call, changes))
    except (BudgetError, NotFoundError) as error:
        return replace(row, failed=str(error)), past
    before, after = _evidence(replay.before), _evidence(replay.after)
    return (
        replace(
            row,
            before=_side(engine, replay.before, before, past and past.before),
            after=_side(engine, replay.after, after, past and past.after),
            kept=len(before & after),
            exact=replay.exact,
        ),
        replay,
    )


def _evidence(window: Window) -> frozenset[str]:
    # A turn may be offered as recent, as older or as recalled: it says the same.
    kept = (one.id.removeprefix("episode:") for one in window.receipt if one.kept and one.block in EVIDENCE)
    return frozenset(kept)


def _side(engine: "Engine", window: Window, evidence: frozenset[str], past: Window | None) -> Side:
    shared = 0 if past is None else shared_messages(past.messages, window.messages)
    reused = sum(message_tokens(one, engine.counter.count) for one in window.messages[:shared])
    return Side(window.tokens, len(evidence), reused)


# -- keeping -----------------------------------------------------------------------------------------------------------


def new_experiment(
    name: str, changes: Mapping[str, JsonValue], created: datetime, *, total: int = 0
) -> Experiment:
    return Experiment(uuid4().hex, checked_id(name, "name"), created, changes, (), total)


async def run_experiment(
    memory: "Memory", scope: Scope, one: Experiment, calls: Sequence[WindowRecord], *, save_every: int
) -> Experiment:
    """Replay the calls and save what is measured, now and then and at the end.

    If something is erased meanwhile, it stops: what was measured may be about that.
    """
    reader = memory.engine.store.reader
    epoch = await reader.epoch()
    done = one
    async for row in measured_calls(memory, calls, one.changes):
        done = replace(done, rows=(*done.rows, row))
        if len(done.rows) % save_every and len(done.rows) < len(calls):
            continue
        if await reader.epoch() == epoch:
            await save_experiment(memory, scope, done)
        if await reader.epoch() != epoch:
            await remove_experiment(memory, scope, one.id)
            raise ConflictError(
                "Something was erased while the experiment ran, and it was removed: start it again."
            )
    return done


async def save_experiment(memory: "Memory", scope: Scope, one: Experiment) -> None:
    """Keep an experiment for a tenant, or for one of its users; the oldest gives way if there are too many."""
    engine, owner = memory.engine, Scope(scope.tenant, scope.user)
    now = engine.clock.now()
    kept = await engine.store.items.under(owner, EXPERIMENTS, now=now)
    gone = [item.key for item in kept[MOST_EXPERIMENTS - 1 :] if item.key != one.id]
    writes = [ItemWrite(EXPERIMENTS, key, None) for key in gone]
    await engine.store.items.write(owner, [*writes, ItemWrite(EXPERIMENTS, one.id, _value(one))], now=now)


async def experiments(memory: "Memory", scope: Scope) -> list[Experiment]:
    """Those of a tenant, or of one of its users, newest first."""
    engine = memory.engine
    found = await engine.store.items.under(
        Scope(scope.tenant, scope.user), EXPERIMENTS, now=engine.clock.now(), limit=MOST_EXPERIMENTS
    )
    return [_experiment(item.key, cast("dict[str, Any]", item.value)) for item in found]


async def experiment(memory: "Memory", scope: Scope, experiment_id: str) -> Experiment:
    engine = memory.engine
    key = checked_id(experiment_id, "experiment id")
    owner = Scope(scope.tenant, scope.user)
    (item,) = await engine.store.items.get(owner, [(EXPERIMENTS, key)], now=engine.clock.now())
    if item is None:
        raise NotFoundError(f"There is no experiment {key!r}: it was removed, or never saved.")
    return _experiment(key, cast("dict[str, Any]", item.value))


async def remove_experiment(memory: "Memory", scope: Scope, experiment_id: str) -> None:
    found = await experiment(memory, scope, experiment_id)
    engine, owner = memory.engine, Scope(scope.tenant, scope.user)
    await engine.store.items.write(owner, [ItemWrite(EXPERIMENTS, found.id, None)], now=engine.clock.now())


def _value(one: Experiment) -> JsonObject:
    rows = [{**asdict(row), "at": row.at.isoformat()} for row in one.rows]
    made = {"name": one.name, "created": one.created.isoformat(), "changes": dict(one.changes), "rows": rows}
    return cast("JsonObject", {**made, "total": one.total})


def _experiment(key: str, value: dict[str, Any]) -> Experiment:
    def row(given: dict[str, Any]) -> Measured:
        sides = {name: given[name] and Side(**given[name]) for name in ("before", "after")}
        read: dict[str, Any] = {**given, **sides, "at": datetime.fromisoformat(given["at"])}
        return Measured(**read)

    created, rows = datetime.fromisoformat(value["created"]), tuple(map(row, value["rows"]))
    return Experiment(key, value["name"], created, value["changes"], rows, value["total"])
