"""What the workspaces of a memory share: their settings, the archive, the clock."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pagefile.ports import Clock
from pagefile.records import Scope
from pagefile.tiers.archive import Archive
from pagefile.tiers.base import Counter
from pagefile.tiers.languages import Languages
from pagefile.tiers.workspace.notes import AgentMemory
from pagefile.tiers.workspace.rules import ToolRule


@dataclass(frozen=True, slots=True)
class WorkspaceRules:
    """What is remembered, and how much of it is shown."""

    #: Makes the empty notes of a run.
    notes: Callable[[], AgentMemory]
    enabled: bool
    outline_chars: int
    #: How many seconds an equal call is answered from an earlier result; 0 means for the whole session.
    cache_s: float
    #: Results with more characters leave the window; for tools with a rule, those over `page_from` get a page
    #: as well.
    threshold: int
    page_from: int
    #: The maximum number of tokens for hint and chunks in a window.
    max_tokens: int
    #: How many runs are kept at once.
    max_runs: int
    tools: Sequence[ToolRule]


@dataclass(slots=True)
class Parts:
    """What all workspaces of a memory share."""

    archive: Archive
    counter: Counter
    clock: Clock
    languages: Languages
    rules: WorkspaceRules
    #: The number of the last erasure, of a scope or of all.
    epoch: Callable[[Scope | None], Awaitable[int]]
    #: Called when a store fails, with whether this is the first failure of the run.
    on_failure: Callable[[Exception, bool], None] = field(default=lambda _, __: None)
