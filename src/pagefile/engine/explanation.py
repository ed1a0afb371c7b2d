"""What a model saw and why: a recorded call, its window rebuilt, and its cost without Pagefile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pagefile.engine.engine import Engine
from pagefile.engine.ledger import full_tokens
from pagefile.engine.past import turn_then
from pagefile.engine.replay import OLDER, Rebuilt, rebuilt
from pagefile.engine.snapshots import Snapshot, recorded_snapshot
from pagefile.errors import NotFoundError
from pagefile.records import Scope, Turn, WindowRecord
from pagefile.shapes import answered_steps, prepared
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD
from pagefile.window.candidates import Message
from pagefile.window.comparison import BlockBill, bill, message_tokens, shared_messages
from pagefile.window.measure import layout_tokens
from pagefile.window.receipt import Receipt, Window, receipt_from


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
    receipt = receipt_from(call.receipt)
    again = await rebuilt(engine, call)
    before = await engine.store.calls.list(scope, limit=1, after=call.id)
    shared = 0
    if before and again is not None and (earlier := await _rebuilt_or_none(engine, before[0])) is not None:
        shared = shared_messages(earlier.window.messages, again.window.messages)
    messages = [] if again is None else again.window.messages[:shared]
    moment = recorded_snapshot(call)
    return Explanation(
        call=call,
        receipt=receipt,
        blocks=bill(receipt),
        window=None if again is None else again.window,
        exact=again is not None and again.exact,
        why=(OLDER,) if again is None else again.why,
        previous=before[0].id if before else None,
        shared_messages=shared,
        shared_tokens=sum(message_tokens(message, engine.counter.count) for message in messages),
        tokens_without=None if moment is None else await _without(engine, scope, call, moment, receipt),
    )


async def _rebuilt_or_none(engine: Engine, call: WindowRecord) -> Rebuilt | None:
    try:
        return await rebuilt(engine, call)
    except NotFoundError:
        return None


async def costs_of(engine: Engine, scope: Scope, limit: int) -> list[Cost]:
    """The newest calls of a conversation, oldest first, each with and without Pagefile; the log is read once."""
    calls = list(reversed(await engine.store.calls.list(scope, limit=limit)))
    moments = {call.id: recorded_snapshot(call) for call in calls}
    places = [moment.last_seq for moment in moments.values() if moment is not None]
    sums = await engine.ledger.sums(scope, max(places, default=0))
    found: list[Cost] = []
    for call in calls:
        moment, receipt = moments[call.id], receipt_from(call.receipt)
        without = None if moment is None else await _own(engine, scope, call, moment, receipt)
        if moment is not None and without is not None:
            without += sums[moment.last_seq] - sums[moment.reset_seq]
        seq = None if moment is None else moment.last_seq
        found.append(Cost(call.id, call.at, seq, call.tokens, receipt.budget, without, bill(receipt)))
    return found


async def _without(
    engine: Engine, scope: Scope, call: WindowRecord, moment: Snapshot, receipt: Receipt
) -> int:
    sums = await engine.ledger.sums(scope, moment.last_seq)
    return await _own(engine, scope, call, moment, receipt) + sums[moment.last_seq] - sums[moment.reset_seq]


async def _own(engine: Engine, scope: Scope, call: WindowRecord, moment: Snapshot, receipt: Receipt) -> int:
    """Tokens of the instructions, and of the running turn with its results."""
    given = [verdict.tokens for verdict in receipt if verdict.block == "instructions"]
    running = sum(verdict.tokens for verdict in receipt if verdict.block == "current")
    if call.turn_id is not None and moment.steps:
        turn = await turn_then(engine.store.reader, scope, call.turn_id, moment)
        running = running if turn is None else _running_tokens(turn, engine.counter.count)
    return REPLY_OVERHEAD + MESSAGE_OVERHEAD * bool(given) + sum(given) + running


def _running_tokens(turn: Turn, count: Callable[[str], int]) -> int:
    """A running turn with every result in full, and everything said and shown beside them."""
    answered = {number: turn.steps[number] for number in answered_steps(turn.messages)}
    costs = {number: (step.call_tokens, step.result_tokens) for number, step in answered.items()}
    tokens = layout_tokens(prepared(turn.messages), costs, count, running=True)
    return full_tokens(replace(turn, steps=tuple(answered.values()), tokens=tokens))
