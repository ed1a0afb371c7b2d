"""Requests of document 001's callers, checked, and the state one call leaves for the next."""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from pagefile.errors import InvalidTurnError
from pagefile.ports import LogView
from pagefile.records import checked_id, checked_text
from pagefile.standalone.history_text import Count, HistoryText, counted_text
from pagefile.standalone.session import MemoryContext, MemoryQueryRequest
from pagefile.tiers.checkpoints import VERBATIM_SHARE

R = TypeVar("R")

defaultMemoryTokenThresholdRatio = 0.75  # noqa: N816 - the document's name
defaultMemoryRecentTurns = 8  # noqa: N816 - the document's name
defaultModelContextWindow = 16000  # noqa: N816 - the document's name


@dataclass(frozen=True, slots=True)
class Query:
    """A request with its defaults."""

    conversation_id: str
    text: str
    threshold: float
    #: As given; 0: what the checkpoint kept.
    recent_turns: int
    window_tokens: int

    @classmethod
    def of(cls, request: MemoryQueryRequest | None, max_chars: int) -> "Query":
        """The request, checked."""
        request = given(request, "a MemoryQueryRequest")
        return cls(
            conversation_id=checked_id(request.conversation_id, "conversation_id"),
            text=bounded(request.query or "", "query", max_chars),
            threshold=or_default(
                request.token_threshold_ratio, defaultMemoryTokenThresholdRatio, "token_threshold_ratio"
            ),
            recent_turns=int(or_default(request.recent_turns, 0, "recent_turns")),
            window_tokens=int(
                or_default(request.model_context_window, defaultModelContextWindow, "model_context_window")
            ),
        )

    def shown(self, history: HistoryText, count: Count) -> tuple[HistoryText, int]:
        """The part of a history that fits, and its tokens together with the question."""
        fitting = history.fitting(
            self.text, self.window_tokens, self.recent_turns or defaultMemoryRecentTurns, count
        )
        return fitting, count(counted_text(fitting.text, self.text))


class Read(NamedTuple):
    """A history that was returned along with the notice that a summary is due."""

    through_seq: int
    epoch: int


@dataclass(slots=True)
class Asked:
    """The state that queries of a conversation leave for the next turn and checkpoint."""

    query: str = ""
    window_tokens: int = defaultModelContextWindow
    #: The histories a summary may be based on, all from one checkpoint.
    reads: deque[Read] = field(default_factory=lambda: deque[Read](maxlen=8))
    version: int = 0
    #: The epoch of the last history, whether or not a summary was due; None before the first.
    epoch: int | None = None

    def answered(self, query: Query, view: LogView, context: MemoryContext) -> None:
        """Note that a history was returned."""
        self.query, self.window_tokens, self.epoch = query.text, query.window_tokens, view.head.epoch
        if not context.should_checkpoint_summary or not view.turns:
            return
        version = view.checkpoint.version if view.checkpoint else 0
        if version != self.version:
            # Pending summaries from before are too late, or were never made: no turn stays verbatim for them.
            self.reads = deque(
                (read._replace(through_seq=0) for read in self.reads), maxlen=self.reads.maxlen
            )
        self.version = version
        self.reads.append(Read(view.turns[-1].seq or 0, view.head.epoch))

    def made_in(self, view: LogView) -> int:
        """The epoch of the oldest history a summary may be based on; without any, the current one."""
        if self.reads:
            return self.reads[0].epoch
        return view.head.epoch if self.epoch is None else self.epoch

    def spent(self) -> None:
        """Note that a summary was accepted, or refused for good."""
        if self.reads:
            self.reads.popleft()

    def verbatim(self, view: LogView, recent_turns: int) -> int:
        """How many of the newest turns a checkpoint made now must leave verbatim.

        As many as the summary's author wants, fewer if they would fill half of the window, and never all of them, since that would
        free nothing. But always every turn written since the oldest history a summary may be based on.
        """
        gone = max(view.head.covered_through_seq, view.head.reset_seq)
        read_through = next((read.through_seq for read in self.reads if read.through_seq > gone), None)
        unread = 0 if read_through is None else sum((turn.seq or 0) > read_through for turn in view.turns)
        staying, room = 0, self.window_tokens // VERBATIM_SHARE
        for turn in reversed(view.turns[1:]):
            room -= turn.tokens
            if staying == recent_turns or (room < 0 and staying):
                break
            staying += 1
        return max(staying, unread)


def given(request: R | None, kind: str) -> R:
    """The request, which must not be None."""
    if request is None:
        raise InvalidTurnError(f"There is no request: give {kind} with a conversation_id.")
    return request


def bounded(text: str, name: str, max_chars: int) -> str:
    """A text within a length limit."""
    if len(checked_text(text, name)) > max_chars:
        raise InvalidTurnError(
            f"{name} has {len(text):,} characters, at most {max_chars:,} are allowed: shorten it."
        )
    return text


def or_default(value: object, default: float, name: str) -> float:
    """A number; zero or less means the default."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise InvalidTurnError(f"{name} must be a number, not {value!r}.")
    return value if value > 0 else default
