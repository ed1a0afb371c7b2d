"""Document 001's queries: requests, checked; the conversation as the text for a prompt; and the state one call leaves for the next."""

import math
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from secrets import token_hex
from typing import NamedTuple, TypeAlias, TypeVar

from pagefile.errors import InvalidArgumentError
from pagefile.ports import LogView
from pagefile.records import Turn, checked_id, checked_text
from pagefile.standalone.session import SPEAKERS, MemoryQueryRequest, SessionValue, UserProfile
from pagefile.stores.session import sides, summary_line
from pagefile.text.sentences import cut
from pagefile.tiers.checkpoints import verbatim
from pagefile.window.turn_notes import abridged, allotted, in_order, status_line
from pagefile.window.wording import ZH

R = TypeVar("R")

defaultMemoryTokenThresholdRatio = 0.75  # noqa: N816 - the document's name
defaultMemoryRecentTurns = 8  # noqa: N816 - the document's name
defaultModelContextWindow = 16000  # noqa: N816 - the document's name

#: A summary that is not there after this long is taken to have failed, unless it comes with the token of what was read.
PATIENCE = timedelta(minutes=10)
_MAX_PENDING = 1000
_MARK_BYTES = 4
_TOKEN = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})(?:\.([0-9a-f]{8}))?", re.ASCII)
#: Divisors by which a summary is shortened when it does not fit.
_SHARES = (1, 2, 4, 8)

Count = Callable[[str], int]
#: A turn in a history: who speaks, and what they say.
Sides: TypeAlias = tuple[tuple[str, str], ...]


def format_prompt(history: str, query: str) -> str:
    """The prompt of the document's examples."""
    return f"历史对话:\n{history}\n\n用户问题: {query}"


def counted_text(history: str, query: str) -> str:
    """The text whose tokens the document counts for a prompt."""
    return f"{history}\n{query}"


@dataclass(frozen=True, slots=True)
class HistoryText:
    summary: str | None
    safety: tuple[str, ...]
    turns: tuple[Sides, ...]

    @classmethod
    def of(cls, view: LogView, user: UserProfile, query: str) -> "HistoryText":
        """With turns that wait for their answers, except one that asks the same."""
        summary = view.checkpoint.summary if view.checkpoint else None
        shown = in_order(view.turns, view.running, view.head.last_seq, query.strip())
        return cls(summary, safety_lines(user), tuple(turn_sides(turn) for turn, _ in shown))

    @classmethod
    def of_session(cls, session: SessionValue) -> "HistoryText":
        """What a session alone has of it, while the log cannot be read."""
        context = session.message_context
        said = (((SPEAKERS[one.known_role], one.content),) for one in context.window_messages)
        return cls(context.summary or None, safety_lines(session.user_snapshot), tuple(said))

    @property
    def text(self) -> str:
        head = [] if self.summary is None else [summary_line(self.summary)]
        return "\n".join([*head, *self.safety, *map(_lines, self.turns)])

    def fitting(self, query: str, window_tokens: int, recent_turns: int, count: Count) -> "HistoryText":
        """As much as fits into the window with the rest of the prompt; itself if everything fits.

        The safety data always stays. Then come the newest `recent_turns` turns, the summary, and older turns without gaps. Turns
        that are too large for the others to fit are abridged.
        """
        if _fits(self, query, window_tokens, count):
            return self
        room = window_tokens - count(format_prompt("\n".join(self.safety), query))
        recent, room = _recent(self.turns[-recent_turns:], query, room, count)
        summary, room = _shortened(self.summary, room, count)
        older: tuple[Sides, ...] = ()
        if len(recent) == min(recent_turns, len(self.turns)):
            older, room = _newest(self.turns[:-recent_turns], room, count)
        kept = HistoryText(summary, self.safety, older + recent)
        while not _fits(kept, query, window_tokens, count) and (kept.turns or kept.summary):
            # Joining lines costs a token here and there.
            kept = replace(kept, turns=kept.turns[1:]) if kept.turns else replace(kept, summary=None)
        return kept


def _fits(history: HistoryText, query: str, window_tokens: int, count: Count) -> bool:
    return count(format_prompt(history.text, query)) <= window_tokens


def _recent(turns: Sequence[Sides], query: str, room: int, count: Count) -> tuple[tuple[Sides, ...], int]:
    """The newest turns that fit, large ones abridged."""
    given = allotted([count(f"{_lines(turn)}\n") for turn in turns], room)
    shown = zip(turns[len(turns) - len(given) :], given, strict=True)
    return _newest([_abridged(turn, query, tokens, count) for turn, tokens in shown], room, count)


