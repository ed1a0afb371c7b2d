"""Checkpoints that lose nothing: prepared early in the background, in force when the window fills.

A summary is prepared at 60 % of the window and takes effect at 75 %, so nobody waits for it. It says up to which turn it
speaks; every turn after that stays verbatim, also those that were written while it was made. A new summary merges the old one
with the newly covered turns, and carries their anchors (numbers, dates, names, ids …) and archive references along.
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

import anyio

from pagefile.errors import ConflictError, InvalidTurnError, StoreError
from pagefile.ports import (
    CheckpointDraft,
    EntryQuery,
    LogReader,
    LogView,
    Meter,
    ResetDraft,
    Summarizer,
    TurnLog,
    ViewRequest,
)
from pagefile.records import Checkpoint, Reset, Scope, Turn, checked_text
from pagefile.text.anchors import anchors
from pagefile.tiers.base import Counter
from pagefile.tiers.summaries import Summary, summary_of

logger = logging.getLogger("pagefile")

#: A checkpoint is prepared at this share of the threshold at which it takes effect.
PREPARE_AT = 0.8
#: Turns that stay verbatim take at most this share of the window after an automatic checkpoint.
VERBATIM_SHARE = 2
#: Pauses before a failed write is tried again.
RETRY_S = (1.0, 2.0, 3.0)
#: A checkpoint carries at most so many anchors, the newest ones.
MAX_ANCHORS = 400
_BATCH = 500
_MAX_PREPARED = 1000


@dataclass(frozen=True, slots=True)
class WindowRules:
    """The window a conversation is read with."""

    window_tokens: int
    threshold: float
    recent_turns: int


@dataclass(frozen=True, slots=True)
class _Prepared:
    version: int
    draft: CheckpointDraft


class Checkpoints:
    """Makes checkpoints: by hand, or when a window fills."""

    def __init__(
        self, log: TurnLog, reader: LogReader, counter: Counter, summarizer: Summarizer, meter: Meter
    ) -> None:
        self._log = log
        self._reader = reader
        self._counter = counter
        self._summarizer = summarizer
        self._meter = meter
        self._prepared: OrderedDict[Scope, _Prepared] = OrderedDict()

    async def make(self, scope: Scope, summary: str | None, recent_turns: int) -> Checkpoint:
        """By hand: cover all but the last `recent_turns` turns, with the summary given or one that is made."""
        view = await self._view(scope)
        live = await self._live(scope, view)
        covered = live[: max(0, len(live) - recent_turns)]
        if not covered:
            raise InvalidTurnError(
                f"Nothing to cover: the conversation has {len(live)} live turns and recent_turns={recent_turns} "
                "stay verbatim. Record more turns or lower recent_turns."
            )
        if summary is None:
            made = await self._summary(covered, view)
        else:
            made = Summary(checked_text(summary, "summary").strip())
        if not made.text:
            raise InvalidTurnError("The summary is empty: give some text, or None to have one made.")
        return await self._apply(self._draft(scope, covered, made.text, view))

    async def reset(self, scope: Scope) -> Reset:
        """Begin anew; the log keeps what came before."""
        entry = await self._log.mark(ResetDraft(scope, str(uuid4())))
        assert isinstance(entry, Reset)
        self._prepared.pop(scope, None)
        return entry

    async def tend(self, scope: Scope, rules: WindowRules, *, now: bool = False) -> int:
        """Prepare a checkpoint when the window is filling, and let it take effect when it is full.

        Returns the live tokens left. `now` skips the waiting: what can be covered is covered at once.
        """
        view = await self._view(scope)
        used = view.head.live_tokens + (view.checkpoint.tokens if view.checkpoint else 0)
        full = now or used >= rules.threshold * rules.window_tokens
        if not full and used < PREPARE_AT * rules.threshold * rules.window_tokens:
            return view.head.live_tokens
        prepared = self._prepared.get(scope)
        version = view.checkpoint.version if view.checkpoint else 0
        if prepared is None or prepared.version != version:
            prepared = await self._prepare(scope, view, rules)
        if prepared is None or not full:
            return view.head.live_tokens
        self._prepared.pop(scope, None)
        try:
            await self._apply_patiently(prepared.draft)
        except ConflictError:
            # Another process was faster, or the conversation was reset: its view of things holds.
            logger.info("a checkpoint of %r was superseded before it took effect", scope.conversation)
        return (await self._view(scope)).head.live_tokens

    async def _prepare(self, scope: Scope, view: LogView, rules: WindowRules) -> _Prepared | None:
        live = await self._live(scope, view)
        covered = live[: len(live) - _verbatim(live, rules)]
        if not covered:
            return None
        made = await self._summary(covered, view)
        version = view.checkpoint.version if view.checkpoint else 0
        prepared = _Prepared(version, self._draft(scope, covered, made.text, view))
        self._prepared[scope] = prepared
        while len(self._prepared) > _MAX_PREPARED:
            self._prepared.popitem(last=False)
        return prepared

    async def _summary(self, covered: Sequence[Turn], view: LogView) -> Summary:
        previous = view.checkpoint.summary if view.checkpoint else None
        made = await summary_of(covered, previous, self._summarizer)
        if made.trouble is not None:
            logger.warning("the summarizer failed, extracted a summary instead: %s", made.trouble)
            self._meter.count("pagefile_degraded_total", tier="summarizer")
        return made

    def _draft(self, scope: Scope, covered: Sequence[Turn], summary: str, view: LogView) -> CheckpointDraft:
        previous = view.checkpoint
        return CheckpointDraft(
            scope=scope,
            id=str(uuid4()),
            summary=summary,
            text=f"历史摘要: {summary}",
            covered_through_seq=covered[-1].seq or 0,
            expected_version=previous.version if previous else 0,
            tokens=self._counter.count(summary),
            counter=self._counter.name,
            anchors=_anchors_of(covered, previous),
            archive_refs=_archive_refs_of(covered, previous),
        )

    async def _apply_patiently(self, draft: CheckpointDraft) -> None:
        """Three more tries after a failure of the store; then the window goes on without, still within its budget."""
        for pause in (*RETRY_S, None):
            try:
                await self._apply(draft)
            except ConflictError:
                raise
            except StoreError as error:
                logger.warning("CheckpointShortMemory error: %s", error)
                self._meter.count("pagefile_degraded_total", tier="checkpoint")
                if pause is not None:
                    await anyio.sleep(pause)
            else:
                return

    async def _apply(self, draft: CheckpointDraft) -> Checkpoint:
        entry = await self._log.mark(draft)
        assert isinstance(entry, Checkpoint)
        self._meter.count("pagefile_checkpoints_total")
        self._meter.observe("pagefile_summary_chars", len(draft.summary))
        return entry

    async def _view(self, scope: Scope) -> LogView:
        return await self._reader.view(ViewRequest(scope, budget_tokens=0, min_turns=0))

    async def _live(self, scope: Scope, view: LogView) -> list[Turn]:
        """The live turns, oldest first."""
        live: list[Turn] = []
        after = max(view.head.covered_through_seq, view.head.reset_seq)
        while True:
            query = EntryQuery(scope, statuses=frozenset({"done"}), after_seq=after, limit=_BATCH)
            batch = [entry for entry in await self._reader.entries(query) if isinstance(entry, Turn)]
            live += batch
            if len(batch) < _BATCH:
                return live
            after = batch[-1].seq or after


def _verbatim(live: Sequence[Turn], rules: WindowRules) -> int:
    """How many of the newest turns stay: the recent ones, fewer if they alone would fill half of the window, never none."""
    room = rules.window_tokens // VERBATIM_SHARE
    staying = 0
    for turn in reversed(live[len(live) - min(len(live), rules.recent_turns) :]):
        room -= turn.tokens
        if room < 0 and staying:
            break
        staying += 1
    return staying


def _anchors_of(turns: Sequence[Turn], previous: Checkpoint | None) -> tuple[str, ...]:
    found = dict.fromkeys(previous.anchors if previous else ())
    for turn in turns:
        for anchor in anchors(turn.text):
            # Said again, it is new again: the oldest are the first to go.
            found.pop(anchor, None)
            found[anchor] = None
    return tuple(found)[-MAX_ANCHORS:]


def _archive_refs_of(turns: Sequence[Turn], previous: Checkpoint | None) -> tuple[str, ...]:
    found = dict.fromkeys(previous.archive_refs if previous else ())
    found.update(dict.fromkeys(step.page for turn in turns for step in turn.steps if step.page))
    return tuple(found)
