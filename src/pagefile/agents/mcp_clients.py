"""Clients of the Model Context Protocol: where each keeps its list of servers, and in which shape."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pagefile.agents.config_files import Change, json_change, toml_change, with_entry, without_entry
from pagefile.errors import InvalidArgumentError

ClientName = Literal["claude-code", "claude-desktop", "cursor", "vscode", "codex"]

#: The name that the server has in every client.
SERVER = "pagefile"


@dataclass(frozen=True, slots=True)
class Client:
    """A client and its files; paths are relative to the user's home, and to a project's folder."""

    title: str
    #: By platform, or one for all.
    home: Mapping[str, str]
    project: str | None
    #: Where the servers are in the file.
    place: tuple[str, ...] = ("mcpServers",)
    #: What an entry has besides its command.
    typed: bool = False

    def path(self, home: Path, project: Path | None) -> Path:
        if project is not None:
            if self.project is None:
                raise InvalidArgumentError(f"{self.title} has no settings of a project: leave --project out.")
            return project / self.project
        return home / self.home.get(sys.platform, self.home["linux"])

    def installed(self, path: Path, command: Sequence[str]) -> Change:
        """The change that adds the server."""
        first, *rest = command
        if path.suffix == ".toml":
            lines = f"command = {json.dumps(first)}\nargs = {json.dumps(rest, ensure_ascii=False)}"
            return toml_change(path, self._table, lines)
        entry: dict[str, Any] = {"command": first, "args": rest}
        if self.typed:
            entry = {"type": "stdio", **entry}
        return json_change(path, lambda found: with_entry(found, (*self.place, SERVER), entry, path))

    def uninstalled(self, path: Path) -> Change:
        """The change that removes it."""
        if path.suffix == ".toml":
            return toml_change(path, self._table, None)
        return json_change(path, lambda found: without_entry(found, (*self.place, SERVER)))

    @property
    def _table(self) -> str:
        return ".".join((*self.place, SERVER))


def _config(mac: str, linux: str, windows: str) -> dict[str, str]:
    return {
        "darwin": f"Library/Application Support/{mac}",
        "linux": f".config/{linux}",
        "win32": f"AppData/Roaming/{windows}",
    }


_DESKTOP = "Claude/claude_desktop_config.json"
_CODE = "Code/User/mcp.json"

CLIENTS: Mapping[str, Client] = {
    "claude-code": Client("Claude Code", {"linux": ".claude.json"}, ".mcp.json"),
    "claude-desktop": Client("Claude Desktop", _config(_DESKTOP, _DESKTOP, _DESKTOP), None),
    "cursor": Client("Cursor", {"linux": ".cursor/mcp.json"}, ".cursor/mcp.json"),
    "vscode": Client(
        "VS Code", _config(_CODE, _CODE, _CODE), ".vscode/mcp.json", place=("servers",), typed=True
    ),
    "codex": Client("Codex", {"linux": ".codex/config.toml"}, ".codex/config.toml", place=("mcp_servers",)),
}


def server_command(db: str, *more: str) -> list[str]:
    """What a client runs: this very Python, wherever the client is started."""
    return [sys.executable, "-m", "pagefile", "mcp", "--db", db, *more]