def _abridged(turn: Sides, query: str, room: int, count: Count) -> Sides:
    if count(f"{_lines(turn)}\n") <= room:
        return turn
    speakers = [f"{speaker}: " for speaker, _ in turn]
    texts = abridged([text for _, text in turn], query, room - count("\n".join([*speakers, ""])), count, ZH)
    return tuple((speaker, text) for (speaker, _), text in zip(turn, texts, strict=True) if text)


def _newest(turns: Sequence[Sides], room: int, count: Count) -> tuple[tuple[Sides, ...], int]:
    kept: list[Sides] = []
    for turn in reversed(turns):
        cost = count(f"{_lines(turn)}\n")
        if cost > room:
            break
        kept.append(turn)
        room -= cost
    return tuple(reversed(kept)), room


def _shortened(summary: str | None, room: int, count: Count) -> tuple[str | None, int]:
    for share in _SHARES if summary else ():
        shorter = cut(summary or "", len(summary or "") // share)
        cost = count(f"{summary_line(shorter)}\n")
        if shorter and cost <= room:
            return shorter, room - cost
    return None, room


def turn_sides(turn: Turn) -> Sides:
    """Who said what in a turn, and below it that no answer came, or none yet."""
    said = [(SPEAKERS[role], text) for role, text in sides(turn)]
    if said and (note := status_line(turn, ZH)):
        speaker, text = said[-1]
        said[-1] = speaker, f"{text}\n{note}"
    return tuple(said)


def _lines(turn: Sides) -> str:
    return "\n".join(f"{speaker}: {text}" for speaker, text in turn)


def safety_lines(user: UserProfile) -> tuple[str, ...]:
    """What no answer may overlook: a line for each non-empty kind."""
    kinds = {"过敏史": user.allergies, "慢病史": user.chronic_diseases, "手术史": user.surgery_history}
    lines = {word: [" ".join(value.split()) for value in values] for word, values in kinds.items()}
    return tuple(f"{word}: {'、'.join(values)}" for word, values in lines.items() if values)


@dataclass(frozen=True, slots=True)
class Query:
    conversation_id: str
    text: str
    threshold: float
    #: As given; 0: what the checkpoint kept.
    recent_turns: int
    window_tokens: int

    @classmethod
    def of(cls, request: MemoryQueryRequest | None, max_chars: int) -> "Query":
        request = given(request, "a MemoryQueryRequest")
        ratio, window = request.token_threshold_ratio, request.model_context_window
        return cls(
            checked_id(request.conversation_id, "conversation_id"),
            bounded(request.query or "", "query", max_chars),
            or_default(ratio, defaultMemoryTokenThresholdRatio, "token_threshold_ratio"),
            int(or_default(request.recent_turns, 0, "recent_turns")),
            int(or_default(window, defaultModelContextWindow, "model_context_window")),
        )

    def longer(self, history: HistoryText, covered: Sequence[Turn], count: Count) -> HistoryText:
        """The history with the newest of these older turns, as long as it stays below the threshold."""
        older = list(map(turn_sides, covered))
        for first in range(len(older)):
            whole = replace(history, turns=(*older[first:], *history.turns))
            if count(counted_text(whole.text, self.text)) < self.threshold * self.window_tokens:
                return whole
        return history

    def shown(self, history: HistoryText, count: Count) -> tuple[HistoryText, int]:
        """The part of a history that fits, and its tokens together with the question."""
        recent_turns = self.recent_turns or defaultMemoryRecentTurns
        fitting = history.fitting(self.text, self.window_tokens, recent_turns, count)
        return fitting, count(counted_text(fitting.text, self.text))


class Read(NamedTuple):
    """How far a history that was handed out goes."""

    through_seq: int
    #: The erasures at the time: what was erased since must not come back in a summary.
    epoch: int

    @classmethod
    def made_of(cls, view: LogView) -> "Read":
        """Everything up to the newest turn."""
        gone = max(view.head.covered_through_seq, view.head.reset_seq)
        return cls((view.turns[-1].seq or 0) if view.turns else gone, view.head.epoch)


class Token(NamedTuple):
    """What comes back with the summary of a history: how far it went, and which one it was if a summary was due.

    Others may have read just as far, here or in another process: a summary of theirs is none of this history.
    """

    read: Read
    mark: str = ""

    @property
    def text(self) -> str:
        return ".".join([*map(str, self.read), *([self.mark] if self.mark else [])])

    @classmethod
    def of(cls, text: str) -> "Token":
        parts = _TOKEN.fullmatch(checked_text(text, "read_token"))
        if parts is None:
            raise InvalidArgumentError(
                f"read_token is {text[:80]!r}: give `read_token` of the MemoryContext that was summarized, as it is."
            )
        return cls(Read(int(parts[1]), int(parts[2])), parts[3] or "")


class _Pending(NamedTuple):
    """A history that was returned along with the notice that a summary is due."""

    token: Token
    at: datetime


@dataclass(slots=True)
class Asked:
    """The state that calls about a conversation leave for the next turn and checkpoint."""

    query: str = ""
    #: How far the log went when the query was asked; None if it could not be read.
    query_after: Read | None = None
    window_tokens: int = defaultModelContextWindow
    #: The last history that was returned, and the turns written here since: what the caller knows of.
    last: Read | None = None
    written: set[int] = field(default_factory=set[int])
    #: The histories a summary may be based on, oldest first, since none was on its way; how many were returned,
    #: and how many summaries came in that named none of them.
    pending: deque[_Pending] = field(default_factory=deque[_Pending])
    returned: int = 0
    came: int = 0

    def answered(self, query: Query, read: Read, *, due: bool, at: datetime) -> Token:
        """Note that a history was returned, and whether with the notice that a summary is due; its token."""
        self.query, self.window_tokens = query.text, query.window_tokens
        self.last = read
        self.written.clear()
        token = Token(read, token_hex(_MARK_BYTES) if due else "")
        if due:
            self.returned += 1
            # Only the oldest counts: a limit loses nothing but how soon the next one is known.
            if len(self.pending) < _MAX_PENDING:
                self.pending.append(_Pending(token, at))
        return token

    def wrote(self, turn: Turn) -> None:
        self.written.add(turn.seq or 0)

    def came_in(self, token: Token | None) -> None:
        """Note that a summary was accepted or refused: that of a history, or of an unnamed one."""
        named = next((one for one in self.pending if one.token == token), None)
        if token is None:
            self.came += 1
        elif named is not None:
            self.pending.remove(named)
            self.returned -= 1
        self._settle()

    def provable(self, view: LogView, now: datetime) -> Read | None:
        """What the author of a summary has read for certain, unless a caller says so; None if nothing.

        Summaries arrive in any order, so that is the oldest history whose summary may still be on its way. Without any it is
        what was returned last and the turns written here since.
        """
        while self.pending and now - self.pending[0].at > PATIENCE:
            self.pending.popleft()
            self.returned -= 1
        self._settle()
        if self.pending:
            return self.pending[0].token.read
        through, epoch = self.last or Read(0, view.head.epoch)
        gone = max(view.head.covered_through_seq, view.head.reset_seq)
        for turn in view.turns:
            if (seq := turn.seq or 0) > through and seq not in self.written:
                break
            through = max(through, seq)
        return Read(through, epoch) if through > gone else None

    def _settle(self) -> None:
        if self.came >= self.returned or not self.pending:
            self.pending.clear()
            self.returned = self.came = 0


def staying(view: LogView, read: Read, recent_turns: int, window_tokens: int) -> int:
    """How many of the newest turns a checkpoint made now must leave verbatim.

    As many as the summary's author wants, fewer if they would fill half of the window, and never all of them, since that would
    free nothing. But always every turn that the author has not read.
    """
    unread = sum((turn.seq or 0) > read.through_seq for turn in view.turns)
    return max(verbatim(view.turns[1:][-recent_turns:], window_tokens=window_tokens), unread)


def given(request: R | None, kind: str) -> R:
    if request is None:
        raise InvalidArgumentError(f"There is no request: give {kind} with a conversation_id.")
    return request


def bounded(text: str, name: str, max_chars: int) -> str:
    if len(checked_text(text, name)) > max_chars:
        raise InvalidArgumentError(
            f"{name} has {len(text):,} characters, at most {max_chars:,} are allowed: shorten it."
        )
    return text


def or_default(value: object, default: float, name: str) -> float:
    """A number; zero or less means the default."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise InvalidArgumentError(f"{name} must be a number, not {value!r}.")
    return value if value > 0 else default
