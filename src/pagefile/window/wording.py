"""The wording of prompts, in Chinese and in English (`wording.toml`).

A conversation's own language decides which one its windows use (`tiers/languages.py`). Functions without a
conversation default to Chinese, whose placeholders and prompts are part of a contract.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pagefile.text.sentences import Language
from pagefile.text.tables import table

__all__ = ["EN", "WORDINGS", "ZH", "Choice", "Language", "Wording"]

#: What can be set: a language, or that of the conversation.
Choice = Literal["auto", "zh", "en"]


# Compared by identity, so that it can be a key.
@dataclass(frozen=True, slots=True, eq=False)
class Wording:
    archived: str
    tool: str
    query: str
    time: str
    length: str
    summary: str
    sources: str
    no_sources: str
    call: str
    note: str
    purged: str
    short: str
    loaded: str
    in_view: str
    #: Above a page in the memory block.
    back: str
    left: str
    gathered: str
    #: In place of a large argument of an older call.
    left_input: str
    #: Above calls that are only named.
    named: str
    #: In place of a long message of the agent.
    left_speech: str
    so_far: str
    #: Below what the user said: no answer came, or none yet; and how to read the rest of a turn that is shown in part.
    unanswered: str
    waiting: str
    abridged: str
    #: What day it is.
    today: str
    #: From Monday to Sunday.
    days: Sequence[str]
    #: In place of recalled turns, where a question asks for a time that has none.
    nothing_then: str
    on_day: str
    in_period: str
    anchors: str
    pages: str
    more_pages: str
    #: Between the items of a list, and between phrases.
    comma: str
    semicolon: str
    safety: Mapping[str, str]
    guide: str
    #: What the document's guide does not say.
    guide_more: str
    #: The workspace.
    toc_title: str
    toc_known: str
    toc_again: str
    toc_more: str
    toc_page: str
    chapters: str
    notes_title: str
    notes_page: str
    cached: str
    cached_part: str
    ages: Sequence[str]
    #: What the model reads of its own tools, beside the texts that it asked for.
    answers: Mapping[str, str]

    @property
    def whole_guide(self) -> str:
        """The guide to archived results, as every request has it."""
        return f"{self.guide}\n\n{self.guide_more}"


ZH, EN = (Wording(**table("pagefile.window", "wording")[language]) for language in ("zh", "en"))
WORDINGS: Mapping[Language, Wording] = {"zh": ZH, "en": EN}
