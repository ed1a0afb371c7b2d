"""What a wrapper gets: what became of a result, and what answers a call that was made before."""

from dataclasses import dataclass
from typing import NamedTuple

from pagefile.tiers.workspace.rules import Kind
from pagefile.window.wording import Wording


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
class Absorbed:
    """What became of a tool result."""

    #: What its rule remembers of it.
    remembers: Kind
    #: How many chunks were added.
    chunks: int
    #: For the model: the result as text, or its placeholder if it was archived because of its length.
    text: str
    #: If False, `text` is only a placeholder, and the page has the whole result.
    whole: bool
    archive_uuid: str | None = None


class Answer(NamedTuple):
    """What answers an equal call."""

    #: The result, unless it is so long that only its page has it.
    text: str | None
    archive_uuid: str | None
    #: The outline of a table of contents, shown beside its placeholder.
    outline: str = ""


def told(
    tool: str, answer: Answer, text: str, age_s: float, wording: Wording, *, whole: bool
) -> CachedResult:
    """An earlier answer as a wrapper returns it."""
    age = age_in_words(age_s, wording)
    note = (wording.cached if whole else wording.cached_part).format(tool=tool, age=age)
    return CachedResult(tool, text, note, age_s, age.strip(), answer.archive_uuid, whole)


def age_in_words(seconds: float, wording: Wording) -> str:
    just_now, by_minute, by_hour, by_day = wording.ages
    units = ((86_400, by_day), (3_600, by_hour), (60, by_minute))
    return next((said.format(n=int(seconds // unit)) for unit, said in units if seconds >= unit), just_now)
