"""Keeps conversations within their windows while nobody waits: one job a conversation at a time, a few at once."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from pagefile.ports import Meter
from pagefile.records import Scope
from pagefile.tiers.checkpoints import PREPARE_AT, WindowRules

logger = logging.getLogger("pagefile")

_WORKERS = 4
#: Conversations whose filling is remembered; for others one look at the log tells.
_REMEMBERED = 10_000

Work = Callable[[Scope, WindowRules], Awaitable[int]]
Job = Callable[[Scope], Awaitable[object]]


class Tender:
    """Notices when a window is filling, and has a checkpoint prepared or applied."""

    def __init__(self, work: Work, default: WindowRules, meter: Meter) -> None:
        self._work = work
        self._default = default
        self._meter = meter
        self._rules: OrderedDict[Scope, WindowRules] = OrderedDict()
        self._live: OrderedDict[Scope, int] = OrderedDict()
        self._pending: OrderedDict[Scope, dict[Job, None]] = OrderedDict()
        self._running: set[Scope] = set()
        self._wake = anyio.Event()
        self._progress = anyio.Event()

    def rules_of(self, scope: Scope) -> WindowRules:
        """The window the conversation was last read with."""
        return self._rules.get(scope, self._default)

    def read_with(self, scope: Scope, rules: WindowRules, live_tokens: int) -> None:
        """A window was handed out: remember its rules, and how full it was."""
        _remember(self._rules, scope, rules)
        _remember(self._live, scope, live_tokens)
        self._look(scope)

    def written(self, scope: Scope, tokens: int) -> None:
        """A turn was completed. The log is only looked at when the window may be filling."""
        known = self._live.get(scope)
        _remember(self._live, scope, (known or 0) + tokens)
        if known is None:
            self._enqueue(scope)
        else:
            self._look(scope)

    def ask(self, scope: Scope, job: Job) -> None:
        """Have something else done for a conversation, never beside its checkpoint; asked for twice, it is done once."""
        self._enqueue(scope, job)

    async def settle(self) -> None:
        """Wait until there is nothing left to do."""
        while self._pending or self._running:
            await self._progress.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        async with anyio.create_task_group() as workers:
            for _ in range(_WORKERS):
                workers.start_soon(self._worker)

    def forget(self) -> None:
        """Forget how full conversations are; the log tells again."""
        self._live.clear()

    def _look(self, scope: Scope) -> None:
        rules = self.rules_of(scope)
        if self._live[scope] >= PREPARE_AT * rules.threshold * rules.window_tokens:
            self._enqueue(scope)

    def _enqueue(self, scope: Scope, job: Job | None = None) -> None:
        self._pending.setdefault(scope, {})[job or self._look_after] = None
        self._wake.set()

    async def _worker(self) -> None:
        while True:
            scope = next((scope for scope in self._pending if scope not in self._running), None)
            if scope is None:
                if self._wake.is_set():
                    # One event for all that wait: each with its own, only the last would wake.
                    self._wake = anyio.Event()
                await self._wake.wait()
                continue
            jobs = self._pending.pop(scope)
            self._running.add(scope)
            try:
                for job in jobs:
                    await self._tend(scope, job)
            finally:
                self._running.discard(scope)
                self._progress.set()
                self._progress = anyio.Event()

    async def _look_after(self, scope: Scope) -> None:
        _remember(self._live, scope, await self._work(scope, self.rules_of(scope)))

    async def _tend(self, scope: Scope, job: Job) -> None:
        self._meter.observe("pagefile_background_waiting", len(self._pending))
        try:
            await job(scope)
        except Exception:
            # Nobody waits for this; the next turn tries again.
            logger.exception("could not look after conversation %r", scope.conversation)
            self._meter.count("pagefile_degraded_total", tier="tend")
            self._live.pop(scope, None)


V = TypeVar("V")


def _remember(known: OrderedDict[Scope, V], scope: Scope, value: V) -> None:
    known[scope] = value
    known.move_to_end(scope)
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
