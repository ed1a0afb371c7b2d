"""A store, its tiers, and what is done with all tiers alike: the engine knows that there are tiers, but not which."""

import logging
from collections import Counter as CounterOf
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TypeVar

import anyio

from pagefile.engine import third_party_tiers as outsiders
from pagefile.engine.annotations import forget_annotations, forget_lost, forget_rows
from pagefile.engine.audit_log import AuditLog
from pagefile.engine.cache_doubts import TRUST_S
from pagefile.engine.calls import WindowRecorder
from pagefile.engine.dead_writers import DeadWriters
from pagefile.engine.external_stores import Apart, Elsewhere
from pagefile.engine.ledger import Ledger
from pagefile.engine.metrics import MemoryChanges
from pagefile.engine.ownership import on_behalf
from pagefile.engine.policy import Policy, Redactor, redacting_items
from pagefile.engine.retention import Retention
from pagefile.engine.sessions import CachedSessions, FollowedLog, Sessions
from pagefile.engine.standard_tiers import Kit, standard_tiers
from pagefile.engine.worker import Jobs, Worker
from pagefile.errors import (
    ClosedError,
    InvalidArgumentError,
    ModelUnavailableError,
    SettingsError,
    StoreError,
    TierError,
)
from pagefile.ports import Part, SessionCache, Store
from pagefile.records import ERASED, ErasureReceipt, JsonObject, JsonValue, Scope, Step, Turn, checked_text
from pagefile.shapes.parser import cleaned
from pagefile.stores.session_cache import CACHE_NAME, ErasedSessions, erased_version
from pagefile.tiers.base import FAILED, Admit, Counts, Note, Tier, WindowRequest, guarded, homes
from pagefile.tiers.episodes import Episodes
from pagefile.tiers.facts import Facts
from pagefile.tiers.history import History
from pagefile.tiers.index_lag import IndexLag
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.budget import Beside, Budget
from pagefile.window.candidates import Block, Candidate
from pagefile.window.receipt import Window

logger = logging.getLogger("pagefile")

R = TypeVar("R")
T = TypeVar("T", bound=Tier)

#: Stop waiting for another process that has made no progress for this long.
_STALLED_S = 5.0
_LOOK_S = 0.05
#: How long a listing of calls waits for the newest ones to be written.
_CATCH_UP_S = 1.0
#: Tier names that recorded calls and background work already use for something else.
_RESERVED = frozenset(
    {WindowRecorder.name, DeadWriters.name, Elsewhere.name, Jobs.name, Retention.name, "pinned"}
)
#: How often a process that only does background work looks for more.
_POLL_S = 2.0


def _noop(_: str) -> None:
    """There is no receipt to write to."""


