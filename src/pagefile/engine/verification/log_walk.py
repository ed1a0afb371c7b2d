"""Walks through a conversation's log from first to last entry, and recounts what its row counts.

Pure: it receives entries and returns what is wrong with them. It holds three numbers per turn since the last
reset.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial

from pagefile.engine.verification.findings import Finding, at
from pagefile.ports import Counters, KeptConversation, KeptEntry
from pagefile.records import Checkpoint, Entry, Reset, Scope, Turn
from pagefile.tiers.checkpoints import MAX_ANCHORS


class LogWalk:
    """One walk. Once something is missing, the counts are meaningless: `damaged` says so."""

    def __init__(self, scope: Scope, *, keeps_sums: bool) -> None:
        self._scope = scope
        self._keeps_sums = keeps_sums
        self.damaged = False
        self.last_seq = 0
        #: The first and the last readable entry.
        self.first: Entry | None = None
        self.last: Entry | None = None
        self._reset_seq = 0
        self._versions = 0
        #: Entries that were erased individually: checkpoints among them had versions that are now unused.
        self._erased = 0
        #: The current checkpoint.
        self.checkpoint: Checkpoint | None = None
        self._done_tokens = 0
        #: Done turns since the reset: their `seq`s, and the cumulative tokens and messages.
        self._seqs, self._tokens, self._messages = array("q"), array("q"), array("q")
        #: Pages of turns that no checkpoint covers yet.
        self._pages: list[tuple[int, str]] = []
        #: The first turn whose sum of tokens before it is wrong.
        self.wrong_sum: Turn | None = None

    @property
    def covered(self) -> int:
        return 0 if self.checkpoint is None else self.checkpoint.covered_through_seq

    @property
    def covered_messages(self) -> int:
        covered = self._covered_turns(self.covered)
        return self._messages[covered - 1] if covered else 0

    def take(self, row: KeptEntry) -> Iterator[Finding]:
        if row.seq is not None:
            expected = self.last_seq + 1
            if row.seq > expected:
                self.damaged = True
                what = missing(expected, row.seq - 1)
                yield at(self._scope, "damage", "log-gap", what, seq=expected)
            self.last_seq = row.seq
        if row.entry is None:
            self.damaged = True
            yield self._at("log-unreadable", f"the {row.kind} cannot be read: {row.trouble}", row)
            return
        if row.seq is not None:
            if self.last is not None and row.entry.created <= self.last.created:
                yield self._at("log-order", "was written no later than the entry before it", row)
            self.first, self.last = self.first or row.entry, row.entry
        if row.kind == "turn" and row.writer is not None and row.writer != self._scope.user:
            owner = f"belongs to user {self._scope.user!r}" if self._scope.user else "has no user"
            what = f"was written by user {row.writer!r}, and the conversation {owner}"
            yield self._at("log-owner", what, row)
        yield from self._followed(row.entry, row)

    def counters(self) -> Counters:
        covered = self._covered_turns(self.covered)
        turns = len(self._seqs)
        before = self._tokens[covered - 1] if covered else 0
        return Counters(
            last_seq=self.last_seq,
            reset_seq=self._reset_seq,
            covered_through_seq=self.covered,
            turns=turns,
            live_turns=turns - covered,
            live_tokens=(self._tokens[-1] if turns else 0) - before,
            checkpoint_id=None if self.checkpoint is None else self.checkpoint.id,
            checkpoint_version=self._versions,
            last_created=None if self.last is None else self.last.created,
            done_tokens=self._done_tokens if self._keeps_sums else None,
        )

    # -- one entry ----------------------------------------------------------------------------------------------------

    def _followed(self, entry: Entry, row: KeptEntry) -> Iterator[Finding]:
        if isinstance(entry, Turn):
            self._erased += entry.erased
            if entry.counts:
                self._done(entry.spoken, row.tokens_before)
        elif isinstance(entry, Reset):
            self._reset_seq, self.checkpoint = entry.seq, None
            self._seqs, self._tokens, self._messages = array("q"), array("q"), array("q")
            self._pages = []
        else:
            # In a log with a gap, ranges and counts cannot be checked.
            wrong = [] if self.damaged else list(self._wrong(entry))
            yield from (self._at(kind, what, row) for kind, what in wrong)
            # The copy beside the log may be all that is left of a checkpoint: a wrong one makes the counts
            # unusable.
            self.damaged = self.damaged or bool(wrong)
            self.checkpoint = entry
            self._versions = max(self._versions, entry.version)
            self._pages = [page for page in self._pages if page[0] > entry.covered_through_seq]

    def _done(self, turn: Turn, tokens_before: int | None) -> None:
        if self._keeps_sums and tokens_before != self._done_tokens and self.wrong_sum is None:
            self.wrong_sum = turn
        self._done_tokens += turn.tokens
        said = (turn.user is not None) + (turn.assistant is not None)
        self._seqs.append(turn.seq or 0)
        self._tokens.append(turn.tokens + (self._tokens[-1] if self._tokens else 0))
        self._messages.append(said + (self._messages[-1] if self._messages else 0))
        self._pages += [(turn.seq or 0, uuid) for step in turn.steps for uuid in step.pages]

    def _wrong(self, checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
        covered, before = checkpoint.covered_through_seq, self.checkpoint
        if covered >= checkpoint.seq or covered <= self._reset_seq or covered < self.covered:
            least = max(self._reset_seq + 1, self.covered)
            told = f"covers up to {covered}: it must be from {least} to {checkpoint.seq - 1}"
            yield "checkpoint-range", told
        elif checkpoint.covered_turns != self._covered_turns(covered):
            told = f"{checkpoint.covered_turns} turns, and up to {covered} there are {self._covered_turns(covered)}"
            yield "checkpoint-range", f"says that it covers {told}"
        if not self._versions < checkpoint.version <= self._versions + 1 + self._erased:
            told = f"is number {checkpoint.version}, and should be number {self._versions + 1}"
            yield "checkpoint-range", told
        if not checkpoint.summary.strip():
            yield "checkpoint-summary", "has no summary"
        pages = {page for seq, page in self._pages if seq <= covered}
        lost = (pages | set(() if before is None else before.archive_refs)) - set(checkpoint.archive_refs)
        if lost:
            yield "checkpoint-refs", f"lost the references {', '.join(sorted(lost))}"
        gone = set(() if before is None else before.anchors) - set(checkpoint.anchors)
        if gone and len(checkpoint.anchors) < MAX_ANCHORS:
            yield "checkpoint-anchors", f"lost the anchors {', '.join(map(repr, sorted(gone)))}"

    def _covered_turns(self, covered: int) -> int:
        return bisect_right(self._seqs, covered)

    def _at(self, kind: str, what: str, row: KeptEntry) -> Finding:
        return at(self._scope, "damage", kind, f"{row.kind} {row.id!r} {what}", turn=row.id, seq=row.seq)


def missing(first: int, last: int) -> str:
    if first == last:
        return f"the entry at place {first} is missing"
    return f"the entries at places {first} to {last} are missing"


def compared(kept: KeptConversation, walk: LogWalk) -> list[Finding]:
    """Compare a conversation's row and its stored summary with its log. A log with a gap is not compared."""
    counted, stored = walk.counters(), kept.counters
    if stored.last_seq > walk.last_seq:
        walk.damaged = True
        what = f"{missing(walk.last_seq + 1, stored.last_seq)} from the end of the log"
        return [at(kept.scope, "damage", "log-gap", what, seq=walk.last_seq + 1)]
    if walk.damaged:
        return []
    if not kept.there:
        what = f"there are entries up to {walk.last_seq}, and no row that tells of them"
        return [at(kept.scope, "derived", "conversation-row", what)]
    told = partial(at, kept.scope, "derived")
    found: list[Finding] = []
    wrong = [
        f"{known.name} is {was}, and should be {now}"
        for known in fields(Counters)
        if (was := getattr(stored, known.name)) != (now := getattr(counted, known.name))
    ]
    if wrong:
        found.append(told("counters", f"its row is wrong: {'; '.join(wrong)}"))
    if kept.trouble is not None:
        found.append(told("summary", f"the current summary cannot be read: {kept.trouble}"))
    elif _bare(kept.summary) != _bare(walk.checkpoint):
        found.append(told("summary", "the current summary is not the log's last checkpoint"))
    if (turn := walk.wrong_sum) is not None:
        what = "the tokens before this turn are counted wrongly, so windows may begin at the wrong one"
        found.append(told("sums", what, turn=turn.id, seq=turn.seq))
    return found


def _bare(checkpoint: Checkpoint | None) -> Checkpoint | None:
    return None if checkpoint is None else replace(checkpoint, scope=Scope())
