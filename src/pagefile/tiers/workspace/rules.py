"""Which tools' results are remembered, as what and how: a table of name patterns that users can extend.

Tools without a pattern are judged by the words of their names.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, cast, get_args

from pagefile.errors import SettingsError
from pagefile.records import JsonValue
from pagefile.text.scores import Scale
from pagefile.tiers.workspace.found import document_of, page_source, page_text, toc_of
from pagefile.tiers.workspace.notes import ARCHIVED, AgentMemory
from pagefile.tiers.workspace.outline import compact, entries
from pagefile.tiers.workspace.results import Plain, Result, canonical
from pagefile.tiers.workspace.tool_names import bare_name, effect, is_volatile, is_web

Kind = Literal["toc", "search", "page", "nothing"]

#: Lines kept of a table of contents whose full text is an archived page.
MAX_LINES = 500
#: How many seconds an answer holds of a tool that is known only by its name, and of one that reads the web.
FRESH_S = 300.0
WEB_FRESH_S = 3_600.0


@dataclass(frozen=True, slots=True)
class ToolRule:
    """How to handle the results of the tools that match a pattern."""

    #: A tool's name; `*` matches anything. An MCP tool is matched with and without its `mcp__server__`
    #: prefix.
    pattern: str
    remembers: Kind = "nothing"
    #: If True, an equal call is answered from an earlier result.
    cacheable: bool = False
    #: The relevance of its pages; search results have their own scores.
    relevance: float = 0.8
    #: How to interpret the scores of its results.
    scale: Scale = "auto"
    #: How many seconds an earlier result answers an equal call; 0 is as long as the run lasts.
    fresh_s: float = 0.0
    #: False if its calls change nothing that other tools read; None is judged by its name and arguments.
    changes: bool | None = None

    def __post_init__(self) -> None:
        if not self.pattern.strip():
            raise SettingsError("A tool rule needs a name or a pattern, such as 'get_toc' or 'list_*'.")
        if self.remembers not in get_args(Kind):
            raise SettingsError(
                f"The rule for {self.pattern!r} remembers {self.remembers!r}: it must be one of {', '.join(get_args(Kind))}."
            )
        if not 0 <= self.relevance <= 1:
            raise SettingsError(
                f"The rule for {self.pattern!r} has relevance {self.relevance!r}: give 0 to 1."
            )

        if self.fresh_s < 0:
            raise SettingsError(
                f"The rule for {self.pattern!r} has fresh_s {self.fresh_s!r}: give 0 or more."
            )
        if self.cacheable and self.changes:
            raise SettingsError(
                f"The rule for {self.pattern!r} is cacheable and changes something: an answer from before would hide the change."
            )

    def matches(self, tool: str) -> bool:
        return fnmatchcase(tool, self.pattern) or fnmatchcase(bare_name(tool), self.pattern)


NOTHING = ToolRule("*", changes=False)

#: Rules for the standard tools.
DEFAULT_RULES: tuple[ToolRule, ...] = (
    ToolRule("get_toc", "toc", cacheable=True),
    ToolRule("smart_search", "search", cacheable=True),
    ToolRule("read_page_range", "page", cacheable=True),
    ToolRule("read_chapter_content", "page", cacheable=True, relevance=0.85),
)


def rule_for(tool: str, rules: Iterable[ToolRule], arguments: Plain = None) -> ToolRule:
    """The first rule that applies to a tool; if none does, the one its name and arguments suggest."""
    found = next((rule for rule in rules if rule.matches(tool)), None)
    if found is None:
        return _suggested(tool, arguments)
    if found.changes is not None or found.cacheable or found.remembers != "nothing":
        return found
    return replace(found, changes=_suggested(tool, arguments).changes)


def _suggested(tool: str, arguments: Plain) -> ToolRule:
    does = effect(tool, arguments)
    if does in (None, "changes", "runs", "apart"):
        return ToolRule("*", changes=does != "apart")
    volatile = is_volatile(tool, arguments)
    # A list of files or orders is not a table of contents, and a status is not a page: neither is knowledge.
    kind: Kind = "nothing" if does == "list" or (volatile and does == "page") else does
    fresh_s = WEB_FRESH_S if is_web(tool, arguments) else FRESH_S
    return ToolRule("*", kind, cacheable=not volatile, fresh_s=fresh_s, changes=False)


def parsed_rules(text: str | None) -> Sequence[ToolRule]:
    """Rules as written in the settings: `list_*=toc+cache, grep=search, get_time=nothing+pure`."""
    return tuple(_parsed(part) for part in (text or "").split(",") if part.strip())


def _parsed(part: str) -> ToolRule:
    pattern, sign, what = (piece.strip() for piece in part.partition("="))
    kind, *marks = (piece.strip() for piece in what.split("+"))
    if not sign or kind not in get_args(Kind) or not set(marks) <= {"cache", "pure"}:
        raise SettingsError(
            f"workspace.rules has {part.strip()!r}: write pattern=kind, where kind is one of {', '.join(get_args(Kind))}, "
            "with +cache behind it when an equal call may be answered from before, "
            "or +pure when a call changes nothing that other tools read."
        )
    return ToolRule(
        pattern, cast("Kind", kind), cacheable="cache" in marks, changes=False if "pure" in marks else None
    )


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
        toc = toc_of(result.value)
        kept = dict(toc) if whole else compact(entries(toc), MAX_LINES)
        if isinstance(uuid := metadata.get(ARCHIVED), str):
            kept[ARCHIVED] = uuid
        notes.fetched_toc(document_of(result.value, result.given) or bare_name(result.tool), kept)
    elif rule.remembers == "search":
        notes.add_search_results(
            result.value, scale=rule.scale, tool=bare_name(result.tool), metadata=metadata
        )
    elif rule.remembers == "page" and (text := page_text(result.value)):
        asked = f"{bare_name(result.tool)} {canonical(result.given)}"[:100]
        source = page_source(result.value, result.given) or asked
        notes.add_page_content(text, source, rule.relevance, metadata=metadata)
    return sum(id(chunk) not in before for chunk in notes.relevant_chunks)