class Engine:
    """A store, the tiers over it, and the settings they were opened with."""

    def __init__(
        self,
        kit: Kit,
        *,
        cache: SessionCache | None = None,
        more: Sequence[Tier] = (),
        tiers: Sequence[Tier] | None = None,
        outside: frozenset[str] = frozenset(),
        incognito: bool = False,
        beside: "Engine | None" = None,
    ) -> None:
        """With the standard tiers plus `more`, or with exactly `tiers`.

        `outside` names the third-party ones among `tiers`; `more` always are. Tiers shared with the engine
        `beside` keep reporting to that one.
        """
        #: Session values, possibly behind a cache.
        self.sessions = Sessions(kit.store, kit.meter)
        if cache is not None:
            self.sessions = CachedSessions(kit.store, cache, kit.meter, kit.clock)
            kit = replace(kit, store=_followed(kit.store, self.sessions))
        self.kit = kit
        self.store, self.settings, self.clock = kit.store, kit.settings, kit.clock
        self.counter, self.meter, self.languages = kit.counter, kit.meter, kit.languages
        self.loading = kit.loading
        self.tiers = _checked((*standard_tiers(kit), *more)) if tiers is None else tuple(tiers)
        #: The tiers that absorb turns and offer candidates: all of them, unless incognito.
        self.active = tuple(tier for tier in self.tiers if tier.incognito or not incognito)
        #: The names of third-party tiers, whose answers are checked.
        self.outside = outside | {tier.name for tier in more}
        #: Nothing is looked up elsewhere and no window is recorded.
        self.incognito = incognito
        self.closed = False
        #: How often each tier failed since opening.
        self.failures: dict[str, int] = {}
        #: Models that were slow or away, as they were logged: each once, since it happens with every request then.
        self._models_away: set[tuple[str, str]] = set()
        self.cache = cache
        self.ledger = Ledger(kit.store.reader)
        self.policy = Policy.of(kit.settings)
        self.redactor = Redactor(self.policy, kit.meter)
        if self.policy.redact:
            self.store = copy(self.store)
            self.store.items = redacting_items(self.store.items, self.redactor)
            for tier in self.tiers:
                if isinstance(tier, Facts):
                    tier.book.redact = self.redactor.value
                elif isinstance(tier, History):
                    tier.checkpoints.redact = self.redactor.value
        self.changes = MemoryChanges(kit.meter)
        self.calls = WindowRecorder(kit.store.calls, keep=0 if incognito else kit.settings.calls_kept)
        #: Places outside the database that must follow its erasures.
        self.elsewhere = Elsewhere(kit.store.erasures, _apart(kit, cache))
        jobs, here = Jobs(), () if incognito else self.active
        if kit.settings.worker == "apart":
            # No other process has third-party tiers.
            here = [tier for tier in here if tier in more]
        poll_s = _POLL_S if kit.settings.worker == "dedicated" else None
        #: Ends the turns of processes that died.
        self.dead_writers = DeadWriters(kit.store.leases, kit.clock)
        apart = kit.settings.worker == "apart" or incognito
        more_lines: list[Tier] = [] if apart else [self.dead_writers]
        if self.policy.retention and not apart:
            if kit.store.audit is None:
                raise SettingsError(
                    "policy.retention needs a store that lists its conversations: this one has no `audit`."
                )
            audit = AuditLog.of(kit.settings.policy)
            more_lines.append(
                Retention(self.policy, kit.store, kit.store.audit, kit.clock, self.erase, audit)
            )
        lines = [jobs, *here, self.calls, self.elsewhere, *more_lines]
        self.worker = Worker(lines, kit.meter, poll_s=poll_s)
        if isinstance(self.sessions, CachedSessions):
            self.sessions.later = self.worker.do
        self.calls.wake = partial(self.worker.wake, self.calls.name)
        shared = () if beside is None else tuple(map(id, beside.tiers))
        for tier in (*self.tiers, jobs, self.calls, self.elsewhere, *more_lines):
            if id(tier) not in shared:
                tier.report = partial(self.failed, tier.name)

    def tier(self, kind: type[T]) -> T:
        """The tier of a kind, for the verbs that concern it alone."""
        for tier in self.tiers:
            if isinstance(tier, kind):
                return tier
        raise SettingsError(f"This memory has no {kind.__name__} tier, which this call is about.")

    def without(self, kind: type[Tier]) -> "Engine":
        """The same engine with tiers of that kind inactive: they absorb and offer nothing, but their verbs still work."""
        engine = copy(self)
        engine.active = tuple(tier for tier in self.active if not isinstance(tier, kind))
        return engine

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError

    # -- turns in -----------------------------------------------------------------------------------------------------

    async def absorb(self, turn: Turn) -> None:
        """Pass a turn that is in the log to every tier, and schedule background work for those that ask for it."""
        for tier in self.active:
            # This runs for every turn: tiers that do not implement it cost nothing, and a `guard` costs too much.
            if type(tier).absorb is Tier.absorb:
                continue
            try:
                wants = await tier.absorb(turn)
            except Exception as error:
                self._caught(tier.name, _noop, error)
            else:
                if wants:
                    self.worker.wake(tier.name, turn.scope)

    async def absorb_step(self, scope: Scope, raw: Step, turn_id: str, admit: Admit) -> Step:
        """The step of a tool call as the tiers want it stored."""
        kept = raw
        for tier in self.tiers:
            given = scope, raw, kept, turn_id, admit
            if tier.name not in self.outside:
                kept = await tier.absorb_step(*given)
                continue
            with self.guard(tier.name):
                kept = outsiders.sound_step(await outsiders.answered(tier, "absorb_step", *given))
        return kept

    async def withdraw(self, scope: Scope, steps: Sequence[Step]) -> None:
        """The log refused these steps: remove every trace of them."""
        for tier in self.tiers:
            with self.guard(tier.name):
                await tier.withdraw(scope, steps)

    # -- windows out --------------------------------------------------------------------------------------------------

    async def offers(self, request: WindowRequest) -> list[Candidate]:
        """What all tiers offer. A failing tier means less context, noted in the receipt; it never costs the answer."""
        found: list[Candidate] = []
        for tier in self.active:
            theirs = tier.name in self.outside
            work = self._offer_of(tier, request, found) if theirs else tier.offer(request)
            offered = await self.guarded(tier.name, request.note, work)
            if offered is None:
                request.traces[tier.name] = FAILED
                continue
            found += offered
            if not theirs and (trace := tier.trace(offered)) is not None:
                request.traces[tier.name] = trace
        return found

    async def _offer_of(
        self, tier: Tier, request: WindowRequest, found: Sequence[Candidate]
    ) -> list[Candidate]:
        """What a third-party tier offers, without invalid candidates; its traces are recorded too."""
        own = replace(request, traces={})
        offered = await outsiders.answered(tier, "offer", own, timeout_s=outsiders.TIMEOUT_S)
        sound, wrong = outsiders.sound_candidates(offered, _id_taken(request, found))
        if wrong is not None:
            self._caught(tier.name, request.note, wrong)
        # The default trace, if no store could hold its own.
        traces: JsonObject = {tier.name: Tier.trace(tier, sound)}
        with self.guard(tier.name, request.note):
            traces = outsiders.sound_traces(tier, own.traces, sound)
        for name, trace in traces.items():
            request.traces.setdefault(name, trace)
        return sound

    def budget(self, room: int, reserved: Mapping[Beside, int], note: Note) -> Budget:
        """The room for messages, the limit of each tier, and what the request contains besides messages."""
        limits: dict[Block, int] = {}
        for tier in self.tiers:
            if tier.name not in self.outside:
                limits |= tier.limits(room)
                continue
            own = Tier.limits(tier, room)
            with self.guard(tier.name, note):
                own = outsiders.sound_limits(tier.limits(room))
            limits |= own
        return Budget(room, limits, reserved, self.settings.recall_max_share)

    async def reconsidered(self, request: WindowRequest, window: Window, note: Note) -> bool:
        """Whether a tier changed something because of a window, so that the window must be compiled again."""
        answers = [
            await self.guarded(tier.name, note, self._reconsidered(tier, request, window))
            for tier in self.active
            if type(tier).reconsider is not Tier.reconsider
        ]
        return any(answers)

    async def _reconsidered(self, tier: Tier, request: WindowRequest, window: Window) -> bool:
        if tier.name not in self.outside:
            return await tier.reconsider(request, window)
        answer = await outsiders.answered(tier, "reconsider", request, window, timeout_s=outsiders.TIMEOUT_S)
        return outsiders.decided("reconsider", answer)

    def handed_out(self, request: WindowRequest, window: Window, note: Note) -> None:
        for tier in self.active:
            if type(tier).shown is Tier.shown:
                continue
            with self.guard(tier.name, note):
                if outsiders.decided("shown", tier.shown(request, window)):
                    self.worker.wake(tier.name, request.scope)

    async def settle(self) -> None:
        """Wait until background work has caught up with what is written by now, whichever process does it."""
        await self.worker.settle()
        if self.settings.worker != "apart":
            return
        # The worker process is waited for as long as it makes progress.
        tiers = [tier for tier in self.active if tier.name not in self.worker.lines]
        left = {(tier.name, scope) for tier in tiers for scope in await tier.behind()}
        # The worker leaves a conversation alone until it is quiet.
        stalled_s = _STALLED_S + max([tier.pace.quiet_s for tier in tiers], default=0.0)
        since = monotonic()
        while left:
            still = left & {(tier.name, scope) for tier in tiers for scope in await tier.behind()}
            if still != left:
                left, since = still, monotonic()
            elif monotonic() - since > stalled_s:
                logger.warning("Background work does not catch up: is a `pagefile worker` running?")
                return
            await anyio.sleep(_LOOK_S)

    @property
    def lag(self) -> IndexLag:
        """How far recall by meaning is behind; known while `watch` runs."""
        return self.tier(Episodes).lag

    async def watch(self) -> None:
        """Keep an eye on that lag, for a process that answers requests."""
        await self.lag.watch()

    async def write_calls(self) -> None:
        """Wait until every window handed out so far is recorded."""
        if self.calls.waiting:
            await self.worker.lines[self.calls.name].settle()

    async def catch_up_calls(self) -> None:
        """The same with a time limit, so that listings do not wait long for a slow store."""
        with anyio.move_on_after(_CATCH_UP_S):
            await self.write_calls()

    # -- erasing ------------------------------------------------------------------------------------------------------

    async def erase(
        self, scope: Scope, *, turn_id: str | None = None, page: str | None = None, scrub: bool = False
    ) -> ErasureReceipt:
        """Erase a scope, or one turn or page of it, everywhere, and count what went; `scrub` rewrites the store's files too."""
        await self.calls.flush()
        scope = await on_behalf(self.store.reader, scope)
        await self.elsewhere.begin()
        if turn_id is not None or page is not None:
            return await self._erase_part(scope, turn_id, page, scrub=scrub)
        # First, so that nothing about them stays if the process ends in between.
        await forget_rows(self, scope)
        noted = await forget_annotations(self, scope)
        # What fails now is retried below: a third-party tier must not keep our own rows from being erased.
        before = await self._forget(scope, {}, outsiders.ERASING_S)
        receipt = await self.store.erase(scope)
        # Work requested under the conversation alone belongs to its owner too.
        self.worker.drop(scope if scope.conversation is None else replace(scope, user=None))
        await self._erase_sessions(receipt)
        of_store = await self.store.scrub() if scrub else receipt.pending
        apart, left = await self._erase_elsewhere()
        receipt = replace(receipt, pending=(*of_store, *left))
        self.ledger.forget()
        self.changes.forget()
        failed: dict[str, Exception] = {}
        after = await self._forget(scope, failed)
        also = {"items": noted} if noted else {}
        receipt = replace(receipt, counts=_summed(receipt.counts, before, after, apart, also))
        if failed:
            raise _unforgotten(receipt, failed) from next(iter(failed.values()))
        return receipt

    async def _erase_part(
        self, scope: Scope, turn_id: str | None, page: str | None, *, scrub: bool
    ) -> ErasureReceipt:
        part = Part(turn_id, page, self.counter.count(ERASED), LOADING_TOOLS, self.elsewhere.names)
        receipt = await self.store.erase(scope, part)
        owned = [await on_behalf(self.store.reader, home) for home in homes(receipt)]
        touched = replace(receipt, conversations=tuple(name for name, _ in receipt.places))
        await self._erase_sessions(touched)
        for home in owned:
            await forget_rows(self, home)
            await forget_lost(self, home, turn_id)
        left = await self._forget_part(receipt)
        left += (await self._erase_elsewhere())[1]
        of_store = await self.store.scrub() if scrub else receipt.pending
        self.ledger.forget()
        self.changes.forget()
        for home in owned:
            # Work that was refused while in progress is done again, without the turn.
            for tier in self.active:
                self.worker.wake(tier.name, home)
        return replace(receipt, pending=tuple(dict.fromkeys((*of_store, *left))))

    async def _forget_part(self, receipt: ErasureReceipt) -> list[str]:
        """Erase what tiers hold of a turn or a page outside the store; returns what remains."""
        left: list[str] = []
        for tier in self.tiers:
            what = f"what the tier {tier.name!r} made of it"
            if tier.name in self.outside and type(tier).forget_part is Tier.forget_part:
                left.append(f"{what}: it has no `forget_part`, so forget the conversation")
                continue
            failed: dict[str, Exception] = {}
            with self._collecting(tier, failed):
                await outsiders.answered(tier, "forget_part", receipt, timeout_s=outsiders.ERASING_S)
            left += [f"{what}, which failed ({error}): erase it once more" for error in failed.values()]
        return left

    async def _forget(
        self, scope: Scope, failed: dict[str, Exception], timeout_s: float | None = None
    ) -> Counts:
        """Erase what the tiers hold outside the store. Failures of third-party tiers are collected in `failed`."""
        gone: list[Counts] = []
        for tier in self.tiers:
            if tier.name not in self.outside:
                gone.append(await tier.forget(scope))
                continue
            with self._collecting(tier, failed):
                counts = await outsiders.answered(tier, "forget", scope, timeout_s=timeout_s)
                # Invalid counts do not mean that the erasure failed.
                with self._collecting(tier, {}):
                    gone.append(outsiders.sound_counts(counts))
        return _summed(*gone)

    def _collecting(self, tier: Tier, failed: dict[str, Exception]) -> AbstractContextManager[None]:
        """Reports a failure, and leaves it in `failed`, whatever the setting `on_tier_error` says."""

        def handle(error: Exception) -> None:
            self.failed(tier.name, error)
            failed[tier.name] = error

        return guarded(handle)

    async def _erase_elsewhere(self) -> tuple[Counts, list[str]]:
        counts, left = await self.elsewhere.erase()
        if any(CACHE_NAME in line for line in left):
            # Other processes trust cached values for `TRUST_S`: wait until that has passed.
            await anyio.sleep(TRUST_S)
        return counts, left

    async def _erase_sessions(self, receipt: ErasureReceipt) -> None:
        """Have the cache refuse values still on their way to it; `Elsewhere` erases what it already holds."""
        if self.cache is not None:
            for name in receipt.conversations:
                scope = Scope(receipt.scope.tenant, None, name)
                await self.cache.erase(scope, version=erased_version(receipt.at))
        self.sessions.forget()

    # -- failing ------------------------------------------------------------------------------------------------------

    def guard(self, tier: str, note: Note = _noop) -> AbstractContextManager[None]:
        """Continues after the block if a tier fails in it."""
        return guarded(partial(self._caught, tier, note))

    async def guarded(self, tier: str, note: Note, work: Awaitable[R]) -> R | None:
        """What a tier returns, or None if it fails."""
        try:
            return await work
        except Exception as error:
            # As in `guard`, without a context manager for every tier of every window.
            self._caught(tier, note, error)
            return None

    def _caught(self, tier: str, note: Note, error: Exception) -> None:
        """The one place where a failing tier is handled: it is noted in the receipt, logged and counted."""
        if self.settings.on_tier_error == "raise":
            raise error
        self.failed(tier, error)
        note(f"{tier} failed: {type(error).__name__}: {error}")

    def go_on_without_store(self, error: StoreError) -> None:
        """Report that the store failed while a window was made, or raise it if the settings say so."""
        self._caught("store", _noop, error)

    def failed(self, tier: str, error: Exception, *, logs: bool = True) -> None:
        """Count and log a failure that no caller has to handle; `logs=False` only counts, for repeats of a logged one."""
        self.failures[tier] = self.failures.get(tier, 0) + 1
        self.meter.count("pagefile_degraded_total", tier=tier)
        if logs and isinstance(error, ModelUnavailableError):
            # The tier works: a model that is slow or still loading is not a failure of the tier.
            told = (tier, str(error))
            logger.log(logging.DEBUG if told in self._models_away else logging.WARNING, "%s: %s", *told)
            self._models_away.add(told)
        elif logs:
            logger.error("the %s tier failed; going on without it", tier, exc_info=error)

    # -- looking in ---------------------------------------------------------------------------------------------------

    async def described(self, known: Collection[str]) -> dict[str, JsonValue]:
        """What the tiers report about themselves, by key; `known` are keys that are already taken."""
        found: dict[str, JsonValue] = {}
        for tier in self.tiers:
            if tier.name not in self.outside:
                found |= await tier.describe()
                continue
            notes: list[str] = []
            with self.guard(tier.name, notes.append):
                described = await outsiders.answered(tier, "describe", timeout_s=outsiders.TIMEOUT_S)
                found |= outsiders.sound_description(described, {*known, *found})
            if notes:
                found[tier.name] = {"failed": cleaned(notes[0])}
        return found


