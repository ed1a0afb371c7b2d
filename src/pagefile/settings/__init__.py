"""One frozen object of settings; `sources` is the only reader of environment and files."""

from pagefile.settings.model import (
    ArchiveSettings,
    ChatSettings,
    EmbedderSettings,
    FactSettings,
    GatewaySettings,
    McpSettings,
    ModelSettings,
    PolicySettings,
    ServiceSettings,
    Settings,
    WorkspaceSettings,
)

__all__ = [
    "ArchiveSettings",
    "ChatSettings",
    "EmbedderSettings",
    "FactSettings",
    "GatewaySettings",
    "McpSettings",
    "ModelSettings",
    "PolicySettings",
    "ServiceSettings",
    "Settings",
    "WorkspaceSettings",
]
