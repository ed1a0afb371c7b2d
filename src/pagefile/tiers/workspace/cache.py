"""Results of tools that need not be called twice in a run, and how old they are."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pagefile.lru import Lru
from pagefile.window.wording import Wording

#: Calls remembered per run; the least recently used is evicted first.
MAX_CALLS = 64


@dataclass(frozen=True, slots=True)
class CachedResult:
    """The answer to an earlier call."""

    tool: str
    #: For the model: the whole result, or its placeholder if it is large.
    text: str
    #: One line that says what this is and how old it is.
    note: str
    age_s: float
    #: The age in words, such as "3 分钟前".
    age: str
    #: The page with the full text, if it was archived.
    archive_uuid: str | None
    #: If False, `text` is incomplete, and the page has the rest.
    whole: bool

    @property
    def answer(self) -> str:
        """What a tool wrapper returns in place of the tool's result."""
        return f"{self.note}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Call:
    """A call that can be answered again."""

    at: datetime
    #: The result, unless it is so long that only its page has it.
    text: str | None
    archive_uuid: str | None
    #: The outline of a table of contents, shown beside its placeholder.
    outline: str = ""


class Calls:
    """The calls of a run, by tool and input."""

    def __init__(self) -> None:
        self._known: Lru[tuple[str, str], Call] = Lru(MAX_CALLS)

    def put(self, key: tuple[str, str], call: Call) -> None:
        """Remember a call, or its newer result."""
        self._known[key] = call

    def get(self, key: tuple[str, str], now: datetime, max_age_s: float) -> Call | None:
        """A call that is recent enough; a `max_age_s` of 0 means for the whole session."""
        call = self._known.get(key)
        if call is None:
            return None
        if max_age_s > 0 and now - call.at > timedelta(seconds=max_age_s):
            self.drop(key)
            return None
        return call

    def drop(self, key: tuple[str, str]) -> None:
        """Forget a call, so that it is made again next time."""
        self._known.pop(key, None)

    def clear(self) -> None:
        """Forget every call."""
        self._known.clear()


def age_in_words(seconds: float, wording: Wording) -> str:
    """How long ago, in natural language."""
    minutes = int(max(0.0, seconds) // 60)
    just_now, by_minute, by_hour, by_day = wording.ages
    if minutes < 1:
        return just_now
    if minutes < 60:
        return by_minute.format(n=minutes)
    hours = minutes // 60
    return by_hour.format(n=hours) if hours < 24 else by_day.format(n=hours // 24)
