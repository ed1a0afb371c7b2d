"""The workspace tier: an agent need not look twice for what it has at hand."""

from pagefile.tiers.workspace.answers import Absorbed, CachedResult
from pagefile.tiers.workspace.notes import AgentMemory, ContentChunk
from pagefile.tiers.workspace.parts import WorkspaceRules
from pagefile.tiers.workspace.rules import DEFAULT_RULES, ToolRule, parsed_rules
from pagefile.tiers.workspace.run import Workspace
from pagefile.tiers.workspace.tier import Workspaces

__all__ = [
    "DEFAULT_RULES",
    "Absorbed",
    "AgentMemory",
    "CachedResult",
    "ContentChunk",
    "ToolRule",
    "Workspace",
    "WorkspaceRules",
    "Workspaces",
    "parsed_rules",
]
