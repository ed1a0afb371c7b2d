"""Which tool's results are remembered as what: a table of name patterns, to which users add their own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, cast, get_args

from pagefile.errors import SettingsError
from pagefile.text.scores import Scale

Kind = Literal["toc", "search", "page", "nothing"]

#: Document 003: a page that was read counts this much.
PAGE_RELEVANCE = 0.8
CHAPTER_RELEVANCE = 0.85


@dataclass(frozen=True, slots=True)
class ToolRule:
    """What becomes of the results of the tools that a pattern names."""

    #: A tool's name; `*` stands for anything. An MCP tool is matched with and without its `mcp__server__`.
    pattern: str
    remembers: Kind = "nothing"
    #: True: an equal call is answered from what was fetched before.
    cacheable: bool = False
    #: What a page of it counts; search results bring their own score.
    relevance: float = PAGE_RELEVANCE
    #: How the scores of its results are to be read.
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
        """Whether it speaks of a tool."""
        return fnmatchcase(tool, self.pattern) or fnmatchcase(bare_name(tool), self.pattern)


NOTHING = ToolRule("*")

#: The tools of document 003.
DEFAULT_RULES: tuple[ToolRule, ...] = (
    ToolRule("get_toc", "toc", cacheable=True),
    ToolRule("smart_search", "search"),
    ToolRule("read_page_range", "page"),
    ToolRule("read_chapter_content", "page", relevance=CHAPTER_RELEVANCE),
)


def bare_name(tool: str) -> str:
    """A tool's own name: `get_toc` of `mcp__gridcode__get_toc`."""
    parts = tool.split("__", 2)
    return parts[2] if len(parts) == 3 and parts[0] == "mcp" and parts[2] else tool


def rule_for(tool: str, rules: Iterable[ToolRule]) -> ToolRule:
    """The first rule that speaks of a tool; one that remembers nothing when none does."""
    return next((rule for rule in rules if rule.matches(tool)), NOTHING)


def parsed_rules(text: str | None) -> Sequence[ToolRule]:
    """Rules as they stand in the settings: `list_*=toc+cache, grep=search, get_time=nothing+cache`."""
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
