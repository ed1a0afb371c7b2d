"""From a tool result and its rule to notes."""

from collections.abc import Mapping
from dataclasses import dataclass

from pagefile.records import JsonValue
from pagefile.tiers.workspace.notes import ARCHIVED, AgentMemory
from pagefile.tiers.workspace.outline import compact, entries
from pagefile.tiers.workspace.results import (
    Plain,
    as_text,
    canonical,
    clean,
    document_of,
    failed,
    page_source,
    page_text,
    plain,
    toc_of,
)
from pagefile.tiers.workspace.rules import ToolRule, bare_name

#: Lines kept of a table of contents whose full text is an archived page.
MAX_LINES = 500


@dataclass(frozen=True, slots=True)
class Result:
    """An incoming tool result in every form that is needed."""

    tool: str
    given: Plain
    value: Plain
    text: str

    @classmethod
    def of(cls, tool: object, given: object, result: object) -> "Result":
        """Normalises whatever came in."""
        value = plain(result)
        return cls(clean(str(tool)), plain(given), value, as_text(result, value))

    @property
    def failed(self) -> bool:
        """Whether it contains nothing."""
        return failed(self.value)


def remember(
    notes: AgentMemory,
    rule: ToolRule,
    result: Result,
    metadata: Mapping[str, JsonValue],
    *,
    whole: bool = True,
) -> int:
    """Add what the rule remembers of a result to the notes; returns how many chunks were added.

    With `whole=False` only the outline of a table of contents is kept: the archive has the rest.
    """
    if result.failed or not notes.enabled:
        return 0
    before = {id(chunk) for chunk in notes.relevant_chunks}
    if rule.remembers == "toc":
        _remember_toc(notes, result, metadata.get(ARCHIVED), whole=whole)
    elif rule.remembers == "search":
        value = result.value
        notes.add_search_results(
            value if isinstance(value, list) else [value], scale=rule.scale, metadata=metadata
        )
    elif rule.remembers == "page" and (text := page_text(result.value)):
        notes.add_page_content(text, _place(result), rule.relevance, metadata=metadata)
    return sum(id(chunk) not in before for chunk in notes.relevant_chunks)


def _remember_toc(notes: AgentMemory, result: Result, uuid: JsonValue, *, whole: bool) -> None:
    toc = toc_of(result.value)
    kept: dict[str, Plain] = dict(toc) if whole else compact(entries(toc), MAX_LINES)
    if isinstance(uuid, str):
        kept[ARCHIVED] = uuid
    notes.cache_toc(document_of(result.value, result.given) or bare_name(result.tool), kept)


def _place(result: Result) -> str:
    asked = canonical(result.given)
    return page_source(result.value, result.given) or f"{bare_name(result.tool)} {asked}"[:100]
