"""A recorded call replayed: exactly as it was, or as it would have been with other settings. Nothing is written.

The window is built by the same code as any other, over a store that answers as it did at that moment. What
was chosen then is shown again, unless something that decided it is changed; otherwise it is chosen again from
what was known then.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, cast

import anyio.to_thread

from pagefile.engine import snapshots
from pagefile.engine.arguments import OPTIONS, Request
from pagefile.engine.engine import Engine
from pagefile.engine.ledger import full_tokens
from pagefile.engine.metrics import NoMeter
from pagefile.engine.standard_tiers import standard_tiers
from pagefile.engine.third_party_tiers import replayed_by
from pagefile.engine.windows import Made, assembled, hash_of
from pagefile.errors import HandleNotFoundError, MissingExtraError, NotFoundError, SettingsError
from pagefile.ports import Clock, Store
from pagefile.records import JsonObject, JsonValue, Scope, Step, Turn, WindowRecord
from pagefile.settings import Settings
from pagefile.settings.model import RENAMED, parsed, replaced
from pagefile.shapes.call_order import answered_steps, prepared
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, CachedCounter, open_counter
from pagefile.tiers.base import FAILED, Counter, PastWindow, Remembered, Tier
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.candidates import PRIORITY, Block, Message
from pagefile.window.comparison import BlockBill, Comparison, bill, compared, message_tokens, shared_messages
from pagefile.window.measure import layout_tokens, measured_step, step_tokens
from pagefile.window.placeholder import placeholder, placeholder_uuid
from pagefile.window.receipt import Receipt, Window, receipt_from

#: Everything that can be changed: of the tools, only their tokens are known.
CHANGEABLE = (
    "query",
    *(name for name in OPTIONS if name != "tools_tokens"),
    "tokenizer",
    *snapshots.DECIDING,
)

#: Why a call cannot be replayed.
OLDER = (
    "this call was recorded by an older version of Pagefile, which did not write down what is needed to make its "
    "window again; calls recorded since then can be"
)
#: Why the window of a turn made of messages may not come out as it was.
UNNOTED = (
    "this call was recorded by an older version of Pagefile, which did not write down how many messages its turn had: "
    "the turn is shown as it most likely was"
)
_CHANGED = (
    "every candidate is as it was, but the text of one is not: either a text was changed, or another version of "
    "Pagefile made this window"
)
#: What may have happened to a block that differs.
_SINCE: Mapping[Block, str] = {
    "steps": "their pages were purged or erased since",
    "recent": "turns or their pages were purged, erased or changed since",
    "older": "turns or their pages were purged, erased or changed since",
    "summary": "the checkpoint was erased since",
    "loaded": "pages were purged or erased since",
    "facts": "facts were erased or changed since",
    "corrections": "facts were erased or changed since",
    "episodes": "the turns they come from were erased or changed since",
}


@dataclass(frozen=True, slots=True)
class Replay:
    """A recorded window beside what it would have been, with the difference."""

    call: WindowRecord
    #: What was changed, by name.
    changes: JsonObject
    #: The window as it was, rebuilt, and the changed one.
    before: Window
    after: Window
    #: Whether `before` is byte for byte what was handed out; if not, `why` says what differs.
    exact: bool
    why: tuple[str, ...]
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Rebuilt:
    made: Made
    exact: bool
    why: tuple[str, ...]


async def rebuilt(engine: Engine, call: WindowRecord) -> Rebuilt | None:
    """The window of a call, rebuilt; None if the call does not record what it was made from."""
    snapshot = snapshots.recorded_snapshot(call)
    if snapshot is None:
        return None
    counter, complaint = await _counter(engine.counter, str(call.receipt["counter"]))
    made = await _made(engine, call, snapshot, counter)
    made = replace(made, window=replace(made.window, id=call.id))
    if hash_of(made.window) == snapshot.messages_hash:
        return Rebuilt(made, exact=True, why=())
    turn, why = made.request.view.open_turn, [*complaint]
    if turn is not None and turn.layout is not None and snapshot.messages is None:
        why.append(UNNOTED)
    why += _reasons(receipt_from(call.receipt), made.window.receipt)
    return Rebuilt(made, exact=False, why=tuple(why))


async def replayed(engine: Engine, call: WindowRecord, changes: Mapping[str, JsonValue]) -> Replay:
    """The window of a call as it was, and as it would have been with other settings."""
    changes = checked_changes(call, changes)
    snapshot, before = snapshots.recorded_snapshot(call), await rebuilt(engine, call)
    if snapshot is None or before is None:
        raise NotFoundError(f"Call {call.id!r} cannot be replayed: {OLDER}.")
    named = str(changes.get("tokenizer", call.receipt["counter"]))
    counter, _ = await _counter(engine.counter, named, must="tokenizer" in changes)
    made = await _made(engine, call, snapshot, counter, changes, before.made)
    was, after = before.made.window, replace(made.window, id="")
    return Replay(call, changes, was, after, before.exact, before.why, compared(was, after))


def checked_changes(call: WindowRecord, changes: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The changes by their dotted names; raises `SettingsError` for one that is not possible."""
    named = {name.replace("__", "."): value for name, value in changes.items()}
    if len(named) < len(changes):
        raise SettingsError("A change is named twice, with a dot and with two underscores: name it once.")
    for name in named:
        if name not in CHANGEABLE:
            close = RENAMED.get(name) or next(iter(get_close_matches(name, CHANGEABLE, n=1)), None)
            hint = f"did you mean {close!r}?" if close else f"what can be changed: {', '.join(CHANGEABLE)}."
            raise SettingsError(f"a replay cannot change {name!r}; {hint}")
    if "query" in named and call.turn_id is not None:
        raise SettingsError(
            "This window was made for a turn that had begun: its question cannot be changed. "
            "Replay a call of `context(query)` instead."
        )
    return named


