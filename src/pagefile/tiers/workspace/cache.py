"""Results of tools that need not be called twice in a run, and how old they are."""

from dataclasses import dataclass
from datetime import datetime

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
