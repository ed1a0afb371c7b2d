"""Checkpoints that lose nothing: prepared early in the background, applied when the window fills up.

A summary is prepared at 60 % of the window and takes effect at 75 % (`Settings.threshold`), so that no caller waits for it. It names
the last turn it covers; every turn after that stays verbatim, including those written while it was made. A
new summary merges the old one with the newly covered turns, and carries over their anchors (numbers, dates,
names, ids …) and archive references.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, zip_longest
from typing import NamedTuple
from uuid import uuid4

import anyio
import anyio.to_thread

from pagefile import ports
from pagefile.errors import ConflictError, InvalidArgumentError, ModelOutputError, StoreError
from pagefile.lru import Lru
from pagefile.records import Checkpoint, ConversationInfo, Reset, Scope, Turn, checked_text
from pagefile.text.extract import anchor_phrases, summarize
from pagefile.text.refusals import rejection
from pagefile.text.sentences import Language, fitting_sentences, sentences
from pagefile.text.sentences import language as language_of
from pagefile.text.speakers import UNANSWERED
from pagefile.tiers.base import Counter, Redact, guarded, unredacted, within
from pagefile.tiers.languages import Languages
from pagefile.window.forms import summary_most
from pagefile.window.measure import resting_tokens

logger = logging.getLogger("pagefile")

#: A checkpoint is prepared at this share of the threshold at which it takes effect.
PREPARE_AT = 0.8
#: Turns that stay verbatim take at most the window divided by this after an automatic checkpoint.
VERBATIM_SHARE = 2
#: Pauses before a failed write is retried.
RETRY_S = (1.0, 2.0, 3.0)
#: The maximum number of anchors in a checkpoint; the newest are kept.
MAX_ANCHORS = 400
_BATCH = 500
_MAX_PREPARED = 1000

# -- summaries ---------------------------------------------------------------------------------------------------------
#
# A summarizer may raise, hang, return nothing, return far too much or repeat itself without doing harm. Input that is
# longer than it can read is split into parts, each with the summary so far, and nothing is skipped.

#: The maximum length of a summary in tokens.
SUMMARY_TOKENS = 600
#: And at most the window divided by this.
SUMMARY_SHARE = 8
#: Beyond this, a summarizer is considered hung.
SUMMARY_TIMEOUT_S = 120.0


def summary_tokens(window_tokens: int) -> int:
    return max(60, min(SUMMARY_TOKENS, window_tokens // SUMMARY_SHARE))


class Summary(NamedTuple):
    """A summary, and why extraction replaced the configured summarizer."""

    text: str
    fallback_reason: str | None = None


async def summary_of(
    turns: Sequence[Turn],
    previous: str | None,
    summarizer: ports.Summarizer,
    meter: ports.Meter,
    max_tokens: int,
    counter: Counter,
    language: Language | None = None,
) -> Summary:
    """One text for the previous summary and these turns; extracted from them if the summarizer fails."""
    said = list(_said(turns))
    errors: list[Exception] = []
    # Whatever a model or a caller's function raises: the conversation must continue.
    with guarded(errors.append):
        so_far = previous
        for part in parts(said, summarizer.max_input_chars):
            with anyio.fail_after(SUMMARY_TIMEOUT_S):
                request = ports.SummaryRequest(so_far, tuple(part), max_tokens, language)
                text = await summarizer.summarize(request)
            so_far = usable(text, request, counter)
        return Summary(so_far or "")
    reason = f"{type(errors[0]).__name__}: {errors[0]}"
    logger.warning("the summarizer failed, extracted a summary instead: %s", reason)
    meter.count("pagefile_degraded_total", tier="summarizer")
    fitting = {"limit": max_tokens, "measure": counter.count}
    extract = partial(summarize, said, previous=previous, language=language, **fitting)
    return Summary(await anyio.to_thread.run_sync(extract), reason)


def _said(turns: Sequence[Turn]) -> Iterator[tuple[str, str]]:
    """Who said what; an unanswered message that is repeated in the next turn is said once."""
    for turn, following in zip_longest(turns, turns[1:]):
        if turn.status == "done":
            sides = ("user", turn.user), ("assistant", turn.assistant)
        elif following and turn.said.strip() == following.said.strip():
            continue
        else:
            sides = ((UNANSWERED["en"], turn.user),)
        yield from ((speaker, text) for speaker, text in sides if text)


def parts(said: Sequence[tuple[str, str]], max_chars: int) -> Iterator[list[tuple[str, str]]]:
    """What was said, in parts of at most `max_chars`; a longer text is split, and nothing is left out."""
    part: list[tuple[str, str]] = []
    size = 0
    for speaker, text in said:
        for start in range(0, len(text), max_chars):
            piece = text[start : start + max_chars]
            if part and size + len(piece) > max_chars:
                yield part
                part, size = [], 0
            part.append((speaker, piece))
            size += len(piece)
    if part:
        yield part


def usable(text: str, request: ports.SummaryRequest, counter: Counter) -> str:
    """A summary without repetitions and of bounded length; raises if it is none."""
    kept = "".join(dict.fromkeys(sentences(text.strip())))
    if not kept.strip():
        raise ModelOutputError("the summarizer returned nothing")
    given = [request.previous or "", *(words for _, words in request.said)]
    if reason := rejection(kept, given, request.language or language_of("\n".join(given))):
        raise ModelOutputError(reason)
    fitting = fitting_sentences(kept, request.max_tokens, counter.count)
    if len(fitting) < len(kept.strip()):
        logger.warning("a summary of %d characters was cut to its first %d", len(kept), len(fitting))
    return fitting


# -- checkpoints -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WindowRules:
    window_tokens: int
    threshold: float
    recent_turns: int


class _Covered:
    """What a checkpoint will cover, gathered in batches: a long conversation is never held in memory as a whole."""

    def __init__(self, scope: Scope, view: ports.LogView, max_tokens: int | None) -> None:
        self.scope, self.view = scope, view
        #: The maximum length of the summary; None if the caller provides it.
        self.max_tokens = max_tokens
        self.fallback_reason: str | None = None
        #: The last turn covered; 0 if there is none yet.
        self.through_seq = 0
        #: From the previous checkpoint and everything covered so far.
        self.summary = view.checkpoint.summary if view.checkpoint else None
        self.anchors = dict.fromkeys(view.checkpoint.anchors if view.checkpoint else ())
        self.archive_refs = dict.fromkeys(view.checkpoint.archive_refs if view.checkpoint else ())

    def gather(self, turns: Sequence[Turn]) -> None:
        """Collect what no summary may lose."""
        for turn in turns:
            for anchor in anchor_phrases(turn.text):
                # A repeated anchor counts as new: the oldest are dropped first.
                self.anchors.pop(anchor, None)
                self.anchors[anchor] = None
            for uuid in (uuid for step in turn.steps for uuid in step.pages):
                # So does a page that was loaded again: the last ones are named first.
                self.archive_refs.pop(uuid, None)
                self.archive_refs[uuid] = None
        self.anchors = dict.fromkeys([*self.anchors][-MAX_ANCHORS:])
        self.through_seq = turns[-1].seq or 0


@dataclass(eq=False, repr=False)
class Checkpoints:
    """Makes checkpoints: on request, or when a window fills up."""

    log: ports.TurnLog
    reader: ports.LogReader
    counter: Counter
    summarizer: ports.Summarizer
    meter: ports.Meter
    languages: Languages
    #: What may not be stored of a tenant is removed from summaries by this: a caller's own may say anything.
    redact: Redact = unredacted

    def __post_init__(self) -> None:
        self._prepared: Lru[Scope, ports.CheckpointDraft] = Lru(_MAX_PREPARED)
        self._erasures = 0

    @property
    def prepared(self) -> list[Scope]:
        return list(self._prepared)

    def forget(self, scope: Scope) -> None:
        """Discard what is prepared for a scope, and what is being prepared now."""
        self._erasures += 1
        self._prepared.drop(lambda home: within(home, scope))

    async def make(
        self, scope: Scope, summary: str | None, recent_turns: int, window_tokens: int
    ) -> Checkpoint:
        """On request: cover all but the last `recent_turns` turns, with the given summary or a generated one.

        A generated one is generated again if another checkpoint came first, and left out if that one covers as much.
        """
        for _ in RETRY_S if summary is None else ():
            try:
                return await self._make(scope, summary, recent_turns, window_tokens)
            except ConflictError:
                logger.info("a checkpoint was superseded before it took effect")
                view = await self.view(scope)
                if view.checkpoint and view.head.live_turns <= recent_turns:
                    return view.checkpoint
        return await self._make(scope, summary, recent_turns, window_tokens)

    async def _make(
        self, scope: Scope, summary: str | None, recent_turns: int, window_tokens: int
    ) -> Checkpoint:
        view = await self.view(scope)
        covered = _Covered(scope, view, summary_tokens(window_tokens) if summary is None else None)
        await self._cover(covered, recent_turns, len)
        if not covered.through_seq:
            raise nothing_to_cover(view.head, recent_turns)
        if summary is not None:
            covered.summary = checked_text(summary, "summary").strip()
        if not covered.summary:
            raise InvalidArgumentError("The summary is empty: give some text, or None to have one made.")
        return await self._apply(self._draft(covered))

    async def cover(
        self,
        scope: Scope,
        summary: str,
        through_seq: int,
        *,
        epoch: int,
        expected_version: int | None = None,
        fallback_reason: str | None = None,
    ) -> Checkpoint:
        """Cover every turn up to one that the summary's author has read.

        `epoch` is `ConversationInfo.epoch` of the view that the author read: `ErasedError` if something was erased
        since. With an `expected_version` it must replace that checkpoint (0: none), else `ConflictError` is raised.
        """
        view = await self.view(scope)
        covered = _Covered(scope, view, None)
        async for batch in self._live(covered):
            read = [turn for turn in batch if (turn.seq or 0) <= through_seq]
            await self._add(covered, read)
            if len(read) < len(batch):
                break
        covered.summary = checked_text(summary, "summary").strip()
        if not covered.summary:
            raise InvalidArgumentError("The summary is empty: give some text.")
        covered.through_seq, covered.fallback_reason = through_seq, fallback_reason
        expected = _version(view) if expected_version is None else expected_version
        # This view is newer than the one the author read, and so is its epoch.
        draft = replace(self._draft(covered), epoch=epoch, expected_version=expected)
        return await self._apply(draft)

    async def reset(self, scope: Scope) -> Reset:
        """Start over; the log keeps what came before."""
        entry = await self.log.mark(ports.ResetDraft(scope, str(uuid4())))
        assert isinstance(entry, Reset)
        self._prepared.pop(scope, None)
        return entry

    async def maintain(self, scope: Scope, rules: WindowRules, *, now: bool = False) -> int:
        """Prepare a checkpoint when the window is filling up, and apply it when it is full.

        Returns the live tokens left. With `now`, whatever can be covered is covered at once.
        """
        view = await self.view(scope)
        fill = rules.threshold * rules.window_tokens
        used = view.head.live_tokens + summary_most(view.checkpoint, rules.window_tokens)
        if used >= PREPARE_AT * fill:
            used -= await self._pageable(scope, view)
        full = now or used >= fill
        if not full and used < PREPARE_AT * fill:
            return view.head.live_tokens
        prepared = self._prepared.get(scope)
        if prepared is None or prepared.expected_version != _version(view):
            prepared = await self._prepare(scope, view, rules, coming=max(0, int(fill - used)))
        if prepared is None or not full:
            return view.head.live_tokens
        self._prepared.pop(scope, None)
        try:
            await self._apply_patiently(prepared)
        except ConflictError:
            # Another process was faster, or the conversation was reset: that takes precedence.
            logger.info("a checkpoint was superseded before it took effect")
        return (await self.view(scope)).head.live_tokens

    async def _pageable(self, scope: Scope, view: ports.LogView) -> int:
        """Tokens of results that leave a full window by themselves: no reason to summarize what was said."""
        live = self._live(_Covered(scope, view, None))
        return sum([turn.tokens - resting_tokens(turn) async for batch in live for turn in batch])

    async def _prepare(
        self, scope: Scope, view: ports.LogView, rules: WindowRules, *, coming: int = 0
    ) -> ports.CheckpointDraft | None:
        """A checkpoint for when the window is full; `coming` tokens are written until then, and stay verbatim."""
        erasures = self._erasures
        covered = _Covered(scope, view, summary_tokens(rules.window_tokens))
        staying = partial(verbatim, window_tokens=rules.window_tokens, coming=coming)
        await self._cover(covered, rules.recent_turns, staying)
        if not covered.through_seq:
            return None
        prepared = self._draft(covered)
        # Summarizing takes a while: discard the result if something was erased meanwhile.
        if erasures == self._erasures:
            self._prepared[scope] = prepared
        return prepared

    async def _cover(
        self, covered: _Covered, recent_turns: int, staying: Callable[[Sequence[Turn]], int]
    ) -> None:
        """Cover everything but the newest turns; `staying` says how many of the last `recent_turns` stay."""
        held: list[Turn] = []
        async for batch in self._live(covered):
            # More turns follow, so of those held only the last `recent_turns` can be among the newest.
            older = max(0, len(held) - recent_turns)
            await self._add(covered, held[:older])
            held = [*held[older:], *batch]
        newest = held[max(0, len(held) - recent_turns) :]
        await self._add(covered, held[: len(held) - staying(newest)])

    async def _add(self, covered: _Covered, turns: Sequence[Turn]) -> None:
        if not turns:
            return
        # Extracting anchors from hundreds of turns would block the event loop.
        await anyio.to_thread.run_sync(covered.gather, turns)
        if (most := covered.max_tokens) is not None:
            by = self.summarizer, self.meter, most, self.counter, await self.languages.of(covered.scope)
            covered.summary, reason = await summary_of(turns, covered.summary, *by)
            covered.fallback_reason = reason or covered.fallback_reason

    def _draft(self, covered: _Covered) -> ports.CheckpointDraft:
        summary = self.redact(covered.scope.tenant, covered.summary or "")
        return ports.CheckpointDraft(
            scope=covered.scope,
            id=str(uuid4()),
            summary=summary,
            text=f"历史摘要: {summary}",
            covered_through_seq=covered.through_seq,
            expected_version=_version(covered.view),
            tokens=self.counter.count(summary),
            counter=self.counter.name,
            anchors=tuple(covered.anchors),
            archive_refs=tuple(covered.archive_refs),
            epoch=covered.view.head.epoch,
            fallback_reason=covered.fallback_reason,
        )

    async def _apply_patiently(self, draft: ports.CheckpointDraft) -> None:
        """Retry three times if the store fails; then continue without a checkpoint, still within the budget."""
        for pause in (*RETRY_S, None):
            try:
                await self._apply(draft)
            except ConflictError:
                raise
            except StoreError as error:
                logger.warning("CheckpointShortMemory error: %s", error)
                self.meter.count("pagefile_degraded_total", tier="checkpoint")
                if pause is not None:
                    await anyio.sleep(pause)
            else:
                return

    async def _apply(self, draft: ports.CheckpointDraft) -> Checkpoint:
        entry = await self.log.mark(draft)
        assert isinstance(entry, Checkpoint)
        self.meter.count("pagefile_checkpoints_total")
        self.meter.observe("pagefile_summary_chars", len(draft.summary))
        return entry

    async def view(self, scope: Scope) -> ports.LogView:
        """A conversation without its turns."""
        return await self.reader.view(ports.ViewRequest(scope, budget_tokens=0, min_turns=0))

    async def _live(self, covered: _Covered) -> AsyncIterator[list[Turn]]:
        """The live turns, oldest first, in batches of a few hundred."""
        after = max(covered.view.head.covered_through_seq, covered.view.head.reset_seq)
        while True:
            query = ports.EntryQuery(covered.scope, statuses=ports.ENDED, after_seq=after, limit=_BATCH)
            ended = [entry for entry in await self.reader.entries(query) if isinstance(entry, Turn)]
            if batch := [turn.spoken for turn in ended if turn.counts]:
                yield batch
            if len(ended) < _BATCH:
                return
            after = ended[-1].seq or after


def _version(view: ports.LogView) -> int:
    return view.checkpoint.version if view.checkpoint else 0


def nothing_to_cover(head: ConversationInfo, recent_turns: int) -> InvalidArgumentError:
    """The error for a checkpoint when every turn stays verbatim."""
    return InvalidArgumentError(
        f"Nothing to cover: the conversation has {head.live_turns} live turns and recent_turns={recent_turns} "
        "stay verbatim. Record more turns or lower recent_turns."
    )


def verbatim(newest: Sequence[Turn], *, window_tokens: int, coming: int = 0) -> int:
    """How many of the newest turns stay: all, or fewer if with `coming` tokens they would fill half of the window, but at least one."""
    spent = accumulate((resting_tokens(turn) for turn in reversed(newest)), initial=coming)
    next(spent)
    fitting = sum(tokens <= window_tokens // VERBATIM_SHARE for tokens in spent)
    return max(fitting, min(1, len(newest)))
