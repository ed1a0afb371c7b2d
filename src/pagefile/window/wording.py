"""The wording of prompts, in Chinese and in English (`wording.toml`).

Chinese is the default because its placeholders and prompts are part of a contract; `language = "en"` in the
settings is for agents that speak English throughout.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pagefile.text.tables import table

Language = Literal["zh", "en"]


@dataclass(frozen=True, slots=True)
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
    behind_end: str
    so_far: str
    anchors: str
    pages: str
    more_pages: str
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
    ages: Sequence[str]


ZH, EN = (Wording(**table("pagefile.window", "wording")[language]) for language in ("zh", "en"))
WORDINGS: Mapping[Language, Wording] = {"zh": ZH, "en": EN}
