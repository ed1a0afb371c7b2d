"""A conversation as the text document 001 puts into a prompt: summary, safety data and turns, line by line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pagefile.records import Turn
from pagefile.standalone.session import UserProfile, summary_line
from pagefile.text.clip import cut

#: Divisors by which a summary is shortened when it does not fit.
_SHARES = (1, 2, 4, 8)

Count = Callable[[str], int]


def format_prompt(history: str, query: str) -> str:
    """The prompt of the document's examples."""
    return f"历史对话:\n{history}\n\n用户问题: {query}"


def counted_text(history: str, query: str) -> str:
    """The text whose tokens the document counts for a prompt."""
    return f"{history}\n{query}"


@dataclass(frozen=True, slots=True)
class HistoryText:
    """The parts of a history, in order."""

    summary: str | None
    safety: tuple[str, ...]
    turns: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it."""
        head = [] if self.summary is None else [summary_line(self.summary)]
        return "\n".join([*head, *self.safety, *self.turns])

    def fitting(self, query: str, window_tokens: int, recent_turns: int, count: Count) -> "HistoryText":
        """As much as fits into the window with the rest of the prompt; itself if everything fits.

        The safety data always stays. Then come the newest `recent_turns` turns, the summary, and the other turns from the newest
        back, without gaps.
        """
        if _fits(self, query, window_tokens, count):
            return self
        room = window_tokens - count(format_prompt("\n".join(self.safety), query))
        recent, room = _newest(self.turns[-recent_turns:], room, count)
        summary, room = _shortened(self.summary, room, count)
        older: tuple[str, ...] = ()
        if len(recent) == min(recent_turns, len(self.turns)):
            older, room = _newest(self.turns[:-recent_turns], room, count)
        kept = HistoryText(summary, self.safety, older + recent)
        while not _fits(kept, query, window_tokens, count) and (kept.turns or kept.summary):
            # Joining lines costs a token here and there.
            kept = replace(kept, turns=kept.turns[1:]) if kept.turns else replace(kept, summary=None)
        return kept


def _fits(history: HistoryText, query: str, window_tokens: int, count: Count) -> bool:
    return count(format_prompt(history.text, query)) <= window_tokens


def _newest(turns: Sequence[str], room: int, count: Count) -> tuple[tuple[str, ...], int]:
    kept: list[str] = []
    for turn in reversed(turns):
        cost = count(f"{turn}\n")
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


def turn_lines(turn: Turn) -> str:
    """Both sides of a turn, a line each."""
    sides = (("用户", turn.user), ("AI", turn.assistant))
    return "\n".join(f"{speaker}: {text}" for speaker, text in sides if text)


def safety_lines(user: UserProfile) -> tuple[str, ...]:
    """What no answer may overlook: a line for each non-empty kind."""
    kinds = (("过敏史", user.allergies), ("慢病史", user.chronic_diseases), ("手术史", user.surgery_history))
    return tuple(
        f"{word}: " + "、".join(" ".join(value.split()) for value in values)
        for word, values in kinds
        if values
    )
