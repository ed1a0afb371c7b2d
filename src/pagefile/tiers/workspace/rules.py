"""Which tools' results are remembered, as what and how: a table of name patterns that users can extend."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, cast, get_args

from pagefile.errors import SettingsError
from pagefile.records import JsonValue
from pagefile.text.scores import Scale
from pagefile.tiers.workspace.notes import ARCHIVED, AgentMemory
from pagefile.tiers.workspace.outline import compact, entries
from pagefile.tiers.workspace.results import Result, canonical, document_of, page_source, page_text, toc_of

Kind = Literal["toc", "search", "page", "nothing"]

#: The relevance of a page that was read.
PAGE_RELEVANCE = 0.8
CHAPTER_RELEVANCE = 0.85
#: Lines kept of a table of contents whose full text is an archived page.
MAX_LINES = 500


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
    relevance: float = PAGE_RELEVANCE
    #: How to interpret the scores of its results.
    scale: Scale = "auto"

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

    def matches(self, tool: str) -> bool:
        return fnmatchcase(tool, self.pattern) or fnmatchcase(bare_name(tool), self.pattern)


NOTHING = ToolRule("*")

#: Rules for the standard tools.
DEFAULT_RULES: tuple[ToolRule, ...] = (
    ToolRule("get_toc", "toc", cacheable=True),
    ToolRule("smart_search", "search"),
    ToolRule("read_page_range", "page"),
    ToolRule("read_chapter_content", "page", relevance=CHAPTER_RELEVANCE),
)


def bare_name(tool: str) -> str:
    """A tool's own name: `get_toc` in `mcp__gridcode__get_toc`."""
    parts = tool.split("__", 2)
    return parts[2] if len(parts) == 3 and parts[0] == "mcp" and parts[2] else tool


def rule_for(tool: str, rules: Iterable[ToolRule]) -> ToolRule:
    """The first rule that applies to a tool; one that remembers nothing if none does."""
    return next((rule for rule in rules if rule.matches(tool)), NOTHING)


def parsed_rules(text: str | None) -> Sequence[ToolRule]:
    """Rules as written in the settings: `list_*=toc+cache, grep=search, get_time=nothing+cache`."""
    return tuple(_parsed(part) for part in (text or "").split(",") if part.strip())


def _parsed(part: str) -> ToolRule:
    pattern, sign, what = (piece.strip() for piece in part.partition("="))
    kind, plus, cache = (piece.strip() for piece in what.partition("+"))
    if not sign or kind not in get_args(Kind) or (plus and cache != "cache"):
        raise SettingsError(
            f"workspace.rules has {part.strip()!r}: write pattern=kind, where kind is one of {', '.join(get_args(Kind))}, "
            "with +cache behind it when an equal call may be answered from before."
        )
    return ToolRule(pattern, cast("Kind", kind), cacheable=bool(plus))


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
        notes.cache_toc(document_of(result.value, result.given) or bare_name(result.tool), kept)
    elif rule.remembers == "search":
        value = result.value if isinstance(result.value, list) else [result.value]
        notes.add_search_results(value, scale=rule.scale, metadata=metadata)
    elif rule.remembers == "page" and (text := page_text(result.value)):
        asked = f"{bare_name(result.tool)} {canonical(result.given)}"[:100]
        source = page_source(result.value, result.given) or asked
        notes.add_page_content(text, source, rule.relevance, metadata=metadata)
    return sum(id(chunk) not in before for chunk in notes.relevant_chunks)