def _followed(store: Store, sessions: CachedSessions) -> Store:
    """The same store, whose writes invalidate cached sessions."""
    followed = copy(store)
    followed.log = FollowedLog(store.log, sessions.changed)
    return followed


def _apart(kit: Kit, cache: SessionCache | None) -> Iterator[Apart]:
    """What lives outside the database: external vectors, a session cache."""
    if kit.index is not None and kit.index.apart:
        yield kit.index
    if cache is not None:
        yield ErasedSessions(cache, kit.clock)


def _checked(tiers: tuple[Tier, ...]) -> tuple[Tier, ...]:
    for tier in tiers:
        if not isinstance(tier, Tier) or not _is_name(getattr(tier, "name", "")):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not type-checked
            raise SettingsError(
                f'tiers takes instances of Tier that have a name, not {tier!r}: write class Mine(Tier) with name = "mine", and give Mine().'
            )
    names = [tier.name for tier in tiers]
    if reserved := sorted(_RESERVED.intersection(names)):
        raise SettingsError(
            f"A tier is called {', '.join(reserved)}, a name that Pagefile uses itself: give it another name."
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SettingsError(
            f"Several tiers are called {', '.join(twice)}: give each a name of its own; "
            "receipts and metrics identify tiers by name."
        )
    return tiers


def _is_name(name: object) -> bool:
    try:
        return bool(checked_text(name, "name").strip())
    except InvalidArgumentError:
        return False


def _id_taken(request: WindowRequest, found: Sequence[Candidate]) -> Callable[[str], bool]:
    """Whether an id is taken: by another tier, by what the caller brings, or by the running turn."""
    names = {"instructions", "current", *(candidate.id for candidate in found)}
    running = request.view.open_turn
    if running is None:
        return names.__contains__
    steps = f"{running.id}/"
    return lambda name: name in names or name == running.id or name.startswith(steps)


def _summed(*counts: Counts) -> dict[str, int]:
    total = CounterOf[str]()
    for one in counts:
        total.update(one)
    return dict(total)


def _unforgotten(receipt: ErasureReceipt, failed: Mapping[str, Exception]) -> TierError:
    """Names the tiers that still hold data and what was erased, since the next receipt will not count it again."""
    who = "; ".join(f"{name} ({type(error).__name__}: {error})" for name, error in failed.items())
    gone = ", ".join(f"{name} {count}" for name, count in receipt.counts.items() if count) or "nothing"
    return TierError(
        f"These tiers failed to erase what they hold: {who}. Everything else is erased ({gone}): "
        "fix them, then call forget() again."
    )