def checked_from_afar(changes: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Changes requested by a remote client, which must not make the service open local files or reveal which exist."""
    if str(changes.get("tokenizer")).startswith("file:"):
        raise SettingsError(
            "A service opens no tokenizer from a file for a replay: name one of its own, such as 'o200k_base'."
        )
    return changes


def change_of(name: str, text: str) -> JsonValue:
    """Parses the value of a change from text, as command lines and forms give it."""
    key = name.replace("__", ".")
    if key == "load":
        return [uuid for uuid in text.replace(",", " ").split() if uuid]
    if key in {"query", "instructions", "tokenizer"} or key not in CHANGEABLE:
        return text
    return cast("JsonValue", parsed(key, text))


# -- the engine as it was
# ------------------------------------------------------------------------------------------


async def _made(
    now: Engine,
    call: WindowRecord,
    snapshot: snapshots.Snapshot,
    counter: Counter,
    changes: Mapping[str, JsonValue] = MappingProxyType({}),
    was: Made | None = None,
) -> Made:
    """The window of a call from the tiers over the past; `was` is the window as it was, if this one has `changes`."""
    settings = _settings(now.settings, snapshot, changes)
    # With its owner at the time.
    scope = replace(call.scope, user=snapshot.owner)
    reader = snapshots.PastReader(now.store.reader, scope, snapshot, call.turn_id)
    if "archive.threshold" in changes:
        reader.rewrite = _Rewriter(now.store, scope, counter, settings)
    past = snapshots.PastStore(now.store, reader)
    quiet = replace(now.kit, meter=NoMeter(), extractor=None, clock=_Stopped(snapshot.at))
    kit = replace(quiet, store=past, settings=settings, counter=counter, horizon=past.ends.known)
    before = None if was is None else was.request
    window = PastWindow(scope, snapshot.traces, receipt_from(call.receipt), changes, before)
    # Third-party tiers have no past of their own: they offer what was recorded.
    own = standard_tiers(kit)
    tiers = [await _replayed(now, tier, window) for tier in (*own, *now.tiers[len(own) :])]
    then = Engine(kit, tiers=tiers, outside=now.outside, beside=now)
    return await assembled(then, call.scope, _request(settings, call, changes))


async def _replayed(now: Engine, tier: Tier, past: PastWindow) -> Tier:
    if past.traces.get(tier.name) == FAILED and not past.changes:
        return Remembered(tier)
    if tier.name not in now.outside:
        return await tier.replay(past)
    with now.guard(tier.name):
        return await replayed_by(tier, past)
    return Remembered(tier)


@dataclass(frozen=True, slots=True)
class _Stopped(Clock):
    at: datetime

    def now(self) -> datetime:
        return self.at


# -- settings and texts of then
# ------------------------------------------------------------------------------------


def _settings(now: Settings, snapshot: snapshots.Snapshot, changes: Mapping[str, JsonValue]) -> Settings:
    """The settings of then, with the changes; recording and background work are off."""
    given = {**snapshot.settings, **changes}
    deciding = {name: value for name, value in given.items() if name in snapshots.DECIDING}
    quiet: JsonObject = {"calls_kept": 0, "checkpoints": "manual", "window_for": None, "answer_tokens": 0}
    try:
        return replaced(now, {**deciding, **quiet})
    except TypeError as error:  # a setting that this version does not have
        raise SettingsError(str(error)) from error


def _request(settings: Settings, call: WindowRecord, changes: Mapping[str, JsonValue]) -> Request:
    given = cast("Mapping[str, Any]", {**call.options, **changes})
    asked = {name: value for name, value in given.items() if name in OPTIONS}
    if "window_for" in changes and "window_tokens" not in changes:
        asked["window_tokens"] = None
    query = given.get("query", None if call.turn_id is not None else call.query)
    return Request(settings, query=query, turn_id=call.turn_id, **asked)


async def _counter(own: Counter, name: str, *, must: bool = False) -> tuple[Counter, Sequence[str]]:
    """The counter of then; the current one, with a complaint, if it is not available."""
    if name == own.name:
        return own, ()
    try:
        return CachedCounter(await anyio.to_thread.run_sync(open_counter, name)), ()
    except (SettingsError, MissingExtraError):
        if must:
            raise
        return own, (f"tokens were counted with {name!r}, which is not here",)


@dataclass(frozen=True, slots=True)
class _Rewriter:
    """Turns as they would have been stored with a different threshold; the window words their placeholders in its language."""

    store: Store
    scope: Scope
    counter: Counter
    settings: Settings

    async def __call__(self, turn: Turn) -> Turn:
        steps = tuple([await self._step(step) for step in turn.steps])
        if steps == turn.steps:
            return turn
        added = sum(map(step_tokens, steps)) - sum(map(step_tokens, turn.steps))
        return replace(turn, steps=steps, tokens=turn.tokens + added)

    async def _step(self, step: Step) -> Step:
        if step.page is None or step.tool in LOADING_TOOLS:
            return step
        # If it was purged or erased since, the turn has nothing more of it.
        with suppress(HandleNotFoundError):
            if step.page_chars <= self.settings.archive.threshold:
                text = step.result if step.whole else (await self.store.pages.load(self.scope, step.page))[1]
                return self._measured(step, text, whole=True)
            if step.whole or placeholder_uuid(step.result):
                page = await self.store.page_keeper.page(self.scope, step.page)
                return self._measured(step, placeholder(page, self.counter.count), whole=False)
        return step

    def _measured(self, step: Step, result: str, *, whole: bool) -> Step:
        if (step.result, step.whole) == (result, whole):
            return step
        return measured_step(replace(step, result=result, whole=whole), self.counter.count)


def _reasons(was: Receipt, now: Receipt) -> list[str]:
    """Why a window differs from the original, block by block."""
    found = [note for note in now.degraded if note not in was.degraded]
    before, after = _outcomes(was), _outcomes(now)
    differ: dict[Block, list[str]] = {}
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            block = (before.get(name) or after[name])[0]
            differ.setdefault(block, []).append(name)
    for block in PRIORITY:
        if names := differ.get(block):
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            found.append(f"{block}: {_SINCE.get(block, 'not as it was')} ({', '.join(names[:3])}{more})")
    return found or [_CHANGED]


def _outcomes(receipt: Receipt) -> dict[str, tuple[Block, bool, str | None, int]]:
    return {one.id: (one.block, one.kept, one.form, one.tokens) for one in receipt}


@dataclass(frozen=True, slots=True)
class Explanation:
    """One recorded call: the bill, the verdicts, and the messages as they were sent."""

    call: WindowRecord
    receipt: Receipt
    #: The context bill by block, in order of priority; with `receipt.framing` it adds up to the call's tokens.
    blocks: tuple[BlockBill, ...]
    #: The rebuilt window; None if the call does not record what it was made from.
    window: Window | None
    #: Whether it is byte for byte what was handed out; if not, `why` says what differs.
    exact: bool
    why: tuple[str, ...]
    #: The previous call, and how much of the prompt's beginning both have in common.
    previous: str | None
    shared_messages: int
    shared_tokens: int
    #: Every turn and every tool result in full, as an agent without Pagefile would send them; None if
    #: unknown.
    tokens_without: int | None

    @property
    def messages(self) -> Sequence[Message]:
        return () if self.window is None else self.window.messages

    @property
    def saved(self) -> int | None:
        """Tokens saved by Pagefile; negative while its own part costs more than it saves."""
        return None if self.tokens_without is None else self.tokens_without - self.call.tokens


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call cost, and what it would have cost without Pagefile."""

    call_id: str
    at: datetime
    #: The last entry of the log at the time; None if the call does not record it.
    seq: int | None
    tokens: int
    budget: int
    tokens_without: int | None
    blocks: tuple[BlockBill, ...]


async def found_call(engine: Engine, scope: Scope, call_id: str) -> WindowRecord:
    """A call by its id; if it was just handed out, it is written first."""
    try:
        return await engine.store.calls.get(scope, call_id)
    except NotFoundError:
        await engine.write_calls()
        return await engine.store.calls.get(scope, call_id)


async def explained_call(engine: Engine, scope: Scope, call: WindowRecord) -> Explanation:
    """Everything about a call that is known or can be rebuilt."""
    again = await rebuilt(engine, call)
    before = await engine.store.calls.list(scope, limit=1, after=call.id)
    shared = 0
    with suppress(NotFoundError):
        if before and again is not None and (earlier := await rebuilt(engine, before[0])) is not None:
            shared = shared_messages(earlier.made.window.messages, again.made.window.messages)
    window = None if again is None else again.made.window
    messages = [] if window is None else window.messages[:shared]
    [cost] = await costs_of(engine, scope, [call])
    return Explanation(
        call=call,
        receipt=receipt_from(call.receipt),
        blocks=cost.blocks,
        window=window,
        exact=again is not None and again.exact,
        why=(OLDER,) if again is None else again.why,
        previous=before[0].id if before else None,
        shared_messages=shared,
        shared_tokens=sum(message_tokens(message, engine.counter.count) for message in messages),
        tokens_without=cost.tokens_without,
    )


async def costs_of(engine: Engine, scope: Scope, calls: Sequence[WindowRecord]) -> list[Cost]:
    """What calls of a conversation cost, each with and without Pagefile; the log is read once."""
    moments = {call.id: snapshots.recorded_snapshot(call) for call in calls}
    places = [moment.last_seq for moment in moments.values() if moment is not None]
    sums = await engine.ledger.sums(scope, max(places, default=0))
    found: list[Cost] = []
    for call in calls:
        moment, receipt = moments[call.id], receipt_from(call.receipt)
        seq = without = None
        if moment is not None:
            seq, before = moment.last_seq, sums[moment.last_seq] - sums[moment.reset_seq]
            without = before + await _own(engine, scope, call, moment, receipt)
        found.append(Cost(call.id, call.at, seq, call.tokens, receipt.budget, without, bill(receipt)))
    return found


async def _own(
    engine: Engine, scope: Scope, call: WindowRecord, moment: snapshots.Snapshot, receipt: Receipt
) -> int:
    """Tokens of the instructions, and of the running turn with every result in full and everything beside them."""
    given = [verdict.tokens for verdict in receipt if verdict.block == "instructions"]
    running = sum(verdict.tokens for verdict in receipt if verdict.block == "current")
    if call.turn_id is not None and moment.steps:
        turn = await snapshots.turn_then(engine.store.reader, scope, call.turn_id, moment)
        if turn is not None:
            answered = {number: turn.steps[number] for number in answered_steps(turn.messages)}
            costs = {number: (step.call_tokens, step.result_tokens) for number, step in answered.items()}
            tokens = layout_tokens(prepared(turn.messages), costs, engine.counter.count, running=True)
            running = full_tokens(replace(turn, steps=tuple(answered.values()), tokens=tokens))
    return REPLY_OVERHEAD + MESSAGE_OVERHEAD * bool(given) + sum(given) + running
